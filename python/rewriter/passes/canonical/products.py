"""Products of tensors by constant weights as those of matrices: Keras's attention has them.

    [L.., K..] and weights [K.., O..] -> [L.., O..]

with any numbers of axes of each kind is reshape(src, [-1, K]) @ reshape(weights, [K, O]), reshaped.
"""

import math

from tensorflow.core.framework import node_def_pb2, types_pb2

from ....graph import Body, Node, Ref
from ...context import Context
from .constant_shapes import constant_node


def flatten_products(body: Body, context: Context) -> None:
    """Writes each product of three or more axes by constant weights as one of two matrices."""
    for node in body.view.topological():
        if node.op in ("Einsum", "BatchMatMulV2") and not context.reason_to_leave(body, node):
            _flatten(node, body)


def _flatten(node: Node, body: Body) -> None:
    if len(node.inputs) != 2:
        return
    contracted = _contracted(node, body)
    if not contracted or node.attr["T"].type != types_pb2.DT_FLOAT:
        return
    src, weights = node.inputs
    rows, matrix = body.shapes.shape(src), body.shapes.shape(weights)
    if rows is None or matrix is None or not body.constants.is_constant(weights):
        return
    kept = [*rows[:-contracted], *matrix[contracted:]]
    unknown = [size for size in kept if not isinstance(size, int)]
    if len(unknown) > 1 or not all(isinstance(size, int) for size in matrix):
        return
    ic, oc = math.prod(matrix[:contracted]), math.prod(matrix[contracted:])
    flat = _reshape(f"{node.name}/rows", src, [-1, ic], node, body)
    by = _reshape(f"{node.name}/weights", weights, [ic, oc], node, body)
    proto = node_def_pb2.NodeDef(op="MatMul")
    proto.attr["T"].CopyFrom(node.attr["T"])
    for transposed in ("transpose_a", "transpose_b"):
        proto.attr[transposed].b = False
    product = body.view.add(Node(f"{node.name}/product", "MatMul", [flat, by], proto=proto))
    shape = [size if isinstance(size, int) else -1 for size in kept]
    result = _reshape_node(node.name, product.ref, shape, node, body)
    result.controls = list(node.controls)
    body.view.replace(result)
    body.shapes.put(result.ref, tuple(kept))


def _contracted(node: Node, body: Body) -> int:
    """How many axes, the last of the first and the first of the second operand; 0 for others."""
    if node.op == "Einsum":
        return _contracted_by(node.attr["equation"].s.decode())
    turned = node.attr["adj_x"].b or node.attr["adj_y"].b
    ranks = [body.shapes.rank(ref) for ref in node.inputs]
    return int(not turned and None not in ranks and ranks[0] > 2 and ranks[1] == 2)


def _contracted_by(equation: str) -> int:
    operands, _, result = equation.replace(" ", "").partition("->")
    labels = operands.split(",")
    if len(labels) != 2 or "." in equation:
        return 0
    a, b = labels
    for count in range(1, min(len(a), len(b)) + 1):
        distinct = len({*a, *b}) == len(a) + len(b) - count
        if a[-count:] == b[:count] and result == a[:-count] + b[count:] and distinct:
            return count
    return 0


def _reshape(name: str, src: Ref, shape: list[int], like: Node, body: Body) -> Ref:
    return body.view.add(_reshape_node(name, src, shape, like, body)).ref


def _reshape_node(name: str, src: Ref, shape: list[int], like: Node, body: Body) -> Node:
    sizes = body.view.add(constant_node(f"{name}/shape", shape)).ref
    proto = node_def_pb2.NodeDef(name=name, op="Reshape")
    proto.attr["T"].CopyFrom(like.attr["T"])
    proto.attr["Tshape"].type = types_pb2.DT_INT32
    return Node(name, "Reshape", [src, sizes], proto=proto)
