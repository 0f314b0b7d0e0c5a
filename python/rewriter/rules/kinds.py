"""What may stand for a parameter of a rule that is no tensor.

`check(match, name, value)` gives what the parameter is then, or raises Declined. The value is a
tensor, an attribute, a size, or the default of an operand that is absent. Each kind is drawn by
tests/python/rewriter/rules/formulas.py.
"""

from dataclasses import dataclass

import numpy as np

from ...graph import Body, Ref
from .rule import Declined, Match, require

MOST = float(np.finfo(np.float32).max)  # constants are computed in float64


@dataclass(frozen=True)
class Number:
    """A constant of one element in [low, high]."""

    low: float = -MOST
    high: float = MOST

    def check(self, match: Match, name: str, value) -> float:
        number = match.body.constants.scalar(value) if isinstance(value, Ref) else value
        require(number is not None and self.low <= number <= self.high)
        return number


@dataclass(frozen=True)
class Constant:
    """A constant of that rank."""

    rank: int

    def check(self, match: Match, name: str, value: Ref) -> np.ndarray:
        constant = match.body.constants.value(value)
        require(constant is not None and constant.ndim == self.rank)
        return constant


@dataclass(frozen=True)
class Stored:
    """A constant that is not read."""

    def check(self, match: Match, name: str, value: Ref) -> Ref:
        if not match.body.constants.is_constant(value):
            raise Declined(f"the {name} are computed or assigned inside the function")
        return value


@dataclass(frozen=True)
class Weights(Constant):
    """A finite constant of that rank that has elements, and of which the report says so.

    Padding is zeros here, which an infinite weight makes NaN; TensorFlow adds nothing there.
    """

    def check(self, match: Match, name: str, value: Ref) -> np.ndarray:
        constant = super().check(match, name, Stored().check(match, name, value))
        require(constant.size, "the filter is empty")
        require(np.isfinite(constant).all(), "the filter holds infinities or NaN")
        return constant


@dataclass(frozen=True)
class PerChannel:
    """A finite constant that is one number, or one for each channel of x."""

    def check(self, match: Match, name: str, value) -> np.ndarray:
        if not isinstance(value, Ref):
            return np.full(match.channels(), value)
        constant = per_channel(match.body, value, match.channels())
        require(constant is not None)
        return constant


def per_channel(body: Body, ref, channels: int) -> np.ndarray | None:
    """The finite constant broadcast to float64 [channels], where it varies along channels at most.

    It may have more axes than what it meets, and so would the result: who asks compares their
    shapes.
    """
    shape = body.shapes.shape(ref)
    if shape is None or any(size != 1 for size in shape[:-1]):
        return None
    if shape and shape[-1] not in (1, channels):
        return None
    value = body.constants.value(ref)
    if value is None or not np.isfinite(value).all():
        return None
    return np.broadcast_to(value.astype(np.float64).reshape(-1), (channels,))


@dataclass(frozen=True)
class Size:
    """A size that is known, and not zero."""

    def check(self, match: Match, name: str, value) -> int:
        require(isinstance(value, int) and value)
        return value


@dataclass(frozen=True)
class OneOf:
    """An attribute that is one of the values."""

    values: tuple

    def check(self, match: Match, name: str, value):
        if value not in self.values:
            allowed = " or ".join(map(str, self.values))
            raise Declined(f"{name} {value}, only {allowed} is implemented")
        return value


@dataclass(frozen=True)
class Window:
    """An attribute [1, rows, columns, 1], or nothing, which is 1 and 1."""

    def check(self, match: Match, name: str, value: list) -> tuple[int, int]:
        if value and (value[0], value[3]) != (1, 1):
            raise Declined(f"its {name} reaches over the batch or the channels")
        return tuple(value[1:3]) or (1, 1)


@dataclass(frozen=True)
class Sizes:
    """A tensor of integers, as known or open sizes."""

    def check(self, match: Match, name: str, value: Ref) -> np.ndarray:
        sizes = match.body.shapes.value(value)
        require(sizes is not None, f"the channels or the {name} are not known")
        return sizes
