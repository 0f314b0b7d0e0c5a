"""Pooling of slices along the depth: Reshape, a pooling by windows of [kd, 1], Reshape.

[N * D, H, W, C] -> [N, D, H * W, C] -> [N, D', H * W, C] -> [N * D', H, W, C]

In blocks the slices are [N * D, CB, H, W, 16], and the same memory is one block of N images,
[N, 1, D, CB * H * W, 16], whose columns are pooled.
"""

from ....graph import Body, Node, Writer
from ....ops.records import BLOCK, Pool, Reshape
from ...context import Context
from ..found import Found
from .pool import KINDS

ROOTS = ("Reshape",)
NAMED = ("ksize", "padding", "strides")


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The pooling along the depth that ends at `node`, if it is one."""
    view, shapes = body.view, body.shapes
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
    pooling = Pool(
        origin=pool.name,
        channels=BLOCK,
        kind=KINDS[pool.op],
        ksize=(ksize[1], 1),
        strides=(strides[1], 1),
        padding=pool.attr["padding"].s.decode(),
    )

    def pooled(write: Writer) -> dict:
        shape = write.constant("columns/shape", (-1, 1, wide[1], blocks * h * w, BLOCK))
        columns = Reshape(origin=node.name, channels=BLOCK)
        made = write.plan("columns", columns, {"src": src, "shape": shape})
        made = write.plan("pool", pooling, {"src": made})
        return {"src": made, "shape": write.constant("slices/shape", (-1, blocks, h, w, BLOCK))}

    slices = Reshape(origin=node.name, channels=channels)
    return Found(slices, {"src": src}, node.name, frozenset(inner), prepare=pooled)
