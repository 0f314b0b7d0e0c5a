"""Gradient of softmax."""

import tensorflow as tf


@tf.RegisterGradient("BlockdnnSoftmax")
def _gradient(op, dy):
    y = op.outputs[0]
    return (dy - tf.reduce_sum(dy * y, axis=-1, keepdims=True)) * y
