"""A convolution of a source times a factor for each sample and channel."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


@pytest.mark.parametrize("k,groups", [(1, 1), (3, 1), (3, 2), (3, 20)])
@pytest.mark.parametrize("form", ["nc", "nhwc", "nChw16c"])
def test_against_a_separate_product(k, groups, form, integers, blocked):
    x, scale, weights = integers(3, 6, 5, 20), integers(3, 1, 1, 20), integers(k, k, 20, 40)
    weights = weights[:, :, : 20 // groups]
    given = {"nc": scale[:, 0, 0], "nhwc": scale, "nChw16c": blocked.pack(scale)}[form]
    added = integers(3, 6, 5, 40)
    ours = bd.ops.conv(
        blocked.pack(x),
        weights,
        groups=groups,
        src_scale=given,
        post_ops="sum(#0);eltwise(relu)",
        args=[blocked.pack(added)],
    )
    expected = tf.nn.relu(tf.nn.conv2d(x * scale, weights, 1, "SAME") + added)
    np.testing.assert_array_equal(blocked.unpack(ours, 40), expected)


def call(scale, layout="nChw16c", src=(2, 2, 3, 4, 16)):
    return bd.ops.conv(
        tf.zeros(src), tf.zeros((1, 1, 20, 40)), src_scale=tf.zeros(scale), src_layout=layout
    )


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: call((3, 20)), r"src_scale must be \[2,2,1,1,16\]; got \[3,2,1,1,16\]|reshape"),
        (lambda: call((1, 2, 1, 1, 16)), r"src_scale must be \[2,2,1,1,16\]; got \[1,2,1,1,16\]"),
        (lambda: call((2, 21)), r"the operand must have \[N, 20\]; got \[2, 21\]"),
        (
            lambda: call((2, 20), "nhwc", (2, 3, 4, 20)),
            r"src_scale needs src_layout nChw16c; multiply a plain src before",
        ),
    ],
)
def test_errors(wrong, words):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=words):
        wrong()
    with tf.Graph().as_default(), pytest.raises(ValueError, match=words):
        wrong()
