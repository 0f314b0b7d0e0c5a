"""Rows or columns of blocked pictures moved as a whole, by TensorFlow's ops on blocks.

[N, H, 1, C] and [N, 1, H, C] are one in memory, in blocks too. Of blocks, [N, CB, H, W, 16],
TensorFlow joins, mirrors, rolls, repeats and leaves out rows and columns as it does of pictures.
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
from ...rules import Found
from . import cut

_AXES = (0, 2, 3)  # of blocks, for those of the pictures, their rows and their columns


def find(node: Node, body: Body, context: Context) -> Found | None:
    """What `node` moves, if it moves pixels in their order, or rows and columns."""
    shape = body.shapes.shape(node.ref)
    if node.op not in ROOTS or node.payload is not None or node.controls:
        return None
    if shape is None or len(shape) != 4 or not isinstance(shape[3], int) or shape[3] < 1:
        return None
    if node.op != "ConcatV2" and body.shapes.channels(node.inputs[0]) != shape[3]:
        return None
    made = _MOVES[node.op](node, body, {"origin": node.name, "channels": shape[3]})
    if made is None:
        return None
    payload, constants = made
    joins = isinstance(payload, Join)
    inputs = payload.roles(node.inputs[:-1]) if joins else {"src": node.inputs[0]}

    def with_constants(write: Writer) -> dict:
        kinds = {role: payload.dtype_of(role) for role in constants}
        made = {role: write.constant(role, constants[role], kinds[role]) for role in constants}
        return {**inputs, **made}

    if not isinstance(payload, ValuePad) or shape[3] % BLOCK == 0:
        return Found(payload, inputs, node.name, prepare=with_constants)
    clear = binary("mul", "channel", np.ones(shape[3]))  # by 0 in the tail
    return Found(
        Eltwise(origin=node.name, channels=shape[3], steps=(clear,)),
        inputs,
        node.name,
        prepare=lambda write: {"src": write.plan("padded", payload, with_constants(write))},
    )


def moves(node: Node, body: Body) -> bool:
    """Whether pixels keep their order and channels, or rows or columns are moved."""
    return find(node, body, None) is not None


Move = tuple[Record, dict[str, object]] | None


def _joined(node: Node, body: Body, common: dict) -> Move:
    axis = body.shapes.number(node.inputs[-1])
    known = all(body.shapes.rank(ref) == 4 for ref in node.inputs[:-1])
    if not known or axis is None or axis % 4 not in (1, 2):
        return None
    return Join(count=len(node.inputs) - 1, axis=axis % 4 + 1, **common), {}


def _reshaped(node: Node, body: Body, common: dict) -> Move:
    was, now = body.shapes.shape(node.inputs[0]), body.shapes.shape(node.ref)
    if was is None or len(was) != 4 or was[0] != now[0]:
        return None
    if not all(isinstance(size, int) for size in (*was[1:3], *now[1:3])):
        return None
    if was[1] * was[2] != now[1] * now[2]:
        return None
    order = body.shapes.numbers(node.inputs[1]) if node.op == "Transpose" else None
    if node.op != "Reshape" and not (order == [0, 2, 1, 3] and 1 in was[1:3]):
        return None
    blocks = -(-now[3] // BLOCK)
    return Reshape(**common), {"shape": [-1, blocks, *now[1:3], BLOCK]}


def _mirrored(node: Node, body: Body, common: dict) -> Move:
    paddings = _paddings(node, body)
    mode = node.attr["mode"].s.decode()
    return paddings and (MirrorPad(mode=mode, **common), {"paddings": paddings})


def _padded(node: Node, body: Body, common: dict) -> Move:
    """With another value than those that the other patterns of paddings know."""
    value, paddings = body.constants.scalar(node.inputs[2]), _paddings(node, body)
    if value in (None, 0.0, -np.inf) or not paddings:
        return None
    return ValuePad(**common), {"paddings": paddings, "constant_values": np.float32(value)}


def _rolled(node: Node, body: Body, common: dict) -> Move:
    shifts, axes = (body.constants.value(ref) for ref in node.inputs[1:])
    axes = _axes(axes)
    if shifts is None or axes is None:
        return None
    shifts = [int(shift) for shift in np.atleast_1d(shifts)]
    return Roll(**common), {"shift": shifts, "axis": axes}


def _repeated(node: Node, body: Body, common: dict) -> Move:
    multiples = body.constants.value(node.inputs[1])
    if multiples is None:
        return None
    return Tile(**common), {"multiples": _over_blocks(list(map(int, multiples)), 1)}


def _reversed(node: Node, body: Body, common: dict) -> Move:
    axes = _axes(body.constants.value(node.inputs[1]))
    return axes and (Reverse(**common), {"axis": axes})


def _sampled(node: Node, body: Body, common: dict) -> Move:
    index = slices(node, body.known, 4)
    if index is None or all(one.step in (None, 1) for one in index):
        return None  # cuts are another op's
    if index[0] != slice(None) or index[3] != slice(None):
        return None
    every = _over_blocks(index, slice(None))
    masks = [sum(1 << i for i, s in enumerate(every) if getattr(s, b) is None) for b in _BOUNDS]
    begin, end = ([getattr(s, bound) or 0 for s in every] for bound in _BOUNDS)
    constants = {"begin": begin, "end": end, "strides": [s.step or 1 for s in every]}
    return Sampling(begin_mask=masks[0], end_mask=masks[1], **common), constants


_BOUNDS = ("start", "stop")


def _paddings(node: Node, body: Body) -> list | None:
    """Of blocks; those of rows and columns have to be constant, others are none."""
    pads = body.shapes.value(node.inputs[1])
    if pads is None or pads.shape != (4, 2) or not all(isinstance(p, int) for p in pads.flat):
        return None
    pads = [list(map(int, pair)) for pair in pads]
    return None if any(pads[0]) or any(pads[3]) else _over_blocks(pads, [0, 0])


def _axes(axes) -> list[int] | None:
    """Of blocks; None where that of channels is among them."""
    found = None if axes is None else [int(axis) % 4 for axis in np.atleast_1d(axes)]
    return None if found is None or 3 in found else [_AXES[axis] for axis in found]


def _over_blocks(values: Sequence, idle) -> list:
    """One value an axis of pictures, as one an axis of blocks."""
    pictures, rows, columns, _ = values
    return [pictures, idle, rows, columns, idle]


_MOVES = {
    "ConcatV2": _joined,
    "MirrorPad": _mirrored,
    "PadV2": _padded,
    "Reshape": _reshaped,
    "ReverseV2": _reversed,
    "Roll": _rolled,
    "StridedSlice": _sampled,
    "Tile": _repeated,
    "Transpose": _reshaped,
}
ROOTS = tuple(_MOVES)
NAMED = ("mode", *cut.NAMED)
