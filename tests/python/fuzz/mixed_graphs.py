"""Random graphs with neighbours of all types, side effects whose order matters, loops and branches.

Whatever is computed from the image is continuous in it, so that rounding stays rounding.
"""

import numpy as np
import tensorflow as tf
from random_graphs import Builder

_LOG = 31  # log = 31 log + k: another order gives another number


class MixedBuilder(Builder):
    """Its functions take an image, ids [N, 3] int64, a flag and words [N]."""

    def __init__(self, draw, printed):
        super().__init__(draw)
        self.log = tf.Variable(1, dtype=tf.int64)
        self.state = tf.Variable([0.5])
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                tf.range(4, dtype=tf.int64), tf.constant([0.0, 0.25, -0.5, 1.0])
            ),
            default_value=0.125,
        )
        self.printed = printed

    def _note(self, number):
        self.log.assign(self.log * _LOG + number)

    def _number_of_words(self):
        lengths = tf.strings.length(tf.strings.join([self._words, "x"]))
        return tf.cast(lengths, tf.float32)[:, None, None, None] * 0.1

    def _spread(self, row):
        """[N] as something to add to an image."""
        return tf.cast(row, tf.float32)[:, None, None, None] * 0.01

    def _integers(self, x, tensors):
        """Ops that we have for float32, on integers, whose result meets the image."""
        dtype = self._choice([tf.int32, tf.int64])
        y = tf.cast(self._ids, dtype)[:, :, None, None]
        for _ in range(1 + self._number(3)):
            y = self._choice(
                [
                    lambda y: tf.concat([y, y + 1], 3),
                    lambda y: tf.pad(y, [[0, 0], [1, 0], [0, 1], [0, 0]]),
                    lambda y: tf.transpose(tf.transpose(y, [0, 3, 1, 2]), [0, 2, 3, 1]),
                    lambda y: tf.reshape(y, [-1, y.shape[1] * y.shape[2], 1, y.shape[3]]),
                    lambda y: tf.nn.relu(y - 1),
                    lambda y: tf.minimum(tf.maximum(y, 0), 6),
                    lambda y: tf.split(y, 2, 1)[0] if y.shape[1] % 2 == 0 else y,
                    lambda y: tf.repeat(y, 2, axis=1),
                    lambda y: y * 2,
                ]
            )(y)
        return x + self._spread(tf.reduce_sum(y, [1, 2, 3]))

    def _doubles(self, x, tensors):
        y = tf.cast(x, tf.float64)
        channels = x.shape[3]
        weights = tf.constant(self._rng.standard_normal([3, 3, channels, channels]) / 9)
        y = self._choice(
            [
                lambda y: tf.nn.conv2d(y, weights, 1, "SAME"),
                lambda y: tf.nn.relu(y) * 2.0,
                lambda y: tf.nn.softmax(y),
                lambda y: tf.nn.max_pool2d(y, 2, 1, "SAME"),
                lambda y: tf.linalg.matmul(y, weights[0, 0]),
                lambda y: tf.concat([y, y], 3)[..., :channels],
                lambda y: y - tf.reduce_mean(y, 3, keepdims=True),
            ]
        )(y)
        return tf.cast(y, tf.float32)

    def _shapes(self, x, tensors):
        """A reshape by sizes that are computed in integers."""
        kind = self._choice([tf.int32, tf.int64])
        sizes = tf.shape(x, out_type=kind)
        flat = tf.reshape(x, tf.stack([sizes[0], sizes[1] * sizes[2], sizes[3]]))
        y = tf.reshape(tf.nn.relu(flat), sizes)
        return tf.ensure_shape(y, x.shape)

    def _masks(self, x, tensors):
        kept = tf.where(x > 0, x, 0.25 * x)
        shown = tf.logical_or(self._flag, tf.reduce_any(self._ids > 2, 1))
        return tf.where(shown[:, None, None, None], kept, x)

    def _strings(self, x, tensors):
        return x + self._number_of_words()

    def _looked_up(self, x, tensors):
        row = tf.reduce_sum(self.table.lookup(self._ids), 1)
        return x * (1.0 + self._spread(row))

    def _chosen_channels(self, x, tensors):
        first = tf.math.floormod(self._ids[0, 0], tf.constant(x.shape[3], tf.int64))
        return tf.concat([x, tf.gather(x, first[None], axis=3)], 3)

    def _list(self, x, tensors):
        """Through a list of tensors, which is a variant."""
        array = tf.TensorArray(tf.float32, 2, element_shape=x.shape)
        array = array.write(0, x).write(1, tf.nn.relu(x))
        return array.read(self._number(2))

    def _ragged(self, x, tensors):
        rows = tf.RaggedTensor.from_row_lengths(
            tf.reshape(self._ids, [-1]), tf.fill([tf.shape(self._ids)[0]], 3)
        )
        return x + self._spread(tf.reduce_max(rows, 1))

    def _print(self, x, tensors):
        tf.print("step", len(self._variables), self.log, output_stream=f"file://{self.printed}")
        return x

    def _assert(self, x, tensors):
        tf.debugging.assert_less(tf.reduce_max(tf.abs(x)), np.float32(1e30))
        return x

    def _assign(self, x, tensors):
        """Reads behind a write see it."""
        before = self.state.read_value()
        self.state.assign(before * 0.5 + 0.125)
        self._note(1 + self._number(5))
        return x + (self.state.read_value() - before if self._number(2) else before)

    def _loop(self, x, tensors):
        """The same convolution some times, with a note in each turn."""
        channels = x.shape[3]
        weights = self._weights(3, 3, channels, channels)
        noted = self._number(2)

        def turn(i, x):
            if noted:
                self._note(7 + tf.cast(i, tf.int64))
            return i + 1, tf.nn.relu(tf.nn.conv2d(x, weights, 1, "SAME")) * 0.5

        start = (tf.constant(0), x)
        return tf.while_loop(lambda i, x: i < 3, turn, start, maximum_iterations=3)[1]

    def _branch(self, x, tensors):
        channels = x.shape[3]
        weights = self._weights(1, 1, channels, channels)

        def yes():
            self._note(11)
            return tf.nn.conv2d(x, weights, 1, "SAME")

        def no():
            self._note(13)
            return tf.nn.relu(x)

        y = tf.cond(self._flag, yes, no)
        return tf.ensure_shape(y, x.shape)

    def steps(self):
        mixed = [self._integers, self._doubles, self._shapes, self._masks, self._strings]
        mixed += [self._looked_up, self._chosen_channels, self._list, self._ragged, self._print]
        mixed += [self._assert, self._assign, self._assign, self._loop, self._branch]
        return super().steps() + [self._conv] * 4 + mixed

    def build_mixed(self, image, ids, flag, words):
        """The outputs of the image, and some of other types."""
        self._ids, self._flag, self._words = ids, flag, words
        outputs = self.build(image)
        if self._number(2):
            outputs += [ids + 1, tf.strings.upper(words), tf.logical_not(flag)]
        return outputs
