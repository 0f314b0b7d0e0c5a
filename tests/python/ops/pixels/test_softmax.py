"""Softmax against tf.nn.softmax."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


@pytest.mark.parametrize("scale", [1.0, 20.0])
@pytest.mark.parametrize("channels", [1, 8, 15, 17, 70, 1000])
def test_equals_tensorflow(floats, channels, scale):
    x = scale * floats(5, channels)
    ours = bd.ops.softmax(x)
    np.testing.assert_allclose(ours, tf.nn.softmax(x), rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(np.sum(ours, -1), 1.0, rtol=1e-6)


@pytest.mark.parametrize("channels", [3, 16, 37])
def test_infinities_and_nan(floats, channels):
    x = floats(7, channels)
    x[0, 1], x[1, 1], x[2, 1] = np.nan, np.inf, -np.inf
    x[3], x[4, :2], x[5, 0] = -np.inf, [np.inf, -np.inf], -3e38
    ours = bd.ops.softmax(x).numpy()
    assert np.isnan(ours[[0, 1, 3, 4]]).all() and ours[2, 1] == ours[5, 0] == 0
    # TensorFlow with oneDNN has such rows NaN in part; its own kernel is as the formula.
    with np.errstate(invalid="ignore"):
        e = np.exp(x - np.max(x, -1, keepdims=True))
    np.testing.assert_allclose(ours, e / np.sum(e, -1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(ours[[2, 5, 6]], tf.nn.softmax(x[[2, 5, 6]]), rtol=1e-5)


def test_shapes_known_and_unknown(floats):
    x = floats(4, 10)
    for shape in ([4, 10], [None, 10], None):
        run = tf.function(bd.ops.softmax, input_signature=[tf.TensorSpec(shape)])
        assert run.get_concrete_function().outputs[0].shape.rank == tf.TensorShape(shape).rank
        np.testing.assert_allclose(run(x), tf.nn.softmax(x), rtol=1e-5)


def test_only_memory_that_nobody_holds_is_reused(floats):
    x = tf.constant(floats(4, 10))
    before = x.numpy().copy()

    @tf.function
    def both(x):
        y = x + 1.0
        return bd.ops.softmax(y), y

    first, second = both(x)
    np.testing.assert_array_equal(x, before)
    np.testing.assert_array_equal(second, before + 1)
    np.testing.assert_allclose(first, tf.nn.softmax(before), rtol=1e-5)


def test_errors_name_the_thing():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"1 dimension or more; got \[\]"):
        bd.ops.softmax(np.float32(1))
    with pytest.raises(ValueError, match=r"1 dimension or more; got \[\]"):
        tf.function(bd.ops.softmax).get_concrete_function(tf.TensorSpec([]))
    run = tf.function(bd.ops.softmax, input_signature=[tf.TensorSpec(None)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="1 dimension or more"):
        run(1.0)
    with pytest.raises(tf.errors.InvalidArgumentError, match="float"):
        bd.ops.softmax(tf.zeros((2, 3), tf.float64))
