"""Channel shuffles between convolutions stay blocked; what only looks like one stays as it was."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts

from tf_blockdnn.python.targets import optimize

_SAME = {"strides": 1, "padding": "SAME"}


def shuffle(x, groups, order=(0, 1, 2, 4, 3), between=None):
    """ShuffleNet's, of any image size."""
    shape, channels = tf.shape(x), x.shape[-1]
    split = tf.concat([shape[:3], [groups, channels // groups]], 0)
    x = tf.transpose(tf.reshape(x, split), order)
    if between is not None:
        x = between(x)
    return tf.reshape(x, shape)


@pytest.fixture
def unit(weights):
    """unit(after) -> a function: grouped 1x1, relu, after(x), depthwise 3x3, 1x1."""
    grouped, depthwise, last = weights(1, 1, 8, 24), weights(3, 3, 24, 1), weights(1, 1, 24, 32)

    def make(after):
        def function(x):
            x = tf.nn.relu(tf.nn.conv2d(x, grouped, **_SAME))
            x = tf.nn.depthwise_conv2d(after(x), depthwise, [1, 1, 1, 1], "SAME")
            return tf.nn.conv2d(x, last, **_SAME)

        return function

    return make


@pytest.mark.parametrize("groups", [2, 3, 8, 12])
@pytest.mark.parametrize("shape", [[None, None, None, 24], [None, 7, 6, 24], [2, 7, 6, 24]])
def test_a_shuffle_is_one_op(rewrite, image, unit, groups, shape):
    result = rewrite(unit(lambda x: shuffle(x, groups)), shape)
    assert result.blockdnn == {"Conv": 3, "Reorder": 1, "Shuffle": 1}
    assert not {"Transpose", "Reshape"} & set(result.ops)
    (detail,) = [c.details for c in result.report.converted if c.op == "BlockdnnShuffle"]
    assert detail == f"24 channels, group {24 // groups}"
    result.assert_same(image(2, 7, 6, 24))


@converts([None, 5, 5, 24], {"Conv": 3, "Pool": 1, "Reorder": 3, "Shuffle": 1})
def test_its_result_may_be_read_plain_too(x, unit):
    before = tf.nn.max_pool2d(unit(lambda x: x)(x), 3, 1, "SAME")
    y = shuffle(before, 4)
    return before, y, tf.reduce_sum(tf.math.bessel_i0e(y), -1)


@converts([None, 5, 5, 24], {"Conv": 1, "Reorder": 2}, ops={"Transpose": 1})
def test_a_shuffle_of_a_plain_tensor_stays(x, conv):
    return conv(shuffle(x, 3), 24)


@pytest.mark.parametrize(
    "after",
    [
        lambda x: shuffle(x, 3, order=(0, 2, 1, 4, 3)),
        lambda x: shuffle(x, 3, between=tf.math.bessel_i0e),
        lambda x: tf.reshape(
            tf.transpose(tf.reshape(x, [-1, 5, 10, 3, 4]), [0, 1, 2, 4, 3]), [-1, 5, 5, 24]
        ),
        lambda x: tf.reshape(
            tf.transpose(tf.reshape(x, [-1, 5, 5, 24, 1]), [0, 1, 2, 3, 4]), [-1, 5, 5, 24]
        ),
    ],
    ids=["width and height", "work inside", "pixels", "no transposition"],
)
@converts([None, 5, 5, 24], some={"Shuffle": 0})
def test_what_only_looks_like_one(x, unit, after):
    return unit(after)(x)


def test_keras_shufflenet_unit():
    """Two units of ShuffleNet v1 (g = 3), with their batch norms and shortcut."""

    def unit(x):
        y = keras.layers.Conv2D(60, 1, groups=3, use_bias=False)(x)
        y = keras.layers.ReLU()(keras.layers.BatchNormalization()(y))
        y = keras.layers.Reshape((14, 14, 3, 20))(y)
        y = keras.layers.Reshape((14, 14, 60))(keras.layers.Permute((1, 2, 4, 3))(y))
        y = keras.layers.DepthwiseConv2D(3, padding="same", use_bias=False)(y)
        y = keras.layers.BatchNormalization()(y)
        y = keras.layers.Conv2D(240, 1, groups=3, use_bias=False)(y)
        y = keras.layers.BatchNormalization()(y)
        return keras.layers.ReLU()(keras.layers.Add()([x, y]))

    image = keras.Input((14, 14, 3))
    x = keras.layers.Conv2D(240, 3, padding="same", activation="relu")(image)
    model = keras.Model(image, unit(unit(x)))
    fast = optimize(model)
    kinds = [item.op for item in fast.report.converted]
    assert kinds.count("BlockdnnShuffle") == 2 and kinds.count("BlockdnnConv") == 7
    assert len(fast.report.reorders) == 1
    x = np.random.default_rng(3).standard_normal((2, 14, 14, 3), np.float32)
    np.testing.assert_allclose(fast(x), model(x), atol=1e-5)


@pytest.mark.parametrize("groups", [2, 3, 8])
@converts([None, 7, 6, 24], {"Conv": 3, "Reorder": 1, "Shuffle": 1}, ops={"GatherV2": 0})
def test_a_gather_of_channels_in_that_order_is_one_op(x, unit, groups):
    order = np.arange(24).reshape(groups, -1).T.reshape(-1)
    return unit(lambda x: tf.gather(x, order, axis=-1))(x)
