"""Layer normalisation over the channels, as Keras 3 and TensorFlow spell it."""

import math

import numpy as np

from ....graph import Any, Body, Node, Op, Ref, Scalar, match, unusual
from ....ops.records import LayerNorm
from ...context import Context
from ..found import Found
from .elementwise.affine import per_channel

_X, _MEAN, _SCALED, _BETA = Any("x"), Any("mean"), Any("scaled"), Any("beta")
_VARIANCE = Op("Mean", Op("SquaredDifference", _X, _MEAN), Any("variance_axes"), keep_dims=True)
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
NAMED = ("keep_dims",)


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The layer normalisation that ends at `node`, unless something else looks inside."""
    view, constants = body.view, body.constants
    for result in _RESULTS:
        found = match(result, node, view, constants)
        for scale in _SCALES if found else ():
            inner = match(scale, view.producer(found.refs["scaled"]), view, constants)
            if inner and all(inner.refs[key] == found.refs[key] for key in ("x", "mean")):
                return _checked(node, found, inner, body)
    return None


def _checked(node: Node, found, inner, body: Body) -> Found | None:
    src, mean = found.refs["x"], body.view.producer(found.refs["mean"])
    if mean.op != "Mean" or mean.inputs[0] != src or unusual(mean, keep_dims=True):
        return None
    axes = (mean.inputs[1], inner.refs["variance_axes"])
    nodes = (*found.nodes, *inner.nodes, mean.name)
    weights = (inner.refs.get("gamma"), found.refs.get("beta"))
    return normalization(node, src, axes, inner.scalars["epsilon"], weights, nodes, body)


def normalization(
    root: Node, src: Ref, axes, epsilon: float, weights, nodes, body: Body, centered: bool = True
) -> Found | None:
    """The normalisation of `src` that ends at `root`, where all guards allow it.

    Args:
        axes: of each of its means.
        weights: gamma and beta, or None.
        nodes: all that it computes.
    """
    shape, nodes = body.shapes.shape(src) or (None,), frozenset(nodes)
    channels, rank = shape[-1], len(shape)
    if not isinstance(channels, int) or channels < 1 or not 0.0 <= epsilon < math.inf:
        return None
    if not all(is_last(body, axis, rank) for axis in axes) or not body.shapes.equal(src, root.ref):
        return None
    gamma, beta = (
        np.full(channels, neutral) if ref is None else per_channel(body, ref, channels)
        for ref, neutral in zip(weights, (1.0, 0.0), strict=True)
    )
    if gamma is None or beta is None or not body.view.is_private(nodes - {root.name}, nodes):
        return None
    payload = LayerNorm(
        origin=root.name,
        channels=channels,
        epsilon=epsilon,
        gamma=gamma,
        beta=beta,
        centered=centered,
        of_pixels=rank == 4,
    )
    return Found(payload, {"src": src}, root.name, nodes)


def is_last(body: Body, ref: Ref, rank: int) -> bool:
    axis = body.shapes.number(ref)
    return axis is not None and axis % rank == rank - 1
