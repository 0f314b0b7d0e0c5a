"""Activations and bounds, which may be spelled with several ops: patterns and their steps.

One bound alone is a minimum or maximum, which lets infinities on its other side be. Keras has no op
for PReLU: relu(x) + (-slope) * relu(-x) is five nodes, of which two read x.
"""

import math

import numpy as np

from .....graph import Any, Body, Match, OneOf, Op, Scalar, match
from .....ops.records import Step, binary, eltwise
from .affine import per_channel
from .idiom import Idiom

_X = Any("x")
_HALF_X = Op("Mul", Scalar(0.5), _X)
_SQRT_HALF, _SQRT_2 = math.sqrt(0.5), math.sqrt(2.0)
_RELU6_OF_X_PLUS_3 = Op("Relu6", Op("Add|AddV2", _X, Scalar(3.0)))
_CUBE = Op("Mul", Scalar(0.044715), Op("Mul", _X, Op("Square", _X)))
_INNER_GELU = Op("Tanh", Op("Mul", Scalar(math.sqrt(2.0 / math.pi)), Op("Add|AddV2", _X, _CUBE)))
_ERF = OneOf(
    Op("Erf", Op("Mul", _X, Scalar(_SQRT_HALF))),
    Op("Erf", Op("RealDiv", _X, Scalar(_SQRT_2))),
)
_ERFC = OneOf(
    Op("Erfc", Op("Mul", Op("Neg", _X), Scalar(_SQRT_HALF))),
    Op("Erfc", Op("RealDiv", Op("Neg", _X), Scalar(_SQRT_2))),
)


def _sixth_of(six_times):
    """A sixth, or another part, which then is a scale: people write 1 / 6 in all precisions."""
    return OneOf(
        Op("Mul", six_times, Scalar(name="sixth")), Op("RealDiv", six_times, Scalar(name="six"))
    )


_HARD_SIGMOID = _sixth_of(_RELU6_OF_X_PLUS_3)
_HARD_SWISH = OneOf(Op("Mul", _X, _HARD_SIGMOID), _sixth_of(Op("Mul", _X, _RELU6_OF_X_PLUS_3)))
_LOW, _HIGH = Scalar(name="low"), Scalar(name="high")
_SLOPE, _ZERO = Any("slope"), Scalar(0.0)
_POSITIVE = OneOf(Op("Relu", _X), Op("Maximum", _X, _ZERO))
_MINUS_NEGATIVE = Op("Relu", Op("Neg", _X))  # -min(x, 0)
_NEGATIVE = OneOf(Op("Neg", _MINUS_NEGATIVE), Op("Minimum", _X, _ZERO))
_TWICE_NEGATIVE = Op("Sub", _X, Op("Abs", _X))  # 2 min(x, 0)
_HALF_SLOPED = Op("Mul", Op("Mul", _SLOPE, _TWICE_NEGATIVE), Scalar(0.5))
_SLOPED = Op("Mul", _SLOPE, _X)


def _swish(found: Match, body: Body) -> Step | None:
    beta = found.scalars.get("beta", 1.0)
    return eltwise("swish", alpha=beta) if math.isfinite(beta) else None


def _fixed(name: str):
    return lambda found, body: eltwise(name)


def _hard(name: str):
    def step(found: Match, body: Body) -> Step | None:
        sixth, six = found.scalars.get("sixth"), found.scalars.get("six")
        if six == 0.0:
            return None
        scale = float(np.float32(6.0 * sixth if six is None else 6.0 / six))
        usual = {} if scale == 1.0 else {"scale": scale}
        return eltwise(name, **usual) if math.isfinite(scale) else None

    return step


def _leaky_relu(found: Match, body: Body) -> Step | None:
    """max(x, alpha * x) is leaky only for alpha in [0, 1]."""
    alpha = found.scalars["alpha"]
    return eltwise("leaky_relu", alpha=alpha) if 0.0 <= alpha <= 1.0 else None


def _clip(found: Match, body: Body) -> Step | None:
    low, high = found.scalars.get("low"), found.scalars.get("high")
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


def _prelu(factor: float = 1.0):
    """PReLU by a constant slope of each channel, which is `factor` times what was found."""

    def step(found: Match, body: Body) -> Step | None:
        x, slope = found.refs["x"], found.refs["slope"]
        channels = body.shapes.features(x)
        values = channels and per_channel(body, slope, channels)
        return None if values is None else binary("prelu", "channel", factor * values)

    return step


# pattern -> the step that it stands for, if there is one
_TABLE = (
    (Op("Mul", _X, Op("Sigmoid", _X)), _swish),
    (Op("Mul", _X, Op("Sigmoid", Op("Mul", _X, Scalar(name="beta")))), _swish),
    (Op("Mul", _X, Op("Tanh", Op("Softplus", _X))), _fixed("mish")),
    (_HARD_SIGMOID, _hard("hard_sigmoid")),
    (_HARD_SWISH, _hard("hard_swish")),
    (Op("Mul", _HALF_X, _ERFC), _fixed("gelu_erf")),
    (Op("Mul", _HALF_X, Op("Add|AddV2", Scalar(1.0), _ERF)), _fixed("gelu_erf")),
    (Op("Mul", _HALF_X, Op("Add|AddV2", Scalar(1.0), _INNER_GELU)), _fixed("gelu_tanh")),
    (Op("Maximum", _X, Op("Mul", _X, Scalar(name="alpha"))), _leaky_relu),
    (Op("Maximum", Op("Minimum", _X, _HIGH), _LOW), _clip),
    (Op("Minimum", Op("Maximum", _X, _LOW), _HIGH), _clip),
    (Op("ClipByValue", _X, _LOW, _HIGH), _clip),
    (Op("Maximum", _X, _LOW), _clip),
    (Op("Minimum", _X, _HIGH), _clip),
    (Op("Add|AddV2", _POSITIVE, Op("Mul", _SLOPE, _MINUS_NEGATIVE)), _prelu(-1.0)),
    (Op("Sub", _POSITIVE, Op("Mul", _SLOPE, _MINUS_NEGATIVE)), _prelu()),
    (Op("Add|AddV2", _POSITIVE, OneOf(Op("Mul", _SLOPE, _NEGATIVE), _HALF_SLOPED)), _prelu()),
    (Op("SelectV2|Select", Op("Greater|GreaterEqual", _X, _ZERO), _X, _SLOPED), _prelu()),
    (Op("SelectV2|Select", Op("Less|LessEqual", _X, _ZERO), _SLOPED, _X), _prelu()),
)
ROOTS = (
    *("Add", "AddV2", "ClipByValue", "Maximum", "Minimum", "Mul", "RealDiv", "Select", "SelectV2"),
    "Sub",
)


def recognise(node, body: Body):
    for pattern, make in _TABLE:
        found = match(pattern, node, body.view, body.constants)
        if found is None or body.constants.is_constant(found.refs["x"]):
            continue
        step = make(found, body)
        if step is not None:
            yield Idiom(node.name, found.refs["x"], (step,), frozenset(found.nodes))
