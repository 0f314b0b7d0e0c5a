"""Attention of bd.layers against Keras's, forward and backward, by itself and converted."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

_OURS = bd.layers.MultiHeadAttention


def _pair(dropout=0.0, **options):
    """Keras's layer and ours with the same weights, built."""
    theirs = keras.layers.MultiHeadAttention(3, 8, value_dim=5, dropout=dropout, **options)
    ours = _OURS(3, 8, value_dim=5, dropout=dropout, **options)
    for layer in (theirs, ours):
        layer(np.zeros((2, 4, 16), "f"), np.zeros((2, 6, 16), "f"))
    ours.set_weights(theirs.get_weights())
    return theirs, ours


def _masks():
    seen = np.random.default_rng(1).random((2, 4, 6)) > 0.4
    seen[1, 2] = False  # a row without keys
    return {
        "none": {},
        "causal": {"use_causal_mask": True},
        "of rows": {"attention_mask": seen},
        "of heads": {"attention_mask": np.stack([seen, ~seen, seen], 1)},
        "of numbers": {"attention_mask": seen.astype("int32")},
        "both": {"attention_mask": seen, "use_causal_mask": True},
    }


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("mask", _masks())
def test_it_equals_keras_with_its_gradients(floats, mask, dropout):
    theirs, ours = _pair(dropout)
    query, value = floats(2, 4, 16), floats(2, 6, 16)
    found = []
    for layer in (theirs, ours):
        with tf.GradientTape() as tape:
            x, v = tf.constant(query), tf.constant(value)
            tape.watch([x, v])
            y = layer(x, v, training=False, **_masks()[mask])
            loss = tf.reduce_sum(tf.square(y))
        found.append([y, *tape.gradient(loss, [x, v, *layer.trainable_weights])])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5 * max(1, np.abs(a).max()))


def _ops(function, *args):
    graph = tf.function(function).get_concrete_function(*args).graph
    return [op.type for op in graph.get_operations()]


def test_which_calls_are_one_op(floats):
    _, ours = _pair(0.3)
    x, v = tf.constant(floats(2, 4, 16)), tf.constant(floats(2, 6, 16))
    name = "BlockdnnAttention"
    assert name in _ops(lambda x, v: ours(x, v, training=False), x, v)
    assert name not in _ops(lambda x, v: ours(x, v, training=True), x, v)
    assert name not in _ops(lambda x, v: ours(x, v, return_attention_scores=True), x, v)
    half = _OURS(3, 8, dtype="mixed_bfloat16")
    assert name not in _ops(lambda x, v: half(x, v), x, v)


def test_a_compiled_function_runs_keras(floats):
    theirs, ours = _pair()
    x, v = floats(2, 4, 16), floats(2, 6, 16)
    y = tf.function(lambda x, v: ours(x, v), jit_compile=True)(x, v)
    np.testing.assert_allclose(y, theirs(x, v), atol=1e-5)


def _encoder():
    x = keras.Input((6, 16))
    y = keras.layers.MultiHeadAttention(2, 8, name="attention")(x, x)
    y = keras.layers.LayerNormalization()(keras.layers.Add()([x, y]))
    return keras.Model(x, keras.layers.Dense(4)(y))


class Block(keras.Model):
    def __init__(self):
        super().__init__()
        self.attention = keras.layers.MultiHeadAttention(2, 8)

    def call(self, x):
        return x + self.attention(x, x)


@pytest.mark.parametrize("make", [_encoder, Block])
def test_convert_puts_it_in_and_it_trains(floats, make, tmp_path):
    model, x = make(), floats(5, 6, 16)
    expected = model(x).numpy()
    converted = bd.layers.convert(model)
    layers = [layer for layer in converted._flatten_layers() if isinstance(layer, _OURS)]
    assert len(layers) == 1
    np.testing.assert_allclose(converted(x), expected, atol=1e-5)
    converted.compile("sgd", "mse")
    losses = converted.fit(x, np.zeros_like(expected), epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    if make is _encoder:
        converted.save(tmp_path / "model.keras")
        again = keras.models.load_model(tmp_path / "model.keras")
        assert any(isinstance(layer, _OURS) for layer in again.layers)
        np.testing.assert_allclose(again(x), converted(x), atol=1e-6)
