"""Weights are packed at first use and never stale."""

import functools
import gc

import numpy as np
import pytest
import references
import tensorflow as tf
from resident import resident_bytes

import tf_blockdnn as bd
from tf_blockdnn.python.ops.products.rnn import pack_count

conv_direct = functools.partial(bd.ops.conv, padding="SAME", how="direct")  # exact


@pytest.fixture
def x(integers):
    return integers(1, 6, 7, 20)


@pytest.fixture
def draw_weights(integers):
    return lambda: integers(3, 3, 20, 40)


def expect(blocked, ours, x, weights):
    np.testing.assert_array_equal(blocked.unpack(ours, 40), references.conv(x, weights))


def test_weights_computed_in_the_graph(x, draw_weights, blocked):
    conv = tf.function(lambda w: conv_direct(blocked.pack(x), 2 * w))
    for _ in range(5):
        weights = draw_weights()
        expect(blocked, conv(weights), x, 2 * weights)


def test_weights_that_stop_changing_are_packed_once_more(x, draw_weights, blocked):
    variable = tf.Variable(draw_weights())
    conv = tf.function(lambda: conv_direct(blocked.pack(x), variable))
    for _ in range(4):
        variable.assign(draw_weights())
        expect(blocked, conv(), x, variable.numpy())
    before = pack_count()
    for _ in range(4):
        expect(blocked, conv(), x, variable.numpy())
    assert pack_count() == before + 1


def test_all_weights_in_one_variable(integers, blocked):
    """Two layers read their own parts of a flat variable, biases included."""
    x = integers(1, 5, 6, 7)
    first, bias, second = integers(3, 3, 7, 18), integers(18), integers(1, 1, 18, 33)
    flat = tf.Variable(np.concatenate([v.ravel() for v in (first, bias, second)]))

    @tf.function
    def run():
        y = conv_direct(
            blocked.pack(x),
            flat,
            weights_shape=first.shape,
            how="direct constant",
            post_ops=f"binary(add,channel,#0@{first.size})",
            args=[flat],
        )
        return conv_direct(
            y,
            flat,
            weights_shape=second.shape,
            weights_offset=first.size + bias.size,
            how="direct constant",
        )

    expected = references.conv(references.conv(x, first) + bias, second)
    for _ in range(3):
        np.testing.assert_array_equal(blocked.unpack(run(), 33), expected)


def test_constant_weights_that_were_assigned_after_all(x, draw_weights, blocked):
    variable = tf.Variable(draw_weights())
    conv = tf.function(lambda: conv_direct(blocked.pack(x), variable, how="direct constant"))
    for _ in range(3):
        expect(blocked, conv(), x, variable.numpy())
        variable.assign(draw_weights())


def test_same_attributes_other_weights(x, draw_weights, blocked):
    """Eager calls with equal attributes share one kernel."""
    weights = [tf.constant(draw_weights()) for _ in range(7)]
    for _ in range(2):
        for w in weights:
            ours = conv_direct(blocked.pack(x), w, how="direct constant")
            expect(blocked, ours, x, w.numpy())


def test_packed_weights_are_shared_and_freed(integers, blocked):
    """32 MB of weights in four kernels cost one pack, and none when they are gone."""
    weights = tf.constant(integers(3, 3, 512, 1792))
    size = 4 * weights.shape.num_elements()
    x = blocked.pack(integers(1, 2, 2, 512))

    def build():
        @tf.function
        def run(x):
            return [
                conv_direct(x, weights, how="direct constant", post_ops=f"eltwise({name})")
                for name in ("relu", "abs", "square", "relu6")
            ]

        return run

    warm = build()  # what TensorFlow itself keeps is not counted
    warm(x)
    before = resident_bytes()
    functions = [build() for _ in range(3)]
    for function in functions:
        function(x)
    assert resident_bytes() - before < size
    del functions, function, warm
    gc.collect()


@pytest.mark.parametrize("channels", [16, 32])
def test_ops_that_read_one_constant_differently(channels, floats):
    """[3, 3, C, C] of one group and [3, 3, C, C, 1] of a volume are the same five numbers."""
    values = floats(3, 3, channels, channels)
    blocks = channels // 16
    src, volume = floats(1, blocks, 9, 9, 16), floats(4, blocks, 36, 36, 16)
    weights, alone = tf.constant(values), tf.constant(values.copy())

    arguments = dict(how="direct constant", channels=channels, padding="SAME")

    def of_volume(weights):
        shape = [3, 3, channels, channels, 1]
        return bd.ops.conv_volume(volume, weights, depth=4, weights_shape=shape, **arguments)

    bd.ops.conv(src, weights, weights_shape=[3, 3, channels, channels], **arguments)
    np.testing.assert_array_equal(of_volume(weights), of_volume(alone))
