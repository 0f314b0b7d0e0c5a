"""Activations spelled with several ops: a table of patterns and their eltwise step."""

import math

from .....graph import Any, Body, OneOf, Op, Scalar, match
from .....ops.records import eltwise
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
_HARD_SIGMOID = OneOf(
    Op("Mul", _RELU6_OF_X_PLUS_3, Scalar(1 / 6)),
    Op("RealDiv", _RELU6_OF_X_PLUS_3, Scalar(6.0)),
)


def _swish(found):
    beta = found.scalars.get("beta", 1.0)
    return eltwise("swish", alpha=beta)


def _fixed(name):
    return lambda found: eltwise(name)


def _leaky_relu(found):
    """max(x, alpha * x) is leaky only for alpha in [0, 1]."""
    alpha = found.scalars["alpha"]
    return eltwise("leaky_relu", alpha=alpha) if 0.0 <= alpha <= 1.0 else None


# pattern -> the step it stands for
_TABLE = (
    (Op("Mul", _X, Op("Sigmoid", _X)), _swish),
    (Op("Mul", _X, Op("Sigmoid", Op("Mul", _X, Scalar(name="beta")))), _swish),
    (Op("Mul", _X, Op("Tanh", Op("Softplus", _X))), _fixed("mish")),
    (_HARD_SIGMOID, _fixed("hard_sigmoid")),
    (Op("Mul", _X, _HARD_SIGMOID), _fixed("hard_swish")),
    (Op("Mul", Op("Mul", _X, _RELU6_OF_X_PLUS_3), Scalar(1 / 6)), _fixed("hard_swish")),
    (Op("RealDiv", Op("Mul", _X, _RELU6_OF_X_PLUS_3), Scalar(6.0)), _fixed("hard_swish")),
    (Op("Mul", _HALF_X, _ERFC), _fixed("gelu_erf")),
    (Op("Mul", _HALF_X, Op("Add|AddV2", Scalar(1.0), _ERF)), _fixed("gelu_erf")),
    (Op("Mul", _HALF_X, Op("Add|AddV2", Scalar(1.0), _INNER_GELU)), _fixed("gelu_tanh")),
    (Op("Maximum", _X, Op("Mul", _X, Scalar(name="alpha"))), _leaky_relu),
)
ROOTS = ("Mul", "RealDiv", "Maximum")


def recognise(node, body: Body):
    for pattern, make in _TABLE:
        found = match(pattern, node, body.view, body.constants)
        if found is None or body.constants.is_constant(found.refs["x"]):
            continue
        step = make(found)
        if step is not None:
            yield Idiom(node.name, found.refs["x"], (step,), frozenset(found.nodes))
