"""MatMul by constant weights."""

from tensorflow.core.framework import types_pb2

from ....graph import Body, Node
from ...context import Context
from ...primitives import InnerProduct
from ..found import Found

ROOTS = ("MatMul",)


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The product of `node`."""
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
