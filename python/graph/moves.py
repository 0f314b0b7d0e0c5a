"""Ops that only move elements: what each of them does to arrays, in NumPy's words.

The elements may be the values of constants, the sizes of shapes, or numbers that say which element
came from where, as those of channels do: a tensor [N, H, W, ..] of whole channels is an array [..]
whose entries are channels, and N, H and W are axes that no move may touch.
"""

from collections.abc import Callable, Sequence

import numpy as np

from .view import Node, Ref

_Arrays = Sequence[np.ndarray]
_MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")  # of a StridedSlice


def move(
    node: Node, arrays: _Arrays, known: Callable[[Ref], np.ndarray | None], hidden: int = 0
) -> list[np.ndarray] | None:
    """What the outputs of one of `MOVES` hold.

    Args:
        arrays: what the inputs hold that are moved, as `moved` lists them.
        known: of an input that says how to move, the elements.
        hidden: how many axes in front the arrays are without.

    Returns: an array an output, of the type of the first; None where something is not known or
        does not fit, or where a hidden axis would move.
    """
    try:
        results = MOVES[node.op](_Move(node, known, arrays[0].ndim, hidden), *arrays)
        return [np.asarray(result, arrays[0].dtype) for result in results]
    except (TypeError, ValueError, IndexError):
        return None


def moved(node: Node) -> list[Ref]:
    """The inputs of one of `MOVES` whose elements it moves; the others say how."""
    return node.inputs[_MOVED.get(node.op, slice(0, 1))]


def taken(node: Node, begin, end, strides) -> tuple:
    """What a StridedSlice of these bounds takes, as NumPy's brackets say it."""

    masks = {mask: node.attr[f"{mask}_mask"].i for mask in _MASKS}

    def has(mask: str, i: int) -> int:
        return masks[mask] >> i & 1

    index: list = []
    for i, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        if has("ellipsis", i):
            index.append(Ellipsis)
        elif has("new_axis", i):
            index.append(np.newaxis)
        elif has("shrink_axis", i):
            index.append(first)
        else:
            start, stop = None if has("begin", i) else first, None if has("end", i) else last
            index.append(slice(start, stop, step))
    return tuple(index)


def slices(node: Node, known: Callable[[Ref], np.ndarray | None], rank: int) -> list[slice] | None:
    """What a Slice or StridedSlice takes of each axis of a tensor, slice(None) where it is all.

    None where a bound is not known, or where an axis is added or dropped.
    """
    index = cuts(node, known, rank)
    return None if index is None or not all(isinstance(i, slice) for i in index) else index


def cuts(node: Node, known: Callable[[Ref], np.ndarray | None], rank: int) -> list | None:
    """The same, with a number for each axis that is dropped and None for one that is added."""
    try:
        return _Move(node, known, rank, 0).index()
    except (TypeError, ValueError, IndexError):
        return None


class _Move:
    """What a node says of how it moves.

    Methods raise a TypeError where that is not known, and an IndexError where it is out of bounds
    or about a hidden axis.
    """

    def __init__(self, node: Node, known, rank: int, hidden: int):
        self.node, self.rank, self._known, self._hidden = node, rank + hidden, known, hidden

    def array(self, i: int) -> np.ndarray:
        """The numbers of an input."""
        values = np.asarray(self._known(self.node.inputs[i]))
        known = values.dtype.kind in "iu" or all(
            isinstance(v, int | np.integer) for v in values.flat
        )
        if not known:
            raise TypeError(f"{self.node.inputs[i]} is not known")
        return values.astype(np.int64)

    def ints(self, i: int) -> list[int]:
        return self.array(i).ravel().tolist()

    def counts(self, i: int) -> np.ndarray:
        """Numbers none of which is negative: NumPy would count those from the end."""
        if (values := self.array(i)).size and values.min() < 0:
            raise IndexError(f"{self.node.inputs[i]} has negative numbers")
        return values

    def axis(self, axis: int, more: int = 0) -> int:
        """An axis of the arrays, or of what has more axes than they."""
        rank = self.rank + more
        if not (-rank <= axis < rank and axis % rank >= self._hidden):
            raise IndexError(f"nothing moves along the axis {axis}")
        return axis % rank - self._hidden

    def axes(self, i: int) -> tuple[int, ...]:
        return tuple(map(self.axis, self.ints(i)))

    def order(self, i: int) -> list[int]:
        """Where each of the axes comes from."""
        order, hidden = self.ints(i), list(range(self._hidden))
        if order[: self._hidden] != hidden:
            raise IndexError("a hidden axis would move")
        return list(map(self.axis, order[self._hidden :]))

    def index(self) -> list:
        """What a Slice or StridedSlice takes of each axis, slice(None) where it is all of it."""
        if self.node.op == "Slice":
            pairs = zip(self.counts(1).tolist(), self.ints(2), strict=True)
            index = [slice(first, None if n < 0 else first + n) for first, n in pairs]
        else:
            index = list(taken(self.node, *map(self.ints, (1, 2, 3))))
            at = index.index(Ellipsis) if Ellipsis in index else len(index)
            named = sum(item is not None and item is not Ellipsis for item in index)
            index[at : at + 1] = [_ALL] * (self.rank - named)
        return [_ALL if item in _WHOLE else item for item in index]

    def visible(self, settings: list, idle) -> list:
        """Of one setting an axis those of the axes that are there; `idle` moves nothing."""
        if any(setting != idle for setting in settings[: self._hidden]):
            raise IndexError("a hidden axis would move")
        return settings[self._hidden :]


def _gather(how: _Move, x: np.ndarray):
    if how.node.attr["batch_dims"].i:
        raise TypeError("each sample has indices of its own")
    return [np.take(x, how.counts(1), how.axis(how.ints(2)[0]))]


def _split_by_sizes(how: _Move, x: np.ndarray):
    sizes, axis = how.counts(1), how.axis(how.ints(2)[0])
    if sizes.sum() != x.shape[axis]:
        raise ValueError("sizes do not add up")
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def _squeeze(how: _Move, x: np.ndarray):
    axes = [how.axis(axis) for axis in how.node.attr["squeeze_dims"].list.i]
    return [np.squeeze(x, tuple(axes) or None)]


def _cut(how: _Move, x: np.ndarray):
    return [x[tuple(how.visible(how.index(), _ALL))]]


_ALL = slice(None)
_WHOLE = [slice(first, None, step) for first in (None, 0) for step in (None, 1)]

# op -> what it does; the arrays come after what the node says.
MOVES: dict[str, Callable[..., _Arrays]] = {
    "ConcatV2": lambda how, *xs: [np.concatenate(xs, how.axis(how.ints(-1)[0]))],
    "ExpandDims": lambda how, x: [np.expand_dims(x, how.axis(how.ints(1)[0], more=1))],
    "GatherV2": _gather,
    "Identity": lambda how, x: [x],
    "Pack": lambda how, *xs: [np.stack(xs, how.axis(how.node.attr["axis"].i, more=1))],
    # Of sizes that are all known, none of which is hidden.
    "Reshape": lambda how, x: [x.reshape(how.visible(how.ints(1), None))],
    "ReverseV2": lambda how, x: [np.flip(x, how.axes(1))],
    "Roll": lambda how, x: [np.roll(x, how.ints(1), how.axes(2))],
    "Slice": _cut,
    "Split": lambda how, x: np.split(x, how.node.attr["num_split"].i, how.axis(how.ints(0)[0])),
    "SplitV": _split_by_sizes,
    "Squeeze": _squeeze,
    "StopGradient": lambda how, x: [x],
    "StridedSlice": _cut,
    "Tile": lambda how, x: [np.tile(x, how.visible(how.ints(1), 1))],
    "Transpose": lambda how, x: [np.transpose(x, how.order(1))],
    "Unpack": lambda how, x: list(np.moveaxis(x, how.axis(how.node.attr["axis"].i), 0)),
}
_MOVED = {"ConcatV2": slice(0, -1), "Pack": slice(None), "Split": slice(1, 2)}
