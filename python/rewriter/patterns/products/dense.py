"""A Dense layer on pictures, [N, H, W, C] times a matrix: a 1x1 convolution.

Tensordot makes it of Transpose (which leaves the order), Reshape to [N * H * W, C], MatMul and
Reshape back.
"""

from ....graph import Body, Node
from ....ops.records import BLOCK, Conv
from ...context import AS_PRODUCT, Context
from ..found import Found
from . import inner_product

ROOTS = inner_product.ROOTS
NAMED = ("transpose_b",)


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The layer around the MatMul `node`, if it is one."""
    view, shapes = body.view, body.shapes
    product = inner_product.product(node, body)
    flat, root = view.producer(node.inputs[0]), view.only_reader(node.ref)[0]
    if isinstance(product, str) or flat.op != "Reshape" or root is None:
        return None
    if root.op != "Reshape" or root.payload is not None:
        return None
    src = flat.inputs[0]
    order = view.producer(src)
    if order.op == "Transpose" and order.payload is None:
        if shapes.numbers(order.inputs[1]) != [0, 1, 2, 3]:
            return None
        src = order.inputs[0]
    channels, outputs = shapes.channels(src), shapes.channels(root.ref)
    if channels is None or outputs is None or min(channels, outputs) < BLOCK:
        return None
    weights = inner_product.matrix(product.payload, product.inputs, body)
    if weights.shape != (channels, outputs):
        return None
    if shapes.shape(src)[:3] != shapes.shape(root.ref)[:3]:
        return None
    if context.leave.get(body.label(root.name)) == AS_PRODUCT:
        return None
    payload = Conv(
        origin=root.name,
        is_dense=True,
        channels=outputs,
        weights=weights.reshape(1, 1, channels, outputs),
        in_channels=channels,
        algorithm=context.options.algorithm,
    )
    return Found(payload, {"src": src}, root.name)
