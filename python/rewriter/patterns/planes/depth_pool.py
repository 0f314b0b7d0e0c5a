"""Pooling of slices along the depth: Reshape, a pooling by windows of [kd, 1], Reshape.

[N * D, H, W, C] -> [N, D, H * W, C] -> [N, D', H * W, C] -> [N * D', H, W, C]

In blocks the slices are [N * D, CB, H, W, 16], and the same memory is one block of N images,
[N, 1, D, CB * H * W, 16], whose columns are pooled.
"""

from ....graph import Writer
from ....ops.records import BLOCK, Pool, Reshape
from ...rules import Match, OneOf, Replacement, Rule, Size, Window, require
from .pool import KINDS


def depth_pool(tf, x, depth, ksize, strides, padding):
    """Pooling of slices along the depth."""
    _, h, w, c = tf.sizes(x, 4)
    columns = tf.reshape(x, [-1, depth, h * w, c])
    options = {"ksize": ksize, "strides": strides, "padding": padding}
    pooled = tf.either(tf.MaxPool(columns, **options), tf.AvgPool(columns, **options))
    return tf.reshape(pooled, [-1, h, w, c])


def _depth_pool(match: Match) -> Replacement:
    (window, width), (stride, step), pool = match["ksize"], match["strides"], match.node(KINDS)
    (_, h, w, _), channels, root, src = match.shape(), match.channels(), match.root.name, match["x"]
    require((width, step) == (1, 1) and isinstance(h, int) and isinstance(w, int))
    blocks = -(-channels // BLOCK)
    pooling = Pool(
        origin=pool.name,
        channels=BLOCK,
        kind=KINDS[pool.op],
        ksize=(window, 1),
        strides=(stride, 1),
        padding=match["padding"],
    )

    def pooled(write: Writer) -> dict:
        shape = write.constant("columns/shape", (-1, 1, match["depth"], blocks * h * w, BLOCK))
        columns = Reshape(origin=root, channels=BLOCK)
        ref = write.plan("columns", columns, {"src": src, "shape": shape})
        ref = write.plan("pool", pooling, {"src": ref})
        return {"src": ref, "shape": write.constant("slices/shape", (-1, blocks, h, w, BLOCK))}

    slices = Reshape(origin=root, channels=channels)
    return Replacement(slices, {"src": src}, root, match.nodes, prepare=pooled)


RULE = Rule(
    depth_pool,
    _depth_pool,
    like=None,
    depth=Size(),
    ksize=Window(),
    strides=Window(),
    padding=OneOf(("SAME", "VALID")),
)
