"""Random graphs: whatever is built from these ops, the rewritten function gives the same.

TF_BLOCKDNN_EXAMPLES says how many; thousands take minutes.
"""

import os

import numpy as np
import tensorflow as tf
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_graphs import Builder

from tf_blockdnn.python.rewriter import optimize_concrete
from tf_blockdnn.python.rewriter.verify import difference


def check(draw):
    """Builds the graph that `draw` chooses, rewrites it, compares on two batches."""
    builder = Builder(draw)
    size, channels = 5 + draw(5), (3, 16, 20)[draw(3)]
    spec = tf.TensorSpec([None, size, size + 1, channels])
    original = tf.function(builder.build, autograph=False).get_concrete_function(spec)
    rewritten = optimize_concrete(original).concrete
    ops = {op.name: op.type for op in rewritten.graph.get_operations()}
    for node in rewritten.function_def.node_def:  # Saving takes their shapes from ops by name.
        assert ops[node.name] == node.op
    for batch in (1, 2):
        shape = [batch, size, size + 1, channels]
        x = tf.constant(np.random.default_rng(batch).standard_normal(shape), tf.float32)
        # Without TensorFlow's own rewriting: it takes max(x + x, x) for a LeakyRelu.
        wanted, got = unoptimised(original, x), unoptimised(rewritten, x)
        for old, new in zip(wanted, got, strict=True):
            assert difference(old.numpy(), new.numpy()) <= 2e-5


def unoptimised(function, *inputs):
    """Runs it without TensorFlow's own rewriting of graphs."""
    options = tf.config.optimizer.get_experimental_options()
    try:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        return function(*inputs)
    finally:
        tf.config.optimizer.set_experimental_options(
            {"disable_meta_optimizer": options.get("disable_meta_optimizer", False)}
        )


@settings(
    max_examples=int(os.environ.get("TF_BLOCKDNN_EXAMPLES", "100")),
    suppress_health_check=list(HealthCheck),
)
@given(st.data())
def test_random_graph(data):
    check(lambda count: data.draw(st.integers(0, count - 1)))


def test_an_idiom_behind_a_slice_that_was_folded_away():
    """The multiplication reads the convolution itself once the slice between them has gone."""
    choices = [0, 0, 5, 2, 6, 1, 3, 3, 0, 4, 0, 0, 0, 16, 1, 2, 3, 0, 20, 2, 1, 3, 5, 2, 3, 3]
    choices += [2, 2, 2, 0, 16, 4, 2, 6, 0, 3, 3, 6, 7, 6, 7, 5, 3, 4]
    left = iter(choices)
    check(lambda count: min(next(left, 0), count - 1))
