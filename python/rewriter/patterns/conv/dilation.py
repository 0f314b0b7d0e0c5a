"""SpaceToBatchND -> convolution -> BatchToSpaceND: a dilated convolution in disguise.

With block b, paddings (p0, p1) and crops (c0, c1), a VALID convolution of stride 1
between the two equals a convolution of dilation b with paddings p0 - c0, p1 - c1:
both give size + p0 + p1 - c0 - c1 - b * (k - 1). The paddings may depend on the
input's size (TensorFlow rounds up to a multiple of b); only the differences count.
"""

from dataclasses import replace

from ....graph import Body
from ..found import Found


def unwrap(found: Found, body: Body) -> Found:
    """What the three nodes around a convolution amount to; `found`, if they are not there."""
    view, shapes, conv = body.view, body.shapes, found.payload
    node = view.node(found.root)
    before = view.producer(node.inputs[0])
    after, index = view.only_reader(node.ref)
    if before.op != "SpaceToBatchND" or after is None or after.op != "BatchToSpaceND" or index:
        return found
    if any(view.has_control_edges(name) for name in (before.name, after.name)):
        return found
    blocks = [shapes.value(n.inputs[1]) for n in (before, after)]
    pads, crops = shapes.value(before.inputs[2]), shapes.value(after.inputs[2])
    if any(value is None for value in (*blocks, pads, crops)):
        return found
    block = tuple(blocks[0])
    plain = conv.strides == (1, 1) and conv.dilations == (1, 1) and conv.padding == "VALID"
    if not plain or len(block) != 2 or block != tuple(blocks[1]):
        return found
    effective = tuple((pads - crops).reshape(-1))
    if not all(isinstance(size, int) and size >= 0 for size in effective):
        return found
    dilated = replace(conv, dilations=block, padding="EXPLICIT", explicit_paddings=effective)
    nodes = frozenset((node.name, after.name))
    return Found(dilated, {"src": before.inputs[0]}, after.name, nodes)
