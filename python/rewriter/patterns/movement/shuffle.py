"""Channel shuffle on NHWC tensors: Reshape, Transpose, Reshape."""

from ....ops.records import Shuffle
from ...rules import Match, Rule, Size


def shuffle(tf, x, group):
    """A shuffle of channels: a transpose of rows of them."""
    n, h, w, c = tf.sizes(x, 4)
    split = tf.reshape(x, [n, h, w, c // group, group])
    return tf.reshape(tf.Transpose(split, [0, 1, 2, 4, 3]), [n, h, w, c])


def _shuffle(match: Match) -> Shuffle:
    return Shuffle(origin=match.root.name, channels=match.channels(), group=match["group"])


RULE = Rule(shuffle, _shuffle, group=Size())
