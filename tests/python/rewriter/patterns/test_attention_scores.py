"""What happens to the scores of attention: scales, soft caps, biases and masks."""

import numpy as np
import pytest
import tensorflow as tf
from attention_spellings import (
    CAUSAL,
    FEW,
    LEFT,
    MASK,
    B,
    H,
    N,
    S,
    T,
    hand_written,
    heads_last,
)

ONES = np.float32(CAUSAL)
BIASES = {
    "padding": (lambda s: s + (1.0 - tf.cast(MASK[:, None, None], tf.float32)) * -1e9, 1, 0),
    "left padding": (lambda s: s + tf.where(MASK, 0.0, -1e9)[:, None, None], 1, 0),
    "two biases": (lambda s: s + np.float32(MASK[0]) + np.float32(MASK[:, None, None]), 2, 0),
    "select": (lambda s: tf.where(MASK[:, None, None], s, -1e9), 0, 1),
    "bias, then select": (
        lambda s: tf.where(MASK[:, None, None], s + np.float32(MASK[0]), -np.inf),
        1,
        1,
    ),
    "no key at all": (
        lambda s: tf.where(MASK[:, None, None] & ~MASK[:, None, None], s, -1e9),
        0,
        1,
    ),
    "subtracted": (lambda s: s - 1e30 * (1.0 - np.float32(MASK[:, None, None])), 1, 0),
    "scaled behind a bias": (lambda s: (s + np.float32(MASK[0])) * -0.5, 1, 0),
    "soft cap": (lambda s: tf.tanh(s / 0.7) * 0.7, 0, 0),
    "tanh, then a scale": (lambda s: 3.0 * tf.tanh(s) / 2.0, 0, 0),
    "soft cap, then a bias and a mask": (
        lambda s: tf.where(MASK[:, None, None], tf.tanh(s / -2.0) * 2.0 + MASK[0] * 1.0, -1e9),
        1,
        1,
    ),
    "a bias behind the mask": (
        lambda s: tf.where(MASK[:, None, None], s + np.float32(MASK[0]), -1.0) + FEW,
        2,
        1,
    ),
    "a mask in arithmetic, then a bias": (
        lambda s: s * FEW - 1e4 * (1.0 - FEW) + (1.0 - np.float32(MASK[:, None, None])) * -1e4,
        1,
        1,
    ),
    "a zero changes nothing": (
        lambda s: s + np.float32(MASK[0]) + np.float32(MASK[:, None, None]) + 0.0,
        2,
        0,
    ),
    "the constant of a stable softmax": (lambda s: s + np.float32(MASK[0]) + 1e-9, 1, 0),
    "a constant before a mask of an ordinary value": (
        lambda s: tf.where(MASK[:, None, None], s + 0.9, 0.3),
        1,
        1,
    ),
    "a number for all keys": (lambda s: s + np.ones((T, 1), np.float32), 1, 0),
}


@pytest.mark.parametrize("name", BIASES)
def test_biases_and_masks(attention, floats, name):
    change, biases, masks = BIASES[name]
    arrays = floats(B, T, N, H), floats(B, S, N, H), floats(B, S, N, H)
    attr = attention(lambda q, k, v: heads_last(q, k, v, change), *arrays).attr
    assert (attr["num_biases"].i, attr["num_masks"].i) == (biases, masks)


@pytest.mark.parametrize(
    "change, is_causal",
    [
        (lambda s: tf.where(CAUSAL, s, -1e9), True),
        (lambda s: tf.where(tf.linalg.band_part(tf.ones((T, T), bool), -1, 0), s, -np.inf), True),
        (lambda s: s + (1.0 - np.float32(CAUSAL)) * np.float32(-1e9), True),
        (lambda s: s * np.float32(CAUSAL) + (1.0 - np.float32(CAUSAL)) * np.float32(-1e9), True),
        (lambda s: tf.where(CAUSAL, s, -100.0), False),  # others would still count
        (lambda s: tf.where(CAUSAL.T, s, -1e9), False),
        (lambda s: tf.where(np.tri(T, k=1, dtype=bool), s, -1e9), False),
        (lambda s: tf.where(CAUSAL & LEFT[:, None, None], s, -1e9), False),  # rows without a key
    ],
)
def test_causal_masks_are_no_tensors(attention, floats, change, is_causal):
    arrays = [floats(B, T, N, H) for _ in range(3)]
    attr = attention(lambda q, k, v: hand_written(q, k, v, change), *arrays).attr
    assert attr["causal"].b == is_causal
    assert attr["num_biases"].i + attr["num_masks"].i == (not is_causal)


@pytest.mark.parametrize("open_batch", [False, True])
def test_a_mask_in_arithmetic(attention, floats, open_batch):
    """GPT-2's, and behind it that of padding: a row may be without any key."""

    def function(x, mask):
        q, k, v = tf.split(tf.reshape(x, [-1, T, 3 * N, H]), 3, axis=2)
        rows = tf.range(tf.shape(q)[1])
        seen = tf.cast(rows[:, None] >= rows, tf.float32)[None, None]

        def scores(s):
            s = s * seen - 1e4 * (1.0 - seen)
            return s + (1.0 - tf.cast(mask, tf.float32))[:, None, None] * -1e4

        return heads_last(q, k, v, scores)

    x = floats(B, T, 3 * N * H)
    shapes = [(None, T, 3 * N * H), (None, T)] if open_batch else None
    attr = attention(function, x, LEFT, shapes=shapes).attr
    assert [attr[key].i for key in ("num_biases", "num_masks", "late_biases")] == [1, 1, 1]


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s * ONES - 1e4 * (1.0 - 2.0 * ONES),
        lambda s: s * ONES - 1e4 * (2.0 - ONES),
        lambda s: s * (ONES + 1.0) - 1e4 * (1.0 - (ONES + 1.0)),
        lambda s: s * ONES,
        lambda s: tf.tanh(s * ONES),
        lambda s: tf.transpose(s * ONES, [0, 1, 3, 2]) - 1e4 * (1.0 - ONES),
        lambda s: 2.0 * tf.tanh(s + 0.7),
        lambda s: tf.where(CAUSAL, s, tf.fill([1] * 5, np.float32(-1e9))),
        lambda s: s * np.full([1] * 5, 0.5, np.float32),
        lambda s: s + np.zeros([1] * 5, np.float32),
        lambda s: tf.tanh(s / 1e-38) * 1e-38,
    ],
)
def test_other_scores_stay(attention, floats, change):
    """Other arithmetic is no mask, what follows a constant may see it, a number of more axes gives
    them to the scores, and a soft cap has to be a normal number."""
    arrays = [floats(B, T, N, H) for _ in range(3)]

    def function(q, k, v):
        scores = tf.reshape(change(tf.einsum("btnh,bsnh->bnts", q, k)), [B, N, T, T])
        return tf.einsum("bnts,bsnh->btnh", tf.nn.softmax(scores), v)

    attention(function, *arrays, ops=0)


@pytest.mark.parametrize(
    "causal, late",
    [
        (lambda s: tf.where(CAUSAL, s, -1e9), 1),
        (lambda s: s + np.float32(~CAUSAL) * np.float32(-1e9), 0),
    ],
)
def test_padding_behind_a_causal_mask_keeps_rows_without_keys(attention, floats, causal, late):
    padding, arrays = np.float32(~LEFT[:, None, None]), [floats(B, T, N, H) for _ in range(3)]
    scores = lambda s: causal(s) + padding * np.float32(-1e9)  # noqa: E731
    attr = attention(lambda q, k, v: heads_last(q, k, v, scores), *arrays).attr
    assert not attr["causal"].b and attr["late_biases"].i == late


def test_rows_first(attention, floats):
    """As in XLNet, with a product of positions among the biases."""

    def function(q, k, v, far, of_positions):
        scores = tf.einsum("ibnd,jbnd->bnij", q, k)
        scores += tf.einsum("ibnd,jbnd->bnij", q + of_positions, far)
        scores = (scores + 0) * 0.25 - 1e30 * (1.0 - np.float32(MASK[:, None, None]))
        return tf.einsum("bnij,jbnd->ibnd", tf.nn.softmax(scores, axis=3), v)

    arrays = floats(T, B, N, H), floats(S, B, N, H), floats(S, B, N, 5), floats(S, B, N, H)
    result = attention(function, *arrays, floats(N, H))
    assert result.layouts == "TBNH TBNH TBNH TBNH" and not result.ops["Transpose"]
    assert result.attr["num_biases"].i == 2


@pytest.mark.parametrize("shape", [(N, 1, 1), (1, N, 1, 1)])
def test_a_scale_of_each_head(attention, floats, shape):
    """Cosine attention: of channels (XCiT, EdgeNeXt), or of tokens (Swin V2)."""

    def function(q, k, v, scale):
        q, k = tf.math.l2_normalize(q, -1), tf.math.l2_normalize(k, -1)
        return heads_last(q, k, v, lambda s: s * scale + np.float32(MASK[0]))

    arrays = [floats(B, T, N, H), floats(B, S, N, H), floats(B, S, N, H)]
    attention(function, *arrays, floats(*shape))
    attention(lambda q, k, v, c: hand_written(q, k, v, lambda s: c * s), *arrays, floats(*shape))
    ones = np.ones(shape, np.float32)  # as layers draw it, and no mask
    attention(lambda q, k, v: hand_written(q, k, v, lambda s: s * ones), *arrays)


@pytest.mark.parametrize("shape", [(N, T, 1), (B, N, 1, 1), (1, 1, S)])
def test_other_scales_stay(attention, floats, shape):
    arrays = [floats(B, T, N, H), floats(B, S, N, H), floats(B, S, N, H), floats(*shape)]
    function = lambda q, k, v, c: heads_last(q, k, v, lambda s: s * c)  # noqa: E731
    assert "other than a number" in attention(function, *arrays, ops=0).reasons


def test_the_softmax_of_hugging_face(attention, floats):
    """It adds 1e-9 to scores of all heads in one axis, behind a mask of those in two."""

    def function(q, k, v):
        q, k, v = (tf.reshape(x, [B * N, -1, H]) for x in (q, k, v))
        scores = tf.reshape(tf.matmul(q, k, transpose_b=True), [B, N, T, S])
        scores = tf.reshape(scores + np.float32(MASK[:, None, None]) * -1e4, [B * N, T, S])
        y = tf.matmul(tf.nn.softmax(scores + 1e-9), v)
        return tf.transpose(tf.reshape(y, [B, N, T, H]), [0, 2, 1, 3])

    arrays = floats(B, N, T, H), floats(B, N, S, H), floats(B, N, S, H)
    assert attention(function, *arrays).blockdnn == {"Attention": 1}
