"""Random graphs: whatever is built from these ops, the rewritten function gives the same."""

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python.rewriter import optimize_concrete
from tf_blockdnn.python.rewriter.verify import difference

_CHANNELS = (5, 16, 20, 32)
_ACTIVATIONS = (
    tf.nn.relu,
    tf.nn.relu6,
    tf.nn.silu,
    tf.nn.gelu,
    tf.nn.elu,
    tf.sigmoid,
    tf.tanh,
    tf.nn.softsign,  # has no blocked form
    lambda x: tf.nn.leaky_relu(x, 0.1),
    lambda x: tf.clip_by_value(x, -0.5, 0.7),
    lambda x: 0.25 - x,
    lambda x: x * tf.nn.relu6(x + 3.0) / 6.0,
)


class _Builder:
    """Grows a graph from one input by random steps, the same at each call."""

    def __init__(self, seed):
        self._seed = seed
        self._variables = []

    def _weights(self, *shape):
        values = self._rng.standard_normal(shape) / max(1.0, np.prod(shape[:-1])) ** 0.5
        if self._rng.random() < 0.3:
            return tf.constant(values.astype(np.float32))
        if tf.executing_eagerly():
            self._variables.append(tf.Variable(values.astype(np.float32)))
        self._used += 1
        return self._variables[self._used - 1]

    def _choice(self, items):
        return items[int(self._rng.integers(len(items)))]

    def _conv(self, x, tensors):
        kernel = self._choice([1, 3, 3, 5])
        weights = self._weights(kernel, kernel, x.shape[-1], self._choice(_CHANNELS))
        stride, padding = self._choice([1, 1, 2]), self._choice(["SAME", "SAME", "VALID"])
        if x.shape[1] is not None and x.shape[1] < kernel:
            padding = "SAME"
        return tf.nn.conv2d(x, weights, stride, padding)

    def _depthwise(self, x, tensors):
        weights = self._weights(3, 3, x.shape[-1], self._choice([1, 1, 2]))
        stride = self._choice([1, 2])
        return tf.nn.depthwise_conv2d(x, weights, [1, stride, stride, 1], "SAME")

    def _norm(self, x, tensors):
        channels = x.shape[-1]
        return x * self._weights(channels) + self._weights(1, 1, 1, channels)

    def _activate(self, x, tensors):
        return self._choice(_ACTIVATIONS)(x)

    def _combine(self, x, tensors):
        same = [t for t in tensors if t.shape[1:] == x.shape[1:]]
        other = self._choice(same)
        return self._choice([tf.add, tf.add, tf.subtract, tf.multiply, tf.maximum])(x, other)

    def _concat(self, x, tensors):
        same = [t for t in tensors if t.shape[1:3] == x.shape[1:3]]
        return tf.concat([self._choice(same), x], 3)

    def _pool(self, x, tensors):
        pool = self._choice([tf.nn.max_pool2d, tf.nn.avg_pool2d])
        return pool(x, self._choice([2, 3]), self._choice([1, 2]), "SAME")

    def _pad(self, x, tensors):
        before, after = (int(n) for n in self._rng.integers(0, 3, 2))
        return tf.pad(x, [[0, 0], [before, after], [after, before], [0, 0]])

    def _gate(self, x, tensors):
        channels = x.shape[-1]
        squeezed = tf.reduce_mean(x, [1, 2], keepdims=bool(self._rng.integers(2)))
        squeezed = tf.reshape(squeezed, [-1, 1, 1, channels])
        gate = tf.nn.conv2d(squeezed, self._weights(1, 1, channels, channels), 1, "SAME")
        return x * tf.sigmoid(gate)

    def build(self, x):
        """The outputs; the first call must be eager, it makes the variables."""
        self._rng, self._used = np.random.default_rng(self._seed), 0
        tensors = [x]
        steps = [self._conv] * 4 + [self._norm, self._activate] * 2
        steps += [self._depthwise, self._combine, self._combine, self._concat]
        steps += [self._pool, self._pad, self._gate]
        for _ in range(int(self._rng.integers(6, 24))):
            x = tensors[-1] if self._rng.random() < 0.7 else self._choice(tensors)
            tensors.append(self._choice(steps)(x, tensors))
        extra = [t for t in tensors[1:-1] if self._rng.random() < 0.15]
        return [tensors[-1], *extra]


def check(seed):
    """Builds the graph of that seed, rewrites it, compares on two batches."""
    builder = _Builder(seed)
    rng = np.random.default_rng(seed + 1000)
    size, channels = int(rng.integers(9, 17)), int(rng.choice([3, 16, 20]))
    builder.build(tf.zeros([3, size, size + 1, channels]))
    spec = tf.TensorSpec([None, size, size + 1, channels])
    original = tf.function(builder.build, autograph=False).get_concrete_function(spec)
    rewritten = optimize_concrete(original).concrete
    for batch in (1, 2):
        x = tf.constant(rng.standard_normal([batch, size, size + 1, channels]), tf.float32)
        # Without TensorFlow's own rewriting: it takes max(x + x, x) for a LeakyRelu.
        wanted, got = _unoptimised(original, x), _unoptimised(rewritten, x)
        for old, new in zip(wanted, got, strict=True):
            assert difference(old.numpy(), new.numpy()) <= 2e-5


def _unoptimised(function, x):
    options = tf.config.optimizer.get_experimental_options()
    try:
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        return function(x)
    finally:
        tf.config.optimizer.set_experimental_options(
            {"disable_meta_optimizer": options.get("disable_meta_optimizer", False)}
        )


@pytest.mark.parametrize("seed", range(25))
def test_random_graph(seed):
    check(seed)
