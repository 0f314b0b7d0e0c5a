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
    except (
        ValueError,
        IndexError,
        TypeError,
    ):  # What is not known is None: it does not fit either.
        return None
    for port, array in enumerate(made or ()):
        shape = body.shapes.shape(Ref(node.name, port))
        if shape is None or shape[_FIXED:] != array.shape:
            return None
    return made


def _axis(value: int | None, ndim: int) -> int:
    """The axis of an array that `value` is of its tensor; an error where it is none."""
    axis = value % (ndim + _FIXED) - _FIXED
    if axis < 0:
        raise IndexError(f"{value} is the axis of samples or pixels")
    return axis


def _axes(values, array: np.ndarray) -> tuple[int, ...]:
    return tuple(_axis(int(value), array.ndim) for value in np.atleast_1d(values))


def _concatenated(node: Node, body: Body, given):
    return [np.concatenate(given, _axis(body.shapes.number(node.inputs[-1]), given[0].ndim))]


def _stacked(node: Node, body: Body, given):
    return [np.stack(given, _axis(node.attr["axis"].i, given[0].ndim + 1))]


def _unstacked(node: Node, body: Body, given):
    return list(np.moveaxis(given[0], _axis(node.attr["axis"].i, given[0].ndim), 0))


def _split(node: Node, body: Body, given):
    axis = _axis(body.shapes.number(node.inputs[0]), given[0].ndim)
    return np.split(given[0], node.attr["num_split"].i, axis)


def _split_by_sizes(node: Node, body: Body, given):
    axis = _axis(body.shapes.number(node.inputs[2]), given[0].ndim)
    sizes = body.constants.value(node.inputs[1])
    return None if (sizes < 0).any() else np.split(given[0], np.cumsum(sizes)[:-1], axis)


def _transposed(node: Node, body: Body, given):
    order = body.constants.value(node.inputs[1])
    if list(order[:_FIXED]) != list(range(_FIXED)):
        return None
    return [np.transpose(given[0], order[_FIXED:] - _FIXED)]


def _gathered(node: Node, body: Body, given):
    axis = _axis(body.shapes.number(node.inputs[2]), given[0].ndim)
    indices = body.constants.value(node.inputs[1])
    if node.attr["batch_dims"].i or (indices < 0).any():
        return None
    return [np.take(given[0], indices, axis)]


def _sliced(node: Node, body: Body, given):
    index = slices.of(node, body, given[0].ndim + _FIXED)
    if not all(map(slices.takes_all, index[:_FIXED])):
        return None
    return [given[0][tuple(index[_FIXED:])]]


def _rolled(node: Node, body: Body, given):
    shifts, axes = (body.constants.value(ref) for ref in node.inputs[1:])
    shifts = tuple(int(shift) for shift in np.atleast_1d(shifts))
    return [np.roll(given[0], shifts, _axes(axes, given[0]))]


def _reversed(node: Node, body: Body, given):
    return [np.flip(given[0], _axes(body.constants.value(node.inputs[1]), given[0]))]


def _repeated(node: Node, body: Body, given):
    multiples = body.constants.value(node.inputs[1])
    if any(times != 1 for times in multiples[:_FIXED]):
        return None
    return [np.tile(given[0], multiples[_FIXED:])]


def _reshaped(node: Node, body: Body, given):
    """Reshape, ExpandDims and Squeeze: the same entries in their order."""
    shape, before = body.shapes.shape(node.ref), body.shapes.shape(node.inputs[0])
    return [given[0].reshape(shape[_FIXED:])] if shape[:_FIXED] == before[:_FIXED] else None


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
