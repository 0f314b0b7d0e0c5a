"""Channel shuffle on NHWC tensors: Reshape, Transpose, Reshape, or a gather of channels."""

import numpy as np

from ....ops.records import Shuffle
from ...rules import Constant, Declined, Match, Rule, Size


def shuffle(tf, x, group):
    """A shuffle of channels: a transpose of rows of them."""
    n, h, w, c = tf.sizes(x, 4)
    split = tf.reshape(x, [n, h, w, c // group, group])
    return tf.reshape(tf.Transpose(split, [0, 1, 2, 4, 3]), [n, h, w, c])


def gathered(tf, x, order):
    """The same as a gather in a constant order."""
    return tf.GatherV2(x, order, tf.axes(x, -1))


def _shuffle(match: Match) -> Shuffle:
    return Shuffle(origin=match.root.name, channels=match.channels(), group=match["group"])


def _gathered(match: Match) -> Shuffle:
    """Channel i * G + j goes to j * C / G + i."""
    order, channels = match["order"], match.channels()
    group = int(order[1]) if order.size > 1 else 0  # j = 0, i = 1
    if len(match.shape("x")) != 4 or group < 1 or channels % group:
        raise Declined
    if not np.array_equal(order, np.arange(channels).reshape(-1, group).T.reshape(-1)):
        raise Declined
    return Shuffle(origin=match.root.name, channels=channels, group=group)


SHUFFLE = Rule(shuffle, _shuffle, group=Size())
GATHERED = Rule(gathered, _gathered, order=Constant(rank=1))
