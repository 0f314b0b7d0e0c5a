"""A slice of a tensor, written in its place: the rows of a cache."""

import tensorflow as tf

from ..call import OpCall, function_of
from ..record import Record


class UpdateSlice(Record, title="slice updated in place", titles="slices updated in place"):
    """Its nodes stand in the graph as they are: it takes nothing in, and no pass plans about it."""


@function_of(UpdateSlice)
def update_slice(into, update, start, *, at=()):
    """The tensor `into` with a slice of it replaced, in its memory if nobody else holds it.

    Args:
      into: a tensor of any rank; float32, float64, bfloat16, float16, int8, uint8, int16,
        uint16, int32, int64 or bool.
      update: of the type of into, and of its rank less the length of at: no larger along any axis.
      start: int32 or int64, an index for each axis of update: where it begins. As in XLA, an
        index is moved as far as needed for the update to lie within the tensor.
      at: indices of axes 1, 2, .. of into, which update does not have: into[:, i, j] is updated
        with at = (i, j).

    Returns:
      A tensor of the type and shape of into.

    Source: DynamicUpdateSlice of XLA; caches of keys and values in KerasHub.

    Example:
      >>> cache = tf.zeros((1, 2, 4), tf.int32)
      >>> bd.ops.update_slice(cache, [[7, 8]], [0, 1], at=(1,)).numpy()
      array([[[0, 0, 0, 0],
              [0, 7, 8, 0]]], dtype=int32)
    """
    into = tf.convert_to_tensor(into)
    update = tf.convert_to_tensor(update, into.dtype)
    return OpCall((update, tf.convert_to_tensor(start), into), {"at": list(at)})
