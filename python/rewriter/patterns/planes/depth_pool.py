"""Pooling of slices along the depth: Reshape, a pooling by windows of [kd, 1], Reshape.

[N * D, H, W, C] -> [N, D, H * W, C] -> [N, D', H * W, C] -> [N * D', H, W, C]

In blocks the slices are [N * D, CB, H, W, 16], and the same memory is one block of N images,
[N, 1, D, CB * H * W, 16], whose columns are pooled.
"""

from dataclasses import dataclass

from ....graph import Body, GraphView, Node, Writer
from ....ops.records import BLOCK, Pool, Reshape
from ...context import Context
from ..found import Found
from .pool import KINDS

ROOTS = ("Reshape",)


@dataclass(frozen=True, kw_only=True)
class _FoundDepthPool(Found):
    """A pooling between two other shapes of the same memory."""

    pool: Pool
    columns: tuple[int, ...]  # the blocked shapes of the pooling's source and of the result
    slices: tuple[int, ...]

    def node(self, view: GraphView) -> Node:
        name, pool = self.root, self.pool
        write = Writer(view, name)
        columns = write.constant("columns/shape", self.columns)
        slices = write.constant("slices/shape", self.slices)
        reshape = Reshape(origin=name, channels=pool.channels)
        inputs = {"src": self.inputs["src"], "shape": columns}
        before = view.add(Node(f"{name}/columns", reshape.op, inputs, payload=reshape))
        pooled = view.add(Node(f"{name}/pool", pool.op, {"src": before.ref}, payload=pool))
        inputs = {"src": pooled.ref, "shape": slices}
        return Node(name, self.payload.op, inputs, payload=self.payload)


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The pooling along the depth that ends at `node`, if it is one."""
    view, shapes = body.view, body.shapes
    if node.payload is not None:
        return None
    pool = view.producer(node.inputs[0])
    columns = view.producer(pool.inputs[0]) if pool.op in KINDS else pool
    if columns.op != "Reshape" or columns.payload is not None or pool.op not in KINDS:
        return None
    inner = (columns.name, pool.name)
    if node.controls or not view.is_private(inner, within=(node.name,)):
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
    return _FoundDepthPool(
        Reshape(origin=node.name, channels=channels),
        {"src": src},
        node.name,
        frozenset(inner),
        pool=Pool(
            origin=pool.name,
            channels=BLOCK,
            kind=KINDS[pool.op],
            ksize=(ksize[1], 1),
            strides=(strides[1], 1),
            padding=pool.attr["padding"].s.decode(),
        ),
        columns=(-1, 1, wide[1], blocks * h * w, BLOCK),
        slices=(-1, blocks, h, w, BLOCK),
    )
