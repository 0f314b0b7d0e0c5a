"""Squeeze-and-excitation blocks in all spellings become one op; others stay as they were."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts
from graph_nodes import all_nodes

from tf_blockdnn.python.rewriter.verify import difference
from tf_blockdnn.python.targets import optimize

_SAME = {"strides": 1, "padding": "SAME"}
L = keras.layers


def convolutions(x, channels, squeezed, act="swish", gate="sigmoid"):
    s = L.GlobalAveragePooling2D(keepdims=True)(x)
    s = L.Conv2D(squeezed, 1, activation=act)(s)
    return L.Conv2D(channels, 1, activation=gate)(s)


def reshaped_convolutions(x, channels, squeezed):
    s = L.Reshape((1, 1, channels))(L.GlobalAveragePooling2D()(x))
    s = L.Conv2D(squeezed, 1, activation="relu", padding="same", use_bias=False)(s)
    return L.Conv2D(channels, 1, activation="sigmoid", padding="same")(s)


def normalised_convolutions(x, channels, squeezed):
    s = L.GlobalAveragePooling2D(keepdims=True)(x)
    s = L.BatchNormalization(gamma_initializer="ones")(L.Conv2D(squeezed, 1, use_bias=False)(s))
    return L.Conv2D(channels, 1, activation="hard_sigmoid")(L.Activation("relu")(s))


def dense(x, channels, squeezed):
    s = L.Dense(squeezed, activation="swish")(L.GlobalAveragePooling2D()(x))
    return L.Reshape((1, 1, channels))(L.Dense(channels, activation="sigmoid")(s))


def dense_of_rank_4(x, channels, squeezed):
    s = L.Reshape((1, 1, channels))(L.GlobalAveragePooling2D()(x))
    s = L.Dense(squeezed, activation="relu", use_bias=False)(s)
    return L.Dense(channels, activation="sigmoid")(s)


def model_of(scales, channels=24, squeezed=6, size=(None, None)):
    keras.utils.set_random_seed(3)
    image = keras.Input((*size, 16))
    x = L.DepthwiseConv2D(3, padding="same")(L.Conv2D(channels, 1)(image))
    x = L.Multiply()([x, scales(x, channels, squeezed)])
    model = keras.Model(image, L.Conv2D(20, 1)(x))
    for weight in model.weights:
        if len(weight.shape) == 1:
            weight.assign(np.random.default_rng(1).uniform(0.5, 1.5, weight.shape))
    return model


def check(model, fast, *images, tolerance=1e-5):
    for x in images:
        assert difference(model(x).numpy(), fast(x).numpy()) <= tolerance


@pytest.mark.parametrize(
    "scales", [convolutions, reshaped_convolutions, normalised_convolutions, dense, dense_of_rank_4]
)
@pytest.mark.parametrize("size", [(None, None), (7, 6)])
def test_one_op(scales, size, image):
    model = model_of(scales, size=size)
    fast = optimize(model)
    assert fast.report.count("BlockdnnSqueezeExcite") == 1
    left = {node.op for node in all_nodes(fast.concrete)}
    assert not left & {"Mean", "MatMul", "Conv2D", "Reshape", "BlockdnnGlobalPool", "Mul"}
    check(model, fast, image(1, 7, 6, 16), image(3, 7, 6, 16))


def test_the_report_names_it():
    fast = optimize(model_of(convolutions))
    (item,) = [c for c in fast.report.converted if c.op == "BlockdnnSqueezeExcite"]
    assert (
        item.details
        == "24->6->24 times src, writes nChw16c; eltwise(swish,alpha=1); eltwise(logistic)"
    )


@pytest.fixture
def gated(weights):
    """gated(change) -> a function of one block; change(stage, tensor) may interfere."""
    first, last = weights(3, 3, 16, 32), weights(1, 1, 32, 24)
    reduce, expand = weights(1, 1, 32, 8), weights(1, 1, 8, 32)

    def make(change=lambda stage, tensor: tensor, also=lambda *tensors: ()):
        def function(x):
            y = tf.nn.relu(tf.nn.conv2d(x, first, **_SAME))
            mean = change("mean", tf.reduce_mean(y, [1, 2], keepdims=True))
            hidden = change("hidden", tf.nn.relu(tf.nn.conv2d(mean, reduce, **_SAME)))
            scales = change("scales", tf.sigmoid(tf.nn.conv2d(hidden, expand, **_SAME)))
            return tf.nn.conv2d(y * scales, last, **_SAME), *also(mean, hidden, scales)

        return function

    return make


@converts([None, 6, 5, 16], some={"SqueezeExcite": 1})
def test_scales_may_be_read_elsewhere(x, gated):
    return gated(also=lambda mean, hidden, scales: (scales + 1.0,))(x)


@pytest.mark.parametrize("which", [0, 1])
@converts([None, 6, 5, 16], some={"SqueezeExcite": 0, "GlobalPool": 1})
def test_inner_values_that_are_read_elsewhere_stay(x, gated, which):
    return gated(also=lambda *tensors: (tensors[which],))(x)


@pytest.mark.parametrize(
    "stage, change",
    [
        ("mean", lambda t: t + tf.reduce_max(t)),
        ("hidden", lambda t: t / (1.0 + tf.reduce_sum(t))),
        ("mean", lambda t: tf.transpose(tf.reshape(t, [4, 8, 1, 4]), [3, 1, 2, 0])),
    ],
)
@converts([4, 6, 5, 16], some={"SqueezeExcite": 0})
def test_work_in_between_stays(x, gated, stage, change):
    def at(which, tensor):
        if which != stage:
            return tensor
        changed = change(tensor)
        return tf.reshape(changed, [4, 1, 1, tensor.shape[-1]])

    return gated(at)(x)


@converts([None, 6, 5, 16], some={"InnerProduct": 2, "SqueezeExcite": 0})
def test_a_head_is_none(x, weights, conv):
    """Mean and two products that make something else than scales of the same channels."""
    y = tf.nn.relu(conv(x, 32))
    return tf.nn.relu(tf.reduce_mean(y, [1, 2]) @ weights(32, 8)) @ weights(8, 10)


@converts([None, 6, 5, 32], some={"SqueezeExcite": 0})
def test_a_plain_source_stays(x, conv):
    mean = tf.reduce_mean(x, [1, 2], keepdims=True)
    hidden = tf.nn.relu(conv(mean, 8, 1))
    return x * tf.sigmoid(conv(hidden, 32, 1))


def count(result, words):
    return len([c for c in result.report.converted if words in c.details])


@pytest.mark.parametrize("shape", [[None, 32, 24, 16], [2, 7, 7, 16], [None, None, None, 16]])
def test_the_product_goes_into_the_op_that_makes_the_scales(rewrite, image, gated, shape):
    result = rewrite(gated(), shape)
    assert "Eltwise" not in result.blockdnn
    assert count(result, "32->8->32 times src, writes nChw16c") == 1
    result.assert_same(image(2, *(size or 9 for size in shape[1:3]), 16))


@pytest.mark.parametrize("which", ["mean", "scales", "product"])
def test_the_product_goes_into_the_scales_that_it_alone_reads(rewrite, weights, which):
    """The source may be that of others, and so may the product."""
    first, last, reduce, expand = (weights(3, 3, 16, 32), weights(1, 1, 32, 24)) + (
        weights(1, 1, 32, 8),
        weights(1, 1, 8, 32),
    )

    def function(x):
        y = tf.nn.relu(tf.nn.conv2d(x, first, **_SAME))
        mean = tf.reduce_mean(y, [1, 2], keepdims=True)
        hidden = tf.nn.relu(tf.nn.conv2d(mean, reduce, **_SAME))
        scales = tf.sigmoid(tf.nn.conv2d(hidden, expand, **_SAME))
        product = y * scales
        read = {"mean": y, "scales": scales, "product": product}[which]
        return tf.nn.conv2d(product, last, **_SAME), tf.nn.conv2d(read, last, **_SAME)

    result = rewrite(function, [None, 6, 5, 16])
    assert count(result, "times src") == (which != "scales")
    assert result.blockdnn.get("Eltwise", 0) == (which == "scales")


def test_scales_of_another_tensor_are_made(rewrite, conv):
    def function(x):
        y = tf.nn.relu(conv(x, 32))
        z = conv(x, 32)
        mean = tf.reduce_mean(y, [1, 2], keepdims=True)
        hidden = tf.nn.relu(conv(mean, 8, 1))
        return conv(z * tf.sigmoid(conv(hidden, 32, 1)), 24, 1)

    result = rewrite(function, [2, 6, 5, 16])
    assert result.blockdnn["SqueezeExcite"] == 1 and count(result, "times src") == 0


def test_a_product_with_two_readers_is_made(rewrite, conv):
    def function(x, scales):
        y = tf.nn.relu(conv(x, 32)) * scales
        return conv(y, 24, 1), conv(tf.nn.relu(y), 24, 1)

    result = rewrite(function, [2, 32, 32, 16], [2, 1, 1, 32])
    assert count(result, "times src") == 0
