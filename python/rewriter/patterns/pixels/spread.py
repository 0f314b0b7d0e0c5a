"""Element-wise work of a picture and a tensor that is broadcast over it.

x [N, H, W, C] o s [N, H, W, 1]: a 1x1 convolution of s by ones, whose chain is o x
x [N, H, W, C] o s [N, H, 1, C]: o of x and of s with its column repeated; rows, too
"""

import numpy as np

from ....graph import Body, Node
from ....ops.records import NHWC, Conv, Eltwise, Resize
from ...context import Context
from ...rules import Replacement
from .elementwise.functions import chain

ROOTS = ("Add", "AddV2", "Maximum", "Minimum", "Mul", "RealDiv", "Sub")
_UNPROVEN = "its operands are not proven to be of one size: give sizes in input_signature"


def find(node: Node, body: Body, context: Context) -> Replacement | str | None:
    """The work of `node`, if one of its operands is spread over the other."""
    at = picture(node, body)
    if at is None or node.controls:
        return _UNPROVEN if _may_spread(node, body) else None
    x, spread = node.inputs[at], node.inputs[1 - at]
    sizes, spread_sizes = body.shapes.shape(x), body.shapes.shape(spread)
    common = dict(origin=node.name, channels=sizes[3])
    if spread_sizes[3] == 1:
        role, ones = f"{node.name}#{at}", np.ones((1, 1, 1, sizes[3]), np.float32)
        steps = chain(node.op, 1 - at, ("tensor", role))
        conv = Conv(weights=ones, in_channels=1, src_layout=NHWC, steps=steps, **common)
        return Replacement(conv, {"src": spread, role: x}, node.name)
    role = f"{node.name}#{1 - at}"
    steps = chain(node.op, at, ("tensor", role))
    scales = tuple(1 if spread_sizes[i] == sizes[i] else sizes[i] for i in (1, 2))
    repeat = Resize(kind="nearest", coordinates="asymmetric", scales=scales, **common)
    return Replacement(
        Eltwise(steps=steps, **common),
        {"src": x, role: spread},
        node.name,
        prepare=lambda write: {"src": x, role: write.plan("spread", repeat, {"src": spread})},
    )


def _may_spread(node: Node, body: Body) -> bool:
    """Whether two pictures of the same channels have sizes that may differ."""
    shapes = [body.shapes.shape(ref) for ref in node.inputs]
    if any(shape is None or len(shape) != 4 for shape in shapes) or shapes[0][3] != shapes[1][3]:
        return False
    pairs = [pair for pair in zip(*shapes, strict=True) if pair[0] != pair[1]]
    return bool(pairs) and not any(isinstance(a, int) and isinstance(b, int) for a, b in pairs)


def picture(node: Node, body: Body) -> int | None:
    """Which of the two operands is the picture that the other is spread over, if so."""
    shapes = [body.shapes.shape(ref) for ref in node.inputs]
    if node.payload is not None or len(shapes) != 2:
        return None
    if any(shape is None or len(shape) != 4 for shape in shapes):
        return None
    for at, (sizes, other) in enumerate((shapes, shapes[::-1])):
        if not isinstance(sizes[3], int) or sizes[3] == 1 or other[0] != sizes[0]:
            continue
        if body.constants.is_constant(node.inputs[1 - at]):
            continue
        is_plane = other[1:] == (*sizes[1:3], 1)
        spread = [i for i in (1, 2) if other[i] != sizes[i]]
        is_line = other[3] == sizes[3] and len(spread) == 1 and other[spread[0]] == 1
        is_line = is_line and isinstance(sizes[spread[0]], int)
        if is_plane or is_line:
            return at
    return None
