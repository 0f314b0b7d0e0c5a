"""Attention of bd.layers against Keras's, forward and backward, by itself and converted."""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from compared import ops_of, with_gradients

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
    found = (
        with_gradients(layer, [query, value], training=False, **_masks()[mask])
        for layer in (theirs, ours)
    )
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5 * max(1, np.abs(a).max()))


def test_which_calls_are_one_op(floats):
    _, ours = _pair(0.3)
    x, v = tf.constant(floats(2, 4, 16)), tf.constant(floats(2, 6, 16))
    name = "BlockdnnAttention"
    assert name in ops_of(lambda x, v: ours(x, v, training=False), x, v)
    assert name not in ops_of(lambda x, v: ours(x, v, training=True), x, v)
    assert name not in ops_of(lambda x, v: ours(x, v, return_attention_scores=True), x, v)
    half = _OURS(3, 8, dtype="mixed_bfloat16")
    assert name not in ops_of(lambda x, v: half(x, v), x, v)


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


_GROUPED = {
    "plain": {},
    "dropout": {"dropout": 0.3},
    "window": {"sliding_window": 2},
    "gate": {"use_gate": True, "use_bias": False},
}


@pytest.mark.parametrize(
    "options, mask",
    [("plain", mask) for mask in _masks()]
    + [(options, mask) for options in ("dropout", "window", "gate") for mask in ("none", "both")],
)
def test_grouped_attention_equals_keras_with_its_gradients(floats, mask, options):
    known = inspect.signature(keras.layers.GroupQueryAttention.__init__).parameters
    if not _GROUPED[options].keys() <= known.keys():
        pytest.skip("this Keras has no such argument")
    made = [
        cls(8, 6, 2, **_GROUPED[options])
        for cls in (keras.layers.GroupQueryAttention, bd.layers.GroupQueryAttention)
    ]
    masks = _masks()[mask]
    if mask == "of heads":
        masks = {"attention_mask": np.concatenate([masks["attention_mask"]] * 2, 1)}
    x, v = tf.constant(floats(2, 4, 16)), tf.constant(floats(2, 6, 16))
    for layer in made:
        layer(x, v)
    made[1].set_weights(made[0].get_weights())
    found = (with_gradients(layer, [x, v], training=False, **masks) for layer in made)
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, atol=2e-5 * max(1, np.abs(a).max()))
    ops = ops_of(lambda x, v: made[1](x, v, **masks), x, v)
    assert ops.count("BlockdnnAttention") == 1 and "GatherV2" not in ops and "Repeat" not in ops


class Cached(keras.layers.MultiHeadAttention):
    """Attention as other packages derive it from Keras's."""

    def call(self, x):
        q, k, v = (dense(x) for dense in (self._query_dense, self._key_dense, self._value_dense))
        return self._output_dense(self._compute_attention(q, k, v)[0])


class Decoder(keras.layers.Layer):
    def build(self, shape):
        self._attention = Cached(2, 8, name="attention")
        self._attention.build(shape, shape)
        self._norm = keras.layers.LayerNormalization(name="norm")
        self._norm.build(shape)
        self._mlp = [keras.layers.Dense(16, "gelu", name="mlp")]
        self._mlp[0].build(shape)

    def call(self, x):
        return self._mlp[0](self._norm(x + self._attention(x)))

    def get_config(self):
        raise AttributeError("as some packages' have none")


class Backbone(keras.Model):
    """A functional model of a class of its own."""

    def __init__(self):
        x = keras.Input((None, 16))
        super().__init__(x, keras.layers.Dense(4, name="head")(Decoder(name="decoder")(x)))


def test_a_model_of_another_package_keeps_its_class_and_variables(floats):
    model, x = Backbone(), floats(2, 6, 16)
    variables, expected = list(model.trainable_variables), model(x).numpy()
    converted = bd.layers.convert(model)
    assert converted is model and type(model) is Backbone
    assert all(a is b for a, b in zip(variables, model.trainable_variables, strict=True))
    names = ["attention", "norm", "mlp"]
    assert sorted(model.conversion.replaced) == sorted(f"decoder/{n}" for n in names) + ["head"]
    ops = ops_of(lambda x: model(x), tf.constant(x))
    assert {"BlockdnnAttention", "BlockdnnLayerNorm", "BlockdnnInnerProduct"} <= {*ops}
    np.testing.assert_allclose(model(x), expected, atol=1e-5)
    model.compile("sgd", "mse")
    losses = model.fit(x, np.zeros_like(expected), epochs=5, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
