"""One entry of a post-op chain: what it may be, how it is spelled."""

import math
import re
from dataclasses import dataclass

import numpy as np
import tensorflow as tf

from ..graph import definition
from ..native import c_library

REQUIRED = object()

# The rows of cc/core/post_ops/post_op_step.h: (kind, word, TensorFlow's op or "", alias or "").
_ROWS = [row.split(",") for row in c_library().BlockdnnPostOpFunctions().decode().splitlines()]
# Functions of x alone, and of x and an operand: word -> TensorFlow's op, "" where it has none.
FUNCTIONS = {word: op for kind, word, op, _ in _ROWS if kind == "eltwise"}
BINARY = {word: op for kind, word, op, _ in _ROWS if kind == "binary"}
# Those of BINARY that give 1 or 0, where TensorFlow's op gives a truth value.
COMPARISONS = frozenset(
    word for word, op in BINARY.items() if op and definition(op).output_arg[0].type == tf.bool
)

# Those that are finite where what they read is, as their derivatives are; others may not be.
FINITE = frozenset(
    "abs add bounded_relu clip drop elu exp gelu_erf gelu_tanh hard_sigmoid hard_swish keep "
    "leaky_relu linear logistic max min mish mul prelu relu relu6 round soft_relu square sub swish "
    "tanh".split()
)

# name: (default alpha, default beta); None where the algorithm does not take it.
ELTWISE = {
    "relu": (0.0, None),
    "leaky_relu": (REQUIRED, None),
    "relu6": (None, None),
    "bounded_relu": (REQUIRED, None),
    "clip": (REQUIRED, REQUIRED),
    "elu": (1.0, None),
    "linear": (1.0, 0.0),
    "swish": (1.0, None),
    "hard_sigmoid": (1 / 6, 0.5),
    "hard_swish": (1 / 6, 0.5),
    "pow": (1.0, REQUIRED),
    **dict.fromkeys(FUNCTIONS, (None, None)),
}
ALIASES = {alias: word for _, word, _, alias in _ROWS if alias} | {"silu": "swish"}
SHAPES = ("scalar", "channel", "sample_channel", "tensor")

_INDEX = re.compile(r"#([0-9]+)(?:@([0-9]+))?")


NARROW = (tf.bfloat16, tf.uint8)  # what one operand of some ops may be


class TensorOperand:
    """A tensor that a chain holds: a tf.Tensor or tf.Variable, or a copy of an array.

    Arrays are equal where their shapes and bytes are, TensorFlow's objects where they
    are the same one.
    """

    __slots__ = ("shape", "value")

    def __init__(self, value):
        if not tf.is_tensor(value):
            value = np.array(value, np.float32)
            value.flags.writeable = False
        elif value.dtype not in (tf.float32, *NARROW):
            raise ValueError(f"the operand is {value.dtype.name}, not float32; cast it")
        self.value = value
        self.shape = tf.TensorShape(value.shape)

    def _key(self):
        return self.value.tobytes() if isinstance(self.value, np.ndarray) else id(self.value)

    def __eq__(self, other):
        if not isinstance(other, TensorOperand):
            return NotImplemented
        return (str(self), self._key()) == (str(other), other._key())

    def __hash__(self):
        return hash((str(self), self._key()))

    def __str__(self):
        if self.shape.rank is None:
            return "float32[...]"
        return "float32" + str(self.shape.as_list()).replace("None", "?").replace(" ", "")


@dataclass(frozen=True)
class Entry:
    """An entry in canonical form: equal entries are spelled alike.

    Attributes:
        kind: "eltwise", "sum" or "binary".
        words: the algorithm and the operand's shape, as far as they are given.
        operand: "#0@128", a tensor, or None.
        numbers: "alpha=0.25" and so on.
    """

    kind: str
    words: tuple[str, ...] = ()
    operand: "str | TensorOperand | None" = None
    numbers: tuple[str, ...] = ()

    def __str__(self):
        operand = () if self.operand is None else (str(self.operand),)
        return f"{self.kind}({','.join((*self.words, *operand, *self.numbers))})"


def eltwise_entry(alg: str, alpha=None, beta=None, scale=1.0) -> Entry:
    """x = scale * alg(x); ValueError says what is wrong."""
    name = ALIASES.get(alg, alg)
    if name not in ELTWISE:
        raise ValueError(f'unknown algorithm "{alg}"; known are {", ".join(ELTWISE)}')
    numbers = []
    given = {"alpha": alpha, "beta": beta}
    for (key, value), default in zip(given.items(), ELTWISE[name], strict=True):
        if value is None:
            if default is REQUIRED:
                raise ValueError(f"{name} needs {key}=...")
        elif default is None:
            raise ValueError(
                f'{name} does not take "{key}={value}"; it takes each of {taken(name)} once'
            )
        else:
            number = _float32(key, value)
            if default is REQUIRED or number != np.float32(default):
                numbers.append(f"{key}={number:.9g}")
    return Entry("eltwise", (name,), None, (*numbers, *_scale(scale)))


def sum_entry(scale=1.0, operand=None) -> Entry:
    """x = scale * operand + x; ValueError says what is wrong."""
    operand = None if operand is None else _operand(operand)
    return Entry("sum", (), operand, _scale(scale))


def binary_entry(alg: str, operand, shape: str | None = None) -> Entry:
    """x = alg(x, operand); ValueError says what is wrong."""
    if alg not in BINARY:
        raise ValueError(f'unknown algorithm "{alg}"; known are {", ".join(BINARY)}')
    if shape is not None and shape not in SHAPES:
        raise ValueError(f'unknown operand shape "{shape}"; known are {", ".join(SHAPES)}')
    operand = _operand(operand)
    if shape is None and isinstance(operand, str):
        raise ValueError(f"operand {operand} needs shape=, one of {', '.join(SHAPES)}")
    return Entry("binary", (alg,) if shape is None else (alg, shape), operand)


def taken(name: str) -> str:
    """The numbers that algorithm `name` takes, for messages."""
    keys = [
        key
        for key, default in zip(("alpha", "beta"), ELTWISE[name], strict=True)
        if default is not None
    ]
    return ", ".join(f"{key}=..." for key in [*keys, "scale"])


def not_finite(key: str, value) -> ValueError:
    return ValueError(f'{key} = "{value}" is no finite float; write one as 0.25 or 1e-3')


def _float32(key: str, value) -> float:
    with np.errstate(over="ignore"):
        number = float(np.float32(value))
    if not math.isfinite(number):
        raise not_finite(key, value)
    return number


def _scale(scale) -> tuple[str, ...]:
    number = _float32("scale", scale)
    return () if number == 1.0 else (f"scale={number:.9g}",)  # 9 digits come back exactly


def _operand(operand):
    if not isinstance(operand, str):
        return TensorOperand(operand)
    match = _INDEX.fullmatch(operand)
    if match is None or int(match[1]) >= 2**31 or int(match[2] or 0) >= 2**63:
        raise ValueError(
            f'"{operand}" is no operand; write the args input as #0, or as #0@128 from element 128'
        )
    index, offset = int(match[1]), int(match[2] or 0)
    return f"#{index}@{offset}" if offset else f"#{index}"
