"""Element-wise ops of two tensors (their table), such as the gating Mul of squeeze-excite.

Only tensors whose shapes are proven equal, or an operand [N, 1, 1, C] against
[N, H, W, C] (one value a sample and channel); any other broadcast is another op.
"""

import numpy as np

from .....graph import Body
from .....ops.records import BINARY, COMPARISONS, binary, eltwise
from .affine import per_channel
from .idiom import Idiom

_NAMES = {
    **{op: name for name, op in BINARY.items() if op and name not in COMPARISONS},
    "Add": "add",
    "AddN": "add",
    "SquaredDifference": "sub",
}
_COMMUTATIVE = ("add", "mul", "max", "min")
# Those of them that are affine maps or clips by a constant.
_SIMPLE = ("add", "sub", "mul", "div", "max", "min")
ROOTS = tuple(_NAMES)


def recognise(node, body: Body):
    name = _NAMES[node.op]
    if any(body.constants.is_constant(ref) for ref in node.inputs):
        yield from _with_constant(node, name, body)
        return
    for i, x in enumerate(node.inputs):
        others = {f"{node.name}#{j}": ref for j, ref in enumerate(node.inputs) if j != i}
        shapes = [operand_shape(body.shapes, x, other) for other in others.values()]
        if body.shapes.rank(x) not in (3, 4) or None in shapes:
            continue
        before = ()
        if i and name == "sub":  # a - x = -x + a
            before, step_name = (eltwise("linear", alpha=-1.0, beta=0.0),), "add"
        elif i and name == "div":
            step_name = "rdiv"
        elif i and name not in _COMMUTATIVE:
            continue
        else:
            step_name = name
        steps = [binary(step_name, *pair) for pair in zip(shapes, others, strict=True)]
        if node.op == "SquaredDifference":
            steps.append(eltwise("square"))
        yield Idiom(node.name, x, (*before, *steps), frozenset([node.name]), others)


def _with_constant(node, name: str, body: Body):
    """What is no affine map or clip: a constant divided by x, and functions of x and a constant."""
    if len(node.inputs) != 2:
        return
    x, constant = node.inputs
    if name == "div" and body.constants.is_constant(x):
        x, constant, name = constant, x, "rdiv"
    operand = None if name in _SIMPLE else constant_operand(body, constant, x)
    if operand is not None:
        yield Idiom(node.name, x, (binary(name, *operand),), frozenset([node.name]))


def constant_operand(body: Body, ref, x):
    """(shape, values) of a constant of one element or one a channel of `x`; else None."""
    channels = body.shapes.features(x)
    if channels is None or body.constants.is_constant(x):
        return None
    values = per_channel(body, ref, channels)
    if values is None:
        return None
    is_one = not body.constants.live or body.shapes.shape(ref) in ((), (1,))
    return ("scalar", values[:1]) if is_one and np.ptp(values) == 0 else ("channel", values)


def operand_shape(shapes, x, other) -> str | None:
    """How `other` lies against `x`: "tensor", "sample_channel", or None."""
    if shapes.equal(x, other):
        return "tensor"
    dst, src = shapes.shape(x), shapes.shape(other)
    if dst and src and len(dst) == 4 and src == (dst[0], 1, 1, dst[3]):
        return "sample_channel"
    return None
