"""Keras's layers of attention on the attention op."""

import functools

import keras
import tensorflow as tf

from ..ops.products.attention import attention
from ..tensorflow_private import is_in_xla
from .classes import register

# Keras's for masked scores, with and without dropout; any finite number makes a row without keys
# the mean of all values.
_NEVER, _NEVER_OF_SOFTMAX = -0.7 * 3.38953e38, -1e9


@register
class MultiHeadAttention(keras.layers.MultiHeadAttention):
    """keras.layers.MultiHeadAttention, with scores, softmax and weighted values in one op.

    Where scores are asked for or dropped, more than one axis is attended along, or numbers are no
    float32, and in functions that XLA compiles, Keras computes. Gradients are TensorFlow's.

    Args:
      All: as of keras.layers.MultiHeadAttention.

    Example:
      >>> layer = bd.layers.MultiHeadAttention(num_heads=2, key_dim=8)
      >>> layer(tf.ones((1, 5, 16)), tf.ones((1, 7, 16)), use_causal_mask=True).shape
      TensorShape([1, 5, 16])
    """

    def _compute_attention(self, *args, **kwargs):
        return _weigh(self, super()._compute_attention, *args, **kwargs)


def _weigh(
    layer,
    by_keras,
    query,
    key,
    value,
    attention_mask=None,
    training=None,
    return_attention_scores=False,
    **options,
):
    """What `layer._compute_attention`, which is `by_keras`, gives, in one op where that can be."""
    drops = layer._dropout > 0.0
    fits = not (return_attention_scores or options or (drops and training))
    if not fits or layer._flash_attention or not _is_ours(query, key, value):
        return by_keras(
            query, key, value, attention_mask, training, return_attention_scores, **options
        )
    masks = _masks(attention_mask, drops)
    return attention(query, key, value, scale=layer._inverse_sqrt_key_dim, **masks), None


def weigh_by_op(layer) -> bool:
    """Makes a layer that another package derives from keras.layers.MultiHeadAttention compute its
    weighted values in one op, where it does that as Keras does.

    The layer stays an object of its class, and is saved as one: only this object is changed.
    """
    if not _computes_as(layer, keras.layers.MultiHeadAttention):
        return False
    layer._compute_attention = functools.partial(_weigh, layer, layer._compute_attention)
    return True


@register
class GroupedQueryAttention(keras.layers.GroupQueryAttention):
    """keras.layers.GroupQueryAttention, with scores, softmax and weighted values in one op, which
    reads the heads of keys and values where they are instead of repeating them.

    Where scores are asked for or dropped, or numbers are no float32, and in functions that XLA
    compiles, Keras computes. Gradients are TensorFlow's.

    Args:
      All: as of keras.layers.GroupQueryAttention.

    Example:
      >>> layer = bd.layers.GroupedQueryAttention(8, num_query_heads=4, num_key_value_heads=2)
      >>> layer(tf.ones((1, 5, 16)), tf.ones((1, 7, 16)), use_causal_mask=True).shape
      TensorShape([1, 5, 16])
    """

    def call(
        self,
        query,
        value,
        key=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        return_attention_scores=False,
        training=None,
        use_causal_mask=False,
    ):
        masks = dict(
            query_mask=query_mask,
            value_mask=value_mask,
            key_mask=key_mask,
            attention_mask=attention_mask,
        )
        drops = self.dropout > 0.0
        fits = not (return_attention_scores or self._flash_attention or (drops and training))
        fits = fits and _computes_as(self, keras.layers.GroupQueryAttention)
        q = self._query_dense(query) if fits else None
        if q is None or not _is_ours(q):
            return super().call(
                query,
                value,
                key,
                **masks,
                return_attention_scores=return_attention_scores,
                training=training,
                use_causal_mask=use_causal_mask,
            )
        # Windows and gates are of later versions of Keras.
        has_window = getattr(self, "sliding_window", None) is not None
        is_masked = has_window or any(m is not None for m in masks.values())
        if is_masked:
            mask = self._compute_attention_mask(
                query, value, use_causal_mask=use_causal_mask, **masks
            )
        y = attention(
            q,
            self._key_dense(value if key is None else key),
            self._value_dense(value),
            scale=self._inverse_sqrt_head_dim,
            causal=use_causal_mask and not is_masked,
            **_masks(mask if is_masked else None, drops),
        )
        has_gate = getattr(self, "use_gate", False)
        return self._output_dense(y * self._gate_dense(query) if has_gate else y)


def _computes_as(layer, cls: type) -> bool:
    """Whether no class derived from Keras's `cls` computes attention in another way."""
    return getattr(type(layer), "_compute_attention", None) is cls._compute_attention


GroupQueryAttention = GroupedQueryAttention  # as Keras exports it


def _masks(mask, drops: bool) -> dict:
    """What the op is told of Keras's mask [B, T, S] or [B, N, T, S] of any type."""
    if mask is not None:
        mask = tf.convert_to_tensor(mask)
        while mask.shape.rank < 4:  # [B, T, S] has no axis of heads
            mask = tf.expand_dims(mask, -3)
        if mask.dtype != tf.bool:  # as Keras's softmax, and its attention without it, cast it
            mask = mask > tf.cast(0.5, mask.dtype) if drops else tf.cast(mask, tf.bool)
    masked_value = _NEVER_OF_SOFTMAX if drops else _NEVER
    return dict(mask=mask, masked_value=masked_value, zero_masked=drops and mask is not None)


def _is_ours(*tensors) -> bool:
    """Whether these are tensors [B, rows, N, H] that the op takes where it is called."""
    return not is_in_xla() and all(
        tf.is_tensor(x) and x.dtype == tf.float32 and x.shape.rank == 4 for x in tensors
    )
