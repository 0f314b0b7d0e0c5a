"""Layer normalisation over the channels, as Keras 3 and TensorFlow spell it."""

import numpy as np

from ....graph import Any, Body, Node, Op, Ref, Scalar, match
from ....ops.records import LayerNorm
from ...context import Context
from ..found import Found

_X, _MEAN, _SCALED, _BETA = Any("x"), Any("mean"), Any("scaled"), Any("beta")
_VARIANCE = Op("Mean", Op("SquaredDifference", _X, _MEAN), Any("variance_axes"))
_INVERSE = Op("Rsqrt", Op("Add|AddV2", _VARIANCE, Scalar(name="epsilon")))
# x s + (beta - mean s), one node s that both products read. Keras writes -mean as Neg, and leaves
# out what it has no weights for.
_RESULTS = (
    Op(
        "Add|AddV2",
        Op("Mul", _X, _SCALED),
        Op("Add|AddV2", Op("Mul", Op("Neg", _MEAN), _SCALED), _BETA),
    ),
    Op("Add|AddV2", Op("Mul", _X, _SCALED), Op("Sub", _BETA, Op("Mul", _MEAN, _SCALED))),
    Op("Add|AddV2", Op("Mul", _X, _SCALED), Op("Mul", Op("Neg", _MEAN), _SCALED)),
)
# s = gamma / sqrt(variance + epsilon)
_SCALES = (Op("Mul", _INVERSE, Any("gamma")), _INVERSE)
ROOTS = ("Add", "AddV2")


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The layer normalisation that ends at `node`, unless something else looks inside."""
    if node.payload is not None:
        return None
    view, constants = body.view, body.constants
    for result in _RESULTS:
        found = match(result, node, view, constants)
        for scale in _SCALES if found else ():
            inner = match(scale, view.producer(found.refs["scaled"]), view, constants)
            if inner and all(inner.refs[key] == found.refs[key] for key in ("x", "mean")):
                return _checked(node, found, inner, body)
    return None


def _checked(node: Node, found, inner, body: Body) -> Found | str | None:
    src, mean = found.refs["x"], body.view.producer(found.refs["mean"])
    if mean.op != "Mean" or mean.inputs[0] != src or mean.payload is not None:
        return None
    shape = body.shapes.shape(src) or (None,)
    channels, rank = shape[-1], len(shape)
    axes = (mean.inputs[1], inner.refs["variance_axes"])
    if (
        not isinstance(channels, int)
        or channels < 1
        or not all(is_last(body, axis, rank) for axis in axes)
    ):
        return None
    variance = next(n for n in map(body.view.node, inner.nodes) if n.op == "Mean")
    if not mean.attr["keep_dims"].b or not variance.attr["keep_dims"].b:
        return None
    gamma = per_channel(body, inner.refs.get("gamma"), channels, 1.0)
    beta = per_channel(body, found.refs.get("beta"), channels, 0.0)
    nodes = frozenset((*found.nodes, *inner.nodes, mean.name))
    if gamma is None or beta is None or not body.view.is_private(nodes - {node.name}, nodes):
        return None
    payload = LayerNorm(
        origin=node.name,
        channels=channels,
        epsilon=inner.scalars["epsilon"],
        gamma=gamma,
        beta=beta,
        of_pixels=rank == 4,
    )
    return Found(payload, {"src": src}, node.name, nodes)


def is_last(body: Body, ref: Ref, rank: int) -> bool:
    axis = body.shapes.number(ref)
    return axis is not None and axis % rank == rank - 1


def per_channel(body: Body, ref: Ref | None, channels: int, where_none: float):
    """The constant, one number a channel; None where it is something else."""
    if ref is None:
        return np.full(channels, where_none, np.float32)
    value = body.constants.value(ref)
    if value is None or value.shape[-1:] != (channels,) or value.size != channels:
        return None
    return value.reshape(-1)
