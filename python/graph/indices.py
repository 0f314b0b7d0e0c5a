"""Axes as products of indices, and what views make of them.

Along an axis counts an index. A Reshape that joins axes lets their indices count side by side, the
outer one first; one that splits an axis splits the index, for all tensors whose axes it counts.
Axes of one element have no index. So two tensors that were reshaped and transposed in any way, and
what is broadcast to them, are compared by what counts along their axes.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .body import Body
from .families import IDENTITIES, VIEWS
from .nodes import Writer, open_sizes
from .symbolic import Expr, Size, floordiv, mod
from .view import Node, Ref


@dataclass(slots=True, eq=False)
class Index:
    """What counts along an axis or a part of one; `parts` once it is split."""

    size: Size
    parts: tuple["Index", ...] = ()

    def split(self, sizes: Iterable[Size]) -> tuple["Index", ...]:
        """Its parts, of these sizes, the outer ones first."""
        self.parts = tuple(map(Index, sizes))
        return self.parts


Axis = Sequence[Index]


def leaves(axis: Axis) -> list[Index]:
    """The indices that count along an axis, none of them split and none of one element."""
    every = [leaf for index in axis for leaf in (leaves(index.parts) if index.parts else [index])]
    return [leaf for leaf in every if leaf.size != 1]


def view_axes(node: Node, axes: list[Axis], body: Body, back: bool = False) -> list[Axis] | None:
    """The axes of a view by those of the tensor of which it is one; None where it is no view.

    Args:
        back: whether `axes` are those of the view, and the tensor's are asked.
    """
    if node.payload is not None or node.op not in VIEWS:
        return None
    if node.op in IDENTITIES:
        return axes
    if node.op == "Transpose":
        order = body.shapes.numbers(node.inputs[1])
        if order is None or len(order) != len(axes):
            return None
        order = [axis % len(axes) for axis in order]
        return [axes[order.index(i) if back else order[i]] for i in range(len(axes))]
    if node.op == "Squeeze" and (dims := node.attr["squeeze_dims"].list.i):
        gone = sorted(dim % (len(axes) + len(dims) * back) for dim in dims)
        if not back:
            return [axis for at, axis in enumerate(axes) if at not in gone]
        for at in gone:
            axes = [*axes[:at], (), *axes[at:]]
        return axes
    shapes = [body.shapes.shape(ref) for ref in (node.inputs[0], node.ref)]
    return None if None in shapes else _reshape(axes, *shapes[:: -1 if back else 1])


def _reshape(axes: list[Axis], before: tuple, after: tuple) -> list[Axis] | None:
    """The axes of a tensor of shape `before` in the shape `after`.

    From both ends, indices are put into the new axes as their sizes tell. What is left, of sizes
    that tell nothing, is told by the number: all of it is one axis, or parts of one index.
    """
    if 0 in (*before, *after):
        return None
    left = []  # index, size
    for axis, size in zip(axes, before, strict=True):
        indices = leaves(axis)
        if size != 1 and not indices:
            return None
        whole = len(indices) == 1  # the tensor's own size, where a mask may have made it unknown
        left += [(index, size if whole else index.size) for index in indices if size != 1]
    missing = {at: size for at, size in enumerate(after) if size != 1}  # of each new axis
    ends: list[tuple[list, list]] = [([], []) for _ in after]  # the outer and the inner indices
    for end in (0, -1):
        while left and missing:
            at, (index, size) = [*missing][end], left[end]
            if more := _ratio(missing[at], size):
                left.pop(end)
                missing[at] = more
            elif more := _ratio(size, missing[at]):
                turn = -1 if end else 1  # the outer part first
                index, other = index.split((missing[at], more)[::turn])[::turn]
                left[end], missing[at] = (other, more), 1
            else:
                break
            ends[at][end].insert(0 if end else len(ends[at][0]), index)
            if missing[at] == 1:
                del missing[at]
    if len(missing) == 1:
        ends[next(iter(missing))][0].extend(index for index, _ in left)
    elif len(left) == 1 and missing:
        for at, part in zip(missing, left[0][0].split(missing.values()), strict=True):
            ends[at][0].append(part)
    elif left or missing:
        return None
    return [(*outer, *inner) for outer, inner in ends]


def _ratio(size: Size, other: Size) -> Size:
    """How many times the one size is the other; 0 where that is no whole number."""
    if isinstance(other, int):
        return floordiv(size, other) if mod(size, other) == 0 else 0
    return size.ratio(other) if isinstance(size, Expr) else 0


def views_beside(
    parts: list[list[Index]],
    sizes: Sequence[Size],
    whole: list[list[Index]],
    may_repeat: Callable[[list, list], bool] = lambda part, whole: False,
) -> list[tuple[str, list]] | None:
    """The views, ops and their argument, that lay a tensor beside one to which it is broadcast.

    Args:
        parts: what counts along the axes: nothing along those of one element.
        sizes: the shape.
        whole: what counts along the axes of the other tensor.
        may_repeat: whether a part of what counts along an axis will do.
    """

    def fits(part: list[Index], axis: list[Index]) -> bool:
        return part in ([], axis) or may_repeat(part, axis)

    ones = [at for at, part in enumerate(parts) if not part]
    for gone in itertools.combinations(ones, max(len(parts) - len(whole), 0)):
        left = [part for at, part in enumerate(parts) if at not in gone]
        if len(left) <= len(whole) and all(map(fits, left[::-1], whole[::-1])):
            return [("Squeeze", list(gone))] if gone else []
    place = {index: at for at, axis in enumerate(whole) for index in axis}
    flat = [index for part in parts for index in part]
    runs = {at: [*run] for at, run in itertools.groupby(flat, place.get)}
    if sum(map(len, runs.values())) != len(flat) or None in runs:
        return None
    if not all(fits(run, whole[at]) for at, run in runs.items()):
        return None
    known = {part[0]: size for part, size in zip(parts, sizes, strict=True) if len(part) == 1}
    counts = {at: size_of(known.get(leaf, leaf.size) for leaf in run) for at, run in runs.items()}
    shape = [counts.get(at, 1) for at in range(len(whole))]
    order = sorted(range(len(runs)), key=[*runs].__getitem__)
    split, shape = open_sizes(counts.values()), open_sizes(shape)
    views = [("Reshape", split), ("Transpose", order), ("Reshape", shape)]
    return None if shape.count(-1) > 1 else views[2 * (order == sorted(order)) :]


def size_of(sizes: Iterable[Size]) -> Size:
    """What they make together; -1 where more than one of them is unknown."""
    sizes = list(sizes)
    return math.prod(sizes) if sum(not isinstance(size, int) for size in sizes) < 2 else -1


def write_views(views: list[tuple[str, list]], what: str, ref: Ref, write: Writer) -> Ref:
    """Adds the nodes of such views; their names are `what` and their op."""
    for op, argument in views:
        name = f"{what}/{op.lower()}"
        if op == "Squeeze":
            ref = write.add(name, op, ref, squeeze_dims=argument)
        else:
            ref = write.add(name, op, ref, argument)
    return ref
