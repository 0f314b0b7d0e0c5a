"""Comparisons as numbers: Cast(x > y), of two tensors or one and a constant."""

from .....graph import Body, Node, Ref, is_float32
from .....ops.records import BINARY, COMPARISONS, Step, binary
from .idiom import Idiom
from .tensor_binary import constant_operand, operand_shape

ROOTS = ("Cast",)
_NAMES = {BINARY[name]: name for name in COMPARISONS}
_MIRRORED = {
    "greater": "less",
    "greater_equal": "less_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "equal": "equal",
    "not_equal": "not_equal",
}


def recognise(node, body: Body):
    compare = body.view.producer(node.inputs[0])
    for src, step, operands in compared(compare, body, node.name):
        yield Idiom(node.name, src, (step,), frozenset({node.name, compare.name}), operands)


def compared(node: Node, body: Body, root: str) -> list[tuple[Ref, Step, dict[str, Ref]]]:
    """(source, the step that makes 1 or 0 of it, its operands) of a comparison of float32."""
    name = _NAMES.get(node.op)
    if name is None or node.payload is not None or not is_float32(body.view, node.inputs[0]):
        return []
    found = []
    for i, own in ((0, name), (1, _MIRRORED[name])):
        x, other = node.inputs[i], node.inputs[1 - i]
        if body.constants.is_constant(x):
            continue
        if constant := constant_operand(body, other, x):
            found.append((x, binary(own, *constant), {}))
        elif body.shapes.rank(x) in (3, 4) and (shape := operand_shape(body.shapes, x, other)):
            role = f"{root}#{1 - i}"
            found.append((x, binary(own, shape, role), {role: other}))
    return found
