"""Attention as one op: every spelling, its numbers, and what stays with TensorFlow."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from attention_spellings import CAUSAL, LEFT, ROW, B, H, N, S, T, hand_written, heads_last, turned

from tf_blockdnn import Options

STRICT = Options(strict=True)


# How people write it, for q, k and v as [B, T, N, H]; the layouts that the op reads and writes.
SPELLINGS = {
    "einsum": (heads_last, "BTNH BTNH BTNH BTNH"),
    "matmul": (hand_written, "BTNH BTNH BTNH BTNH"),
    "scale on q": (
        lambda q, k, v: heads_last(q * 0.5, k, v, lambda s: s / 0.3),
        "BTNH BTNH BTNH BTNH",
    ),
    "scale on k": (lambda q, k, v: heads_last(q, k / 3.0, v), "BTNH BTNH BTNH BTNH"),
    "keys turned before": (
        lambda q, k, v: turned(
            tf.matmul(tf.nn.softmax(tf.matmul(turned(q), tf.transpose(k, [0, 2, 3, 1]))), turned(v))
        ),
        "BTNH BTNH BTNH BTNH",
    ),
    "keys times queries, turned": (
        lambda q, k, v: turned(
            tf.matmul(
                tf.nn.softmax(
                    tf.transpose(tf.matmul(turned(k), tf.transpose(q, [0, 2, 3, 1])), [0, 1, 3, 2])
                ),
                turned(v),
            )
        ),
        "BTNH BTNH BTNH BTNH",
    ),
    "heads first in the result": (
        lambda q, k, v: tf.einsum(
            "bnts,bsnh->bnth", tf.nn.softmax(tf.einsum("bsnh,btnh->bnts", k, q)), v
        ),
        "BTNH BTNH BTNH BNTH",
    ),
    "result flattened": (
        lambda q, k, v: tf.reshape(hand_written(q, k, v), [B, T, N * H]),
        "BTNH BTNH BTNH BTNH",
    ),
    "identities between": (
        lambda q, k, v: heads_last(tf.identity(q), k, v, tf.stop_gradient),
        "BTNH BTNH BTNH BTNH",
    ),
    "shared keys": (
        lambda q, k, v: heads_last(
            q, tf.repeat(k[:, :, :2], 2, axis=2), tf.repeat(v[:, :, :2], 2, axis=2)
        ),
        "BTNH BTNH BTNH BTNH",
    ),
}


@pytest.mark.parametrize("open_batch", [False, True])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings(attention, floats, spelling, open_batch):
    function, layouts = SPELLINGS[spelling]
    arrays = floats(B, T, N, H), floats(B, S, N, H), floats(B, S, N, H)
    if open_batch:  # one batch for all three

        def of_one(x):
            return function(x[:, :T], x[:, T : T + S], x[:, T + S :])

        result = attention(of_one, np.concatenate(arrays, 1), shapes=[(None, T + 2 * S, N, H)])
    else:
        result = attention(lambda q, k, v: function(q, k, v), *arrays)
    assert result.layouts == layouts
    assert not result.ops["Transpose"] and not result.ops["Einsum"]
    assert not result.report.declined


def test_heads_first_sources_are_read_where_they_lie(attention, floats):
    def function(q, k, v):
        return tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True)), v)

    arrays = floats(B, N, T, H), floats(B, N, S, H), floats(B, N, S, 5)
    assert attention(function, *arrays).layouts == "BNTH BNTH BNTH BNTH"


@pytest.mark.parametrize("batch", [B, None])
@pytest.mark.parametrize(
    ("split", "order"),
    [((3, N, H), (2, 0, 3, 1, 4)), ((3, N, H), (2, 0, 1, 3, 4)), ((N, 3, H), (3, 0, 2, 1, 4))],
    ids=str,
)
def test_one_product_makes_all_three(attention, floats, split, order, batch):
    """As ViT and Swin have it; the op reads the three where they lie in the product."""
    weights = floats(16, 3 * N * H)

    def function(x):
        rows = tf.reshape(tf.reshape(x, [-1, 16]) @ weights, [-1, T, *split])
        q, k, v = tf.unstack(tf.transpose(rows, order))
        if order[2] != 3 and split[0] == 3:  # heads last
            return heads_last(0.3 * q, k, v)
        return turned(tf.matmul(tf.nn.softmax(tf.matmul(0.3 * q, k, transpose_b=True)), v))

    result = attention(function, floats(B, T, 16), shapes=[(batch, T, 16)])
    assert not result.ops["Transpose"] and not result.ops["Unpack"]
    places = [result.attr[f"{name}_at"].list.i[:] for name in "qkv"]
    assert places == [[0], [1], [2]]
    assert result.attr["at_axis"].i == 2 + split.index(3)


def test_one_head_without_its_axis(attention, floats):
    layer = keras.layers.Attention(use_scale=True)
    arrays = floats(B, T, H), floats(B, S, H)
    attention(lambda q, v: layer([q, v]), *arrays)


@pytest.mark.parametrize("batch", [B, None])
def test_windows_with_a_bias_and_a_mask(attention, floats, batch):
    """Swin's: a position bias of each head, then a mask of each window of a picture."""
    mask, bias = floats(3, 9, 9), floats(N, 9, 9)

    def function(x):
        windows = tf.reshape(x, [-1, 3, 9, N, H])  # of 3 windows of 9 pixels
        windows = tf.reshape(windows, [-1, 9, N, H])

        def scores(s):
            pictures = tf.shape(windows)[0] // 3
            s = tf.reshape(s + bias, [pictures, 3, N, 9, 9]) + mask[None, :, None]
            return tf.reshape(s, [-1, N, 9, 9])

        return heads_last(windows, windows * 0.5, windows + 1.0, scores)

    result = attention(function, floats(B, 27, N * H), shapes=[(batch, 27, N * H)])
    assert result.attr["num_biases"].i == 2


def keras_layer(**options):
    layer = keras.layers.MultiHeadAttention(N, H, **options)
    layer.build((B, T, 16), (B, T, 16))
    return layer


@pytest.mark.parametrize("sizes", [(B, T), (None, T), (None, None)], ids=str)
@pytest.mark.parametrize("mask", [None, "keys", "causal", "both"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])  # Keras lowers either to other ops
def test_keras_3(attention, floats, sizes, mask, dropout):
    layer = keras_layer(dropout=dropout)
    x, seen = floats(B, T, 16), LEFT[:, None]

    def function(x, seen):
        seen = seen if mask in ("keys", "both") else None
        causal = mask in ("causal", "both")
        return layer(x, x, attention_mask=seen, use_causal_mask=causal, training=False)

    result = attention(function, x, seen, shapes=[(*sizes, 16), (sizes[0], 1, sizes[1])])
    assert result.layouts == "BTNH BTNH BTNH BTNH"
    assert not result.ops["Transpose"] and not result.ops["MatrixBandPart"] or mask == "both"
    assert result.attr["causal"].b == (mask == "causal")


@pytest.mark.parametrize("sizes", [(B, T), (None, None)], ids=str)
def test_keras_3_shares_keys(attention, floats, sizes):
    layer = keras.layers.GroupQueryAttention(H, 4, 2)
    layer.build((B, T, 16), (B, T, 16))
    result = attention(lambda x: layer(x, x), floats(B, T, 16), shapes=[(*sizes, 16)])
    assert not result.ops["Transpose"]


def test_keras_3_softmax_layers_give_masked_rows_no_weight(attention, floats):
    softmax = keras.layers.Softmax()

    def function(q, k, v, mask):
        scores = tf.einsum("btnh,bsnh->bnts", q, k)
        return tf.einsum("bnts,bsnh->btnh", softmax(scores, mask=mask[:, None]), v)

    mask = LEFT[:, None] & CAUSAL
    result = attention(function, *[floats(B, T, N, H) for _ in range(3)], mask)
    assert result.attr["zero_masked"].b


@pytest.mark.parametrize("mask", [None, "keys", "causal"])
def test_keras_2(attention, floats, mask):
    layer = tf_keras.layers.MultiHeadAttention(N, H)
    x, seen = floats(B, T, 16), LEFT[:, None]
    layer(x, x)

    def function(x, seen):
        seen = seen if mask == "keys" else None
        return layer(x, x, attention_mask=seen, use_causal_mask=mask == "causal")

    result = attention(function, x, seen)
    assert result.attr["causal"].b == (mask == "causal")


def test_scores_that_are_read_elsewhere_stay(attention, floats):
    layer, x = keras_layer(), floats(B, T, 16)
    result = attention(lambda x: layer(x, x, return_attention_scores=True), x, ops=0)
    assert "its scores or weights are read elsewhere, too" in result.reasons


def test_weights_that_change_stay(attention, floats):
    def function(q, k, v):
        weights = tf.nn.softmax(tf.einsum("btnh,bsnh->bnts", q, k))
        kept = tf.where(tf.abs(weights) > 0.1, weights * 2.0, 0.0)  # as dropout does
        return tf.einsum("bnts,bsnh->btnh", kept, v)

    result = attention(function, *[floats(B, T, N, H) for _ in range(3)], ops=0)
    assert "the weights change before they meet the values" in result.reasons


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda s: tf.where(CAUSAL, s, -1e9) * 2.0, "scaled after a mask"),
        (lambda s: tf.tanh(s + np.float32(CAUSAL)), "capped twice, or after a bias"),
        (lambda s: tf.tanh(tf.tanh(s)), "capped twice, or after a bias"),
        (lambda s: tf.where(CAUSAL.T, tf.where(CAUSAL, s, -1e9), -1e9), "masked twice"),
        (lambda s: s + 2.0 + ROW + ROW[::-1] + np.eye(T, dtype=np.float32) + ROW, "more than 4"),
        (lambda s: tf.where(CAUSAL, s, s * 0.5), "masked scores are no constant"),
        (lambda s: s / np.full((N, 1, 1), 3, np.float32), "divided by other than a number"),
    ],
)
def test_scores_of_another_kind_stay(attention, floats, change, reason):
    arrays = [floats(B, T, N, H) for _ in range(3)]
    result = attention(lambda q, k, v: heads_last(q, k, v, change), *arrays, ops=0)
    assert reason in result.reasons


def test_long_chains_before_a_product_are_followed(rewrite, floats):
    def function(x, y):
        for _ in range(1200):
            x = tf.where(x > 0.5, x * 1.5, x)
        return tf.matmul(x, y)

    result = rewrite(function, (2, 3, 4), (2, 4, 3), options=STRICT)
    assert result.ops["BatchMatMulV2"] == 1
    result.assert_same(*(0.1 * floats(*shape) for shape in ((2, 3, 4), (2, 4, 3))))


def test_other_types_stay(rewrite):
    spec = tf.TensorSpec([B, T, N, H], tf.float64)
    result = rewrite(lambda q, k, v: heads_last(q, k, v), spec, spec, spec, options=STRICT)
    assert not result.ops["BlockdnnAttention"]
    assert "float64" in " ".join(reason for _, reason in result.report.declined)


def test_a_softmax_that_is_no_attention_is_nothing_to_report(rewrite, floats, weights):
    matrix = weights(16, 8)
    result = rewrite(lambda x: tf.matmul(tf.nn.softmax(x), matrix), [B, T, 16], options=STRICT)
    assert not result.ops["BlockdnnAttention"] and result.blockdnn["InnerProduct"] == 1
    assert not any("MatMul" in name for name, _ in result.report.declined)
    result.assert_same(floats(B, T, 16))


def test_its_multiply_adds_count(rewrite, floats):
    arrays = floats(B, T, N, H), floats(B, S, N, H), floats(B, S, N, 5)
    result = rewrite(heads_last, *[a.shape for a in arrays], options=STRICT)
    assert result.report.multiply_adds == B * N * T * S * (H + 5)
    assert result.report.multiply_adds_left == 0


def test_it_runs_in_a_region_with_its_projections(rewrite, floats):
    layer = keras_layer()
    result = rewrite(lambda x: layer(x, x), [B, T, 16], options=STRICT)
    assert result.report.regions == 1 and result.blockdnn["InnerProduct"] == 4
    for _ in range(3):  # a static plan from the second run on
        result.assert_same(floats(B, T, 16))
