"""Every bad argument is refused with one line that names it, built and run."""

import numpy as np
import pytest
import tensorflow as tf
from error_cases import CASES, OF_KERNELS
from error_cases.calls import blocked_zeros, conv

import tf_blockdnn as bd

ERRORS = (ValueError, tf.errors.InvalidArgumentError)


@pytest.mark.parametrize("message, call", CASES + OF_KERNELS)
def test_while_it_runs(message, call):
    with pytest.raises(ERRORS, match=message):
        call()


@pytest.mark.parametrize("message, call", CASES)
def test_while_a_graph_is_built(message, call):
    with tf.Graph().as_default(), pytest.raises(ERRORS, match=message):
        call()


def test_shapes_unknown_until_it_runs():
    """Shape functions cannot see the mistake: the kernel must."""

    @tf.function(input_signature=[tf.TensorSpec(None), tf.TensorSpec(None), tf.TensorSpec(None)])
    def conv(src, weights, bias):
        return bd.ops.conv(
            src,
            weights,
            weights_shape=[3, 3, 20, 33],
            post_ops="binary(add,channel,#0)",
            args=[bias],
            padding="SAME",
        )

    good = [blocked_zeros(), tf.zeros((3, 3, 20, 33)), tf.zeros(33)]
    assert conv(*good).shape == (1, 3, 6, 7, 16)
    for i, bad, message in [
        (0, tf.zeros((1, 2, 6, 7)), "src must be nChw16c"),
        (0, tf.zeros((1, 1, 6, 7, 16)), "src must be nChw16c"),
        (1, tf.zeros((3, 3, 20, 32)), "weights have 5760 elements"),
        (2, tf.zeros(()), "the operand has 1 elements"),
    ]:
        inputs = list(good)
        inputs[i] = bad
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            conv(*inputs)
    assert conv(*good).shape == (1, 3, 6, 7, 16)


def test_a_shape_that_no_tensor_has_tells_nothing():
    """Shape functions of other ops may promise one; TensorFlow's own classes abort on it."""

    @tf.function
    def promised():
        x = tf.zeros([2**30, 2**30, 2**30, 16])
        return bd.ops.inner_product(x, tf.zeros((16, 4)))

    assert promised.get_concrete_function().output_shapes.rank is None


def test_products_larger_than_any_memory():
    @tf.function(input_signature=[tf.TensorSpec([2**20, 2**20, 16])])
    def product(x):
        return bd.ops.inner_product(x, tf.zeros((16, 2**20)))

    with pytest.raises(ValueError, match=r"\[1048576,1048576,1048576\] is larger than any memory"):
        product.get_concrete_function()


def test_other_types_are_refused():
    with pytest.raises((TypeError, *ERRORS)):
        conv(src=tf.zeros((1, 2, 6, 7, 16), tf.float64), weights=np.zeros((3, 3, 20, 33)))
