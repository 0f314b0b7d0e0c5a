"""Post-op chains in Python: the text that cc/core/post_ops parses, as a value.

    chain    = [ entry { ";" entry } ]
    entry    = "eltwise(" name { "," ("alpha" | "beta" | "scale") "=" number } ")"
             | "sum(" operand [ "," "scale" "=" number ] ")"
             | "binary(" name "," shape "," operand ")"
    operand  = "#" digits [ "@" digits ]
    number   = [ "-" ] decimal, finite in float32

Spaces around any of these are skipped.
"""

import math
import re
from dataclasses import dataclass

import numpy as np

MAX_ENTRIES = 32

_REQUIRED = object()

# name: (default alpha, default beta); None where the algorithm does not take it.
_ELTWISE = {
    "relu": (0.0, None),
    "leaky_relu": (_REQUIRED, None),
    "relu6": (None, None),
    "bounded_relu": (_REQUIRED, None),
    "clip": (_REQUIRED, _REQUIRED),
    "elu": (1.0, None),
    "tanh": (None, None),
    "square": (None, None),
    "abs": (None, None),
    "sqrt": (None, None),
    "linear": (1.0, 0.0),
    "soft_relu": (None, None),
    "logistic": (None, None),
    "exp": (None, None),
    "gelu_tanh": (None, None),
    "gelu_erf": (None, None),
    "swish": (1.0, None),
    "hard_sigmoid": (1 / 6, 0.5),
    "hard_swish": (1 / 6, 0.5),
    "mish": (None, None),
    "pow": (1.0, _REQUIRED),
    "log": (None, None),
    "round": (None, None),
}
_ALIASES = {"softplus": "soft_relu", "sigmoid": "logistic", "silu": "swish"}
_BINARY = ("add", "sub", "mul", "div", "max", "min")
_SHAPES = ("scalar", "channel", "sample_channel", "tensor")

_NUMBER = re.compile(r"-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_OPERAND = re.compile(r"#([0-9]+)(?:@([0-9]+))?")


@dataclass(frozen=True)
class _Entry:
    kind: str
    text: str  # canonical: equal entries have equal texts


class PostOps:
    """An ordered chain of element-wise work on an op's result before it is stored.

    A chain never changes: each method returns a new one, so what an op was given
    stays what it was. Entries run in order of appearance, in any order and number
    up to 32:

        PostOps().binary("add", 0, shape="channel").sum(1, scale=0.5).eltwise("relu")

    The operands are the op's `args`; input 0 is args[0]. `str(chain)` is the op
    attribute, and `PostOps.parse` reads it back. Chains with the same canonical
    text are equal and hash alike.

    Source: post-ops of oneDNN (eltwise, sum), with binary added.
    """

    __slots__ = ("_entries",)

    def __init__(self):
        self._entries = ()

    def eltwise(self, alg: str, *, alpha=None, beta=None, scale=1.0) -> "PostOps":
        """Appends x = scale * f(x).

        Args:
          alg: the algorithm. With its defaults, if any: relu (x >= 0 ? x : alpha x,
            alpha 0), leaky_relu (alpha), relu6, bounded_relu (min(max(x, 0), alpha)),
            clip (min(max(x, alpha), beta)), elu (x > 0 ? x : alpha (exp(x) - 1),
            alpha 1), tanh, square, abs, sqrt, linear (alpha x + beta, 1 and 0),
            soft_relu or softplus (log(1 + exp(x))), logistic or sigmoid, exp,
            gelu_tanh, gelu_erf, swish or silu (x logistic(alpha x), alpha 1),
            hard_sigmoid (min(max(alpha x + beta, 0), 1), 1/6 and 1/2), hard_swish
            (x hard_sigmoid(x)), mish, pow (alpha x^beta, alpha 1), log, round (halves
            to even).
          alpha, beta: finite numbers, where the algorithm takes them; rounded to
            float32.
          scale: a finite number.

        Raises:
          ValueError: unknown algorithm, a parameter that is missing, not taken or not
            finite in float32, or a full chain.
        """
        name = _ALIASES.get(alg, alg)
        if name not in _ELTWISE:
            raise ValueError(f'unknown algorithm "{alg}"; known are {", ".join(_ELTWISE)}')
        text = f"eltwise({name}"
        given = {"alpha": alpha, "beta": beta}
        for (key, value), default in zip(given.items(), _ELTWISE[name], strict=True):
            if value is None:
                if default is _REQUIRED:
                    raise ValueError(f"{name} needs {key}=...")
            elif default is None:
                raise ValueError(
                    f'{name} does not take "{key}={value}"; it takes each of {_taken(name)} once'
                )
            else:
                number = _float32(key, value)
                if default is _REQUIRED or number != np.float32(default):
                    text += f",{key}={_format(number)}"
        return self._append("eltwise", text + _scale(scale) + ")")

    def sum(self, input: int, *, scale=1.0, offset: int = 0) -> "PostOps":
        """Appends x = scale * operand + x; the operand has dst's shape and layout.

        The result may be written over the operand where nothing else needs it.

        Args:
          input: index of the operand in the op's args.
          scale: a finite number.
          offset: first element of the operand.

        Raises:
          ValueError: a malformed operand or scale, or a full chain.
        """
        return self._append("sum", f"sum({_operand(input, offset)}{_scale(scale)})")

    def binary(self, alg: str, input: int, *, shape: str, offset: int = 0) -> "PostOps":
        """Appends x = alg(x, operand).

        Args:
          alg: add, sub, mul, div, max or min.
          input: index of the operand in the op's args.
          shape: of the operand against a dst [N, C, spatial]: "scalar" (one
            element), "channel" ([C]), "sample_channel" ([N, C], in dst's layout) or
            "tensor" (dst's shape and layout).
          offset: first element of the operand.

        Raises:
          ValueError: unknown algorithm or shape, a malformed operand, or a full chain.
        """
        if alg not in _BINARY:
            raise ValueError(f'unknown algorithm "{alg}"; known are {", ".join(_BINARY)}')
        if shape not in _SHAPES:
            raise ValueError(f'unknown operand shape "{shape}"; known are {", ".join(_SHAPES)}')
        return self._append("binary", f"binary({alg},{shape},{_operand(input, offset)})")

    def kind(self, i: int) -> str:
        """Kind of entry i: "eltwise", "sum" or "binary"."""
        return self._entries[i].kind

    def to_text(self) -> str:
        """The canonical text; floats have 9 digits, enough to come back exactly."""
        return ";".join(entry.text for entry in self._entries)

    @classmethod
    def parse(cls, text: str) -> "PostOps":
        """The chain that `text` describes.

        Raises:
          ValueError: one line that names the entry and the remedy.
        """
        chain = cls()
        if not text.strip(" "):
            return chain
        for i, entry in enumerate(_split(text, ";")):
            try:
                chain = _parse_entry(chain, entry)
            except ValueError as error:
                raise ValueError(f'entry {i} "{entry}": {error}') from None
        return chain

    def _append(self, kind: str, text: str) -> "PostOps":
        if len(self) == MAX_ENTRIES:
            raise ValueError(f"a chain has at most {MAX_ENTRIES} entries; split it over two ops")
        longer = PostOps()
        longer._entries = (*self._entries, _Entry(kind, text))
        return longer

    def __len__(self) -> int:
        return len(self._entries)

    def __eq__(self, other) -> bool:
        return self._entries == other._entries if isinstance(other, PostOps) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._entries)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f'PostOps.parse("{self}")'


def _taken(name: str) -> str:
    keys = [
        key
        for key, default in zip(("alpha", "beta"), _ELTWISE[name], strict=True)
        if default is not None
    ]
    return ", ".join(f"{key}=..." for key in [*keys, "scale"])


def _float32(key: str, value) -> float:
    with np.errstate(over="ignore"):
        number = float(np.float32(value))
    if not math.isfinite(number):
        raise ValueError(f'{key} = "{value}" is no finite float; write one as 0.25 or 1e-3')
    return number


def _format(number: float) -> str:
    return f"{number:.9g}"


def _scale(scale) -> str:
    number = _float32("scale", scale)
    return "" if number == 1.0 else f",scale={_format(number)}"


def _operand(input: int, offset: int) -> str:
    if not 0 <= input < 2**31 or not 0 <= offset < 2**63:
        raise ValueError(f"operand #{input}@{offset}: both numbers must be integers of 0 or more")
    return f"#{input:d}@{offset:d}" if offset else f"#{input:d}"


def _split(text: str, separator: str) -> list[str]:
    return [part.strip(" ") for part in text.split(separator)]


def _parse_entry(chain: PostOps, text: str) -> PostOps:
    opening, closing = text.find("("), text.find(")")
    if opening < 0 or closing < opening:
        raise ValueError("an entry is eltwise(...), sum(...) or binary(...)")
    if closing + 1 != len(text):
        raise ValueError(f'text after the entry: "{text[closing + 1 :]}"; join entries with ;')
    kind, args = text[:opening].strip(" "), _split(text[opening + 1 : closing], ",")
    if kind not in _PARSERS:
        raise ValueError(f'unknown kind "{kind}"; known are eltwise, sum, binary')
    return _PARSERS[kind](chain, args)


def _parse_eltwise(chain: PostOps, args: list[str]) -> PostOps:
    name = _ALIASES.get(args[0], args[0])
    if name not in _ELTWISE:
        return chain.eltwise(args[0])  # raises
    return chain.eltwise(name, **_parse_numbers(args[1:], name, _taken(name)))


def _parse_sum(chain: PostOps, args: list[str]) -> PostOps:
    if not args[0].startswith("#"):
        raise ValueError(
            "sum needs the operand to accumulate into first, as in sum(#0) or sum(#0,scale=0.5)"
        )
    input, offset = _parse_operand(args[0])
    return chain.sum(input, offset=offset, **_parse_numbers(args[1:], "sum", "scale=..."))


def _parse_binary(chain: PostOps, args: list[str]) -> PostOps:
    if args[0] not in _BINARY:
        return chain.binary(args[0], 0, shape="")  # raises
    if len(args) != 3:
        raise ValueError("binary takes three arguments, as in binary(add,channel,#0)")
    if args[1] not in _SHAPES:
        return chain.binary(args[0], 0, shape=args[1])  # raises
    input, offset = _parse_operand(args[2])
    return chain.binary(args[0], input, shape=args[1], offset=offset)


_PARSERS = {"eltwise": _parse_eltwise, "sum": _parse_sum, "binary": _parse_binary}


def _parse_numbers(args: list[str], owner: str, taken: str) -> dict[str, float]:
    keys = re.findall(r"(\w+)=", taken)
    numbers = {}
    for arg in args:
        key, equals, text = (part.strip(" ") for part in arg.partition("="))
        if not equals or key not in keys or key in numbers:
            raise ValueError(f'{owner} does not take "{arg}"; it takes each of {taken} once')
        numbers[key] = _parse_number(key, text)
    return numbers


def _parse_number(key: str, text: str) -> float:
    if _NUMBER.fullmatch(text):
        with np.errstate(over="ignore"):
            number = float(np.float32(float(text)))
        underflow = number == 0.0 and re.search("[1-9]", re.split("[eE]", text)[0])
        if math.isfinite(number) and not underflow:
            return number
    raise ValueError(f'{key} = "{text}" is no finite float; write one as 0.25 or 1e-3')


def _parse_operand(text: str) -> tuple[int, int]:
    match = _OPERAND.fullmatch(text)
    if match is None or int(match[1]) >= 2**31 or int(match[2] or 0) >= 2**63:
        raise ValueError(
            f'"{text}" is no operand; write the args input as #0, or as #0@128 from element 128'
        )
    return int(match[1]), int(match[2] or 0)
