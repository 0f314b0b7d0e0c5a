"""Products of tensors by constant weights as those of matrices: Keras's attention has them.

    [L.., K..] and weights [K.., O..] -> [L.., O..]

with any numbers of axes of each kind is reshape(src, [-1, K]) @ reshape(weights, [K, O]), reshaped;
the axes of the weights may lie in any order, and the result is transposed where its axes do.
A bias [O..] that is added behind it is added to the rows, where the product takes it in, unless
they are pixels of a picture.
"""

import math

from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, Ref, Writer, dtype_name, open_sizes, product
from ....ops.records import BLOCK
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
    src, weights = node.inputs
    is_first = body.constants.is_constant(src) and not body.constants.is_constant(weights)
    if is_first:
        src, weights = weights, src
    contracted, order, turned = _count_contracted(node, is_first, body)
    if node.attr["T"].type != types_pb2.DT_FLOAT:
        return f"dtype {dtype_name(node.attr['T'].type)}, only float32 is implemented"
    if not body.constants.is_constant(weights):
        return "a matmul of two computed tensors"
    if not contracted:
        return "its axes lie in another order than rows by a matrix of weights"
    rows, matrix = body.shapes.shape(src), body.shapes.shape(weights)
    if rows is None or matrix is None or not all(isinstance(size, int) for size in matrix):
        return "the shapes of its operands are not known"
    write = body.writer(node.name)
    if order is not None:
        weights = write.add("turned", "Transpose", weights, order)
        matrix = body.shapes.shape(weights)
    ic, oc = math.prod(matrix[:contracted]), math.prod(matrix[contracted:])
    flat = write.add("rows", "Reshape", src, [-1, ic])
    product = write.add("product", "MatMul", flat, write.reshape("weights", weights, [ic, oc]))
    root, bias, tail = node, None, matrix[contracted:]
    # A picture's is added to the picture: it becomes a 1x1 convolution.
    of_picture = len(rows) == 4 and contracted == len(tail) == 1 and min(ic, oc) >= BLOCK
    if turned is None and not of_picture:
        root, bias, tail = _bias(node, rows[:-contracted], tail, body)
    kept = (*rows[:-contracted], *tail)
    if bias is not None:
        product = write.add("add", "AddV2", product, write.reshape("bias", bias, [oc]))
    sizes = open_sizes(kept)
    if sizes.count(-1) > 1:
        sizes = _open_shape(write, src, contracted, tail)
    if turned is not None:
        product = write.add("split", "Reshape", product, sizes, shape=kept)
        body.writer(root.name).put("Transpose", product, turned)
        return None
    body.writer(root.name).put("Reshape", product, sizes)
    body.shapes.put(root.ref, kept)
    return None


def _bias(node: Node, rows, tail, body: Body) -> tuple[Node, Ref | None, tuple[int, ...]]:
    """The node that adds a constant to each row, that constant and the axes of a row there.

    It may stand behind a Reshape that splits the row. Else `node`, None and `tail`.
    """
    view, split = body.view, tail
    reader, index = view.only_reader(node.ref)
    if reader is not None and view.has_control_edges(reader.name):
        return node, None, tail
    if reader is not None and reader.op == "Reshape" and index == 0:
        shape = body.shapes.shape(reader.ref) or ()
        split = shape[len(rows) :]
        if shape[: len(rows)] != tuple(rows) or not all(isinstance(size, int) for size in split):
            return node, None, tail
        reader, index = view.only_reader(reader.ref)
    if reader is None or reader.op not in ("Add", "AddV2") or view.has_control_edges(reader.name):
        return node, None, tail
    bias = reader.inputs[1 - index]
    shape = body.shapes.shape(bias)
    if not body.constants.is_constant(bias) or not shape:
        return node, None, tail
    ones = len(shape) - len(split)
    fits = shape[ones:] == tuple(split) and all(size == 1 for size in shape[:ones])
    return (reader, bias, split) if fits and 0 <= ones <= len(rows) else (node, None, tail)


def _open_shape(write: Writer, src: Ref, contracted: int, tail) -> Ref:
    """[*shape(src)[:-contracted], *tail] as a tensor, where several of its sizes are unknown."""
    sizes = write.add("sizes", "Shape", src)
    kept = write.add("kept_sizes", "StridedSlice", sizes, [0], [-contracted], [1])
    return write.add("shape", "ConcatV2", [kept, write.constant("tail", tail)], 0)


def _count_contracted(node: Node, is_first: bool, body: Body):
    """How many axes, the last of the rows, are contracted, 0 for others, and two orders of axes.

    The weights have the contracted ones first in the first order, the result has its axes as it
    should in the second; None: as it is.

    Args:
        is_first: whether the weights are the first operand.
    """
    factors = product(node, body.shapes)
    if factors is None or not factors.is_distinct:
        return 0, None, None
    count, *orders = _count_by_labels(*factors.labels[:: -1 if is_first else 1], factors.result)
    plain = node.op == "Einsum" or not is_first and orders == [None, None] and factors.batch
    return (count, *orders) if plain else (0, None, None)


def _count_by_labels(a: str, b: str, result: str):
    count = len({*a} & {*b})
    rows, within = a[: len(a) - count], a[len(a) - count :]
    rest = "".join(label for label in result if label not in rows)
    fits = sorted(rows + rest) == sorted(result) and sorted(within + rest) == sorted(b)
    if not count or not fits:
        return 0, None, None
    order = [b.index(label) for label in within + rest]
    turned = [(rows + rest).index(label) for label in result]
    return count, *(None if axes == sorted(axes) else axes for axes in (order, turned))
