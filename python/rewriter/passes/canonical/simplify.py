"""Writes ops as the cheaper ones that TensorFlow's own optimiser would run in their place.

It does not look into the functions of regions, and patterns know fewer spellings this way.

    pow(x, 2) = square(x),  pow(x, 3) = x * square(x),  pow(x, 1/2) = sqrt(x), ...
    transpose(x, [0, 1, ..]) = x,    reshape(x, shape(x)) = x
    sum of a plane of n pixels = n mean of it
    x[:n, ...] = x of n,    x * s = x * [s, s, ..],  s [N, 1, 1, 1], x [N, H, W, C]
"""

from collections.abc import Callable

import numpy as np
from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, Ref, constant_node, is_float32, make_node
from ....tensorflow_private import dtypes
from ...context import Context


def simplify(body: Body, context: Context) -> None:
    """Writes powers as products and roots, sums of planes as means; removes idle moves."""
    for node in body.view.topological():
        rule = _RULES.get(node.op)
        if rule is not None and not body.view.has_control_edges(node.name):
            rule(node, body)


def _power(node: Node, body: Body) -> None:
    x, exponent = node.inputs
    if not dtypes.as_dtype(node.attr["T"].type).is_floating or not body.shapes.equal(x, node.ref):
        return
    write = _POWERS.get(body.constants.scalar(exponent))
    if write is not None:
        write(node, x, body)
        body.view.remove_dead([exponent.node])


def _unary(op: str) -> Callable:
    return lambda node, x, body: _put(node, op, [x], body)


def _cube(node: Node, x: Ref, body: Body) -> None:
    square = body.view.add(_like(node, f"{node.name}/square", "Square", [x]))
    _put(node, "Mul", [x, square.ref], body)


def _put(node: Node, op: str, inputs: list[Ref], body: Body) -> None:
    body.view.replace(_like(node, node.name, op, inputs))


def _like(node: Node, name: str, op: str, inputs: list[Ref]) -> Node:
    """A node of the type, and on the device, of another."""
    return make_node(name, op, inputs, device=node.proto.device, T=node.attr["T"])


def _transpose(node: Node, body: Body) -> None:
    order = body.shapes.value(node.inputs[1])
    if order is not None and list(order) == list(range(len(order))):
        _bypass(node, body)


def _reshape(node: Node, body: Body) -> None:
    if body.shapes.equal(node.inputs[0], node.ref):
        _bypass(node, body)


def _bypass(node: Node, body: Body) -> None:
    if not body.view.is_fetched(node.ref):  # its name is the output's
        body.view.replace_uses(node.ref, node.inputs[0])
        body.view.remove_dead([node.name])


def _sum(node: Node, body: Body) -> None:
    """Pictures in blocks have a mean of each plane, and no sum."""
    x, axes = node.inputs
    shape, numbers = body.shapes.shape(x), body.shapes.numbers(axes)
    if not is_float32(body.view, x) or shape is None or len(shape) != 4 or numbers is None:
        return
    pixels = shape[1] * shape[2] if all(isinstance(size, int) for size in shape[1:3]) else 0
    if sorted(axis % 4 for axis in numbers) != [1, 2] or not pixels:
        return
    mean = body.view.add(Node(f"{node.name}/mean", "Mean", [x, axes], proto=node.proto))
    count = constant_node(f"{node.name}/pixels", pixels, types_pb2.DT_FLOAT)
    _put(node, "Mul", [mean.ref, body.view.add(count).ref], body)


def _slice(node: Node, body: Body) -> None:
    """What has the size of all, with steps of 1, is all."""
    steps = body.shapes.numbers(node.inputs[3])
    if steps is not None and set(steps) <= {1} and body.shapes.equal(node.inputs[0], node.ref):
        _bypass(node, body)


def _spread(node: Node, body: Body) -> None:
    """Gives each channel the number that its sample has for all: blocked tensors know those."""
    pictures = [body.shapes.shape(ref) for ref in node.inputs]
    if not is_float32(body.view, node.ref) or any(len(one or ()) != 4 for one in pictures):
        return
    for index, (own, other) in enumerate(zip(pictures, reversed(pictures), strict=True)):
        is_vector = own == (other[0], 1, 1, 1) and other[1:3] != (1, 1)
        if is_vector and isinstance(other[3], int) and other[3] > 1:
            one = np.ones((1, 1, 1, other[3]))
            ones = constant_node(f"{node.name}/ones", one, types_pb2.DT_FLOAT)
            inputs = [node.inputs[index], body.view.add(ones).ref]
            spread = body.view.add(_like(node, f"{node.name}/spread", "Mul", inputs))
            inputs = list(node.inputs)
            inputs[index] = spread.ref
            body.view.set_inputs(node, inputs)


# exponent -> what computes that power
_POWERS = {
    -1.0: _unary("Reciprocal"),
    -0.5: _unary("Rsqrt"),
    0.5: _unary("Sqrt"),
    2.0: _unary("Square"),
    3.0: _cube,
}
_RULES = {
    "Pow": _power,
    "Reshape": _reshape,
    "StridedSlice": _slice,
    "Sum": _sum,
    "Transpose": _transpose,
    **dict.fromkeys(("Add", "AddV2", "Mul", "RealDiv", "Sub"), _spread),
}
