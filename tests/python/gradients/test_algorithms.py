"""Gradients are made of ops with the algorithm of the op that they belong to."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

ops = bd.ops
BLOCKS, IMAGE = tf.ones([2, 2, 12, 12, 16]), tf.ones([2, 9, 9, 24])


def conv(**options):
    return functools.partial(ops.conv, padding="SAME", **options)


def pair(x, w, how):
    return ops.conv_depthwise(x, w, tf.ones([3, 3, 48, 1]), padding="SAME", how=how)


CASES = {
    "conv": (conv(), BLOCKS, (3, 3, 32, 32)),
    "plain": (conv(src_layout="nhwc"), IMAGE, (3, 3, 24, 32)),
    "strided": (conv(strides=2), BLOCKS, (3, 3, 32, 32)),
    "groups": (conv(groups=2), BLOCKS, (3, 3, 16, 32)),
    "grouped and strided": (conv(groups=2, strides=2), BLOCKS, (3, 3, 16, 32)),
    "dilated": (conv(strides=2, dilations=2), BLOCKS, (3, 3, 32, 32)),
    "chain": (conv(post_ops="eltwise(swish)"), BLOCKS, (3, 3, 32, 32)),
    "transposed": (functools.partial(ops.conv_transpose, strides=2), BLOCKS, (4, 4, 32, 32)),
    "volume": (
        functools.partial(ops.conv_volume, depth=2, padding="SAME"),
        BLOCKS,
        (3, 3, 3, 32, 32),
    ),
    "pair": (pair, BLOCKS, (1, 1, 32, 48)),
}


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_inherited(name, second):
    """Every op that a gradient is made of runs as the op that it belongs to: not by default."""
    function, src, shape = CASES[name]

    @tf.function
    def gradients(*xs):
        first = tf.gradients(function(*xs, how="direct"), xs)
        return tf.gradients(first, xs) if second else first

    graph = gradients.get_concrete_function(src, tf.ones(shape)).graph
    named = [op for op in graph.get_operations() if "algorithm" in op.node_def.attr]
    assert len(named) > 1
    assert {op.get_attr("algorithm").decode() for op in named} == {"direct"}


def test_bits_of_the_source_gradient():
    """Its weights come anew, twice, and more often, for which "auto" chooses differently."""
    rng = np.random.default_rng(1)
    src, weights = (
        tf.constant(rng.normal(size=(2, 2, 14, 14, 16)), tf.float32),
        tf.constant(rng.normal(size=(3, 3, 32, 32)), tf.float32),
    )

    @tf.function
    def gradient():
        return tf.gradients(tf.square(ops.conv(src, weights, how="direct", padding="SAME")), src)[0]

    first = gradient().numpy()
    for _ in range(5):
        np.testing.assert_array_equal(gradient(), first)
