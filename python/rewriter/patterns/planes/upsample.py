"""The nearest upsampling that Keras spells as repetitions.

Keras repeats along one axis after the other, each time by three nodes:

    ExpandDims to [.., H, 1, ..],  Tile that axis r times,  Reshape to [.., r H, ..]
"""

from typing import NamedTuple

from ....graph import Body, Node, Ref
from ....ops.records import Resize
from ...context import Context
from ..found import Found

ROOTS = ("Reshape",)
# Through these a size that is asked for goes on its way to the shape of a Reshape.
_SHAPE_OPS = frozenset("Shape StridedSlice Pack ConcatV2 Mul Cast Reshape Prod GatherV2".split())


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The repetition of rows, columns or both that ends at `node`, if it is one."""
    last = _repeat(node, body)
    if last is None:
        return None
    before = _repeat(body.view.producer(last.src), body) if last.src.port == 0 else None
    if before is None or before.axis == last.axis or not _only_feeds(body, before.root, last):
        return _planned(node, body, [last])
    return _planned(node, body, [before, last])


class _Repeat(NamedTuple):
    root: str
    nodes: tuple[str, ...]  # the first of them reads src
    src: Ref
    axis: int
    factor: int


def _planned(node: Node, body: Body, repeats: list[_Repeat]) -> Found:
    scales = [1, 1]
    for repeat in repeats:
        scales[repeat.axis - 1] = repeat.factor
    src = repeats[0].src
    payload = Resize(
        origin=node.name,
        channels=body.shapes.channels(src),
        kind="nearest",
        scales=tuple(scales),
    )
    nodes = frozenset(name for repeat in repeats for name in (repeat.root, *repeat.nodes))
    return Found(payload, {"src": src}, node.name, nodes)


def _repeat(node: Node, body: Body) -> _Repeat | None:
    """A repetition along the height or the width that ends at the Reshape `node`."""
    view, shapes = body.view, body.shapes
    if node.op not in ROOTS or node.payload is not None:
        return None
    tile = view.producer(node.inputs[0])
    expand = view.producer(tile.inputs[0]) if tile.op == "Tile" else tile
    if expand.op != "ExpandDims" or any(n.controls for n in (node, tile, expand)):
        return None
    src = expand.inputs[0]
    times, axis = shapes.value(tile.inputs[1]), shapes.number(expand.inputs[1])
    was, now = shapes.shape(src), shapes.shape(node.ref)
    if times is None or axis is None or not was or not now or len(was) != 4 or len(now) != 4:
        return None
    at = axis % 5
    factor = times[at] if at in (2, 3) else None
    if not isinstance(factor, int) or factor < 1 or body.shapes.channels(src) is None:
        return None
    if [n for i, n in enumerate(times) if i != at] != [1] * 4:
        return None
    wanted = tuple(size * factor if i == at - 1 else size for i, size in enumerate(was))
    private = view.is_private((expand.name, tile.name), within=(node.name,))
    if now != wanted or not private:
        return None
    return _Repeat(node.name, (expand.name, tile.name), src, at - 1, factor)


def _only_feeds(body: Body, name: str, repeat: _Repeat) -> bool:
    """Whether nothing but `repeat`, and the sizes that it asks for, reads what `name` makes."""
    view, inside, stack = body.view, {repeat.root, *repeat.nodes}, [name]
    seen = set()
    while stack:
        node = view.node(stack.pop())
        if view.is_fetched(node.ref) or view.has_control_edges(node.name):
            return False
        for reader, _ in view.consumers(node.ref):
            if reader.name in inside or reader.name in seen:
                continue
            if reader.op not in _SHAPE_OPS or (node.name == name and reader.op != "Shape"):
                return False
            seen.add(reader.name)
            stack.append(reader.name)
    return True
