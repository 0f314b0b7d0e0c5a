"""Products of tensors by constant weights as those of matrices: Keras's attention has them.

    [L.., K..] and weights [K.., O..] -> [L.., O..]

with any numbers of axes of each kind is reshape(src, [-1, K]) @ reshape(weights, [K, O]), reshaped;
the axes of the weights may lie in any order, and the result is transposed where axes of it do.
What adds a bias [O..] after it, or looks at each element, works on the rows, where the product
takes it in.
"""

import math

from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, dtype_name, open_sizes, product
from ....graph.families import BINARY, UNARY
from ...context import Context
from .views import Views

_SUMS = frozenset({"Add", "AddV2", "BiasAdd"})


def flatten_products(body: Body, context: Context) -> None:
    """Writes products of three or more axes by constant weights as products of matrices."""
    views = Views(body, _splits_rows)
    for node in body.view.topological():
        if node.name not in body.view or body.view.has_control_edges(node.name):
            continue
        if node.op in ("Einsum", "BatchMatMulV2") and not context.reason_to_leave(body, node):
            known = node.name in dict(context.report.declined)  # as part of an attention
            if len(node.inputs) == 2 and (reason := _flatten(node, body)) and not known:
                context.report.decline(node.name, reason)
        elif node.op in UNARY | BINARY | _SUMS and _works_on_rows(node, views):
            views.sink(node)


def _splits_rows(node: Node, body: Body) -> bool:
    """Whether it gives the rows of a product by weights other axes than the product's op can.

    A bias may stand before it: then the op leaves all axes to it.
    """
    if node.op != "Reshape":
        return False
    view, shapes = body.view, body.shapes
    source = view.producer(view.origin(node.inputs[0], ("Reshape",)))
    product = view.producer(source.inputs[0]) if source.op in _SUMS else source
    if product.op != "MatMul" or not body.constants.is_constant(product.inputs[1]):
        return False
    flat = view.producer(product.inputs[0])
    before = shapes.shape(flat.inputs[0]) if flat.op == "Reshape" and source is product else None
    after = shapes.shape(node.ref)
    return not (before and after and before[:-1] == after[:-1])


def _works_on_rows(node: Node, views: Views) -> bool:
    """Whether a node reads such rows, and otherwise no more numbers than there are in one.

    A row of numbers for one of several readers is no work that the product takes in.
    """
    rows = {ref: view.x for ref in node.inputs if (view := views.view(ref))}
    if not rows:
        return False
    body, (x, *_) = views.body, rows.values()
    is_shared = any(body.view.use_count(ref) > 1 for ref in rows)
    most = 1 if is_shared else body.shapes.features(x)
    return all(body.shapes.elements(ref) <= most for ref in node.inputs if ref not in rows)


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
    tail = matrix[contracted:]
    kept = (*rows[:-contracted], *tail)
    sizes = open_sizes(kept)
    if sizes.count(-1) > 1:
        sizes = write.add("sizes", "Shape", src)
        before = write.add("kept_sizes", "StridedSlice", sizes, [0], [-contracted], [1])
        sizes = write.add("shape", "ConcatV2", [before, write.constant("tail", tail)], 0)
    if turned is not None:
        product = write.add("split", "Reshape", product, sizes, shape=kept)
        write.put("Transpose", product, turned)
        return None
    write.put("Reshape", product, sizes)
    body.shapes.put(node.ref, kept)
    return None


def _count_contracted(node: Node, is_first: bool, body: Body):
    """How many axes, the last of the rows, are contracted, 0 for others, and two orders of axes.

    The weights have the contracted ones first in the first order, the result has axes as it
    should in the second; None: as it is.

    Args:
        is_first: whether the weights are the first operand.
    """
    factors = product(node, body.shapes)
    if factors is None or not factors.is_distinct:
        return 0, None, None
    a, b = factors.labels[:: -1 if is_first else 1]
    count, result = len({*a} & {*b}), factors.result
    rows, within = a[: len(a) - count], a[len(a) - count :]
    rest = "".join(label for label in result if label not in rows)
    fits = sorted(rows + rest) == sorted(result) and sorted(within + rest) == sorted(b)
    if not count or not fits:
        return 0, None, None
    order = [b.index(label) for label in within + rest]
    turned = [(rows + rest).index(label) for label in result]
    orders = [None if axes == sorted(axes) else axes for axes in (order, turned)]
    plain = node.op == "Einsum" or not is_first and orders == [None, None] and factors.batch
    return (count, *orders) if plain else (0, None, None)
