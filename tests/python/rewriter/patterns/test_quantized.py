"""Keras 3's quantize("int8"): Dense and EinsumDense layers become one product each."""

import keras
import numpy as np
import pytest

import tf_blockdnn as bd


def _quantized(*layers, shape):
    keras.utils.set_random_seed(3)
    inputs = keras.Input(shape)
    y = inputs
    for layer in layers:
        y = layer(y)
    model = keras.Model(inputs, y)
    for weight in model.trainable_variables:  # biases, too
        weight.assign(0.3 * keras.random.normal(weight.shape))
    model.quantize("int8")
    return model


MODELS = {
    "dense": lambda: _quantized(
        keras.layers.Dense(48, "relu"), keras.layers.Dense(10), shape=(33,)
    ),
    "dense of tokens": lambda: _quantized(
        keras.layers.Dense(40, "gelu"), keras.layers.Dense(24, use_bias=False), shape=(5, 24)
    ),
    "einsum": lambda: _quantized(
        keras.layers.EinsumDense("abc,cde->abde", output_shape=(None, 2, 8), bias_axes="de"),
        keras.layers.EinsumDense("abcd,cde->abe", output_shape=(None, 16), bias_axes="e"),
        shape=(4, 16),
    ),
}


def _products(fast):
    return [item for item in fast.report.converted if item.op == "BlockdnnInnerProduct"]


@pytest.mark.parametrize("name", MODELS)
def test_each_layer_is_one_product(floats, name):
    model = MODELS[name]()
    x = floats(7, *model.input_shape[1:])
    fast = bd.optimize(model)
    assert len(_products(fast)) == 2
    assert not fast.report.declined
    y, expected = np.asarray(fast(x)), np.asarray(model(x))
    # Sums are the same integers but where another rounding of the layer before moves one by a step.
    step = np.abs(expected).max() / 127
    assert np.abs(y - expected).max() <= step
    assert np.mean(np.abs(y - expected) <= 1e-5 * np.abs(expected).max()) > 0.9


def test_one_layer_has_the_same_integers(floats):
    layer = keras.layers.Dense(50, use_bias=False)
    model = _quantized(layer, shape=(64,))
    x = floats(40, 64)
    x[3] = 0
    expected = np.asarray(model(x))
    np.testing.assert_allclose(bd.optimize(model)(x), expected, rtol=4e-7)


def test_activation_and_bias_are_fused():
    fast = bd.optimize(MODELS["dense"]())
    assert [item.details for item in _products(fast)] == [
        "33->48 int8, rows quantized; binary(add,channel); eltwise(relu)",
        "48->10 int8, rows quantized; binary(add,channel)",
    ]


def test_saved_and_loaded(tmp_path, floats):
    model, x = MODELS["dense of tokens"](), floats(3, 5, 24)
    fast = bd.optimize(model)
    fast.save(str(tmp_path / "saved"))
    loaded = bd.load(str(tmp_path / "saved"))
    (y,) = loaded(x).values()
    np.testing.assert_array_equal(y, np.asarray(fast(x)))
