"""Slices of channels are made in blocks, from any channel on."""

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python.rewriter import optimize_concrete


def rewritten(function, *shape):
    spec = tf.TensorSpec((None, *shape), tf.float32)
    concrete = tf.function(function, input_signature=[spec]).get_concrete_function()
    made = optimize_concrete(concrete)
    x = np.random.default_rng(1).standard_normal((2, *shape)).astype(np.float32)
    for ours, theirs in zip(
        tf.nest.flatten(made.concrete(tf.constant(x))),
        tf.nest.flatten(concrete(tf.constant(x))),
        strict=True,
    ):
        np.testing.assert_allclose(ours, theirs, atol=2e-5 * np.abs(theirs).max())
    return made


def ops(made, name):
    graph = made.concrete.graph.as_graph_def()
    nodes = [node for function in graph.library.function for node in function.node_def]
    return [node for node in [*graph.node, *nodes] if node.op == name]


def weights(*shape):
    return tf.constant(np.random.default_rng(2).standard_normal(shape).astype(np.float32))


def conv(x, w):
    return tf.nn.conv2d(x, w, 1, "SAME")


def picture(x):
    """64 channels in blocks, of which no slice can be folded into weights."""
    return tf.nn.max_pool2d(conv(x, first), 3, 1, "SAME")


first, second, third = weights(3, 3, 3, 64), weights(1, 1, 32, 32), weights(3, 3, 32, 8)


@pytest.mark.parametrize("begin,channels", [(8, 32), (5, 32), (0, 32), (32, 32)])
def test_a_slice_from_any_channel_on(begin, channels):
    def network(x):
        return conv(picture(x)[..., begin : begin + channels], third)

    made = rewritten(network, 8, 8, 3)
    slices = [list(node.attr["src_parts"].list.i) for node in ops(made, "BlockdnnConcat")]
    assert slices == [[begin, 64]]
    assert not ops(made, "BlockdnnReorder")


def test_a_slice_is_written_into_a_concatenation():
    def network(x):
        a, b = tf.split(picture(x), [16, 48], axis=-1)
        return conv(tf.concat([b, conv(a, weights(1, 1, 16, 20))], axis=-1), weights(3, 3, 68, 8))

    made = rewritten(network, 8, 8, 3)
    assert [count for _, count in made.report.joined] == ["2 of 2"]
    assert not ops(made, "BlockdnnReorder")


def test_what_is_fetched_or_read_plain_stays_plain():
    def network(x):
        a, b = tf.split(conv(x, first), 2, axis=-1)
        return conv(a, third), b

    made = rewritten(network, 8, 8, 3)
    assert len(ops(made, "BlockdnnConv")) == 2


@pytest.mark.parametrize("cut", [np.s_[:, 1:-1, :, 8:40], np.s_[..., ::2], np.s_[:, :, 1:, :32]])
def test_other_slices_are_left(cut):
    made = rewritten(lambda x: conv(picture(x)[cut], third), 8, 8, 3)
    assert not ops(made, "BlockdnnConcat")
    assert len(ops(made, "BlockdnnConv")) == 2
