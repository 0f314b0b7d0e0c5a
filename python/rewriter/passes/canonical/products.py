"""Products of tensors by constant weights as those of matrices: Keras's attention has them.

    [L.., K..] and weights [K.., O..] -> [L.., O..]

with any numbers of axes of each kind is reshape(src, [-1, K]) @ reshape(weights, [K, O]), reshaped;
the axes of the weights may lie in any order.
A bias [O..] that is added behind it is added to the rows, where the product takes it in.
"""

import math

from tensorflow.core.framework import types_pb2

from ....graph import INT32, Body, Node, Ref, constant_node, dtype_name, make_node
from ...context import Context


def flatten_products(body: Body, context: Context) -> None:
    """Writes products of three or more axes by constant weights as products of matrices."""
    for node in body.view.topological():
        if node.op in ("Einsum", "BatchMatMulV2") and not context.reason_to_leave(body, node):
            known = node.name in dict(context.report.declined)  # as part of an attention
            if len(node.inputs) == 2 and (reason := _flatten(node, body)) and not known:
                context.report.decline(node.name, reason)


def _flatten(node: Node, body: Body) -> str | None:
    """Puts the product of matrices in the node's place; or says why that is not possible."""
    contracted, order = _contracted(node, body)
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
    if order is not None:
        axes = body.view.add(constant_node(f"{node.name}/order", order)).ref
        turned = make_node(f"{node.name}/turned", "Transpose", [weights, axes], T=node.attr["T"])
        weights, matrix = body.view.add(turned).ref, tuple(matrix[axis] for axis in order)
    ic, oc = math.prod(matrix[:contracted]), math.prod(matrix[contracted:])
    flat = _reshape(f"{node.name}/rows", src, [-1, ic], node, body)
    by = _reshape(f"{node.name}/weights", weights, [ic, oc], node, body)
    dtype, view = node.attr["T"], body.view
    product = view.add(make_node(f"{node.name}/product", "MatMul", [flat, by], T=dtype)).ref
    root, bias, tail = _bias(node, rows[:-contracted], matrix[contracted:], body)
    kept = [*rows[:-contracted], *tail]
    if bias is not None:
        bias = _reshape(f"{node.name}/bias", bias, [oc], node, body)
        product = view.add(make_node(f"{node.name}/add", "AddV2", [product, bias], T=dtype)).ref
    if sum(not isinstance(size, int) for size in kept) > 1:
        sizes = _open_shape(node, src, contracted, tail, body)
    else:
        shape = [size if isinstance(size, int) else -1 for size in kept]
        sizes = body.view.add(constant_node(f"{node.name}/shape", shape)).ref
    result = _reshape_node(root.name, product, sizes, node)
    result.controls = list(root.controls)
    body.view.replace(result)
    body.shapes.put(result.ref, tuple(kept))
    if root is not node:
        body.view.remove_dead([ref.node for ref in root.inputs])
    return None


def _bias(node: Node, rows, tail, body: Body) -> tuple[Node, Ref | None, tuple[int, ...]]:
    """The node that adds a constant to each row, that constant and the axes of a row there.

    It may stand behind a Reshape that splits the row. Else `node`, None and `tail`.
    """
    reader, index = _reader(node, body)
    split = tail
    if reader is not None and reader.op == "Reshape" and index == 0:
        shape = body.shapes.shape(reader.ref) or ()
        split = shape[len(rows) :]
        if shape[: len(rows)] != tuple(rows) or not all(isinstance(size, int) for size in split):
            return node, None, tail
        reader, index = _reader(reader, body)
    if reader is None or reader.op not in ("Add", "AddV2"):
        return node, None, tail
    bias = reader.inputs[1 - index]
    shape = body.shapes.shape(bias)
    if not body.constants.is_constant(bias) or not shape:
        return node, None, tail
    ones = len(shape) - len(split)
    fits = shape[ones:] == tuple(split) and all(size == 1 for size in shape[:ones])
    return (reader, bias, split) if fits and 0 <= ones <= len(rows) else (node, None, tail)


def _reader(node: Node, body: Body) -> tuple[Node | None, int]:
    """The only reader of what the node makes, and where it reads it."""
    view, readers = body.view, body.view.consumers(node.ref)
    if len(readers) != 1 or view.is_fetched(node.ref) or view.has_control_edges(node.name):
        return None, 0
    reader, index = readers[0]
    return (None, 0) if view.has_control_edges(reader.name) else (reader, index)


def _open_shape(node: Node, src: Ref, contracted: int, tail, body: Body) -> Ref:
    """[*shape(src)[:-contracted], *tail] as a tensor, where several of its sizes are unknown."""
    name, view = node.name, body.view

    def constant(part: str, values) -> Ref:
        return view.add(constant_node(f"{name}/{part}", values)).ref

    def add(part: str, op: str, inputs: list[Ref], **attributes) -> Ref:
        return view.add(make_node(f"{name}/{part}", op, inputs, **attributes)).ref

    sizes = add("sizes", "Shape", [src], T=node.attr["T"], out_type=INT32)
    bounds = [constant("begin", [0]), constant("end", [-contracted]), constant("step", [1])]
    kept = add("kept_sizes", "StridedSlice", [sizes, *bounds], T=INT32, Index=INT32)
    parts = [kept, constant("tail", list(tail)), constant("axis", 0)]
    return add("shape", "ConcatV2", parts, T=INT32, Tidx=INT32)


def _contracted(node: Node, body: Body) -> tuple[int, list[int] | None]:
    """How many axes, the last of the first operand, 0 for others, and the order of the second's.

    It has them first in this order; None: as it is.
    """
    if node.op == "Einsum":
        return _contracted_by(node.attr["equation"].s.decode())
    turned = node.attr["adj_x"].b or node.attr["adj_y"].b
    ranks = [body.shapes.rank(ref) for ref in node.inputs]
    return int(not turned and None not in ranks and ranks[0] > 2 and ranks[1] == 2), None


def _contracted_by(equation: str) -> tuple[int, list[int] | None]:
    operands, _, result = equation.replace(" ", "").partition("->")
    labels = operands.split(",")
    if len(labels) != 2 or "." in equation:
        return 0, None
    a, b = labels
    count = len({*a} & {*b})
    rows, within = a[: len(a) - count], a[len(a) - count :]
    rest = result[len(rows) :]
    distinct = len({*a, *b}) == len(a) + len(b) - count
    fits = result[: len(rows)] == rows and sorted(within + rest) == sorted(b)
    if not count or not distinct or not fits:
        return 0, None
    order = [b.index(label) for label in within + rest]
    return count, None if order == sorted(order) else order


def _reshape(name: str, src: Ref, shape: list[int], like: Node, body: Body) -> Ref:
    sizes = body.view.add(constant_node(f"{name}/shape", shape)).ref
    return body.view.add(_reshape_node(name, src, sizes, like)).ref


def _reshape_node(name: str, src: Ref, sizes: Ref, like: Node) -> Node:
    return make_node(name, "Reshape", [src, sizes], T=like.attr["T"], Tshape=INT32)
