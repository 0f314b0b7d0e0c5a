"""Writes ops as the cheaper ones that TensorFlow's own optimiser would run in their place.

It does not look into the functions of regions, and patterns know fewer spellings this way.

    pow(x, 2) = square(x),  pow(x, 3) = x * square(x),  pow(x, 1/2) = sqrt(x), ...
    transpose(x, [0, 1, ..]) = x,    reshape(x, shape(x)) = x
"""

from collections.abc import Callable

from tensorflow.core.framework import node_def_pb2

from ....graph import Body, Node, Ref
from ....tensorflow_private import dtypes
from ...context import Context


def simplify(body: Body, context: Context) -> None:
    """Writes powers as products and roots, and drops moves that move nothing."""
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
    square = Node(f"{node.name}/square", "Square", [x], proto=_proto(node, "Square"))
    _put(node, "Mul", [x, body.view.add(square).ref], body)


def _put(node: Node, op: str, inputs: list[Ref], body: Body) -> None:
    body.view.replace(Node(node.name, op, inputs, proto=_proto(node, op)))


def _proto(node: Node, op: str) -> node_def_pb2.NodeDef:
    proto = node_def_pb2.NodeDef(name=node.name, op=op, device=node.proto.device)
    proto.attr["T"].CopyFrom(node.attr["T"])
    return proto


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


# exponent -> what computes that power
_POWERS = {
    -1.0: _unary("Reciprocal"),
    -0.5: _unary("Rsqrt"),
    0.5: _unary("Sqrt"),
    2.0: _unary("Square"),
    3.0: _cube,
}
_RULES = {"Pow": _power, "Reshape": _reshape, "Transpose": _transpose}
