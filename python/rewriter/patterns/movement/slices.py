"""What a Slice or StridedSlice takes of each dimension."""

from ....graph import Body, Constants, Node, taken

OPS = ("Slice", "StridedSlice")
NAMED = tuple(f"{name}_mask" for name in ("begin", "ellipsis", "end", "new_axis", "shrink_axis"))


def of(node: Node, body: Body, rank: int) -> list[slice] | None:
    """One slice a dimension, of a node of OPS; None where a bound is not constant."""
    if node.op == "StridedSlice":
        return of_strided(node, body.constants, rank)
    begin, size = (body.constants.value(ref) for ref in node.inputs[1:])
    if begin is None or size is None:
        return None
    last = [None if n < 0 else int(first + n) for first, n in zip(begin, size, strict=True)]
    return list(map(slice, map(int, begin), last))


def of_strided(node: Node, constants: Constants, rank: int) -> list[slice] | None:
    """One slice a dimension; an ellipsis stands for those that are left out.

    None where a bound is not constant, or where a dimension is added or dropped.
    """
    bounds = [constants.value(ref) for ref in node.inputs[1:]]
    if any(value is None for value in bounds):
        return None
    index = list(taken(node, *(value.tolist() for value in bounds)))
    if not all(isinstance(one, slice) or one is Ellipsis for one in index):
        return None
    if Ellipsis in index:
        at, left_out = index.index(Ellipsis), rank - len(index) + 1
        index[at : at + 1] = [slice(None)] * left_out
    return index + [slice(None)] * (rank - len(index))


def takes_all(one: slice) -> bool:
    return one.start in (None, 0) and one.stop is None and one.step in (None, 1)
