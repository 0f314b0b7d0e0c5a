"""Blocked activations and parts of them, for the formulas of gradients."""

import math

import tensorflow as tf

from ..layout import BLOCK, num_blocks

BATCH_AXIS, BLOCKS_AXIS = 0, 1


def is_blocked(layout: str) -> bool:
    """Whether channels lie in blocks: nChw16c, nCw16c, nCdhw16c."""
    return "C" in layout


def spatial_axes(rank: int, layout: str) -> list[int]:
    """The axes of a tensor of `rank` that are neither batch nor channels."""
    return list(range(2, rank - 1)) if is_blocked(layout) else list(range(1, rank - 1))


def channel_row(values, channels: int, rank: int, fill: float = 0.0):
    """[channels] values as [1, blocks, 1, .., 16], which broadcasts over an activation of `rank`.

    Lanes beyond the channels hold `fill`.
    """
    blocks = num_blocks(channels)
    tail = blocks * BLOCK - channels
    if tail:
        values = tf.pad(values, [[0, tail]], constant_values=fill)
    return tf.reshape(values, [1, blocks, *[1] * (rank - 3), BLOCK])


def channel_sums(x, channels: int, layout: str):
    """The sums over all but the channels of a blocked or plain activation: [channels]."""
    if not is_blocked(layout):
        return tf.reduce_sum(x, axis=list(range(x.shape.rank - 1)))
    # TensorFlow reduces neighbouring axes in place, and copies the tensor first for others.
    sums = tf.reduce_sum(x, axis=spatial_axes(x.shape.rank, layout))
    return tf.reshape(tf.reduce_sum(sums, axis=BATCH_AXIS), [-1])[:channels]


def lane_mask(channels: int, rank: int):
    """True at channels, False in the tail: bool, [1, blocks, 1, .., 16]."""
    blocks = num_blocks(channels)
    lanes = tf.range(blocks * BLOCK) < channels
    return tf.reshape(lanes, [1, blocks, *[1] * (rank - 3), BLOCK])


def elements(tensor, offset: int, shape):
    """Elements [offset, offset + prod(shape)) of `tensor` in memory order, as `shape`."""
    if is_whole(tensor, offset, shape):
        return tf.reshape(tensor, shape)
    return tf.reshape(tf.reshape(tensor, [-1])[offset : offset + math.prod(shape)], shape)


def is_whole(tensor, offset: int, shape) -> bool:
    """Whether these elements are all that the tensor has."""
    return offset == 0 and tensor.shape.num_elements() == math.prod(shape)


def part_of(wide, part, channels: int, blocks=()):
    """The channels that `part`, the attribute src_part or dst_part, cuts out of a tensor.

    `blocks` is the attribute src_blocks, of the ops that have it.
    """
    if not part:
        return wide
    if blocks:
        return tf.gather(wide, blocks, axis=BLOCKS_AXIS)
    first = part[0] // BLOCK
    return wide[:, first : first + num_blocks(channels)]


def with_part(wide, part, channels: int, inner):
    """`wide` with `inner` in place of that part."""
    first = part[0] // BLOCK
    return tf.concat([wide[:, :first], inner, wide[:, first + num_blocks(channels) :]], BLOCKS_AXIS)


def place(inner, part, channels: int, into):
    """What an op with the attribute dst_part returns for the result `inner`.

    `into` is the list of that input. Without it the rest is undefined; zeros here.
    """
    if not part:
        return inner
    if into:
        return with_part(into[0], part, channels, inner)
    before = part[0] // BLOCK
    after = num_blocks(part[1]) - before - num_blocks(channels)
    rest = [[0, 0]] * (inner.shape.rank - 2)
    return tf.pad(inner, [[0, 0], [before, after], *rest])


def slices(volumes):
    """[N, D, ..] as [N * D, ..]."""
    shape = tf.shape(volumes)
    y = tf.reshape(volumes, tf.concat([[-1], shape[2:]], 0))
    y.set_shape([None, *volumes.shape[2:]])
    return y


def volumes(slices, depth):
    """[N * depth, ..] as [N, depth, ..]."""
    y = tf.reshape(slices, tf.concat([[-1, depth], tf.shape(slices)[1:]], 0))
    y.set_shape([None, depth if isinstance(depth, int) else None, *slices.shape[1:]])
    return y
