"""Gradients of pooling windows, against those of the plain formula in float64 and TensorFlow's."""

import numpy as np
import plain_formulas as plain
import pytest
import tensorflow as tf
from checked import check

import tf_blockdnn as bd
from tf_blockdnn.python.native import library

WINDOWS = [(2, 2, "VALID"), (3, 2, "SAME"), ((3, 2), (1, 2), "SAME"), (3, 2, [[1, 2], [0, 1]])]


@pytest.mark.each_isa
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_pool(kind, window, floats):
    ksize, strides, padding = window
    options = dict(channels=20, strides=strides, padding=padding)
    check(
        plain.blocked(lambda x: bd.ops.pool(x, kind, ksize, **options)),
        lambda x: plain.pool(x, kind, ksize, strides, padding),
        [floats(2, 7, 6, 20)],
    )


@pytest.mark.parametrize(
    "ksize, strides, padding", [(2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "SAME")]
)
def test_max_pool_ties(ksize, strides, padding):
    """Of several maxima the first takes all, as with TensorFlow."""
    rng = np.random.default_rng(4)
    x = tf.constant(rng.integers(0, 3, (2, 7, 6, 20)).astype(np.float32))

    def gradient(pool):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = pool(x)
            dy = np.random.default_rng(5).integers(-4, 5, y.shape).astype(np.float32)
            total = tf.reduce_sum(y * dy)
        return tape.gradient(total, x)

    options = dict(channels=20, strides=strides, padding=padding)
    ours = plain.blocked(lambda x: bd.ops.pool(x, "max", ksize, **options))
    expected = gradient(lambda x: tf.nn.max_pool2d(x, ksize, strides, padding))
    np.testing.assert_array_equal(gradient(ours), expected)


@pytest.mark.parametrize(
    "ddst, src, message",
    [
        ((1, 2, 3, 3, 16), (1, 2, 4, 4, 16), "ddst must have the shape of the result"),
        ((1, 2, 2, 2, 16), (1, 1, 4, 4, 16), "src"),
    ],
)
def test_pool_grad_checks_shapes(ddst, src, message):
    call = tf.function(
        lambda a, b: library().blockdnn_pool_grad(
            a, b, a, kind="max", channels=20, ksize=[2, 2], strides=[2, 2], padding="VALID"
        ),
        input_signature=[tf.TensorSpec(None), tf.TensorSpec(None)],
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call(tf.zeros(ddst), tf.zeros(src))


def test_pool_parts(floats):
    def ours(x, into):
        parts = dict(src_part=(0, 20), dst_part=(16, 32), into=into)
        return bd.ops.pool(x, "max", 2, channels=16, padding="VALID", **parts)

    check(
        plain.blocked(ours, 32),
        lambda x, into: tf.concat(
            [into[..., :16], plain.pool(x[..., :16], "max", 2, 1, "VALID")], 3
        ),
        [floats(2, 4, 4, 20), floats(2, 3, 3, 32)],
        second=False,
    )
