"""Minimum, Maximum and ClipByValue with constant bounds.

One bound alone is a minimum or maximum, which lets infinities on its other side be.
"""

import numpy as np

from .....graph import Any, Body, Op, Scalar, match
from .....ops.records import binary, eltwise
from .idiom import Idiom

ROOTS = ("Minimum", "Maximum", "ClipByValue")

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
        low, high = found.scalars.get("low"), found.scalars.get("high")
        step = _step(low, high)
        if step is not None:
            yield Idiom(node.name, found.refs["x"], (step,), frozenset(found.nodes))


def _step(low: float | None, high: float | None):
    if low is None or high is None:
        if low == 0.0:
            return eltwise("relu")
        kind, bound = ("max", low) if high is None else ("min", high)
        return binary(kind, "scalar", np.array([bound], np.float32))
    # With low > high the order of the two ops decides; clip means max first, then min.
    # Bounds of a clip are written as text, which knows finite numbers only.
    if low <= high and np.isfinite([low, high]).all():
        return eltwise("clip", alpha=low, beta=high)
    return None
