"""Element-wise ops of two tensors: residual Add, the gating Mul of squeeze-excite, and kin.

Only tensors whose shapes are proven equal, or an operand [N, 1, 1, C] against
[N, H, W, C] (one value a sample and channel); any other broadcast is another op.
"""

from .....graph import Body
from .....ops.records import binary, eltwise
from .idiom import Idiom

_NAMES = {
    "Add": "add",
    "AddV2": "add",
    "AddN": "add",
    "Sub": "sub",
    "Mul": "mul",
    "RealDiv": "div",
    "Maximum": "max",
    "Minimum": "min",
    "SquaredDifference": "sub",
}
_COMMUTATIVE = ("add", "mul", "max", "min")
ROOTS = tuple(_NAMES)


def recognise(node, body: Body):
    name = _NAMES[node.op]
    if any(body.constants.is_constant(ref) for ref in node.inputs):
        return
    for i, x in enumerate(node.inputs):
        others = {f"{node.name}#{j}": ref for j, ref in enumerate(node.inputs) if j != i}
        shapes = [operand_shape(body.shapes, x, other) for other in others.values()]
        if body.shapes.rank(x) not in (3, 4) or None in shapes:
            continue
        before = ()
        if i and name == "sub":  # a - x = -x + a
            before, step_name = (eltwise("linear", alpha=-1.0, beta=0.0),), "add"
        elif i and name not in _COMMUTATIVE:
            continue
        else:
            step_name = name
        steps = [binary(step_name, *pair) for pair in zip(shapes, others, strict=True)]
        if node.op == "SquaredDifference":
            steps.append(eltwise("square"))
        yield Idiom(node.name, x, (*before, *steps), frozenset([node.name]), others)


def operand_shape(shapes, x, other) -> str | None:
    """How `other` lies against `x`: "tensor", "sample_channel", or None."""
    if shapes.equal(x, other):
        return "tensor"
    dst, src = shapes.shape(x), shapes.shape(other)
    if dst and src and len(dst) == 4 and src == (dst[0], 1, 1, dst[3]):
        return "sample_channel"
    return None
