"""Calls of ops from which the cases of errors start."""

import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.native import library

BLOCKED = "nChw16c"


def blocked_zeros(channels=20, n=1, h=6, w=7):
    return tf.zeros((n, -(-channels // 16), h, w, 16))


def conv(**changes):
    """A valid convolution of 20 to 33 channels, but for `changes`."""
    arguments = dict(src=blocked_zeros(), weights=tf.zeros((3, 3, 20, 33)), padding="SAME")
    return bd.ops.conv(**arguments | changes)


def raw(op, *inputs, **attrs):
    return getattr(library(), op)(*inputs, **attrs)
