"""What a Slice or StridedSlice takes of each dimension."""

from ....graph import Body, Node

OPS = ("Slice", "StridedSlice")


def of(node: Node, body: Body, rank: int) -> list[slice] | None:
    """One slice a dimension, of a node of OPS; None where a bound is not constant."""
    if node.op == "StridedSlice":
        return of_strided(node, body, rank)
    begin, size = (body.constants.value(ref) for ref in node.inputs[1:])
    if begin is None or size is None:
        return None
    last = [None if n < 0 else int(first + n) for first, n in zip(begin, size, strict=True)]
    return list(map(slice, map(int, begin), last))


def of_strided(node: Node, body: Body, rank: int) -> list[slice] | None:
    """One slice a dimension; an ellipsis stands for those that are left out.

    None where a bound is not constant, or where a dimension is added or dropped.
    """
    masks = {
        key: node.attr[f"{key}_mask"].i
        for key in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
    }
    if masks["new_axis"] or masks["shrink_axis"]:
        return None
    bounds = [body.constants.value(ref) for ref in node.inputs[1:]]
    if any(value is None for value in bounds):
        return None
    result: list[slice] = []
    for i, (begin, end, step) in enumerate(zip(*bounds, strict=True)):
        if masks["ellipsis"] >> i & 1:
            result += [slice(None)] * (rank - len(bounds[0]) + 1)
        else:
            first = None if masks["begin"] >> i & 1 else int(begin)
            result.append(slice(first, None if masks["end"] >> i & 1 else int(end), int(step)))
    return result + [slice(None)] * (rank - len(result))


def takes_all(one: slice) -> bool:
    return one.start in (None, 0) and one.stop is None and one.step in (None, 1)
