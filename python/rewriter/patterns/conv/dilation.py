"""SpaceToBatchND -> convolution -> BatchToSpaceND: a dilated convolution in disguise.

With block b, paddings (p0, p1) and crops (c0, c1), a VALID convolution of stride 1
between the two equals a convolution of dilation b with paddings p0 - c0, p1 - c1:
both give size + p0 + p1 - c0 - c1 - b * (k - 1). The paddings may depend on the
input's size (TensorFlow rounds up to a multiple of b); only the differences count.
"""

from dataclasses import replace

from ....graph import Body
from ...primitives import Conv


def unwrap(node, conv: Conv, body: Body):
    """(root, source, conv): what the three nodes around `node` amount to, or None."""
    view, shapes = body.view, body.shapes
    before = view.producer(node.inputs[0])
    readers = view.consumers(node.ref)
    if before.op != "SpaceToBatchND" or len(readers) != 1 or view.is_fetched(node.ref):
        return None
    after, index = readers[0]
    if after.op != "BatchToSpaceND" or index != 0:
        return None
    if any(view.has_control_edges(name) for name in (before.name, node.name, after.name)):
        return None
    blocks = [shapes.value(n.inputs[1]) for n in (before, after)]
    pads, crops = shapes.value(before.inputs[2]), shapes.value(after.inputs[2])
    if any(value is None for value in (*blocks, pads, crops)):
        return None
    block = tuple(blocks[0])
    plain = conv.strides == (1, 1) and conv.dilations == (1, 1) and conv.padding == "VALID"
    if not plain or len(block) != 2 or block != tuple(blocks[1]):
        return None
    effective = tuple((pads - crops).reshape(-1))
    if not all(isinstance(size, int) and size >= 0 for size in effective):
        return None
    dilated = replace(conv, dilations=block, padding="EXPLICIT", explicit_paddings=effective)
    return after, before.inputs[0], dilated
