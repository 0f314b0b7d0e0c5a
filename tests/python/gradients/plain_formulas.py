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


def conv(x, weights, *, strides=(1, 1), padding="SAME", dilations=(1, 1), groups=1):
    """NHWC convolution, tap by tap: any strides, dilations and groups in any float type."""
    kh, kw, _, outputs = weights.shape
    sizes, around = x.shape[1:3], []
    for axis, (n, k) in enumerate(zip(sizes, (kh, kw), strict=True)):
        reach = (k - 1) * dilations[axis]
        if padding == "SAME":
            need = max((-(-n // strides[axis]) - 1) * strides[axis] + reach + 1 - n, 0)
            around.append([need // 2, need - need // 2])
        else:
            around.append([0, 0] if padding == "VALID" else padding[axis])
    x = tf.pad(x, [[0, 0], *around, [0, 0]])
    outs = [
        (x.shape[1 + a] - (k - 1) * dilations[a] - 1) // strides[a] + 1
        for a, k in enumerate((kh, kw))
    ]
    y = 0
    for i in range(kh):
        for j in range(kw):
            top, left = i * dilations[0], j * dilations[1]
            met = x[
                :,
                top : top + (outs[0] - 1) * strides[0] + 1 : strides[0],
                left : left + (outs[1] - 1) * strides[1] + 1 : strides[1],
            ]
            parts = [
                tf.einsum("nhwi,io->nhwo", m, w)
                for m, w in zip(
                    tf.split(met, groups, 3), tf.split(weights[i, j], groups, 1), strict=True
                )
            ]
            y += tf.concat(parts, 3)
    return y


def pool(x, kind, ksize, strides, padding):
    if isinstance(padding, str):
        make = tf.nn.max_pool2d if kind == "max" else tf.nn.avg_pool2d
        return make(x, ksize, strides, padding)
    around = [[0, 0], *padding, [0, 0]]
    if kind == "max":
        return tf.nn.max_pool2d(tf.pad(x, around, constant_values=-1e9), ksize, strides, "VALID")
    ones = tf.nn.avg_pool2d(tf.pad(tf.ones_like(x), around), ksize, strides, "VALID")
    return tf.nn.avg_pool2d(tf.pad(x, around), ksize, strides, "VALID") / ones


def shuffle(x, group):
    shape = x.shape.as_list()
    x = tf.reshape(x, [*shape[:-1], shape[-1] // group, group])
    return tf.reshape(tf.linalg.matrix_transpose(x), shape)


# As in the tests of the ops, with parameters of which the derivative depends; that is TensorFlow's.
_SMOOTH = {k: case for k, case in references.ELTWISE.items() if k not in references.STEPS}
ELTWISE = _SMOOTH | {
    "relu": ("alpha=0.25", lambda x: tf.where(x >= 0, x, 0.25 * x)),
    "bounded_relu": ("alpha=1.5", lambda x: tf.clip_by_value(x, 0, 1.5)),
    "swish": ("alpha=1.5", lambda x: x * tf.sigmoid(1.5 * x)),
    "pow": ("alpha=0.5,beta=2.5", lambda x: 0.5 * tf.pow(x, tf.cast(2.5, x.dtype))),
}
POSITIVE_ONLY = references.POSITIVE_ONLY | {"pow"}
