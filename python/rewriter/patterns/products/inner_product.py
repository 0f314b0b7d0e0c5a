"""MatMul by constant weights: NodeDef -> planned InnerProduct, or the reason why not."""

from tensorflow.core.framework import types_pb2

from ....graph import Body
from ...primitives import InnerProduct

ROOTS = ("MatMul",)
ROLES = ("src", "weights")


def plan(node, body: Body) -> InnerProduct | str:
    """The planned inner product, or one line that says why TensorFlow keeps it."""
    attr, (_, weights) = node.attr, node.inputs
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
    return InnerProduct(origin=node.name, in_channels=shape[0], channels=shape[1])
