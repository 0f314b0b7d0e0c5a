"""A generator of graphs of convolutions and what is found between them."""

import numpy as np
import tensorflow as tf
from tensorflow.python.ops.variables import default_variable_creator_v2

_ACTIVATIONS = (
    tf.nn.relu,
    tf.nn.relu6,
    tf.nn.silu,
    tf.nn.gelu,
    tf.nn.elu,
    tf.sigmoid,
    tf.tanh,
    tf.math.bessel_i0e,  # has no blocked form
    lambda x: tf.nn.leaky_relu(x, 0.1),
    lambda x: tf.clip_by_value(x, -0.5, 0.7),
    lambda x: 0.25 - x,
    lambda x: x * tf.nn.relu6(x + 3.0) / 6.0,
)


def _variable(next_creator, **arguments):
    return default_variable_creator_v2(None, **arguments)


class Builder:
    """Grows a graph from one input, once; draw(n) chooses one of range(n)."""

    channels = (5, 16, 20, 32)  # that a convolution makes

    def __init__(self, draw):
        self._number = draw
        self._rng = np.random.default_rng(7)
        self._variables = []  # which a graph alone does not keep

    def _weights(self, *shape):
        values = self._rng.standard_normal(shape) / max(1.0, np.prod(shape[:-1])) ** 0.5
        if self._number(4) == 3:
            return tf.constant(values.astype(np.float32))
        # Not by the tf.function that traces, which wants to call a function twice where it did.
        with tf.init_scope(), tf.variable_creator_scope(_variable):
            self._variables.append(tf.Variable(values.astype(np.float32)))
        return self._variables[-1]

    def _choice(self, items):
        return items[self._number(len(items))]

    def _conv(self, x, tensors):
        kernel = self._choice([1, 3, 3, 5])
        weights = self._weights(kernel, kernel, x.shape[-1], self._choice(self.channels))
        stride, padding = self._choice([1, 1, 2]), self._choice(["SAME", "SAME", "VALID"])
        if min(x.shape[1:3]) < kernel:
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
        before, after = self._number(3), self._number(3)
        return tf.pad(x, [[0, 0], [before, after], [after, before], [0, 0]])

    def _gate(self, x, tensors):
        channels = x.shape[-1]
        squeezed = tf.reduce_mean(x, [1, 2], keepdims=bool(self._number(2)))
        squeezed = tf.reshape(squeezed, [-1, 1, 1, channels])
        gate = tf.nn.conv2d(squeezed, self._weights(1, 1, channels, channels), 1, "SAME")
        return x * tf.sigmoid(gate)

    def _shuffle(self, x, tensors):
        n, h, w, c = (-1 if size is None else size for size in x.shape)
        groups = self._choice([g for g in (1, 2, 4, 5) if c % g == 0])
        if self._number(2):
            return tf.gather(x, np.arange(c).reshape(groups, -1).T.reshape(-1), axis=3)
        split = tf.reshape(x, [n, h, w, groups, c // groups])
        return tf.reshape(tf.transpose(split, [0, 1, 2, 4, 3]), [n, h, w, c])

    def _split(self, x, tensors):
        """Leaves the first part to whoever wants it, and goes on with the second."""
        first = 1 + self._number(x.shape[3] - 1)
        tensors.append(x[..., :first])
        return x[..., first:]

    def _unit(self, x, tensors):
        """Of ShuffleNetV2."""
        half = x.shape[3] // 2
        kernel = self._weights(1, 1, x.shape[3] - half, 9)
        worked = tf.nn.relu(tf.nn.conv2d(x[..., half:], kernel, 1, "SAME"))
        return self._shuffle(tf.concat([x[..., :half], worked], 3), tensors)

    def _layer_norm(self, x, tensors):
        mean, variance = tf.nn.moments(x, [3], keepdims=True)
        operands = [self._weights(x.shape[3]) for _ in range(2)]
        # Over few channels a small variance would blow rounding errors up.
        return tf.nn.batch_normalization(x, mean, variance, *operands, 0.1)

    def _dense(self, x, tensors):
        return tf.tensordot(x, self._weights(x.shape[3], self._choice(self.channels)), 1)

    def _cut(self, x, tensors):
        return x[:, 1:, :-1] if min(x.shape[1:3]) > 2 else x

    def steps(self):
        """What may come next, each as often as it is listed."""
        steps = [self._conv] * 4 + [self._norm, self._activate] * 2
        steps += [self._depthwise, self._combine, self._combine, self._concat]
        steps += [self._pool, self._pad, self._gate, self._shuffle, self._split, self._unit]
        return steps + [self._unit, self._layer_norm, self._dense, self._cut]

    def build(self, x, most=12):
        """The outputs of a graph of up to so many steps."""
        tensors, steps = [x], self.steps()
        for _ in range(3 + self._number(most - 2)):
            x = self._choice(tensors) if self._number(4) == 3 else tensors[-1]
            if x.shape[3] > 1:
                tensors.append(self._choice(steps)(x, tensors))
        extra = [t for t in tensors[1:-1] if self._number(8) == 7]
        return [tensors[-1], *extra]
