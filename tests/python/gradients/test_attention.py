"""Gradients of attention against those of its formula in float64."""

import numpy as np
import pytest
import tensorflow as tf
from checked import check

import tf_blockdnn as bd


@pytest.mark.parametrize("layout", ["BTNH", "BNTH"])
@pytest.mark.parametrize("causal", [False, True])
def test_all_inputs(layout, causal, floats):
    """Heads that share keys, a bias of all sequences, one of every second, a mask."""
    mask = floats(4, 1, 5, 6) > -0.5
    mask[..., 0] = True
    letters = "btnh,bsnh->bnts" if layout == "BTNH" else "bnth,bnsh->bnts"
    axis = 2 if layout == "BTNH" else 1

    def ours(q, k, v, *biases):
        options = {"mask": mask, "causal": causal, "layout": layout, "scale": 0.5}
        options |= {"zero_masked": True}
        return bd.ops.attention(q, k, v, biases=biases, **options)

    def plain(q, k, v, first, second):
        k, v = tf.repeat(k, 2, axis), tf.repeat(v, 2, axis)
        scores = tf.einsum(letters, q, k) * tf.cast(0.5, q.dtype)
        scores += first + tf.tile(second, [2, 1, 1, 1])
        seen = mask & np.tril(np.ones((5, 6), bool)) if causal else mask
        weights = tf.nn.softmax(tf.where(seen, scores, tf.cast(-np.inf, q.dtype)))
        back = "bnts,bsnh->btnh" if layout == "BTNH" else "bnts,bnsh->bnth"
        return tf.einsum(back, weights, v)

    shapes = [(4, 5, 4, 8), (4, 6, 2, 8), (4, 6, 2, 7)]
    if layout == "BNTH":
        shapes = [(b, n, t, h) for b, t, n, h in shapes]
    check(ours, plain, [*(floats(*s) for s in shapes), floats(4, 1, 6), floats(2, 1, 5, 6)])


def test_soft_caps_and_biases_behind_the_mask(floats):
    mask = floats(4, 1, 5, 6) > -0.5

    def ours(q, k, v, *biases):
        options = {"soft_cap": 1.5, "late_biases": 1, "mask": mask, "masked_value": -2.0}
        return bd.ops.attention(q, k, v, biases=biases, layout="TBNH", **options)

    def plain(q, k, v, first, second):
        scores = tf.einsum("tbnh,sbnh->bnts", q, k) / tf.cast(8**0.5, q.dtype)
        scores = 1.5 * tf.tanh(scores / 1.5) + first
        scores = tf.where(mask, scores, tf.cast(-2.0, q.dtype)) + second
        return tf.einsum("bnts,sbnh->tbnh", tf.nn.softmax(scores), v)

    shapes = [(5, 4, 2, 8), (6, 4, 2, 8), (6, 4, 2, 7), (5, 6), (4, 1, 1, 6)]
    check(ours, plain, [floats(*s) for s in shapes])


def test_one_head_without_its_axis(floats):
    def plain(q, k, v, bias):
        scores = tf.einsum("bth,bsh->bts", q, k) / np.sqrt(8) + tf.tile(bias, [2, 1, 1])
        return tf.einsum("bts,bsh->bth", tf.nn.softmax(scores), v)

    check(
        lambda q, k, v, bias: bd.ops.attention(q, k, v, biases=bias),
        plain,
        [floats(4, 5, 8), floats(4, 6, 8), floats(4, 6, 3), floats(2, 5, 6)],
    )
