"""Pooling of slices along the depth: Reshape, a pooling by windows of [kd, 1], Reshape.

[N * D, H, W, C] -> [N, D, H * W, C] -> [N, D', H * W, C] -> [N * D', H, W, C]

In blocks the slices are [N * D, CB, H, W, 16], and the same memory is one block of N images,
[N, 1, D, CB * H * W, 16], whose columns are pooled.
"""

from typing import NamedTuple

from ....graph import Body, Node, Ref
from ...primitives import BLOCK, Pool, Reshape

_KINDS = {"MaxPool": "max", "AvgPool": "avg"}


class DepthPool(NamedTuple):
    """One that ends at node `root`; `first` is the one that reads src."""

    root: str
    first: str
    src: Ref
    pool: Pool
    columns: tuple[int, ...]  # the blocked shapes of the pooling's source and of the result
    slices: tuple[int, ...]
    payload: Reshape
    inside: tuple[str, ...]  # nodes that are nothing by themselves


def find(node: Node, body: Body) -> DepthPool | None:
    """The pooling along the depth that ends at `node`, if it is one."""
    view, shapes = body.view, body.shapes
    if node.op != "Reshape" or node.payload is not None:
        return None
    pool = view.producer(node.inputs[0])
    columns = view.producer(pool.inputs[0]) if pool.op in _KINDS else pool
    if columns.op != "Reshape" or columns.payload is not None or pool.op not in _KINDS:
        return None
    if any(n.controls for n in (node, pool, columns)) or not _private(view, pool, columns):
        return None
    src = columns.inputs[0]
    was, wide, now = shapes.shape(src), shapes.shape(columns.ref), shapes.shape(node.ref)
    if any(shape is None or len(shape) != 4 for shape in (was, wide, now)):
        return None
    if not all(isinstance(size, int) for size in (*was[1:], *wide[1:], *now[1:])):
        return None
    h, w, channels = was[1:]
    ksize, strides = list(pool.attr["ksize"].list.i), list(pool.attr["strides"].list.i)
    if now[1:] != was[1:] or wide[2:] != (h * w, channels) or was[0] != wide[0] * wide[1]:
        return None
    if [ksize[i] for i in (0, 2, 3)] + [strides[i] for i in (0, 2, 3)] != [1] * 6:
        return None
    blocks = -(-channels // BLOCK)
    return DepthPool(
        root=node.name,
        first=columns.name,
        src=src,
        pool=Pool(
            origin=pool.name,
            channels=BLOCK,
            kind=_KINDS[pool.op],
            ksize=(ksize[1], 1),
            strides=(strides[1], 1),
            padding=pool.attr["padding"].s.decode(),
        ),
        columns=(-1, 1, wide[1], blocks * h * w, BLOCK),
        slices=(-1, blocks, h, w, BLOCK),
        payload=Reshape(origin=node.name, channels=channels),
        inside=(columns.name, pool.name),
    )


def _private(view, *nodes: Node) -> bool:
    return all(
        view.use_count(node.ref) == 1
        and not view.is_fetched(node.ref)
        and not view.has_control_edges(node.name)
        for node in nodes
    )
