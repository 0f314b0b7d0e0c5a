"""Grouped-query attention whose groups are rows of one product, as KerasHub's Gemma has it."""

import numpy as np
import pytest
import tensorflow as tf

B, T, S, K, G, H = 2, 5, 7, 2, 3, 8
SEEN = np.random.default_rng(5).random((B, T, S)) > 0.4
SEEN[1, 2] = False  # a row without keys


def grouped(q, k, v, mask=None, zeroed=False, turn=(0, 3, 1, 2, 4), change=lambda s: s):
    """q [B, T, K G, H]; k and v [B, S, K, H]."""
    t, s = q.shape[1], k.shape[1]
    rows = tf.transpose(tf.reshape(q * 0.5, [-1, t, K, G, H]), [0, 2, 3, 1, 4])
    scores = tf.matmul(tf.reshape(rows, [-1, K, G * t, H]), tf.transpose(k, [0, 2, 3, 1]))
    scores = change(tf.reshape(scores, [-1, K, G, t, s]))
    if mask is not None:
        mask = tf.constant(mask[:, None, None] if mask.ndim == 3 else mask)
        scores = tf.where(mask, scores, -1e9)
    weights = tf.nn.softmax(scores)
    if zeroed:
        weights = tf.where(mask, weights, 0.0)
    y = tf.matmul(tf.reshape(weights, [-1, K, G * t, s]), tf.transpose(v, [0, 2, 1, 3]))
    y = tf.transpose(tf.reshape(y, [-1, K, G, t, H]), turn)
    return tf.reshape(y, [-1, t, K * G, H])


@pytest.fixture
def arrays(floats):
    return floats(B, T, K * G, H), floats(B, S, K, H), floats(B, S, K, H)


@pytest.mark.parametrize("open_batch", [False, True])
@pytest.mark.parametrize("zeroed", [False, True])
@pytest.mark.parametrize("mask", [None, SEEN, SEEN[:1]], ids=["none", "of rows", "of all"])
def test_it_is_one_op(attention, arrays, mask, zeroed, open_batch):
    if zeroed and mask is None:
        zeroed = False
    if open_batch and mask is SEEN:
        mask = SEEN[:1]

    def of_one(x):
        q = tf.reshape(x[:, : T * K * G * H], [-1, T, K * G, H])
        k, v = (tf.reshape(x[:, a:b], [-1, S, K, H]) for a, b in ((-2 * n, -n), (-n, None)))
        return grouped(q, k, v, mask, zeroed)

    n = S * K * H
    if open_batch:
        x = np.concatenate([a.reshape(B, -1) for a in arrays], 1)
        result = attention(of_one, x, shapes=[(None, x.shape[1])])
    else:
        result = attention(lambda q, k, v: grouped(q, k, v, mask, zeroed), *arrays)
    assert not {"BatchMatMulV2", "Transpose"} & {*result.ops}


@pytest.mark.parametrize(
    "options, transposes",
    [
        ({"turn": (0, 3, 2, 1, 4)}, 1),  # heads in another order
        ({"mask": np.stack([SEEN[0]] * G)[None, None]}, 2),  # groups are rows, which lie otherwise
        ({"change": lambda s: s + np.float32(SEEN[0])}, 0),
    ],
    ids=["turned otherwise", "a mask of each", "a bias"],
)
def test_other_groups_are_one_op_too(attention, arrays, options, transposes):
    result = attention(lambda q, k, v: grouped(q, k, v, **options), *arrays)
    assert result.ops["Transpose"] == transposes


@pytest.mark.parametrize("groups", [1, G])
@pytest.mark.parametrize("batch", [B, None])
def test_groups_as_an_axis_of_products(attention, arrays, batch, groups):
    """[B, T, K, G, H] by [B, S, K, H], and one head of keys for all."""

    def function(q, k, v):
        q = tf.reshape(q, [-1, T, K * G // groups, groups, H])
        if groups == 1:
            q, k, v = tf.reshape(q, [-1, T, 1, K * G, H]), k[:, :, :1], v[:, :, :1]
        weights = tf.nn.softmax(tf.einsum("btkgh,bskh->bkgts", q, k) + np.float32(SEEN[0]))
        return tf.reshape(tf.einsum("bkgts,bskh->btkgh", weights, v), [-1, T, K * G, H])

    def of_one(x):
        n = S * K * H
        q, k, v = x[:, : -2 * n], x[:, -2 * n : -n], x[:, -n:]
        return function(q, *(tf.reshape(x, [-1, S, K, H]) for x in (k, v)))

    x = np.concatenate([a.reshape(B, -1) for a in arrays], 1)
    result = attention(of_one, x, shapes=[(batch, x.shape[1])])
    assert not {"Einsum", "Transpose"} & {*result.ops}
