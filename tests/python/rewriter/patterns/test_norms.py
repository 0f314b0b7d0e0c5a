"""Normalisation over the channels: what the formulas' own test cannot say of it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras


def rms(x, w, inverse=tf.math.rsqrt):
    return x * inverse(tf.reduce_mean(tf.square(x), -1, keepdims=True) + 1e-5) * w


@pytest.mark.parametrize(
    "inverse", [lambda x: tf.pow(x, -0.5), lambda x: 1.0 / tf.sqrt(x)], ids=["power", "root"]
)
def test_other_passes_leave_a_formula_one(rewrite, weights, inverse):
    result = rewrite(lambda x: tf.math.bessel_i0e(rms(x, weights(24), inverse)), [None, None, 24])
    assert result.blockdnn == {"LayerNorm": 1}
    assert not {"Rsqrt", "Mean", "Square", "Mul", "Sqrt"} & set(result.ops)
    (node,) = [n for n in result.nodes if n.op == "BlockdnnLayerNorm"]
    assert not node.attr["centered"].b and node.attr["epsilon"].f == pytest.approx(1e-5)


@pytest.mark.parametrize(
    "layer, count",
    [
        (keras.layers.RMSNormalization(epsilon=1e-5), 1),
        (keras.layers.LayerNormalization(rms_scaling=True), 0),  # divides by the variance
        (keras.layers.LayerNormalization(epsilon=1e-5), 1),
        (keras.layers.LayerNormalization(scale=False), 1),
        (keras.layers.LayerNormalization(center=False), 1),
    ],
)
@pytest.mark.parametrize("spec", [[None, 24], [None, 2, None, 5, 24]], ids=str)
def test_layers_of_keras(rewrite, layer, count, spec):
    layer = type(layer).from_config(layer.get_config())
    layer.build([None] * (len(spec) - 1) + [24])
    layer.set_weights([np.linspace(0.5, 2, 24) for _ in layer.weights])
    result = rewrite(lambda x: tf.math.bessel_i0e(layer(x)), spec)
    assert result.blockdnn == ({"LayerNorm": 1} if count else {})


@pytest.mark.parametrize("options", [{}, {"scale": False}, {"center": False}], ids=str)
@pytest.mark.parametrize("spec", [[None, 24], [None, None, 24], [None, 2, None, 5, 24]], ids=str)
def test_layers_of_keras_2(rewrite, options, spec):
    """It normalises one image whose channels are the rows, as a batch in training."""
    layer = tf_keras.layers.LayerNormalization(**options)
    layer.build([None] * (len(spec) - 1) + [24])
    layer.set_weights([np.linspace(0.5, 2, 24) for _ in layer.weights])
    result = rewrite(lambda x: tf.math.bessel_i0e(layer(x)), spec)
    assert result.blockdnn == {"LayerNorm": 1}
    assert result.ops["FusedBatchNormV3"] == 0


@pytest.mark.parametrize("axis, rank", [(1, 3), ([1, 2], 4)], ids=str)
def test_layers_of_keras_2_over_other_axes(rewrite, axis, rank):
    layer = tf_keras.layers.LayerNormalization(axis=axis)
    shape = [None, 6, 5, 24][:rank]
    layer.build(shape)
    assert rewrite(lambda x: tf.math.bessel_i0e(layer(x)), shape).blockdnn == {}


def test_weights_that_change_are_multiplied_behind_it(rewrite):
    w = tf.Variable(np.linspace(0.5, 2, 24, dtype="f"))

    def function(x):
        y = rms(x, w)
        w.assign(w * 1.0)
        return y

    result = rewrite(function, [2, 7, 24])
    assert result.blockdnn == {"LayerNorm": 1} and "Mul" in result.ops
