"""Who waits for whom: effects keep their order, and nothing else is held up."""

import tensorflow as tf

from tf_blockdnn.python.rewriter.options import Options

STRICT = Options(strict=True)


def test_nobody_waits_for_a_node_without_effects(rewrite, weights, image):
    """As outputs do beside an inlined call that TensorFlow lists as stateful."""
    first, last = weights(3, 3, 8, 16), weights(3, 3, 16, 16)

    def function(x):
        padded = tf.pad(tf.nn.conv2d(x, first, 1, "SAME"), [[0, 0], [1, 1], [2, 2], [0, 0]])
        with tf.control_dependencies([padded]):
            other = tf.identity(2.0 * x)
        return tf.nn.conv2d(padded, last, 1, "VALID"), other

    result = rewrite(function, [1, 6, 7, 8], options=STRICT)
    assert result.blockdnn["Conv"] == 2 and not result.ops["Pad"]
    assert not result.report.declined
    assert not any(op.control_inputs for op in result.concrete.graph.get_operations())
    result.assert_same(image(1, 6, 7, 8))


def test_effects_behind_and_before_nodes_without_effects_keep_their_order(rewrite, weights, image):
    kernel, state = weights(1, 1, 8, 16), tf.Variable(1.0)

    def function(x):
        before = state.read_value()
        y = tf.nn.conv2d(before * x, kernel, 1, "SAME")
        with tf.control_dependencies([y]):  # the read comes before the assignment
            assigned = state.assign(3.0)
        with tf.control_dependencies([tf.nn.relu(assigned)]):
            after = state.read_value()
        return y, after

    result = rewrite(function, [1, 6, 7, 8], options=STRICT)
    x = image(1, 6, 7, 8)
    for _ in range(2):
        state.assign(1.0)
        y, after = result.concrete(x)
        state.assign(1.0)
        wanted, _ = result.original(x)
        assert after.numpy() == 3.0
        tf.debugging.assert_near(y, wanted, 1e-5, 1e-5)
