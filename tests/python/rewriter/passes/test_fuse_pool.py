"""Convolutions whose Winograd tiles hold the windows of the max pooling behind them."""

import numpy as np
import pytest
import tensorflow as tf
from converts import converts

import tf_blockdnn as bd


def layer(weights, *, ic=64, oc=64, kernel=3, activation=tf.nn.relu, pooled=True, **pool):
    """Convolution, bias, activation and pooling, as in VGG."""
    filters, bias = weights(kernel, kernel, ic, oc), weights(oc)
    window = dict(ksize=2, strides=2, padding="VALID") | pool

    def function(x):
        y = activation(tf.nn.bias_add(tf.nn.conv2d(x, filters, 1, "SAME"), bias))
        return tf.nn.max_pool2d(y, **window) if pooled else y

    return function


@pytest.mark.parametrize("size", [(28, 28), (27, 40)])
@pytest.mark.parametrize("activation", [tf.nn.relu, tf.nn.relu6, tf.identity])
def test_a_layer_becomes_one_op(size, activation, rewrite, weights, image):
    result = rewrite(layer(weights, activation=activation), [None, *size, 64])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    (node,) = [n for n in result.nodes if n.op == "BlockdnnConv"]
    assert list(node.attr["pool"].list.i) == [2, 2]
    for batch in (1, 3):
        result.assert_same(image(batch, *size, 64))


def test_the_bits_are_those_of_two_ops(rewrite, weights, image):
    """The same weights, once with a fetched result between the two."""
    conv, x = layer(weights, pooled=False), image(1, 28, 28, 64)
    pool = lambda y: tf.nn.max_pool2d(y, 2, 2, "VALID")  # noqa: E731
    single = rewrite(lambda x: pool(conv(x)), [1, 28, 28, 64])
    two = rewrite(lambda x: [pool(y := conv(x)), y], [1, 28, 28, 64])
    assert single.blockdnn == {"Conv": 1, "Reorder": 2}
    assert two.blockdnn == {"Conv": 1, "Pool": 1, "Reorder": 3}
    np.testing.assert_array_equal(single.concrete(x), two.concrete(x)[0])


def test_the_report_names_it(rewrite, weights):
    report = rewrite(layer(weights), [None, 28, 28, 64]).report
    (item,) = report.converted
    assert item.op == "BlockdnnConv" and item.shape == (None, 14, 14, 64)
    assert item.details.endswith("eltwise(relu); max [2, 2]")
    assert item.chosen.startswith("winograd") and item.chosen.endswith(" at batch 1")


@converts([1, 32, 32, 64], {"Conv": 2, "Reorder": 2})
def test_layers_follow_each_other(x, weights):
    first, second = layer(weights, oc=96), layer(weights, ic=96)
    return second(first(x))


@converts([1, 28, 28, 64], {"Conv": 1, "Reorder": 2})
def test_same_padding_of_even_sizes_is_none(x, weights):
    return layer(weights, padding="SAME")(x)


@pytest.mark.parametrize(
    "changes",
    [
        dict(ksize=3),
        dict(strides=1),
        dict(padding="SAME"),  # of an odd size
        dict(activation=tf.nn.swish),
        dict(kernel=1),
        dict(kernel=2),
    ],
    ids=["window", "strides", "padding", "swish", "kernel 1", "kernel 2"],
)
def test_what_tiles_do_not_hold_stays_two_ops(changes, rewrite, weights):
    result = rewrite(layer(weights, **changes), [1, 29, 30, 64])
    reorders = 1 if changes.get("kernel") == 1 else 2  # single pixels are read plain
    assert result.blockdnn == {"Conv": 1, "Pool": 1, "Reorder": reorders}


@converts([1, 28, 28, 64], some={"Pool": 1})
def test_average_pooling_stays(x, weights):
    conv = layer(weights, pooled=False)
    return tf.nn.avg_pool2d(conv(x), 2, 2, "VALID")


@converts([1, 28, 28, 64], some={"Pool": 1})
def test_a_residual_stays(x, weights):
    conv = layer(weights, activation=tf.identity, pooled=False)
    pool = lambda y: tf.nn.max_pool2d(y, 2, 2, "VALID")  # noqa: E731
    return pool(tf.nn.relu(conv(x) + x))


@converts([1, 28, 28, 64], some={"Pool": 1})
def test_another_reader_keeps_the_whole_result(x, weights):
    conv = layer(weights, pooled=False)
    y = conv(x)
    return tf.nn.max_pool2d(y, 2, 2, "VALID"), tf.reduce_mean(y, [1, 2])


@converts([None, None, None, 64], some={"Pool": 1})
def test_open_sizes_stay_two_ops(x, weights):
    return layer(weights)(x)


def model():
    """Two layers as Keras makes them, 0.3 MB of weights."""
    keras = tf.keras
    return keras.Sequential(
        [
            keras.Input((32, 32, 32)),
            keras.layers.Conv2D(64, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Conv2D(96, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(),
        ]
    )


@pytest.mark.parametrize(
    "options, pools",
    [({}, 0), (dict(memory="low"), 2), (dict(algorithm="direct"), 2), (dict(memory="normal"), 0)],
    ids=str,
)
def test_options_of_optimize(options, pools, image):
    original = model()
    fast = bd.optimize(original, options=bd.Options(**options))
    counts = fast.report.counts()
    assert counts["BlockdnnConv"] == 2 and counts.get("BlockdnnPool", 0) == pools
    x = image(2, 32, 32, 32)
    np.testing.assert_allclose(fast(x), original(x), rtol=1e-4, atol=1e-4)
