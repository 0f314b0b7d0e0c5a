"""MatMul by constant weights, of rows or of tensors of more axes.

Tensordot makes [.., K] @ [K, N] of Reshape to [-1, K], MatMul and Reshape back: the op takes any
number of axes itself, and element-wise work behind the second Reshape can join it.
"""

from tensorflow.core.framework import types_pb2

from ....graph import Body, Node
from ...context import Context
from ...primitives import InnerProduct
from ..found import Found

ROOTS = ("MatMul",)


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The product of `node`, with the reshapes around it."""
    found = product(node, body)
    return _with_reshapes(node, found, body) if isinstance(found, Found) else found


def product(node: Node, body: Body) -> Found | str:
    """The product of `node` by itself."""
    attr, (src, weights) = node.attr, node.inputs
    if attr["T"].type != types_pb2.DT_FLOAT:
        dtype = types_pb2.DataType.Name(attr["T"].type)[3:].lower()
        return f"dtype {dtype}, only float32 is implemented"
    if attr["transpose_a"].b or attr["transpose_b"].b:
        return "a transposed operand"
    if not body.constants.is_constant(weights):
        return "the weights are computed or assigned inside the function"
    shape = body.shapes.shape(weights)
    if shape is None or not all(isinstance(size, int) and size > 0 for size in shape):
        return "the shape of the weights is not known"
    payload = InnerProduct(origin=node.name, in_channels=shape[0], channels=shape[1])
    return Found(payload, {"src": src, "weights": weights}, node.name)


def _with_reshapes(node: Node, found: Found, body: Body) -> Found:
    """The same product of the tensor before it was made a matrix, if that is what happens."""
    view, shapes = body.view, body.shapes
    readers, flat = view.consumers(node.ref), view.producer(node.inputs[0])
    if len(readers) != 1 or view.is_fetched(node.ref) or view.has_control_edges(node.name):
        return found
    (root, index), payload = readers[0], found.payload
    if flat.op != "Reshape" or root.op != "Reshape" or index != 0 or root.payload is not None:
        return found
    src = flat.inputs[0]
    before, after = shapes.shape(src), shapes.shape(root.ref)
    if not before or not after or before[:-1] != after[:-1]:
        return found
    if (before[-1], after[-1]) != (payload.in_channels, payload.channels):
        return found
    inputs = {"src": src, "weights": found.inputs["weights"]}
    return Found(payload, inputs, root.name, frozenset({root.name, node.name}))
