"""Affine maps before a first convolution go into it, or become one op on the plain image."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts

_MEAN = np.array([0.485, 0.456, 0.406], np.float32).reshape(1, 1, 1, 3)
_STD = np.array([0.229, 0.224, 0.225], np.float32).reshape(1, 1, 1, 3)


@pytest.fixture
def conv(weights):
    kernel = weights(3, 3, 3, 32)
    return lambda x, pad="SAME": tf.nn.conv2d(x, kernel, 2, pad)


def test_rescaling_and_normalization_are_one_op(rewrite, conv):
    result = rewrite(lambda x: conv((x * (1 / 255) + 0.1 - _MEAN) / _STD), [None, 17, 17, 3])
    assert result.blockdnn == {"Conv": 1, "Eltwise": 1}
    assert not {"Mul", "AddV2", "Sub", "RealDiv"} & set(result.ops)
    assert "binary(mul,channel);binary(add,channel)" in result.post_ops("BlockdnnEltwise")


@pytest.mark.parametrize(
    "prepare, chain",
    [
        (lambda x: x / 127.5 - 1, "eltwise(linear,alpha=0.00784313725,beta=-1)"),
        (lambda x: x - _MEAN, "binary(add,channel)"),
        (lambda x: 1 - x, "eltwise(linear,alpha=-1,beta=1)"),
    ],
)
def test_each_map_alone(rewrite, conv, prepare, chain):
    result = rewrite(lambda x: conv(prepare(x)), [2, 9, 9, 3])
    assert result.blockdnn["Eltwise"] == 1
    assert chain in result.post_ops("BlockdnnEltwise")


@pytest.mark.parametrize(
    "prepare, pad",
    [
        (lambda x: x / 255, "SAME"),
        (lambda x: x * _STD, "SAME"),
        (lambda x: (x * _STD + 0.0) / 2, "SAME"),
        (lambda x: x / 127.5 - 1, "VALID"),
        (lambda x: (x * (1 / 255) + 0.1 - _MEAN) / _STD, "VALID"),
        (lambda x: 1 - x, "VALID"),
    ],
)
@converts([2, 17, 17, 3], {"Conv": 1}, ops={"AddV2": 0, "Mul": 0, "RealDiv": 0, "Sub": 0})
def test_maps_go_into_the_weights(x, weights, prepare, pad):
    return tf.nn.conv2d(prepare(x), weights(3, 3, 3, 32), 2, pad) * weights(32) + weights(32)


def test_a_loaded_model_has_its_statistics_as_captures(result_of, tmp_path, image):
    """What Keras has as constants, a SavedModel's function gets as captured tensors."""
    inputs = keras.Input([17, 17, 3])
    x = keras.layers.Rescaling(1 / 255)(inputs)
    x = keras.layers.Normalization(mean=[0.0, 0, 0], variance=[0.05, 0.06, 0.07])(x)
    model = keras.Model(inputs, keras.layers.Conv2D(32, 3, padding="same")(x))
    module = tf.Module()
    module.weights = model.variables
    spec = tf.TensorSpec([None, 17, 17, 3])
    score = tf.function(lambda x: model(x), input_signature=[spec])
    tf.saved_model.save(module, str(tmp_path), signatures=score)

    loaded = tf.saved_model.load(str(tmp_path))  # owns the variables
    signature = loaded.signatures["serving_default"]
    assert any(tensor.dtype == tf.float32 for tensor in signature.captured_inputs)
    result = result_of(signature)
    assert result.blockdnn == {"Conv": 1}
    assert not {"Mul", "AddV2", "Sub", "RealDiv"} & set(result.ops)
    result.assert_same(image(2, 17, 17, 3))


def test_other_readers_keep_theirs(rewrite, conv):
    def function(x):
        scaled = x * 0.5
        return conv(scaled - _MEAN), tf.reduce_max(scaled, [1, 2])

    result = rewrite(function, [1, 9, 9, 3])
    assert result.ops["Mul"] == 1
    assert "binary(add,channel)" in result.post_ops("BlockdnnEltwise")


@converts([1, 9, 9, 3], some={"Eltwise": 0})
def test_a_fetched_map_stays(x, conv):
    scaled = x - _MEAN
    return conv(scaled), scaled


@converts([1, 9, 9, 3], some={"Eltwise": 0})
def test_a_map_that_varies_by_pixel_stays(x, conv):
    ramp = np.linspace(0, 1, 9, dtype=np.float32).reshape(1, 9, 1, 1)
    return conv(x * ramp)
