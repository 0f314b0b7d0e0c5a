"""Heads and sequences in one axis, and scores whose axes lie in another order."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from attention_spellings import CAUSAL, LEFT, B, H, N, T, turned
from converts import converts

from tf_blockdnn import Options

STRICT = Options(strict=True)


@pytest.fixture
def one_op(attention, floats):
    """one_op(function of x [B, T, 3 N, H], ...) -> its attributes; no transpose is left."""

    def run(function, *more, open_batch=False, transposes=0):
        arrays = [floats(B, T, 3 * N, H), *more]
        shapes = [(None, *a.shape[1:]) if open_batch else a.shape for a in arrays]
        result = attention(function, *arrays, shapes=shapes)
        counts = [result.ops[op] for op in ("BatchMatMulV2", "Einsum")]
        assert not any(counts) and result.ops["Transpose"] == transposes, result.reasons
        return result.attr

    return run


def of_heads(x):
    """[B, T, N, H] as [B N, T, H]."""
    return tf.reshape(turned(x), [-1, T, H])


def back(x):
    return turned(tf.reshape(x, [-1, N, T, H]))


@pytest.mark.parametrize("open_batch", [False, True])
@pytest.mark.parametrize("biases", [0, 1, 2])
def test_heads_and_sequences_in_one_axis(one_op, open_batch, biases):
    """BART's and Whisper's: a mask is added to [B, N, T, S]."""
    padding = np.where(LEFT, 0, -1e8)[:, None, None].astype(np.float32)
    order = np.where(CAUSAL, 0, -1e8)[None, None].astype(np.float32)

    def function(x, padding):
        q, k, v = tf.split(x, 3, axis=2)
        batch = tf.shape(x)[0]
        q, k, v = (tf.reshape(turned(x), (batch * N, -1, H)) for x in (q * 0.25, k, v))
        scores = tf.matmul(q, k, transpose_b=True)
        if biases:
            scores = tf.reshape(scores, (batch, N, T, T)) + padding
            scores = tf.reshape(scores + order if biases > 1 else scores, (batch * N, T, T))
        y = tf.matmul(tf.nn.softmax(scores + 1e-9), v)
        return turned(tf.reshape(y, (batch, N, T, H)))

    attr = one_op(function, padding, open_batch=open_batch)
    assert attr["num_biases"].i == biases
    assert [attr[f"{x}_layout"].s for x in ("q", "dst")] == [b"BTNH"] * 2


def test_a_bias_of_all_heads(one_op, floats):
    """DeBERTa's: positions are added to [B N, T, S], a mask is selected in [B, N, T, S]."""

    def function(x, bias):
        q, k, v = tf.split(x, 3, axis=2)
        scores = tf.matmul(of_heads(q), tf.transpose(of_heads(k), [0, 2, 1]) / 2.5)
        scores = tf.reshape(scores + bias, [-1, N, T, T])
        hidden = tf.logical_not(tf.constant(LEFT[:, None, None]))
        weights = tf.nn.softmax(tf.where(hidden, -np.inf, scores))
        weights = tf.reshape(tf.where(hidden, 0.0, weights), [-1, T, T])
        return back(tf.matmul(weights, of_heads(v)))

    attr = one_op(function, floats(B * N, T, T))
    assert attr["zero_masked"].b and attr["num_biases"].i == 1


def test_heads_that_are_no_heads_stay_one_axis(attention, floats):
    """Scores are split where queries are not: [B N, T, H] as it came."""

    def function(q, k, v, bias):
        scores = tf.reshape(tf.matmul(q, k, transpose_b=True), [B, N, T, T]) + bias
        return tf.matmul(tf.nn.softmax(tf.reshape(scores, [B * N, T, T])), v)

    arrays = [*(floats(B * N, T, H) for _ in range(3)), floats(B, 1, T, T)]
    assert "heads" in attention(function, *arrays, ops=0).reasons


@pytest.mark.parametrize("biases", [0, 1, 2])
def test_rows_and_keys_before_sequences(one_op, floats, biases):
    """XLNet's: scores [T, S, B, N], softmax over their second axis."""

    def function(x, far, mask):
        q, k, v = tf.split(tf.transpose(x, [1, 0, 2, 3]), 3, axis=2)
        scores = tf.einsum("ibnd,jbnd->ijbn", q, k)
        if biases:
            scores = (scores + far) * 0.25
        if biases > 1:
            scores -= 1e30 * mask
        weights = tf.nn.softmax(scores + 1e-9, axis=1)
        return tf.einsum("ijbn,jbnd->ibnd", weights, v)

    # That of x is its own; each bias is turned.
    mask = np.float32(np.arange(T)[:, None] < np.arange(T)).reshape(T, T, 1, 1)
    attr = one_op(function, floats(T, T, B, N), mask, transposes=1 + biases)
    assert attr["num_biases"].i == biases


def _has_softmax_of_rank_6():
    try:
        tf.nn.softmax(tf.zeros([1] * 6))
    except tf.errors.OpError:
        return False
    return True


@pytest.mark.parametrize("batch", [None, 2])
@pytest.mark.parametrize("axes", [1, 2])
def test_attention_along_one_axis_of_several(rewrite, floats, batch, axes):
    """Keras's with attention_axes: all axes in front are the batch."""
    if axes == 2 and not _has_softmax_of_rank_6():
        pytest.skip("TensorFlow with oneDNN has no softmax of rank 6, which Keras's layer calls")
    layer = keras.layers.MultiHeadAttention(2, 8, attention_axes=axes + 1)
    sizes = (*(3, 2)[:axes], 5, 16)
    x = floats(2, *sizes)
    layer(x, x)
    result = rewrite(lambda x: layer(x, x), (batch, *sizes), options=STRICT)
    assert result.blockdnn == {"InnerProduct": 4, "Attention": 1}, result.report.declined
    assert not any(result.ops[op] for op in ("Softmax", "Einsum", "Transpose", "Mul"))
    result.assert_same(x)


@converts((2, 3, 5, 3, 4, 8), {"Attention": 1}, ops={"Transpose": 0}, options=STRICT)
def test_products_of_rank_five_by_hand(x):
    q, k, v = (tf.transpose(x, [0, 1, 3, 2, 4]) for x in tf.unstack(x, axis=3))
    weights = tf.nn.softmax(tf.matmul(q * 0.5, k, transpose_b=True))
    return tf.transpose(tf.matmul(weights, v), [0, 1, 3, 2, 4])


def test_an_ellipsis_is_a_batch_of_several_axes(attention, floats):
    def function(q, k, v):
        weights = tf.nn.softmax(tf.einsum("...qhd,...khd->...hqk", q, k))
        return tf.einsum("...hqk,...khd->...qhd", weights, v)

    assert not attention(function, *[floats(2, 3, 5, 4, 8) for _ in range(3)]).ops["Einsum"]


@pytest.mark.parametrize(
    "equation, shapes",
    [
        ("abqad,abkd->abqk", [(2, 3, 5, 2, 8), (2, 3, 4, 8)]),  # a letter that comes twice
        ("...qd,...kd->...qk", [(2, 3, 5, 8), (2, 3, 4, 8)]),
        ("...qd,...kd->...qk", [(2, 3, 2, 5, 8), (2, 3, 1, 4, 8)]),  # one for all of another's
        ("...qd,...kd->...qk", [(2, 3, 2, 5, 8), (2, 3, 2, 4, 8)]),
    ],
)
def test_equations_of_few_and_of_several_axes(attention, floats, equation, shapes):
    arrays = [floats(*shape) for shape in shapes]
    assert attention(lambda a, b: tf.einsum(equation, a, b), *arrays, ops=0).ops["Einsum"] == 1


@converts((2, 3, 4, 5, 8), (2, 1, 4, 6, 8), {}, ops={"BatchMatMulV2": 2}, options=STRICT)
def test_products_whose_batches_spread_stay(q, k):
    """One set of keys for all of an axis is no product of a merged batch."""
    return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), k)
