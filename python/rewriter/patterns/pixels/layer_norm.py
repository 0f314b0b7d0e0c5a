"""Layer normalisation over the channels, as Keras 3 spells it."""

import numpy as np

from ....graph import Any, Body, Node, Op, Ref, Scalar, match
from ...context import Context
from ...primitives import LayerNorm
from ..found import Found

_X, _MEAN = Any("x"), Any("mean")
_VARIANCE = Op("Mean", Op("SquaredDifference", _X, _MEAN), Any("variance_axes"))
_INVERSE = Op("Rsqrt", Op("Add|AddV2", _VARIANCE, Scalar(name="epsilon")))
_SCALED = Op("Mul", _INVERSE, Any("gamma"))  # one node, which both products below read
# x * s + (beta - mean * s),  s = gamma / sqrt(variance + epsilon)
_PATTERN = Op(
    "Add|AddV2",
    Op("Mul", _X, Any("scaled")),
    Op("Add|AddV2", Op("Mul", Op("Neg", _MEAN), Any("scaled")), Any("beta")),
)
# batch_normalization of TensorFlow: x * s + (beta - mean * s)
_BY_DIFFERENCE = Op(
    "Add|AddV2",
    Op("Mul", _X, Any("scaled")),
    Op("Sub", Any("beta"), Op("Mul", _MEAN, Any("scaled"))),
)
ROOTS = ("Add", "AddV2")


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The layer normalisation that ends at `node`, unless something else looks inside."""
    if node.payload is not None:
        return None
    view, constants = body.view, body.constants
    for pattern in (_PATTERN, _BY_DIFFERENCE):
        found = match(pattern, node, view, constants)
        scaled = found and view.producer(found.refs["scaled"])
        inner = scaled and match(_SCALED, scaled, view, constants)
        if inner and all(inner.refs[key] == found.refs[key] for key in ("x", "mean")):
            return _checked(node, found, inner, body)
    return None


def _checked(node: Node, found, inner, body: Body) -> Found | str | None:
    src, mean = found.refs["x"], body.view.producer(found.refs["mean"])
    if mean.op != "Mean" or mean.inputs[0] != src or mean.payload is not None:
        return None
    channels = body.shapes.channels(src)
    axes = (mean.inputs[1], inner.refs["variance_axes"])
    if body.shapes.rank(src) not in (None, 4):
        return "it normalises no pixels: only [N, H, W, C] is implemented"
    if channels is None or not all(_is_last(body, axis) for axis in axes):
        return None
    variance = next(n for n in map(body.view.node, inner.nodes) if n.op == "Mean")
    if not mean.attr["keep_dims"].b or not variance.attr["keep_dims"].b:
        return None
    gamma = _per_channel(body, inner.refs["gamma"], channels)
    beta = _per_channel(body, found.refs["beta"], channels)
    nodes = frozenset((*found.nodes, *inner.nodes, mean.name))
    if gamma is None or beta is None or not body.view.is_private(nodes - {node.name}, nodes):
        return None
    payload = LayerNorm(
        origin=node.name,
        channels=channels,
        epsilon=inner.scalars["epsilon"],
        gamma=gamma,
        beta=beta,
    )
    return Found(payload, {"src": src}, node.name, nodes)


def _is_last(body: Body, ref: Ref) -> bool:
    axis = body.shapes.number(ref)
    return axis is not None and axis % 4 == 3


def _per_channel(body: Body, ref: Ref, channels: int) -> np.ndarray | None:
    value = body.constants.value(ref)
    if value is None or value.shape[-1:] != (channels,) or value.size != channels:
        return None
    return value.reshape(-1)
