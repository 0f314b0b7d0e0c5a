"""Gradient of attention, by TensorFlow's ops: the formula once more, differentiated."""

import tensorflow as tf

from ..node import split_inputs, text, vjp


@tf.RegisterGradient("BlockdnnAttention")
def _gradient(op, dy):
    num_biases, num_masks = op.get_attr("num_biases"), op.get_attr("num_masks")
    _, _, masks = split_inputs(op, 3, num_biases, num_masks)
    floats = list(op.inputs)[: 3 + num_biases]
    gradients = vjp(lambda q, k, v, *biases: _attention(op, q, k, v, biases, masks), floats, dy)
    return gradients + [None] * num_masks


def _attention(op, q, k, v, biases, masks):
    is_single = q.shape.rank == 3
    q, k, v = (
        _heads_first(x, text(op, f"{name}_layout"), is_single)
        for name, x in (("q", q), ("k", k), ("v", v))
    )
    group = tf.shape(q)[1] // tf.shape(k)[1]
    k, v = tf.repeat(k, group, axis=1), tf.repeat(v, group, axis=1)
    scores = op.get_attr("scale") * tf.matmul(q, k, transpose_b=True)
    for bias in biases:
        scores += _for_sequences(bias, scores, is_single)
    for mask in masks:
        mask = _for_sequences(mask, scores, is_single)
        scores = tf.where(mask, scores, op.get_attr("masked_value"))
    if op.get_attr("causal"):
        queries, keys = tf.shape(scores)[2], tf.shape(scores)[3]
        earlier = tf.range(keys)[None, :] <= tf.range(queries)[:, None]
        scores = tf.where(earlier, scores, float("-inf"))
    weights = tf.nn.softmax(scores)
    if op.get_attr("zero_masked"):
        for mask in masks:
            weights = tf.where(_for_sequences(mask, scores, is_single), weights, 0.0)
    y = tf.matmul(weights, v)
    if is_single:
        return y[:, 0]
    return y if text(op, "dst_layout") == "BNTH" else tf.transpose(y, [0, 2, 1, 3])


def _heads_first(x, layout: str, is_single: bool):
    """[B, N, T, H]."""
    if is_single:
        return x[:, None]
    return x if layout == "BNTH" else tf.transpose(x, [0, 2, 1, 3])


def _for_sequences(bias, scores, is_single: bool):
    """A bias or mask with an entry for each sequence, or for all."""
    if bias.shape.rank == (4 if is_single else 5):
        bias = bias[0]
    if is_single and bias.shape.rank == 3:
        bias = bias[:, None]
    if bias.shape.rank != 4 or bias.shape[0] == 1:
        return bias
    return tf.tile(bias, [tf.shape(scores)[0] // tf.shape(bias)[0], 1, 1, 1])
