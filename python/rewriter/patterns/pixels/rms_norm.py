"""Normalisation by the root of the mean square over the channels: RMSNorm, in all its spellings."""

from ....graph import Any, Body, Node, OneOf, Op, Ref, Scalar, match
from ....ops.records import LayerNorm
from ...context import Context
from ..found import Found
from .layer_norm import is_last, per_channel

_X, _GAMMA = Any("x"), Any("gamma")
_SQUARE = OneOf(Op("Square", _X), Op("Mul", _X, _X), Op("Pow", _X, Scalar(2.0)))
_SHIFTED = Op("Add|AddV2", Op("Mean", _SQUARE, Any("axes")), Scalar(name="epsilon"))
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


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The normalisation that ends at `node` or at what multiplies its result by gamma."""
    if node.payload is not None:
        return None
    found = match(_RESULT, node, body.view, body.constants)
    return _checked(node, found, body) if found else None


def _checked(node: Node, found, body: Body) -> Found | None:
    src, view = found.refs["x"], body.view
    shape = body.shapes.shape(src) or (None,)
    channels, rank, epsilon = shape[-1], len(shape), found.scalars["epsilon"]
    mean = next(n for n in map(view.node, found.nodes) if n.op == "Mean")
    if not isinstance(channels, int) or channels < 1 or epsilon < 0:
        return None
    if not is_last(body, found.refs["axes"], rank) or not mean.attr["keep_dims"].b:
        return None
    root, gamma, nodes = node, found.refs.get("gamma"), frozenset(found.nodes)
    if gamma is None:
        root, gamma = _scaled(node, channels, body)
        nodes |= {root.name}
    gamma = per_channel(body, gamma, channels, 1.0)
    beta = per_channel(body, None, channels, 0.0)
    if gamma is None or not view.is_private(nodes - {root.name}, nodes):
        return None
    payload = LayerNorm(
        origin=root.name,
        channels=channels,
        epsilon=epsilon,
        gamma=gamma,
        beta=beta,
        centered=False,
        of_pixels=rank == 4,
    )
    return Found(payload, {"src": src}, root.name, nodes)


def _scaled(node: Node, channels: int, body: Body) -> tuple[Node, Ref | None]:
    """What multiplies the result by a number a channel, and that number; else itself and None."""
    reader, index = body.view.only_reader(node.ref)
    if reader is None or reader.op != "Mul" or reader.payload is not None:
        return node, None
    gamma = reader.inputs[1 - index]
    fits = per_channel(body, gamma, channels, 1.0) is not None
    wide = body.shapes.rank(gamma) or 0
    return (reader, gamma) if fits and wide <= (body.shapes.rank(node.ref) or 0) else (node, None)
