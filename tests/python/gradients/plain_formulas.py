"""What the ops compute, in TensorFlow ops on plain tensors of any float type."""

import references
import tensorflow as tf

import tf_blockdnn as bd


def block(x):
    return bd.ops.reorder(x, "nhwc", "nChw16c")


def unblock(x, channels):
    return bd.ops.reorder(x, "nChw16c", "nhwc", channels=channels)


def blocked(function, channels=20):
    """A function of blocked activations as one of plain ones: inputs of rank 4 are blocked, and the
    result, of so many channels, is plain again."""
    return lambda *xs: unblock(
        function(*(block(x) if x.shape.rank == 4 and x.shape[0] == 2 else x for x in xs)), channels
    )


def conv(x, weights):
    return tf.nn.conv2d(x, weights, 1, "SAME")


# As in the tests of the ops, with parameters of which the derivative depends; that is TensorFlow's.
_SMOOTH = {k: case for k, case in references.ELTWISE.items() if k not in references.STEPS}
ELTWISE = _SMOOTH | {
    "relu": ("alpha=0.25", lambda x: tf.where(x >= 0, x, 0.25 * x)),
    "bounded_relu": ("alpha=1.5", lambda x: tf.clip_by_value(x, 0, 1.5)),
    "swish": ("alpha=1.5", lambda x: x * tf.sigmoid(1.5 * x)),
    "pow": ("alpha=0.5,beta=2.5", lambda x: 0.5 * tf.pow(x, tf.cast(2.5, x.dtype))),
}
POSITIVE_ONLY = references.POSITIVE_ONLY | {"pow"}
