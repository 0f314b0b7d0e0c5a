"""bd.layers.LSTM, GRU and SimpleRNN against Keras's."""

import itertools
import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from compared import ops_of, with_gradients

import tf_blockdnn as bd

PAIRS = {
    "LSTM": (bd.layers.LSTM, keras.layers.LSTM, {}),
    "GRU": (bd.layers.GRU, keras.layers.GRU, {}),
    "GRU before": (bd.layers.GRU, keras.layers.GRU, {"reset_after": False}),
    "SimpleRNN": (bd.layers.SimpleRNN, keras.layers.SimpleRNN, {}),
}
each_kind = pytest.mark.parametrize("kind", PAIRS)


def pair(kind, units, shape, ours=None, **kwargs):
    """Both layers with the same weights, none of them zero."""
    packed, plain, options = PAIRS[kind]
    a, b = packed(units, **options, **kwargs, **(ours or {})), plain(units, **options, **kwargs)
    a.build(shape)
    b.build(shape)
    rng = np.random.default_rng(5)
    values = [rng.standard_normal(w.shape) / np.sqrt(w.shape[0]) / 2 for w in b.get_weights()]
    a.set_weights(values)
    b.set_weights(values)
    return a, b


# Layer sizes 32 to 1024 and sizes with tails, batches 1 to 500, either direction. An output is a
# sum of `units` products of size 1 / sqrt(units), of rounding error 1e-6 or less; gradients are
# sums over batch and steps, and are compared by their largest element. `make test-grid` runs all
# sizes with all batches in both directions, for minutes.
GRID = [
    (1, 5, 32, True),
    (5, 3, 64, False),
    (100, 2, 128, True),
    (500, 2, 32, False),
    (5, 2, 1024, False),
    (1, 3, 257, True),
    (100, 2, 45, False),
]
if "TF_BLOCKDNN_FULL_GRID" in os.environ:
    units = (32, 64, 128, 256, 512, 1024, 33, 257, 1000)
    GRID = [*itertools.product((1, 5, 100, 500), [3], units, [False, True])]


@each_kind
@pytest.mark.parametrize("batch, steps, units, go_backwards", GRID)
def test_grid_with_gradients(floats, kind, batch, steps, units, go_backwards):
    ours, theirs = pair(
        kind, units, (batch, steps, 20), go_backwards=go_backwards, return_sequences=True
    )
    assert ours.declined is None
    x = floats(batch, steps, 20)
    np.testing.assert_allclose(ours(x), theirs(x), rtol=0, atol=3e-6)
    mine, expected = (with_gradients(layer, [x], training=True) for layer in (ours, theirs))
    for a, b in zip(mine[1:], expected[1:], strict=True):
        scale = np.max(np.abs(b))
        np.testing.assert_allclose(a / scale, b / scale, rtol=0, atol=1e-5)


@each_kind
def test_masks_states_and_directions(floats, kind):
    x = floats(4, 6, 5)
    mask = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 0, 1], [1] * 6, [0] * 6], bool)
    for go_backwards, sequences, zeros in itertools.product([False, True], repeat=3):
        ours, theirs = pair(
            kind, 11, (4, 6, 5), go_backwards=go_backwards, return_sequences=sequences,
            return_state=True, zero_output_for_mask=zeros,
        )  # fmt: skip
        states = [floats(4, 11) for _ in ours.state_size]
        for a, b in zip(
            ours(x, initial_state=states, mask=mask),
            theirs(x, initial_state=states, mask=mask),
            strict=True,
        ):
            np.testing.assert_allclose(a, b, rtol=0, atol=3e-6)


@each_kind
@pytest.mark.parametrize("merge", ["concat", "sum"])
def test_bidirectional_stacks(floats, kind, merge):
    packed, plain, options = PAIRS[kind]
    x, models = floats(3, 6, 5), []
    for layer in (packed, plain):
        inner = [layer(9, return_sequences=True, **options), layer(6, **options)]
        both = [keras.layers.Bidirectional(one, merge_mode=merge) for one in inner]
        models.append(keras.Sequential([keras.Input((None, 5)), *both]))
    models[0].set_weights(models[1].get_weights())
    np.testing.assert_allclose(models[0](x), models[1](x), rtol=0, atol=3e-6)


@each_kind
def test_stateful(floats, kind):
    ours, theirs = pair(kind, 10, (2, 4, 3), stateful=True)
    for _ in range(3):
        x = floats(2, 4, 3)
        np.testing.assert_allclose(ours(x), theirs(x), rtol=0, atol=5e-6)
    for layer in (ours, theirs):
        layer.reset_state()
    np.testing.assert_allclose(ours(x), theirs(x), rtol=0, atol=5e-6)


@each_kind
def test_dropout_draws_what_keras_draws(floats, kind):
    x = floats(4, 5, 6)
    for rates in [{"dropout": 0.4}, {"dropout": 0.2, "recurrent_dropout": 0.3}]:
        ours, theirs = pair(kind, 8, (4, 5, 6), seed=3, return_sequences=True, **rates)
        for training in [True, False]:
            a, b = ours(x, training=training), theirs(x, training=training)
            np.testing.assert_allclose(a, b, rtol=0, atol=3e-6)


@each_kind
def test_checkpoints_load(floats, kind, tmp_path):
    packed, plain, options = PAIRS[kind]
    x = floats(2, 4, 3)

    def model(layer):
        inputs = keras.Input((None, 3), name="x")
        return keras.Model(inputs, layer(7, name="rnn", **options)(inputs))

    theirs, ours = model(plain), model(packed)
    theirs.save_weights(tmp_path / "w.weights.h5")
    ours.load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_allclose(ours(x), theirs(x), rtol=0, atol=3e-6)
    ours.save(tmp_path / "m.keras")
    again = keras.models.load_model(tmp_path / "m.keras")
    assert isinstance(again.get_layer("rnn"), packed) and again.get_layer("rnn").use_packed
    np.testing.assert_array_equal(ours(x), again(x))


@each_kind
def test_switch_and_declined(floats, kind):
    x = floats(2, 4, 3)
    for options, reason in [
        ({"ours": {"use_packed": False}}, "use_packed=False"),
        ({"activation": "selu"}, "selu"),
        ({"activation": keras.activations.softplus}, "softplus"),
    ]:
        ours, theirs = pair(kind, 7, (2, 4, 3), **options)
        assert reason in ours.declined
        assert "BlockdnnRnn" not in ops_of(ours, x)
        np.testing.assert_allclose(ours(x), theirs(x), rtol=0, atol=3e-6)
    ours, theirs = pair(kind, 7, (2, 4, 3))
    assert "BlockdnnRnn" in ops_of(ours, x) and "BlockdnnRnn" not in ops_of(theirs, x)


@each_kind
def test_bad_input_is_an_error_as_in_keras(floats, kind):
    x = floats(2, 4, 3)
    for call in [
        lambda layer: layer(floats(2, 3)),
        lambda layer: layer(floats(2, 0, 3)),
        lambda layer: layer(x, mask=np.ones((2, 5), bool)),
        lambda layer: layer(x, initial_state=[floats(2, 6)] * len(layer.state_size)),
        lambda layer: layer(floats(2, 4, 5)),
    ]:
        for layer in pair(kind, 7, (2, 4, 3)):
            with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
                call(layer)


# Keras's LSTM itself fails: TensorFlow's BiasAdd refuses the empty sum of two products.
@each_kind
def test_empty_batch(kind):
    ours, theirs = pair(kind, 7, (0, 4, 3), return_sequences=True, return_state=True)
    x = np.zeros((0, 4, 3), np.float32)
    shapes = [y.shape for y in ours(x)]
    assert shapes == [(0, 4, 7), *[(0, 7) for _ in ours.state_size]]
    if kind != "LSTM":
        assert shapes == [y.shape for y in theirs(x)]
