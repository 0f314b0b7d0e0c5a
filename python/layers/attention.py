"""keras.layers.MultiHeadAttention on the attention op."""

import keras
import tensorflow as tf

from ..ops.products.attention import attention
from ..tensorflow_private import control_flow_util

# Keras's for masked scores, with and without dropout; any finite number makes a row without keys
# the mean of all values.
_NEVER, _NEVER_OF_SOFTMAX = -0.7 * 3.38953e38, -1e9


@keras.saving.register_keras_serializable(package="tf_blockdnn")
class MultiHeadAttention(keras.layers.MultiHeadAttention):
    """keras.layers.MultiHeadAttention, with scores, softmax and weighted values in one op.

    Where scores are asked for or dropped, more than one axis is attended along, or numbers are no
    float32, and in functions that XLA compiles, Keras computes. Gradients are TensorFlow's.

    Example:
      >>> layer = bd.layers.MultiHeadAttention(num_heads=2, key_dim=8)
      >>> layer(tf.ones((1, 5, 16)), tf.ones((1, 7, 16)), use_causal_mask=True).shape
      TensorShape([1, 5, 16])
    """

    def _compute_attention(
        self,
        query,
        key,
        value,
        attention_mask=None,
        training=None,
        return_attention_scores=False,
        **options,
    ):
        drops = self._dropout > 0.0
        fits = not (return_attention_scores or options or (drops and training))
        if not fits or self._flash_attention or not _is_ours(query, key, value):
            return super()._compute_attention(
                query, key, value, attention_mask, training, return_attention_scores, **options
            )
        mask = None
        if attention_mask is not None:
            mask = tf.convert_to_tensor(attention_mask)
            while mask.shape.rank < 4:  # [B, T, S] has no axis of heads
                mask = tf.expand_dims(mask, -3)
            if mask.dtype != tf.bool:  # as Keras's softmax, and its attention without it, cast it
                mask = mask > tf.cast(0.5, mask.dtype) if drops else tf.cast(mask, tf.bool)
        y = attention(
            query,
            key,
            value,
            mask=mask,
            scale=self._inverse_sqrt_key_dim,
            masked_value=_NEVER_OF_SOFTMAX if drops else _NEVER,
            zero_masked=drops and mask is not None,
        )
        return y, None


def _is_ours(*tensors) -> bool:
    """Whether these are tensors [B, rows, N, H] that the op takes where it is called."""
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    if graph is not None and control_flow_util.GraphOrParentsInXlaContext(graph):
        return False
    return all(tf.is_tensor(x) and x.dtype == tf.float32 and x.shape.rank == 4 for x in tensors)
