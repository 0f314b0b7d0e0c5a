"""Masks by finite numbers: rows that are masked as a whole, and scores that rounding makes equal.

Queries and keys are small integers, so that each score is exact and what is added to it rounds
alike in TensorFlow and here.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from attention_spellings import CAUSAL, B, H, N, T

import tf_blockdnn as bd

LOWEST = np.finfo(np.float32).min
# No padding, on the left, on the right, all of it.
SEEN = np.array([[1] * T, [0] * 3 + [1] * (T - 3), [1] * 4 + [0] * (T - 4), [0] * T], bool)
BEHIND = np.float32(~CAUSAL)
POSITIONS = np.float32(np.arange(T) - np.arange(T)[:, None])


def padded(seen, low=-1e9):
    return (1.0 - tf.cast(seen, tf.float32))[:, None, None] * low


# What people make of scores and the mask of keys: a function, whether the op leaves keys out, how
# many biases and masks it reads.
FORMS = {
    "select by a finite number": (
        lambda s, seen: tf.where(seen[:, None, None], s, -1e9),
        (False, 0, 1),
    ),
    "select of padding": (lambda s, seen: tf.where(~seen[:, None, None], -1e9, s), (False, 0, 1)),
    "select of padding by -inf": (
        lambda s, seen: tf.where(tf.logical_not(seen[:, None, None]), -np.inf, s),
        (False, 0, 1),
    ),
    "select behind the query": (lambda s, seen: tf.where(~CAUSAL, -1e9, s), (True, 0, 0)),
    "joined masks": (
        lambda s, seen: tf.where(seen[:, None, None] & CAUSAL, s, -1e9),
        (False, 0, 1),
    ),
    "padding": (lambda s, seen: s + padded(seen), (False, 1, 0)),
    "padding by the lowest number": (lambda s, seen: s + padded(seen, LOWEST), (False, 1, 0)),
    "padding, then causal": (
        lambda s, seen: tf.where(CAUSAL, s + padded(seen), -1e9),
        (False, 1, 1),
    ),
    "padding, then behind the query": (
        lambda s, seen: tf.where(~CAUSAL, -1e9, s + padded(seen)),
        (False, 1, 1),
    ),
    "padding, then causal by a bias": (
        lambda s, seen: s + padded(seen) + BEHIND * np.float32(-1e9),
        (False, 2, 0),
    ),
    "padding by the lowest number, then causal by a bias": (
        lambda s, seen: s + padded(seen, LOWEST) + BEHIND * LOWEST,  # -inf, where both are
        (False, 2, 0),
    ),
    "padding, then causal by -inf": (
        lambda s, seen: tf.where(CAUSAL, s + padded(seen), -np.inf),
        (True, 1, 0),
    ),
    "padding, then causal by a lower number": (
        lambda s, seen: tf.where(CAUSAL, s + padded(seen, -1e4), -1e9),
        (True, 1, 0),
    ),
    "padding by a lower number than causal": (
        lambda s, seen: tf.where(CAUSAL, s + padded(seen, LOWEST), -1e9),
        (False, 1, 1),
    ),
    "causal, then padding": (
        lambda s, seen: tf.where(CAUSAL, s, -1e9) + padded(seen),
        (False, 1, 1),
    ),
    "causal by a bias, then padding": (
        lambda s, seen: s + BEHIND * np.float32(-1e9) + padded(seen),
        (False, 2, 0),
    ),
    "causal by -inf, then padding": (
        lambda s, seen: tf.where(CAUSAL, s, -np.inf) + padded(seen),
        (True, 1, 0),
    ),
    "positions, then causal": (lambda s, seen: tf.where(CAUSAL, s + POSITIONS, -1e9), (True, 1, 0)),
    "causal, then positions": (lambda s, seen: tf.where(CAUSAL, s, -1e9) + POSITIONS, (True, 1, 0)),
    "positions and padding, then causal": (
        lambda s, seen: tf.where(CAUSAL, s + (POSITIONS + padded(seen)), -1e9),
        (False, 1, 1),
    ),
    "scaled behind padding by a power of two": (
        lambda s, seen: (s + padded(seen)) / 8.0,
        (False, 1, 0),
    ),
}


def attend(q, k, v, change, zero=None):
    weights = tf.nn.softmax(change(tf.einsum("btnh,bsnh->bnts", q, k)))
    weights = weights if zero is None else tf.where(zero, weights, 0.0)
    return tf.einsum("bnts,bsnh->btnh", weights, v)


@pytest.fixture
def converted(attention, integers):
    """converted(function of q, k, v and the mask of keys) -> its one op; numbers are equal."""

    def run(function, open_batch=False, ops=1):
        def of_one(x, seen):
            return function(*tf.split(x, 3, axis=2), seen)

        x = integers(len(SEEN), T, 3 * N, H)
        shapes = [(None, *x.shape[1:]), (None, T)] if open_batch else None
        return attention(of_one, x, SEEN, shapes=shapes, ops=ops)

    return run


@pytest.mark.parametrize("open_batch", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_masks_by_finite_numbers(converted, form, open_batch):
    change, expected = FORMS[form]
    result = converted(lambda q, k, v, seen: attend(q, k, v, lambda s: change(s, seen)), open_batch)
    attr = result.attr
    assert (attr["causal"].b, attr["num_biases"].i, attr["num_masks"].i) == expected


def test_a_bias_that_is_an_input_may_be_a_mask(attention, integers):
    def function(q, k, v, bias):
        return attend(q, k, v, lambda s: tf.where(CAUSAL, s + bias, -1e9))

    arrays = [integers(B, T, N, H) for _ in range(3)]
    arrays.append(np.where(SEEN[:B, None, None], 0.0, -1e9).astype(np.float32))
    assert not attention(function, *arrays).attr["causal"].b


def test_positions_that_are_learned_are_no_mask(attention, weights, integers):
    table = weights(2 * T, N)

    def function(q, k, v):
        far = tf.cast(POSITIONS, tf.int32) + T
        bias = tf.transpose(tf.gather(table, far), [2, 0, 1])[None]
        return attend(q, k, v, lambda s: tf.where(CAUSAL, s + bias, -1e9))

    arrays = [integers(B, T, N, H) for _ in range(3)]
    for hides in (True, False):
        assert attention(function, *arrays).attr["causal"].b == hides
        table.assign(tf.where(table > 0.0, table, -1e9))  # one that is


@pytest.mark.parametrize("low", [-np.inf, -1e9])
@pytest.mark.parametrize("inverted", [False, True])
def test_weights_of_padding_are_zero(converted, inverted, low):
    """Keras's, and that of DeBERTa."""

    def function(q, k, v, seen):
        mask = seen[:, None, None] & CAUSAL
        weights = tf.einsum("btnh,bsnh->bnts", q, k)
        if inverted:
            weights = tf.nn.softmax(tf.where(tf.logical_not(mask), low, weights))
            weights = tf.where(tf.logical_not(mask), 0.0, weights)
        else:
            weights = tf.where(mask, tf.nn.softmax(tf.where(mask, weights, low)), 0.0)
        return tf.einsum("bnts,bsnh->btnh", weights, v)

    attr = converted(function).attr
    assert attr["zero_masked"].b and attr["num_masks"].i == 1


def test_masks_that_are_scaled_stay(attention, integers):
    def function(q, k, v, seen):
        return attend(q, k, v, lambda s: (s + padded(seen)) * 0.3)

    arrays = [integers(len(SEEN), T, N, H) for _ in range(3)]
    assert "a bias that may be a mask" in attention(function, *arrays, SEEN, ops=0).reasons


@pytest.mark.parametrize("magnitude", [1.0, 300.0])
@pytest.mark.parametrize("dropout", [0.0, 0.5])  # Keras lowers either to other ops
def test_a_keras_model_with_padded_rows(integers, magnitude, dropout):
    x, mask = keras.Input((T, 16)), keras.Input((T,), dtype="bool")
    layer = keras.layers.MultiHeadAttention(N, H, dropout=dropout)
    y = layer(x, x, attention_mask=mask[:, None], use_causal_mask=True)
    model = keras.Model([x, mask], y)
    for weight in model.weights:
        weight.assign(magnitude * integers(*weight.shape))
    arrays = [integers(len(SEEN), T, 16), SEEN]
    fast = bd.optimize(model)
    converted = [node for node in fast.report.converted if "ttention" in str(node)]
    assert converted, fast.report.summary()
    wanted, got = (m.predict(arrays, verbose=0) for m in (model, fast))
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
