"""Products of tensors by constant weights as those of matrices: Keras's attention has them.

    [L.., K..] and weights [K.., O..] -> [L.., O..]

with any numbers of axes of each kind is reshape(src, [-1, K]) @ reshape(weights, [K, O]), reshaped.
"""

import math

from tensorflow.core.framework import node_def_pb2, types_pb2

from ....graph import Body, Node, Ref, dtype_name
from ...context import Context
from .constant_shapes import constant_node


def flatten_products(body: Body, context: Context) -> None:
    """Writes each product of three or more axes by constant weights as one of two matrices."""
    for node in body.view.topological():
        if node.op in ("Einsum", "BatchMatMulV2") and not context.reason_to_leave(body, node):
            if len(node.inputs) == 2 and (reason := _flatten(node, body)):
                context.report.decline(node.name, reason)


def _flatten(node: Node, body: Body) -> str | None:
    """Puts the product of matrices in the node's place; or says why that is not possible."""
    contracted = _contracted(node, body)
    if node.attr["T"].type != types_pb2.DT_FLOAT:
        return f"dtype {dtype_name(node.attr['T'].type)}, only float32 is implemented"
    src, weights = node.inputs
    if not body.constants.is_constant(weights):
        return "a product of two computed tensors"
    if not contracted:
        return "its axes lie in another order than rows by a matrix of weights"
    rows, matrix = body.shapes.shape(src), body.shapes.shape(weights)
    if rows is None or matrix is None or not all(isinstance(size, int) for size in matrix):
        return "the shapes of its operands are not known"
    kept = [*rows[:-contracted], *matrix[contracted:]]
    unknown = [size for size in kept if not isinstance(size, int)]
    if len(unknown) > 1:
        return f"{len(unknown)} sizes of its result are unknown: fix all but one"
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
    return None


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
