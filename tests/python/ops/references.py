"""What the ops must equal, out of stock TensorFlow ops."""

import numpy as np
import tensorflow as tf

from tf_blockdnn.python.graph import definition
from tf_blockdnn.python.ops import post_op_entry


def conv(x, weights, *, strides=(1, 1), padding="SAME", dilations=(1, 1), groups=1):
    """NHWC convolution with HWIO weights [kh, kw, C / groups, out channels]."""
    if not isinstance(padding, str):
        x = np.pad(x, [[0, 0], *padding, [0, 0]])
        padding = "VALID"
    parts = [
        tf.nn.conv2d(xs, ws, list(strides), padding, dilations=list(dilations))
        for xs, ws in zip(np.split(x, groups, 3), np.split(weights, groups, 3), strict=True)
    ]
    return np.concatenate(parts, 3)


def _raw(op):
    """TensorFlow's op as a function of tensors of one type, of which truth values are made, too."""
    names = [arg.name for arg in definition(op).input_arg]
    call = getattr(tf.raw_ops, op)
    return lambda *args: tf.cast(call(**dict(zip(names, args, strict=True))), args[0].dtype)


BINARY = {
    "prelu": lambda x, slope: tf.nn.relu(x) - slope * tf.nn.relu(-x),
    "rdiv": lambda x, o: tf.divide(o, x),
    "keep": lambda x, o: tf.where(tf.not_equal(o, 0), x, 0.0),
    "drop": lambda x, o: tf.where(tf.equal(o, 0), x, 0.0),
    **{name: _raw(op) for name, op in post_op_entry.BINARY.items() if op},
}
SMOOTH_BINARY = ("add", "max", "min", "mul", "prelu", "sub")

# name -> (parameters in the text, function)
ELTWISE = {
    "relu": ("", tf.nn.relu),
    "leaky_relu": ("alpha=0.25", lambda x: tf.nn.leaky_relu(x, 0.25)),
    "relu6": ("", tf.nn.relu6),
    "bounded_relu": ("alpha=2.5", lambda x: tf.clip_by_value(x, 0, 2.5)),
    "clip": ("alpha=-1,beta=2", lambda x: tf.clip_by_value(x, -1, 2)),
    "elu": ("", tf.nn.elu),
    "linear": ("alpha=2,beta=1", lambda x: 2 * x + 1),
    "gelu_tanh": ("", lambda x: tf.nn.gelu(x, approximate=True)),
    "gelu_erf": ("", lambda x: tf.nn.gelu(x, approximate=False)),
    "swish": ("", tf.nn.silu),
    "hard_sigmoid": ("", lambda x: tf.clip_by_value(x / 6 + 0.5, 0, 1)),
    "hard_swish": ("", lambda x: x * tf.clip_by_value(x / 6 + 0.5, 0, 1)),
    "mish": ("", lambda x: x * tf.tanh(tf.nn.softplus(x))),
    "pow": ("alpha=0.5,beta=2", lambda x: 0.5 * tf.pow(x, 2.0)),
    **{name: ("", _raw(op)) for name, op in post_op_entry.FUNCTIONS.items() if op},
}
POSITIVE_ONLY = {"sqrt", "log", "log1p", "reciprocal", "rsqrt"}
STEPS = {"round", "floor", "ceil", "sign"}
