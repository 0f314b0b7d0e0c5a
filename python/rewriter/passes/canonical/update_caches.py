"""Caches of keys and values, and other tensors, of which a step of generation replaces some rows.

KerasHub cuts the cache of all layers into that of each, updates some rows of each copy and stacks
the copies again:

    cache [B, L, 2, S, N, H];  k = update(cache[:, i, 0], rows, start);  v = ...
    next = stack([stack([k, v], 1) of each layer i], 1)

which moves all of the cache several times for a few rows of it. Here each update writes into the
cache itself, one after the other, and attention reads keys and values where they are in it.
"""

from dataclasses import dataclass, replace

from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, Ref, cuts, make_node
from ....ops.records import Attention
from ...context import Context

_TYPES = frozenset(
    getattr(types_pb2, f"DT_{name}")
    for name in "FLOAT DOUBLE BFLOAT16 HALF INT8 UINT8 INT16 UINT16 INT32 INT64 BOOL".split()
)
_UPDATE = "XlaDynamicUpdateSlice"


@dataclass(frozen=True)
class _Row:
    """An update of cache[:, at[0], at[1], ..]."""

    node: Node
    at: tuple[int, ...]


def update_caches(body: Body, context: Context) -> None:
    """Updates slices of tensors in place, such as those of the keys that a decoder keeps."""
    for node in body.view.topological():
        if node.op == "Pack" and node.name in body.view and node.payload is None:
            _join(node, body)
    for node in body.view.topological():
        known = node.op == _UPDATE and node.name in body.view and node.attr["T"].type in _TYPES
        known = known and not body.constants.is_constant(node.ref)  # is computed once
        if known and not context.reason_to_leave(body, node):
            body.view.replace(_update(node.name, node, node.inputs[0], (), node.controls))


def _update(name: str, update: Node, into: Ref, at: tuple[int, ...], controls=()) -> Node:
    """The update of `into` that takes the place of the node `update`."""
    inputs = [*update.inputs[1:], into]
    types = {"T": update.attr["T"], "Tstart": update.attr["Tindices"]}
    return make_node(name, "BlockdnnUpdateSlice", inputs, controls, at=list(at), **types)


def _join(stack: Node, body: Body) -> None:
    """Writes what is stacked of updated parts of one tensor as updates of that tensor."""
    view = body.view
    if stack.attr["T"].type not in _TYPES or view.has_control_edges(stack.name):
        return
    if any(
        reader.op == "Pack" and _rows(reader, (), body) for reader, _ in view.consumers(stack.ref)
    ):
        return  # that of all layers comes later
    rows = _rows(stack, (), body)
    caches = {_part(row.node.inputs[0], body)[0] for row in rows or ()}
    if not rows or len(caches) != 1 or not _follow(rows, body):
        return
    (cache,) = caches
    if not body.shapes.equal(cache, stack.ref):
        return
    last, places = cache, []
    for i, row in enumerate(rows):
        update = view.add(_update(f"{stack.name}/update_{i}", row.node, last, row.at))
        body.shapes.put(update.ref, body.shapes.shape(cache))
        last = update.ref
        places.append(update.ref)
    _read_there(rows, places, body)
    body.writer(stack.name).put("Identity", last)


def _rows(stack: Node, at: tuple[int, ...], body: Body) -> list[_Row] | None:
    """The updates that are stacked, those of all entries of all axes in their order."""
    axis, rank = stack.attr["axis"].i, body.shapes.rank(stack.ref)
    if rank is None or axis % rank != 1:
        return None
    rows = []
    for i, ref in enumerate(stack.inputs):
        node = body.view.producer(ref)
        if ref.port or node.payload is not None or body.view.has_control_edges(node.name):
            return None
        if node.op == "Pack":
            inner = _rows(node, (*at, i), body)
            if inner is None:
                return None
            rows += inner
        elif node.op == _UPDATE and _part(node.inputs[0], body)[1] == (*at, i):
            rows.append(_Row(node, (*at, i)))
        else:
            return None
    return rows


def _part(ref: Ref, body: Body) -> tuple[Ref, tuple[int, ...]]:
    """The tensor of which `ref` is [:, i, j, ..], and these indices."""
    node = body.view.producer(ref)
    index = _index(node, body) if not ref.port and node.payload is None else None
    if index is None:
        return ref, ()
    whole, indices = _part(node.inputs[0], body)
    return whole, (*indices, index)


def _index(node: Node, body: Body) -> int | None:
    """i where the node is x[:, i]; None for any other."""
    shape = body.shapes.shape(node.inputs[0]) if node.op == "StridedSlice" else None
    index = cuts(node, body.known, len(shape)) if shape and len(shape) > 1 else None
    if index is None or any(item != slice(None) for item in (index[0], *index[2:])):
        return None
    i, size = index[1], shape[1]
    return i % size if isinstance(i, int) and isinstance(size, int) and -size <= i < size else None


def _follow(rows: list[_Row], body: Body) -> bool:
    """Whether no update needs what a later one of them writes: they run in this order."""
    place = {row.node.name: i for i, row in enumerate(rows)}
    before = body.view.latest_before(place)
    return all(before[name] <= at for name, at in place.items())


def _read_there(rows: list[_Row], places: list[Ref], body: Body) -> None:
    """Lets those who read an updated part read it in the tensor that it is a part of."""
    view = body.view
    read = {row.node.ref: (place, row.at) for row, place in zip(rows, places, strict=True)}
    # Keys and values of one attention are read of the tensor after both have been updated.
    order = {place: i for i, place in enumerate(places)}
    for row in rows:
        for reader in {node.name: node for node, _ in view.consumers(row.node.ref)}.values():
            if isinstance(reader.payload, Attention) and not reader.payload.k_at:
                _attend(reader, read, order, view)
        if any(reader.op != "Pack" for reader, _ in view.consumers(row.node.ref)):
            view.bypass(row.node, _cut(row, read[row.node.ref][0], body))


def _attend(reader: Node, read, order, view) -> None:
    """Makes an attention read keys and values in the cache."""
    roles, payload, sources = reader.by_role, reader.payload, {}
    for role in "kv":
        if roles[role] in read:
            sources[role], at = read[roles[role]]
            payload = replace(payload, **{f"{role}_at": at})
    both = max(sources.values(), key=order.__getitem__)
    inputs = roles | dict.fromkeys(sources, both)
    reader.payload = payload
    view.set_inputs(reader, inputs)


def _cut(row: _Row, place: Ref, body: Body) -> Ref:
    """cache[:, i, j] for readers that know no caches."""
    count = len(row.at) + 1
    bounds = [0, *row.at], [0, *(i + 1 for i in row.at)], [1] * count
    masks = {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": (1 << count) - 2}
    shape = body.shapes.shape(row.node.ref)
    write = body.writer(row.node.name)
    return write.add("part", "StridedSlice", place, *bounds, shape=shape, **masks)
