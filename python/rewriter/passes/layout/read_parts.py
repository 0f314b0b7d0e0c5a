"""Spares copies of channels: who reads a slice reads them where they are.

    concat(x[:c], x[c:], y) = concat(x, y),     conv(x[c:]) reads channels of x

In blocks of 16 channels those of a slice that begins at a block, and ends at one or with its
tensor, are one piece of memory of an image. Other slices are made, and a concatenation takes the
channels of a slice from the tensor itself.
"""

from dataclasses import replace

from ....graph import Body, GraphView, Node, Ref
from ....ops.records import BLOCK, Concat, Record
from ...context import Context


def knows_parts(record: Record | None) -> bool:
    """Whether the op reads and writes parts of the channels of wider tensors."""
    return record is not None and record.has("src_part") and record.has("dst_part")


def read_parts(body: Body, context: Context) -> None:
    """Lets ops read some channels of a tensor in the tensor itself, without a copy."""
    view = body.view
    for node in view.topological():
        if _joins(node):
            _join_neighbours(view, node)
    for node in view.topological():
        if _is_slice(view, node) and is_piece(*_part(node)):
            _read_source(view, node)


def take_from_source(body: Body, context: Context) -> None:
    """Lets a concatenation take the channels of a slice from the tensor that was cut."""
    view = body.view
    for node in view.topological():
        if not _joins(node):
            continue
        values = _values(view, node)
        if any(ref != old for (ref, *_), old in zip(values, node.inputs, strict=False)):
            _set_values(view, node, values)


def is_piece(first: int, count: int, total: int) -> bool:
    """Whether channels [first, first + count) of `total` are whole blocks, or end the tensor."""
    return first % BLOCK == 0 and (count % BLOCK == 0 or first + count == total)


def can_read(node: Node, index: int) -> bool:
    """Whether the op can read its input as a part of a wider tensor."""
    payload = node.payload
    known = knows_parts(payload) and node.roles[index] == "src" and not payload.is_narrow
    return known and not getattr(payload, "src_blocks", ())


def wider(payload, first: int, total: int):
    """The primitive that reads its source, or the part of it, from channel `first` of `total`."""
    inner = payload.src_part[0] if payload.src_part else 0
    return replace(payload, src_part=(first + inner, total))


def _joins(node: Node) -> bool:
    """Whether it is a concatenation whose values may be others."""
    payload = node.payload
    return isinstance(payload, Concat) and not payload.is_slice and not payload.is_narrow


def _is_slice(view: GraphView, node: Node) -> bool:
    payload = node.payload
    free = isinstance(payload, Concat) and payload.is_slice and not payload.dst_part
    free = free and not payload.is_narrow
    return free and not view.is_fetched(node.ref) and not view.has_control_edges(node.name)


def _part(node: Node) -> tuple[int, int, int]:
    """(first, count, total) of a slice."""
    (first, total), (count,) = node.payload.src_parts[0], node.payload.parts
    return first, count, total


def _read_source(view: GraphView, node: Node) -> None:
    first, _, total = _part(node)
    for reader, index in view.consumers(node.ref):
        if can_read(reader, index) and not view.has_control_edges(reader.name):
            reader.payload = wider(reader.payload, first, total)
            view.set_inputs(reader, reader.by_role | {"src": node.inputs[0]})
    view.remove_dead([node.name])


def _values(view: GraphView, node: Node) -> list[tuple[Ref, int, int, int]]:
    """(tensor, first, count, total) of each value, of the source where the value is a slice."""
    payload, values = node.payload, []
    given = payload.src_parts or tuple((0, count) for count in payload.parts)
    for ref, count, (first, total) in zip(node.inputs, payload.parts, given, strict=False):
        value = view.producer(ref)
        if _is_slice(view, value):
            inner, _, total = _part(value)
            ref, first = value.inputs[0], first + inner
        values.append((ref, first, count, total))
    return values


def _join_neighbours(view: GraphView, node: Node) -> None:
    """Makes values that are slices side by side of one tensor, and all of it, the tensor."""
    joined: list[tuple[Ref, int, int, int]] = []
    for ref, first, count, total in _values(view, node):
        last = joined[-1] if joined else None
        if last and last[0] == ref and last[1] + last[2] == first:
            joined[-1] = (ref, last[1], last[2] + count, total)
        else:
            joined.append((ref, first, count, total))
    if len(joined) < len(node.payload.parts) and all(n == total for _, _, n, total in joined):
        _set_values(view, node, joined)


def _set_values(view: GraphView, node: Node, values: list[tuple[Ref, int, int, int]]) -> None:
    old = [ref.node for ref in node.inputs]
    whole = all(count == total for _, _, count, total in values)
    node.payload = replace(
        node.payload,
        parts=tuple(count for _, _, count, _ in values),
        src_parts=() if whole else tuple((first, total) for _, first, _, total in values),
    )
    into = {role: ref for role, ref in node.by_role.items() if role == "into"}
    view.set_inputs(node, node.payload.roles(ref for ref, *_ in values) | into)
    view.remove_dead(old)
