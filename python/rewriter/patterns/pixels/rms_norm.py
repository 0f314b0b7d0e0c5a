"""Normalisation by the root of the mean square over the channels: RMSNorm, in all its spellings."""

from ....graph import Any, Body, Node, OneOf, Op, Ref, Scalar, match
from ...context import Context
from ..found import Found
from .elementwise.affine import per_channel
from .layer_norm import normalization

_X, _GAMMA = Any("x"), Any("gamma")
_SQUARE = OneOf(Op("Square", _X), Op("Mul", _X, _X), Op("Pow", _X, Scalar(2.0)))
_SHIFTED = Op("Add|AddV2", Op("Mean", _SQUARE, Any("axes"), keep_dims=True), Scalar(name="epsilon"))
_ROOT = Op("Sqrt", _SHIFTED)
_INVERSE = OneOf(
    Op("Rsqrt", _SHIFTED),
    Op("Reciprocal|Inv", _ROOT),
    Op("RealDiv", Scalar(1.0), _ROOT),
    Op("Pow", _SHIFTED, Scalar(-0.5)),
)
# With gamma inside; what stands behind is _scaled's.
_RESULT = OneOf(
    Op("Mul", _X, Op("Mul", _INVERSE, _GAMMA)), Op("Mul", _X, _INVERSE), Op("RealDiv", _X, _ROOT)
)
ROOTS = ("Mul", "RealDiv")
NAMED = ("keep_dims",)


def find(node: Node, body: Body, context: Context) -> Found | None:
    """The normalisation that ends at `node` or at what multiplies its result by gamma."""
    found = match(_RESULT, node, body.view, body.constants)
    if found is None:
        return None
    src, axes, root, gamma = found.refs["x"], found.refs["axes"], node, found.refs.get("gamma")
    if gamma is None:
        root, gamma = _scaled(node, body)
    nodes, weights = (*found.nodes, root.name), (gamma, None)
    epsilon = found.scalars["epsilon"]
    return normalization(root, src, (axes,), epsilon, weights, nodes, body, centered=False)


def _scaled(node: Node, body: Body) -> tuple[Node, Ref | None]:
    """What multiplies the result by a number a channel, and that number; else itself and None."""
    reader, index = body.view.only_reader(node.ref)
    shape = body.shapes.shape(node.ref) or (None,)
    if reader is None or reader.op != "Mul" or not isinstance(shape[-1], int):
        return node, None
    gamma = reader.inputs[1 - index]
    fits = per_channel(body, gamma, shape[-1]) is not None
    fits = fits and body.shapes.shape(reader.ref) == shape
    return (reader, gamma) if fits else (node, None)
