"""Element-wise work of a picture and a tensor that is broadcast over it.

x [N, H, W, C] o s [N, H, W, 1]: a 1x1 convolution of s by ones, whose chain is o x
x [N, H, W, C] o s [N, H, 1, C]: o of x and of s with the column repeated; rows, too

A sum or product of pictures whose sizes may differ, or of one and a constant of the pixels, and a
product by a plane whose sizes may differ, are TensorFlow's own on blocks, which looks at the sizes
when it runs; tails stay zero.
"""

import numpy as np

from ....graph import Body, Node, Ref, Writer, is_float32
from ....ops.records import (
    BLOCK,
    NHWC,
    BroadcastProduct,
    BroadcastSum,
    Conv,
    Eltwise,
    Resize,
)
from ...context import Context
from ...rules import Replacement
from .elementwise.functions import chain

_ON_BLOCKS = {"Add": BroadcastSum, "AddV2": BroadcastSum, "Mul": BroadcastProduct}
ROOTS = ("Add", "AddV2", "Maximum", "Minimum", "Mul", "RealDiv", "Sub")
_UNPROVEN = "its operands are not proven to be of one size: give sizes in input_signature"


def find(node: Node, body: Body, context: Context) -> Replacement | str | None:
    """The work of `node`, if one operand is spread over the other."""
    at = picture(node, body)
    if node.controls:
        return None
    if at is None:
        return _on_blocks(node, body)
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


def _on_blocks(node: Node, body: Body) -> Replacement | str | None:
    """TensorFlow's op on blocks, if one of them may be broadcast to the other."""
    record, at, is_plane = _ON_BLOCKS.get(node.op), pixels(node, body), False
    if at is None and record is BroadcastProduct:
        at = _plane(node, body)
        is_plane = at is not None
    if at is None and not _may_spread(node, body):
        return None
    if record is None:
        return _UNPROVEN if at is None else None
    src, other = node.inputs if at != 0 else node.inputs[::-1]
    channels = body.shapes.shape(src)[3]
    common = dict(origin=node.name, channels=channels)
    if at is None:
        return Replacement(record(**common), {"src": src, "other": other}, node.name)

    def beside(write: Writer) -> dict:
        if is_plane:
            return {"src": src, "other": write.add("plane", "ExpandDims", other, 1)}
        return {"src": src, "other": _blocks(write, other, body, channels)}

    payload = record(other_layout=NHWC, **common)
    return Replacement(payload, {"src": src}, node.name, prepare=beside)


def _plane(node: Node, body: Body) -> int | None:
    """Which of the two operands has one number a pixel of the other, or of a part of it.

    The other is in whole blocks: an infinite number times the 0 of an unused channel would be NaN.
    """
    shapes = [body.shapes.shape(ref) or () for ref in node.inputs]
    if list(map(len, shapes)) != [4, 4] or any(map(body.constants.is_constant, node.inputs)):
        return None
    for at, shape in enumerate(shapes):
        channels = shapes[1 - at][3]
        if shape[3] == 1 and isinstance(channels, int) and channels % BLOCK == 0:
            return at
    return None


def _blocks(write: Writer, constant: Ref, body: Body, channels: int) -> Ref:
    """Blocks of a constant, which are reordered once."""
    each = write.add("each", "Mul", constant, np.ones((1, 1, 1, channels), np.float32))
    h, w = body.shapes.shape(each)[1:3]
    blocks, tail = -(-channels // BLOCK), -channels % BLOCK
    filled = write.add("filled", "Pad", each, [[0, 0], [0, 0], [0, 0], [0, tail]])
    plane = write.reshape("plane", filled, (1, h, w, blocks, BLOCK))
    return write.add("blocks", "Transpose", plane, [0, 3, 1, 2, 4])


def pixels(node: Node, body: Body) -> int | None:
    """Which of the two operands is a constant of pixels that is spread over the other, if so."""
    if len(node.inputs) != 2 or node.payload is not None or not is_float32(body.view, node.ref):
        return None
    for at, ref in enumerate(node.inputs):
        sizes, shape = (body.shapes.shape(each) for each in (node.inputs[1 - at], ref))
        if not body.constants.is_constant(ref) or sizes is None or shape is None:
            continue
        if len(sizes) == 4 and isinstance(sizes[3], int) and 2 < len(shape) <= 4:
            shape = (1,) * (4 - len(shape)) + shape
            fits = all(size in (1, whole) for size, whole in zip(shape, sizes, strict=True))
            if fits and shape[0] == 1 and shape[1:3] != (1, 1):
                return at
    return None


def _may_spread(node: Node, body: Body) -> bool:
    """Whether two pictures of the same channels have sizes that may differ, or are 1 in one."""
    shapes = [body.shapes.shape(ref) for ref in node.inputs]
    if any(shape is None or len(shape) != 4 for shape in shapes):
        return False
    if shapes[0][3] != shapes[1][3] or not isinstance(shapes[0][3], int):
        return False
    pairs = [pair for pair in zip(*shapes, strict=True) if pair[0] != pair[1]]
    known = [pair for pair in pairs if all(isinstance(size, int) for size in pair)]
    return bool(pairs) and all(1 in pair for pair in known)


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
