"""Functions of x alone, of x and a constant, of two tensors (their tables); Cast(x > y), too.

Of two, only tensors whose shapes are proven equal, or an operand [N, 1, 1, C] against
[N, H, W, C] (one value a sample and channel); any other broadcast is another op.
"""

from collections.abc import Iterator

import numpy as np

from .....graph import Body, Node, Ref, is_float32
from .....ops.records import BINARY, COMPARISONS, FUNCTIONS, Step, binary, eltwise
from ....rules import Idiom, per_channel

# op -> (the node's attributes -> step): the rows of the table, and steps that have numbers.
OF_ONE = {
    **{op: lambda attr, name=name: eltwise(name) for name, op in FUNCTIONS.items() if op},
    "Elu": lambda attr: eltwise("elu"),
    "Inv": lambda attr: eltwise("reciprocal"),
    "LeakyRelu": lambda attr: eltwise("leaky_relu", alpha=attr["alpha"].f),
    "Neg": lambda attr: eltwise("linear", alpha=-1.0, beta=0.0),
    "Relu": lambda attr: eltwise("relu"),
    "Relu6": lambda attr: eltwise("relu6"),
    "Rint": lambda attr: eltwise("round"),
    # selu(x) = lambda * elu(x, alpha), Klambauer et al. 2017
    "Selu": lambda attr: eltwise("elu", alpha=1.6732632423543772, scale=1.0507009873554805),
}
_NAMES = {op: name for name, op in BINARY.items() if op}
_NAMES |= {"Add": "add", "AddN": "add", "SquaredDifference": "sub"}
# step -> the step that it is when the operands are exchanged.
_EXCHANGED = {name: name for name in ("add", "mul", "max", "min", "equal", "not_equal")} | {
    "div": "rdiv",
    "sub": "add",  # of -x
    "greater": "less",
    "greater_equal": "less_equal",
    "less": "greater",
    "less_equal": "greater_equal",
}
Steps = tuple[Step, ...]
# By a constant they are affine maps or clips.
_SIMPLE = ("add", "sub", "mul", "div", "max", "min")
ROOTS = ("Cast", *OF_ONE, *(op for op, name in _NAMES.items() if name not in COMPARISONS))


def recognise(node, body: Body):
    if node.op in OF_ONE:
        step = OF_ONE[node.op](node.attr)
        yield Idiom(node.name, node.inputs[0], (step,), frozenset([node.name]))
        return
    compares = node.op == "Cast"
    work = body.view.producer(node.inputs[0]) if compares else node
    if compares == (_NAMES.get(work.op) in COMPARISONS):
        for src, steps, operands in readings(work, body, node.name):
            yield Idiom(node.name, src, steps, frozenset({node.name, work.name}), operands)


def readings(node: Node, body: Body, root: str) -> Iterator[tuple[Ref, Steps, dict[str, Ref]]]:
    """(source, chain, operands, whose roles begin with `root`): the ways to read the op."""
    name = _NAMES.get(node.op)
    if name is None or node.payload is not None or not is_float32(body.view, node.inputs[0]):
        return
    for i, x in enumerate(node.inputs):
        others = {f"{root}#{j}": ref for j, ref in enumerate(node.inputs) if j != i}
        step = _EXCHANGED.get(name) if i else name
        operands = step and _operands(x, others, step, body)
        if operands:
            read = {role: others[role] for _, role in operands if isinstance(role, str)}
            yield x, chain(node.op, i, *operands), read


def chain(op: str, i: int, *operands: tuple) -> Steps:
    """What an op makes of the operand i, the others being (shape, role or values)."""
    name = _EXCHANGED[_NAMES[op]] if i else _NAMES[op]
    before = (eltwise("linear", alpha=-1.0, beta=0.0),) if i and _NAMES[op] == "sub" else ()
    after = (eltwise("square"),) if op == "SquaredDifference" else ()
    return (*before, *(binary(name, *operand) for operand in operands), *after)


def _operands(x: Ref, others: dict[str, Ref], name: str, body: Body) -> list[tuple] | None:
    """(shape, role or values) of each operand of a step of that name."""
    constants, shapes = body.constants, body.shapes
    if constants.is_constant(x):
        return None
    if any(map(constants.is_constant, others.values())):
        constant = constant_operand(body, *others.values(), x) if len(others) == 1 else None
        if name not in COMPARISONS:
            return [constant] if constant and name not in _SIMPLE else None
        if constant:
            return [constant]
    lie = [operand_shape(shapes, x, other) for other in others.values()]
    fits = shapes.rank(x) in (3, 4) and None not in lie
    return list(zip(lie, others, strict=True)) if fits else None


def constant_operand(body: Body, ref: Ref, x: Ref) -> tuple[str, np.ndarray] | None:
    """(shape, values) of a constant of one element or one a channel of `x`; else None."""
    channels = body.shapes.features(x)
    values = None if channels is None else per_channel(body, ref, channels)
    if values is None:
        return None
    is_one = not body.constants.live or body.shapes.shape(ref) in ((), (1,))
    return ("scalar", values[:1]) if is_one and np.ptp(values) == 0 else ("channel", values)


def operand_shape(shapes, x: Ref, other: Ref) -> str | None:
    """How `other` lies against `x`: "tensor", "sample_channel", or None."""
    if shapes.equal(x, other):
        return "tensor"
    dst, src = shapes.shape(x), shapes.shape(other)
    if dst and src and len(dst) == 4 and src == (dst[0], 1, 1, dst[3]):
        return "sample_channel"
    return None
