"""Weights of recurrent layers stored narrow: types, numbers, size, what stays float32."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

keras = tf.keras
_TYPES = {"bf16-weights": "bfloat16", "int8-weights": "int8"}
each_precision = pytest.mark.parametrize("precision", _TYPES)


def model_of(*layers, features=48):
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((None, features)), *layers])


def sequences(batch=2, steps=7, features=48):
    rng = np.random.default_rng(0)
    return tf.constant(rng.standard_normal((batch, steps, features)).astype("float32"))


def layer_types(report):
    return [layer.dtype for layer in report.precision.layers]


def off(wanted, got):
    wanted, got = np.asarray(wanted), np.asarray(got)
    return np.abs(got - wanted).max() / np.abs(wanted).max()


@each_precision
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
def test_each_kind(kind, precision):
    model = model_of(getattr(keras.layers, kind)(64, return_sequences=True))
    fast = bd.optimize(model, precision=precision, strict=True)
    assert layer_types(fast.report) == [_TYPES[precision]]
    (item,) = fast.report.converted
    assert item.op == "BlockdnnRnn" and item.details.endswith(f"weights {_TYPES[precision]}")
    x = sequences()
    assert 0 < off(model(x), fast(x)) < {"bf16-weights": 0.02, "int8-weights": 0.04}[precision]


@each_precision
def test_both_directions_and_the_head(precision, tmp_path):
    lstm = keras.layers.LSTM(96, return_sequences=True)
    model = model_of(keras.layers.Bidirectional(lstm), keras.layers.GRU(96), keras.layers.Dense(5))
    fast = bd.optimize(model, precision=precision, strict=True)
    assert layer_types(fast.report)[:3] == [_TYPES[precision]] * 3
    x = sequences()
    assert off(model(x), fast(x)) < 0.1
    fast.save(tmp_path / "model")
    np.testing.assert_allclose(bd.load(tmp_path / "model")(x)["output_0"], fast(x), atol=1e-6)
    size = sum(file.stat().st_size for file in (tmp_path / "model").rglob("*") if file.is_file())
    part = {"bf16-weights": 0.5, "int8-weights": 0.25}[precision]
    assert size < part * 4 * model.count_params() + 100_000  # the graph itself


def test_a_layer_that_loses_too_much_stays_float32():
    model = model_of(keras.layers.LSTM(64, return_sequences=True), keras.layers.GRU(64))
    data = np.asarray(sequences(16))
    fast = bd.optimize(model, precision="int8-weights", calibration=data, max_loss=1e-6)
    assert layer_types(fast.report) == ["float32"] * 2
    assert off(model(data), fast(data)) < 1e-5


@each_precision
def test_weights_of_nothing_but_zeros(precision):
    zeros = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}
    model = model_of(keras.layers.LSTM(32, bias_initializer="ones", **zeros))
    fast = bd.optimize(model, precision=precision, strict=True)
    np.testing.assert_allclose(fast(sequences()), model(sequences()), atol=1e-6)


def test_weights_that_are_no_numbers_stay_float32():
    model = model_of(keras.layers.GRU(16))
    first, *others = model.get_weights()
    first[0, 0] = np.inf
    model.set_weights([first, *others])
    fast = bd.optimize(model, precision="int8-weights")
    assert fast.report.precision.count == 0 and fast.report.count("BlockdnnRnn") == 1
