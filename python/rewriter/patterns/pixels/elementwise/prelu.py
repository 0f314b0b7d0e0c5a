"""PReLU in its spellings: what is negative is multiplied by a constant slope of its channel.

Keras has no op for it: relu(x) + (-slope) * relu(-x) is five nodes, of which two read x.
"""

from .....graph import Any, Body, OneOf, Op, Scalar, match
from .....ops.records import binary
from .affine import per_channel
from .idiom import Idiom

ROOTS = ("Add", "AddV2", "Sub", "SelectV2", "Select")
_X, _SLOPE, _ZERO = Any("x"), Any("slope"), Scalar(0.0, tolerance=0.0)
_POSITIVE = OneOf(Op("Relu", _X), Op("Maximum", _X, _ZERO))
_MINUS_NEGATIVE = Op("Relu", Op("Neg", _X))  # -min(x, 0)
_NEGATIVE = OneOf(Op("Neg", _MINUS_NEGATIVE), Op("Minimum", _X, _ZERO))
_TWICE_NEGATIVE = Op("Sub", _X, Op("Abs", _X))  # 2 min(x, 0)
_HALF_SLOPED = Op("Mul", Op("Mul", _SLOPE, _TWICE_NEGATIVE), Scalar(0.5))
_SLOPED = Op("Mul", _SLOPE, _X)

# (pattern, factor of the bound constant that makes it the slope)
_TABLE = (
    (Op("Add|AddV2", _POSITIVE, Op("Mul", _SLOPE, _MINUS_NEGATIVE)), -1.0),
    (Op("Sub", _POSITIVE, Op("Mul", _SLOPE, _MINUS_NEGATIVE)), 1.0),
    (Op("Add|AddV2", _POSITIVE, OneOf(Op("Mul", _SLOPE, _NEGATIVE), _HALF_SLOPED)), 1.0),
    (Op("SelectV2|Select", Op("Greater|GreaterEqual", _X, _ZERO), _X, _SLOPED), 1.0),
    (Op("SelectV2|Select", Op("Less|LessEqual", _X, _ZERO), _SLOPED, _X), 1.0),
)


def recognise(node, body: Body):
    for pattern, factor in _TABLE:
        found = match(pattern, node, body.view, body.constants)
        if found is None or body.constants.is_constant(found.refs["x"]):
            continue
        x = found.refs["x"]
        channels = body.shapes.features(x)
        if channels is None:
            continue
        slope = per_channel(body, found.refs["slope"], channels, body.shapes.rank(x))
        if slope is not None:
            step = binary("prelu", "channel", factor * slope)
            yield Idiom(node.name, x, (step,), frozenset(found.nodes))
