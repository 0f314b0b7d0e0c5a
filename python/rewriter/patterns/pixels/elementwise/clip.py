"""Minimum, Maximum and ClipByValue with constant bounds."""

from .....graph import Any, Body, Op, Scalar, match
from ....primitives import eltwise
from .idiom import Idiom

ROOTS = ("Minimum", "Maximum", "ClipByValue")

_INFINITY = 3.4028234663852886e38  # the largest float32: bounds must parse as finite numbers
_X = Any("x")
_PATTERNS = (
    Op("Maximum", Op("Minimum", _X, Scalar(name="high")), Scalar(name="low")),
    Op("Minimum", Op("Maximum", _X, Scalar(name="low")), Scalar(name="high")),
    Op("ClipByValue", _X, Scalar(name="low"), Scalar(name="high")),
    Op("Maximum", _X, Scalar(name="low")),
    Op("Minimum", _X, Scalar(name="high")),
)


def recognise(node, body: Body):
    for pattern in _PATTERNS:
        found = match(pattern, node, body.view, body.constants)
        if found is None or body.constants.is_constant(found.refs["x"]):
            continue
        low = found.scalars.get("low", -_INFINITY)
        high = found.scalars.get("high", _INFINITY)
        # With low > high the order of the two ops decides; clip means max first, then min.
        if low <= high:
            step = eltwise("relu") if (low, high) == (0.0, _INFINITY) else None
            step = step or eltwise("clip", alpha=low, beta=high)
            yield Idiom(node.name, found.refs["x"], (step,), frozenset(found.nodes))
