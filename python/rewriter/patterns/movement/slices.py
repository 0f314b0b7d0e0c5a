"""What a Slice or StridedSlice takes of each dimension."""

from ....graph import Body, Constants, Node
from ....graph import slices as _slices

OPS = ("Slice", "StridedSlice")
NAMED = tuple(f"{name}_mask" for name in ("begin", "ellipsis", "end", "new_axis", "shrink_axis"))


def of(node: Node, body: Body, rank: int) -> list[slice] | None:
    """One slice a dimension, of a node of OPS; None where a bound is not known."""
    return _slices(node, body.known, rank)


def of_strided(node: Node, constants: Constants, rank: int) -> list[slice] | None:
    """The same, by constants alone."""
    return _slices(node, constants.value, rank)


def takes_all(one: slice) -> bool:
    return one == slice(None)
