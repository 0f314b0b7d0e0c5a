"""Resizing by TensorFlow's ops."""

from tensorflow.core.framework import types_pb2

from ....graph import Body, Expr, Node
from ....ops.records import Resize
from ...context import Context
from ..found import Found

_KINDS = {"ResizeNearestNeighbor": "nearest", "ResizeBilinear": "bilinear"}
ROOTS = tuple(_KINDS)
NAMED = ("align_corners", "half_pixel_centers")


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The resizing of `node`."""
    attr, src = node.attr, node.inputs[0]
    channels, shape = body.shapes.channels(src), body.shapes.shape(src)
    size = body.shapes.value(node.inputs[1])
    if attr["T"].type != types_pb2.DT_FLOAT:
        return "only float32 is implemented"
    if channels is None or size is None:
        return "the channels or the size are not known"
    half, corners = attr["half_pixel_centers"].b, attr["align_corners"].b
    if half and corners:
        return "it aligns both corners and the centres of pixels"
    common = dict(
        origin=node.name,
        channels=channels,
        kind=_KINDS[node.op],
        coordinates="half_pixel" if half else "align_corners" if corners else "asymmetric",
    )
    if all(isinstance(length, int) for length in size):
        payload = Resize(size=tuple(size), **common)
        return Found(payload, {"src": src}, node.name)
    scales = tuple(_factor(was, now) for was, now in zip(shape[1:3], size, strict=True))
    if None in scales:
        return "its size is not proven to be a multiple of its source's"
    return Found(Resize(scales=scales, **common), {"src": src}, node.name)


def _factor(was, now) -> int | None:
    """k, where `now` is k times `was`."""
    if isinstance(was, int) and isinstance(now, int):
        return now // was if was and now % was == 0 and now else None
    if not isinstance(was, Expr) or not isinstance(now, Expr):
        return None
    own = dict(was.terms)
    for atom, count in now.terms:
        if own.get(atom) and count % own[atom] == 0 and was * (count // own[atom]) == now:
            return count // own[atom]
    return None
