"""Ops that only move whole channels: what each of them does to an array of channel numbers.

A tensor [N, H, W, ...] is seen as an array [...] whose entries say which channel of which tensor
lies there. Split, concatenation, transposition and the like then are what they are in numpy, and
any spelling of a channel shuffle is the array that comes out in the end.
"""

from collections.abc import Sequence

import numpy as np

from ....graph import Body, Node, Ref
from . import slices

_FIXED = 3  # dimensions N, H, W, which no routing op touches
# How many of the last inputs say how to move; the first of Split says it, too.
_SETTINGS = {
    "ConcatV2": 1,
    "ExpandDims": 1,
    "GatherV2": 2,
    "Pack": 0,
    "Reshape": 1,
    "ReverseV2": 1,
    "Roll": 2,
    "Slice": 2,
    "Split": 0,
    "SplitV": 2,
    "Squeeze": 0,
    "StridedSlice": 3,
    "Tile": 1,
    "Transpose": 1,
    "Unpack": 0,
}
OPS = frozenset(_SETTINGS)
JOINS = frozenset({"ConcatV2"})  # these alone permute nothing


def values(node: Node) -> list[Ref]:
    """The inputs whose channels the node moves."""
    if node.op == "Split":
        return node.inputs[1:]
    return node.inputs[: len(node.inputs) - _SETTINGS[node.op]]


def route(node: Node, body: Body, given: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """The arrays of the node's outputs; None where it moves more than channels, or who knows."""
    try:
        made = _ROUTES.get(node.op, _reshaped)(node, body, given)
    except (ValueError, IndexError, TypeError):  # numpy refuses what does not fit
        return None
    if made is None:
        return None
    for port, array in enumerate(made):
        shape = body.shapes.shape(Ref(node.name, port))
        if shape is None or shape[_FIXED:] != array.shape:
            return None
    return made


def _axis(value, rank: int) -> int | None:
    """The axis of the array that `value` is of the tensor of this rank."""
    if value is None or np.size(value) != 1:
        return None
    axis = int(np.reshape(value, ())) % rank - _FIXED
    return axis if axis >= 0 else None


def _concatenated(node: Node, body: Body, given):
    axis = _axis(body.shapes.value(node.inputs[-1]), given[0].ndim + _FIXED)
    return None if axis is None else [np.concatenate(given, axis)]


def _stacked(node: Node, body: Body, given):
    axis = _axis(node.attr["axis"].i, given[0].ndim + 1 + _FIXED)
    return None if axis is None else [np.stack(given, axis)]


def _unstacked(node: Node, body: Body, given):
    axis = _axis(node.attr["axis"].i, given[0].ndim + _FIXED)
    return None if axis is None else list(np.moveaxis(given[0], axis, 0))


def _split(node: Node, body: Body, given):
    axis = _axis(body.shapes.value(node.inputs[0]), given[0].ndim + _FIXED)
    return None if axis is None else np.split(given[0], node.attr["num_split"].i, axis)


def _split_by_sizes(node: Node, body: Body, given):
    axis = _axis(body.shapes.value(node.inputs[2]), given[0].ndim + _FIXED)
    sizes = body.constants.value(node.inputs[1])
    if axis is None or sizes is None or (sizes < 0).any():
        return None
    return np.split(given[0], np.cumsum(sizes)[:-1], axis)


def _transposed(node: Node, body: Body, given):
    order = body.constants.value(node.inputs[1])
    if order is None or list(order[:_FIXED]) != list(range(_FIXED)):
        return None
    return [np.transpose(given[0], order[_FIXED:] - _FIXED)]


def _gathered(node: Node, body: Body, given):
    axis = _axis(body.shapes.value(node.inputs[2]), given[0].ndim + _FIXED)
    indices = body.constants.value(node.inputs[1])
    if axis is None or indices is None or node.attr["batch_dims"].i or (indices < 0).any():
        return None
    return [np.take(given[0], indices, axis)]


def _sliced(node: Node, body: Body, given):
    index = slices.of(node, body, given[0].ndim + _FIXED)
    if index is None or not all(map(slices.takes_all, index[:_FIXED])):
        return None
    return [given[0][tuple(index[_FIXED:])]]


def _rolled(node: Node, body: Body, given):
    shifts, axes = (body.constants.value(ref) for ref in node.inputs[1:])
    axes = _axes(axes, given[0].ndim)
    if shifts is None or axes is None:
        return None
    return [np.roll(given[0], tuple(map(int, np.atleast_1d(shifts))), axes)]


def _reversed(node: Node, body: Body, given):
    axes = _axes(body.constants.value(node.inputs[1]), given[0].ndim)
    return None if axes is None else [np.flip(given[0], axes)]


def _repeated(node: Node, body: Body, given):
    multiples = body.constants.value(node.inputs[1])
    if multiples is None or any(times != 1 for times in multiples[:_FIXED]):
        return None
    return [np.tile(given[0], multiples[_FIXED:])]


def _axes(values, ndim: int) -> tuple[int, ...] | None:
    """The axes of the array that these are of the tensor."""
    axes = () if values is None else [_axis(v, ndim + _FIXED) for v in np.atleast_1d(values)]
    return None if not len(axes) or None in axes else tuple(axes)


def _reshaped(node: Node, body: Body, given):
    """Reshape, ExpandDims and Squeeze: the same entries in their order."""
    shape, before = body.shapes.shape(node.ref), body.shapes.shape(node.inputs[0])
    if shape is None or before is None or shape[:_FIXED] != before[:_FIXED]:
        return None
    if not all(isinstance(size, int) for size in shape[_FIXED:]):
        return None
    return [given[0].reshape(shape[_FIXED:])]


_ROUTES = {
    "ConcatV2": _concatenated,
    "GatherV2": _gathered,
    "Pack": _stacked,
    "ReverseV2": _reversed,
    "Roll": _rolled,
    "Slice": _sliced,
    "Split": _split,
    "SplitV": _split_by_sizes,
    "StridedSlice": _sliced,
    "Tile": _repeated,
    "Transpose": _transposed,
    "Unpack": _unstacked,
}
