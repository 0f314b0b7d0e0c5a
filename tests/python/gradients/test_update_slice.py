"""Gradients of slices that are written in their place."""

import pytest
import tensorflow as tf
from checked import check

import tf_blockdnn as bd


@pytest.mark.parametrize("start, at", [([0, 2, 1], [1]), ([9, -3, 1], [0])])
def test_both_inputs(start, at, floats):
    """What was written over has no gradient; starts are moved into the tensor, as forward."""

    def plain(into, update):
        b, r, c = (min(max(s, 0), room) for s, room in zip(start, (0, 4, 1), strict=True))
        sides = [[b, 0], [at[0], 2 - at[0]], [r, 4 - r], [c, 1 - c]]
        over = tf.pad(tf.ones_like(update)[:, None], sides)
        return tf.square(into * (1 - over) + tf.pad(update[:, None], sides))

    check(
        lambda into, update: tf.square(bd.ops.update_slice(into, update, start, at=at)),
        plain,
        [floats(2, 3, 6, 5), floats(2, 2, 4)],
    )


def test_attention_that_reads_a_cache(floats):
    """Keys and values at [:, 1, 0] and [:, 0, 1] of one tensor [B, 2, 2, S, N, H]."""

    def plain(q, cache):
        k, v = cache[:, 1, 0], cache[:, 0, 1]
        scores = tf.einsum("btnh,bsnh->bnts", q, k) * tf.cast(0.5, q.dtype)
        return tf.einsum("bnts,bsnh->btnh", tf.nn.softmax(scores), v)

    def ours(q, cache):
        return bd.ops.attention(q, cache, cache, k_at=[1, 0], v_at=[0, 1], scale=0.5)

    check(ours, plain, [floats(2, 3, 2, 8), floats(2, 2, 2, 6, 2, 8)])
