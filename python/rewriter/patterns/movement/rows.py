"""Rows or columns of blocked pictures moved as a whole, by TensorFlow's ops on blocks.

[N, H, 1, C] and [N, 1, H, C] are one in memory, in blocks too. Of blocks, [N, CB, H, W, 16],
TensorFlow joins, mirrors, rolls, repeats and leaves out rows and columns as it does of pictures:
what an op's settings say of the axes of pictures, they then say of those of blocks.
"""

from collections.abc import Sequence

import numpy as np

from ....graph import Body, Node, Writer, slices
from ....ops.records import (
    BLOCK,
    Eltwise,
    Join,
    MirrorPad,
    Record,
    Reshape,
    Reverse,
    Roll,
    Sampling,
    Tile,
    ValuePad,
    binary,
)
from ...context import Context
from ...rules import Replacement
from . import cut

_AXES = (0, 2, 3)  # of blocks, for those of the pictures, their rows and their columns


class _Stays(Exception):
    """It moves something else, or nobody knows what."""


def find(node: Node, body: Body, context: Context) -> Replacement | None:
    """What `node` moves, if it moves pixels in their order, or rows and columns."""
    channels = body.shapes.channels(node.ref)
    if node.controls or channels is None:
        return None
    if node.op != "ConcatV2" and body.shapes.channels(node.inputs[0]) != channels:
        return None
    plan = _PLANS.get(node.op, _by_settings)
    try:
        payload, constants = plan(node, body, {"origin": node.name, "channels": channels})
    except _Stays:
        return None
    joins = isinstance(payload, Join)
    inputs = payload.roles(node.inputs[:-1]) if joins else {"src": node.inputs[0]}

    def with_constants(write: Writer) -> dict:
        kinds = {role: payload.dtype_of(role) for role in constants}
        refs = {role: write.constant(role, constants[role], kinds[role]) for role in constants}
        return {**inputs, **refs}

    if not isinstance(payload, ValuePad) or channels % BLOCK == 0:
        return Replacement(payload, inputs, node.name, prepare=with_constants)
    clear = binary("mul", "channel", np.ones(channels))  # by 0 in the tail
    return Replacement(
        Eltwise(origin=node.name, channels=channels, steps=(clear,)),
        inputs,
        node.name,
        prepare=lambda write: {"src": write.plan("padded", payload, with_constants(write))},
    )


# The primitive, and what the constants are that it reads, by their roles.
Plan = tuple[Record, dict[str, object]]


def _by_settings(node: Node, body: Body, common: dict) -> Plan:
    record, *settings = _SETTINGS[node.op]
    known = list(map(body.known, node.inputs[1:]))
    if any(value is None or not all(map(_is_number, value.flat)) for value in known):
        raise _Stays  # Sizes that are open are not.
    values = [of_blocks(value) for of_blocks, value in zip(settings, known, strict=True)]
    mode = {"mode": node.attr["mode"].s.decode()} if node.op == "MirrorPad" else {}
    return record(**mode, **common), dict(zip(record.operands[1:], values, strict=True))


def _join(node: Node, body: Body, common: dict) -> Plan:
    axis = body.shapes.number(node.inputs[-1])
    known = all(body.shapes.rank(ref) == 4 for ref in node.inputs[:-1])
    if not known or axis is None or axis % 4 not in (1, 2):
        raise _Stays
    return Join(count=len(node.inputs) - 1, axis=_AXES[axis % 4], **common), {}


def _reshape(node: Node, body: Body, common: dict) -> Plan:
    was, now = body.shapes.shape(node.inputs[0]), body.shapes.shape(node.ref)
    if was[0] != now[0] or not all(isinstance(size, int) for size in (*was[1:3], *now[1:3])):
        raise _Stays
    turns = node.op == "Transpose" and body.shapes.numbers(node.inputs[1]) == [0, 2, 1, 3]
    keeps = node.op == "Reshape" or (turns and 1 in was[1:3])
    if not keeps or was[1] * was[2] != now[1] * now[2]:
        raise _Stays
    blocks = -(-now[3] // BLOCK)
    return Reshape(**common), {"shape": [-1, blocks, *now[1:3], BLOCK]}


def _sample(node: Node, body: Body, common: dict) -> Plan:
    index = slices(node, body.known, 4)
    if index is None or index[0] != slice(None) or all(item.step in (None, 1) for item in index):
        raise _Stays  # cuts are another op's
    every = _over_blocks(index, slice(None))
    masks = [sum(1 << i for i, s in enumerate(every) if getattr(s, b) is None) for b in _BOUNDS]
    begin, end = ([getattr(s, bound) or 0 for s in every] for bound in _BOUNDS)
    constants = {"begin": begin, "end": end, "strides": [s.step or 1 for s in every]}
    return Sampling(begin_mask=masks[0], end_mask=masks[1], **common), constants


_BOUNDS = ("start", "stop")


def _over_blocks(values: Sequence, idle) -> list:
    """One value an axis of pictures, as one an axis of blocks; channels stay where they are."""
    pictures, rows, columns, channels = values
    if channels != idle:
        raise _Stays
    return [pictures, idle, rows, columns, idle]


def _paddings(pads: np.ndarray) -> list:
    """Those of rows and columns; there are no others."""
    if any(pads[0]):
        raise _Stays
    return _over_blocks([list(map(int, pair)) for pair in pads], [0, 0])


def _value(value: np.ndarray) -> np.float32:
    """The value of a padding, unless it is 0 or -inf, which other patterns know."""
    if value.item() in (0.0, -np.inf):
        raise _Stays
    return np.float32(value.item())


def _is_number(value) -> bool:
    return isinstance(value, int | np.number)


def _axes(axes: np.ndarray) -> list[int]:
    if any(axis % 4 == 3 for axis in axes.flat):
        raise _Stays
    return [_AXES[axis % 4] for axis in axes.flat]


def _numbers(values: np.ndarray) -> list[int]:
    return list(map(int, values.flat))


_PLANS = {"ConcatV2": _join, "Reshape": _reshape, "StridedSlice": _sample, "Transpose": _reshape}
# op -> the primitive, and how each constant of it follows from the op's.
_SETTINGS = {
    "MirrorPad": (MirrorPad, _paddings),
    "PadV2": (ValuePad, _paddings, _value),
    "ReverseV2": (Reverse, _axes),
    "Roll": (Roll, _numbers, _axes),
    "Tile": (Tile, lambda multiples: _over_blocks(_numbers(multiples), 1)),
}
ROOTS = (*_PLANS, *_SETTINGS)
NAMED = ("mode", *cut.NAMED)
