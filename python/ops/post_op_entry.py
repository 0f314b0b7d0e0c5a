"""One entry of a post-op chain as users write it: what it may be, how it is spelled.

The text form is the op attribute that cc/core/post_ops parses, with the same errors:

    chain    = [ entry { ";" entry } ]
    entry    = "eltwise(" name { "," ("alpha" | "beta" | "scale") "=" number } ")"
             | "sum(" [ operand ] [ "," ] [ "scale" "=" number ] ")"
             | "binary(" name "," shape "," operand ")"
    operand  = "#" digits [ "@" digits ]
    number   = [ "-" ] decimal, finite in float32

Spaces around any of these are skipped.
"""

import math
import re

import numpy as np
import tensorflow as tf

from ..graph import definition
from ..native import c_library
from .steps import Step

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
_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
LOW_PRECISION = (tf.bfloat16, tf.uint8)  # what one operand of some ops may be


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
        elif value.dtype not in (tf.float32, *LOW_PRECISION):
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


def eltwise_entry(alg: str, alpha=None, beta=None, scale=1.0) -> Step:
    """x = scale * alg(x), in canonical form; ValueError says what is wrong."""
    name = ALIASES.get(alg, alg)
    if name not in ELTWISE:
        raise ValueError(f'unknown algorithm "{alg}"; known are {", ".join(ELTWISE)}')
    params = []
    for key, value, default in zip(("alpha", "beta"), (alpha, beta), ELTWISE[name], strict=True):
        if value is None:
            if default is REQUIRED:
                raise ValueError(f"{name} needs {key}=...")
        elif default is None:
            raise ValueError(
                f'{name} does not take "{key}={value}"; it takes each of {_taken(name)} once'
            )
        else:
            number = _float32(key, value)
            if default is REQUIRED or number != np.float32(default):
                params.append((key, number))
    return Step("eltwise", name, params=(*params, *_scale(scale)))


def sum_entry(scale=1.0, operand=None) -> Step:
    """x = scale * operand + x; ValueError says what is wrong."""
    return Step("sum", "", "", None if operand is None else _operand(operand), _scale(scale))


def binary_entry(alg: str, operand, shape: str | None = None) -> Step:
    """x = alg(x, operand); ValueError says what is wrong."""
    if alg not in BINARY:
        raise ValueError(f'unknown algorithm "{alg}"; known are {", ".join(BINARY)}')
    if shape is not None and shape not in SHAPES:
        raise ValueError(f'unknown operand shape "{shape}"; known are {", ".join(SHAPES)}')
    operand = _operand(operand)
    if shape is None and isinstance(operand, str):
        raise ValueError(f"operand {operand} needs shape=, one of {', '.join(SHAPES)}")
    return Step("binary", alg, shape or "", operand)


def parse_entry(text: str) -> Step:
    """The entry that `text` spells; ValueError says what is wrong."""
    opening, closing = text.find("("), text.find(")")
    if opening < 0 or closing < opening:
        raise ValueError("an entry is eltwise(...), sum(...) or binary(...)")
    if closing + 1 != len(text):
        raise ValueError(f'text after the entry: "{text[closing + 1 :]}"; join entries with ;')
    kind, words = text[:opening].strip(" "), split(text[opening + 1 : closing], ",")
    if kind == "eltwise":
        name = ALIASES.get(words[0], words[0])
        known = name in ELTWISE
        return eltwise_entry(name, **_numbers(words[1:], name, _taken(name)) if known else {})
    if kind == "sum":
        operand = words.pop(0) if words[0].startswith("#") else None
        sum_entry(operand=operand)  # complains of the operand before the numbers
        return sum_entry(
            operand=operand, **_numbers(words, "sum", "scale=...") if any(words) else {}
        )
    if kind == "binary":
        if len(words) != 3 and words[0] in BINARY:
            raise ValueError("binary takes three arguments, as in binary(add,channel,#0)")
        alg, shape, operand = (*words, "", "")[:3]
        return binary_entry(alg, operand, shape)
    raise ValueError(f'unknown kind "{kind}"; known are eltwise, sum, binary')


def split(text: str, separator: str) -> list[str]:
    return [part.strip(" ") for part in text.split(separator)]


def place_of(operand: str) -> tuple[int, int]:
    """The index among args and the first element that "#0@128" names."""
    index, _, offset = operand[1:].partition("@")
    return int(index), int(offset or 0)


def _numbers(words: list[str], owner: str, taken: str) -> dict[str, float]:
    keys, numbers = re.findall(r"(\w+)=", taken), {}
    for word in words:
        key, equals, text = (part.strip(" ") for part in word.partition("="))
        if not equals or key not in keys or key in numbers:
            raise ValueError(f'{owner} does not take "{word}"; it takes each of {taken} once')
        if not _NUMBER.fullmatch(text):
            raise _not_finite(key, text)
        numbers[key] = _float32(key, float(text), text)
        if numbers[key] == 0.0 and re.search("[1-9]", re.split("[eE]", text)[0]):
            raise _not_finite(key, text)
    return numbers


def _taken(name: str) -> str:
    """The numbers that algorithm `name` takes, for messages."""
    pairs = zip(("alpha", "beta"), ELTWISE[name], strict=True)
    keys = [key for key, default in pairs if default is not None]
    return ", ".join(f"{key}=..." for key in [*keys, "scale"])


def _not_finite(key: str, value) -> ValueError:
    return ValueError(f'{key} = "{value}" is no finite float; write one as 0.25 or 1e-3')


def _float32(key: str, value, text: str | None = None) -> float:
    with np.errstate(over="ignore"):
        number = float(np.float32(value))
    if not math.isfinite(number):
        raise _not_finite(key, value if text is None else text)
    return number


def _scale(scale) -> tuple[tuple[str, float], ...]:
    number = _float32("scale", scale)
    return () if number == 1.0 else (("scale", number),)


def _operand(operand):
    if not isinstance(operand, str):
        return TensorOperand(operand)
    index, offset = place_of(operand) if _INDEX.fullmatch(operand) else (2**31, 0)
    if index >= 2**31 or offset >= 2**63:
        raise ValueError(
            f'"{operand}" is no operand; write the args input as #0, or as #0@128 from element 128'
        )
    return f"#{index}@{offset}" if offset else f"#{index}"
