"""Writes products of tensors whose batch has several axes with one: ops of ours know no more.

Keras's attention along one axis of [N, P, T, C] multiplies [N, P, T, H, D] by another one of these,
for each of N and P. With B = N * P it is what others multiply:

    product(x, y) = reshape(product(reshape(x, [B, ..]), reshape(y, [B, ..])), [N, P, ..])

Between two such products, and in front of them, the two axes stay one where what stands there
treats all of a batch alike; then nothing is left of the reshapes but one in front and one behind.
"""

import math
import string

from ....graph import Body, Node, Ref, open_sizes
from ...context import Context

_PRODUCTS = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum"})
_MOST = 4  # axes of a product, one of them of the batch
_ANY = "..."  # in an equation
_UNARY = frozenset({"Identity", "Softmax", "StopGradient", "Tanh"})
_SCALED = frozenset({"Mul", "RealDiv"})


def merge_batches(body: Body, context: Context) -> None:
    """Writes products of tensors whose batch has several axes as products with one."""
    for node in body.view.topological():
        while _may_merge(node, body) and not context.reason_to_leave(body, node):
            node = _merge(node, body)


def _may_merge(node: Node, body: Body) -> bool:
    """Whether both axes in front are of the batch, and the sizes of the result can be told."""
    if node.op not in _PRODUCTS or node.payload is not None or len(node.inputs) != 2:
        return False
    if body.view.has_control_edges(node.name):
        return False
    sizes = [body.shapes.shape(ref) for ref in (*node.inputs, node.ref)]
    if None in sizes or any(len(one) <= _MOST for one in sizes):
        return False
    if any(one[:2] != sizes[0][:2] for one in sizes) or any(
        map(body.constants.is_constant, node.inputs)
    ):
        return False
    return _has_batch(node, sizes) and all(map(_is_known, sizes))


def _has_batch(node: Node, sizes: list[tuple]) -> bool:
    """Whether the first two axes of both operands are those of the result."""
    labels = _labels(node, sizes)
    if labels is None:
        return node.op != "Einsum"
    first = set(labels[0][:2])
    return all(text[:2] == labels[0][:2] and not first & set(text[2:]) for text in labels)


def _labels(node: Node, sizes: list[tuple]) -> list[str] | None:
    """The letters of an Einsum's operands and result, with some for those of an ellipsis."""
    if node.op != "Einsum":
        return None
    equation = node.attr["equation"].s.decode().replace(" ", "").replace("->", ",")
    labels = equation.split(",")
    hidden = {len(shape) + len(_ANY) - len(text) for shape, text in zip(sizes, labels, strict=True)}
    if _ANY in equation:
        count = hidden.pop()
        if hidden or not all(text.startswith(_ANY) for text in labels):
            return None
        if len({shape[:count] for shape in sizes}) > 1:  # an axis of one for all of another's
            return None
        free = [letter for letter in string.ascii_letters if letter not in equation]
        equation = equation.replace(_ANY, "".join(free[:count]))
    return equation.split(",")


def _is_known(shape) -> bool:
    """Whether the size of the first axis alone is unknown, if any: a Reshape tells it."""
    return all(isinstance(size, int) for size in shape[1:]) and math.prod(shape[1:]) > 0


def _merge(node: Node, body: Body) -> Node:
    """Puts a product of one axis less in the node's place; returns it."""
    inputs = [_merged(ref, body) for ref in node.inputs]
    attributes = {key: node.attr[key] for key in ("adj_x", "adj_y") if key in node.proto.attr}
    shapes = [body.shapes.shape(ref) for ref in (*node.inputs, node.ref)]
    if (labels := _labels(node, shapes)) is not None:
        a, b, result = (text[1:] for text in labels)
        inputs, attributes = [inputs], {"equation": f"{a},{b}->{result}"}
    product = last = _add(node, inputs, body, **attributes)
    end = node
    if (turned := _turned(node, body)) is not None:
        end, last = turned, _turn(turned, product, body)
    body.writer(end.name).put("Reshape", last, open_sizes(body.shapes.shape(end.ref)))
    return body.view.producer(product)


def _turned(node: Node, body: Body) -> Node | None:
    """The transpose that alone reads the node and leaves the batch in front."""
    reader = body.view.only_reader(node.ref)[0]
    return reader if reader is not None and _is_turned(reader, body) else None


def _is_turned(node: Node, body: Body) -> bool:
    if node.op != "Transpose" or node.payload is not None or body.view.has_control_edges(node.name):
        return False
    order = body.shapes.numbers(node.inputs[1])
    return order is not None and list(order[:2]) == [0, 1]


def _turn(node: Node, src: Ref, body: Body) -> Ref:
    """The same transpose of a tensor whose first two axes are one."""
    order = body.shapes.numbers(node.inputs[1])
    return _add(node, [src, [0, *(axis - 1 for axis in order[2:])]], body)


def _of(shape) -> tuple:
    """The shape with its first two axes as one."""
    return (shape[0] * shape[1], *shape[2:])


def _add(like: Node, inputs: list, body: Body, **attributes) -> Ref:
    """The result of a node as `like`, on tensors whose first two axes are one."""
    shape = _of(body.shapes.shape(like.ref))
    return body.writer(like.name).add("merged", like.op, *inputs, shape=shape, **attributes)


def _merged(ref: Ref, body: Body) -> Ref:
    """The tensor with its first two axes as one."""
    view, node, shape = body.view, body.view.producer(ref), body.shapes.shape(ref)
    if node.op == "Reshape" and body.shapes.shape(node.inputs[0]) == _of(shape):
        return node.inputs[0]
    if view.only_reader(ref)[0] is not None and ref.port == 0 and node.payload is None:
        if node.op in _UNARY:
            return _add(node, [_merged(node.inputs[0], body)], body)
        if node.op in _SCALED and (at := _scaled(node, body)) is not None:
            inputs = list(node.inputs)
            inputs[at] = _merged(inputs[at], body)
            return _add(node, inputs, body)
        if _is_turned(node, body):
            return _turn(node, _merged(node.inputs[0], body), body)
    write = body.writer(ref.node)
    return write.add("merged", "Reshape", ref, [-1, *shape[2:]], shape=_of(shape))


def _scaled(node: Node, body: Body) -> int | None:
    """Which operand a number scales."""
    for at in (0, 1):
        if at == 1 and node.op == "RealDiv":
            continue
        number = body.constants.scalar(node.inputs[1 - at])
        if number is not None and body.shapes.equal(node.inputs[at], node.ref):
            return at
    return None
