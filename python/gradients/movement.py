"""Gradients of the ops that keep values and place them elsewhere."""

import numpy as np
import tensorflow as tf

from ..layout import BLOCK, NCHW16C, NHWC, num_blocks
from ..ops.movement.reorder import reorder
from ..ops.movement.shuffle import Shuffle
from ..ops.movement.update_slice import update_slice
from ..ops.tensor_desc import TensorDesc
from .blocked import part_of, with_part
from .node import gradient_of


@gradient_of("Shuffle", any_type=True)
def _shuffle(called, dy):
    """The shuffle back."""
    names = ("axis", "group", "layout", "channels")
    same = {name: getattr(called, name) for name in names}
    return Shuffle.run(dy, **same, backward=not called.backward)


@gradient_of("UpdateSlice")
def _update_slice(called, dy):
    """What was written has the slice of dy; what it was written over has none."""
    update, at, inserted = called.update, list(called.at), len(called.at)
    sizes, shape = tf.shape(update), tf.shape(dy)
    ones, rank = [1] * inserted, inserted + update.shape.rank
    room = tf.concat([shape[:1], shape[1 + inserted :]], 0) - sizes
    start = tf.clip_by_value(tf.cast(called.start, tf.int32), 0, room)
    begin = tf.concat([start[:1], at, start[1:]], 0) if rank else start
    size = tf.concat([sizes[:1], ones, sizes[1:]], 0) if rank else sizes
    of_update = tf.reshape(tf.slice(dy, begin, size), sizes)
    return [of_update, None, update_slice(dy, tf.zeros_like(update), called.start, at=at)]


@gradient_of("Concat")
def _concat(called, dy):
    channels, part, into = called.channels, called.dst_part, called.into
    total = sum(channels)
    inner = part_of(dy, part, total)
    grads = _split(inner, channels, total)
    if src_parts := called.src_parts:
        parts = zip(grads, channels, src_parts[::2], src_parts[1::2], strict=True)
        grads = [_as_part(grad, *part) for grad, *part in parts]
    if into:
        rest = with_part(dy, part, total, tf.zeros_like(inner)) if part else tf.zeros_like(dy)
        grads.append(rest)
    return grads


@gradient_of("Join", any_type=True)
def _join(called, dy):
    """Each value gets a piece of dy."""
    return tf.split(dy, [tf.shape(value)[called.axis] for value in called.values], called.axis)


def _split(dy, channels: list[int], total: int) -> list:
    """dy cut into tensors of so many channels each."""
    if len(channels) == 1:
        return [dy]
    if all(c % BLOCK == 0 for c in channels[:-1]):
        return tf.split(dy, [num_blocks(c) for c in channels], axis=1)
    pieces = tf.split(reorder(dy, NCHW16C, NHWC, channels=total), channels, axis=3)
    return [reorder(piece, NHWC, NCHW16C) for piece in pieces]


def _as_part(dy, channels: int, first: int, total: int):
    """dy as channels [first, first + channels) of `total`, of which the others are zero."""
    if channels == total:
        return dy
    plain = reorder(dy, NCHW16C, NHWC, channels=channels)
    around = [[0, 0], [0, 0], [0, 0], [first, total - first - channels]]
    return reorder(tf.pad(plain, around), NHWC, NCHW16C)


@gradient_of("Reorder", any_type=True)
def _reorder(called, dy):
    """The reorder back, with the same scales. What rounding and saturation do to a value is
    ignored, as in tf.cast; integers have none."""
    src, *into = called.inputs
    if not dy.dtype.is_floating:
        return [None] * len(called.inputs)
    scales = called.scales
    scales = np.reshape(scales, called.scale_shape or ()) if scales else None
    sides = None
    if called.dims:
        sides = _side(called, "src", src.dtype), _side(called, "dst", called.dst.dtype)
    grads = [None]
    if src.dtype.is_floating and sides is None:
        names, channels = (called.dst_layout, called.src_layout), _channels(called)
        grads = [reorder(dy, *names, channels=channels, dtype=src.dtype, scales=scales)]
    elif src.dtype.is_floating:
        memory = None if sides[0].is_whole else tf.zeros_like(src)
        grads = [reorder(dy, sides[1], sides[0], scales=scales, into=memory)]
    if into and sides is None:  # dy, times beta where elements are placed
        names = (called.dst_layout, called.dst_layout)
        grads.append(reorder(dy, *names, channels=_channels(called), scales=called.beta))
    elif into:
        grads.append(reorder(dy, sides[1], sides[1], scales=called.beta, into=dy))
    return grads


def _channels(called) -> int | None:
    """C, which a blocked tensor does not tell."""
    if called.channels >= 0:
        return called.channels
    layout = called.src_layout
    return called.src.shape[layout.index("c")] if "c" in layout else None


def _side(called, name: str, dtype) -> TensorDesc:
    return TensorDesc(
        called.dims,
        dtype,
        getattr(called, f"{name}_layout") or None,
        strides=getattr(called, f"{name}_strides") or None,
        offset=getattr(called, f"{name}_offset"),
    )
