"""What holds with TF_BLOCKDNN_CHECK_TAILS=1; test_check_tails.py runs it in a process with that."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.native import library

SWITCH = "TF_BLOCKDNN_CHECK_TAILS"
CHANNELS = 20


def zeros(n=2, h=3, w=4):
    return np.zeros((n, 2, h, w, 16), np.float32)


def broken(**sizes):
    """20 channels, and not zero at [n=1, c=30, h=2, w=0] or where that falls in a smaller plane."""
    x = zeros(**sizes)
    x[1, 1, min(2, x.shape[2] - 1), 0, 14] = 0.5
    return x


def weights(*shape):
    return np.zeros(shape, np.float32)


def conv(src, **options):
    return bd.ops.conv(src, weights(1, 1, 20, 20), **{"padding": "SAME"} | options)


def conv_depthwise(src, **options):
    options = {"padding": "SAME"} | options
    return bd.ops.conv_depthwise(src, weights(1, 1, 20, 20), weights(3, 3, 20, 1), **options)


def backward_weights(src, ddst):
    return library().blockdnn_conv_backward_weights(
        src,
        ddst,
        src_layout="nChw16c",
        dst_layout="nChw16c",
        channels=CHANNELS,
        weights_shape=[3, 3, 20, 20],
        padding="SAME",
    )


def pool_grad(ddst, src, dst):
    """A window of one pixel, so that all three have one shape."""
    return library().blockdnn_pool_grad(
        ddst, src, dst, kind="max", channels=CHANNELS, ksize=[1, 1], padding="VALID"
    )


def batch_norm(src):
    return library().blockdnn_batch_norm(src, weights(20), weights(20), channels=CHANNELS)


def batch_norm_grad(ddst, src):
    rows = [weights(20)] * 6
    return library().blockdnn_batch_norm_grad(ddst, src, *rows, channels=CHANNELS)


def layer_norm_grad(ddst, src):
    return library().blockdnn_layer_norm_grad(
        ddst, src, weights(20), channels=CHANNELS, epsilon=1e-3
    )


# op, the input that is broken -> a call.
CALLS = {
    ("BlockdnnReorder", "src"): lambda x: bd.ops.reorder(x, "nChw16c", "nhwc", channels=CHANNELS),
    ("BlockdnnConv", "src"): conv,
    ("BlockdnnConv", "args[0]"): lambda x: conv(zeros(), post_ops="sum(#0)", args=[x]),
    ("BlockdnnConv", "args[1]"): lambda x: conv(
        zeros(),
        post_ops="binary(add,channel,#0);eltwise(relu);binary(mul,tensor,#1)",
        args=[weights(20), x],
    ),
    ("BlockdnnConvDepthwise", "src"): conv_depthwise,
    ("BlockdnnConvDepthwise", "args[0]"): lambda x: conv_depthwise(
        zeros(), post_ops="sum(#0)", args=[x]
    ),
    ("BlockdnnConvDepthwise", "depthwise_args[1]"): lambda x: conv_depthwise(
        zeros(),
        depthwise_post_ops="binary(add,channel,#0);sum(#1)",
        depthwise_args=[weights(20), x],
    ),
    ("BlockdnnConvBackwardWeights", "src"): lambda x: backward_weights(x, zeros()),
    ("BlockdnnConvBackwardWeights", "ddst"): lambda x: backward_weights(zeros(), x),
    ("BlockdnnBatchNorm", "src"): batch_norm,
    ("BlockdnnBatchNormGrad", "ddst"): lambda x: batch_norm_grad(x, zeros()),
    ("BlockdnnBatchNormGrad", "src"): lambda x: batch_norm_grad(zeros(), x),
    ("BlockdnnConvTranspose", "src"): lambda x: bd.ops.conv_transpose(x, weights(2, 2, 20, 20)),
    ("BlockdnnConvTranspose", "args[0]"): lambda x: bd.ops.conv_transpose(
        zeros(), weights(1, 1, 20, 20), post_ops="sum(#0)", args=[x]
    ),
    ("BlockdnnConvVolume", "src"): lambda x: bd.ops.conv_volume(
        x, weights(1, 1, 1, 20, 20), depth=1, padding="SAME"
    ),
    ("BlockdnnConvVolume", "args[0]"): lambda x: bd.ops.conv_volume(
        zeros(), weights(1, 1, 1, 20, 20), depth=2, post_ops="sum(#0)", args=[x], padding="SAME"
    ),
    ("BlockdnnInnerProduct", None): lambda x: bd.ops.inner_product(x, weights(16, 20)),
    ("BlockdnnSoftmax", None): bd.ops.softmax,
    ("BlockdnnLayerNorm", "src"): lambda x: bd.ops.layer_norm(
        x, weights(20), weights(20), channels=CHANNELS
    ),
    ("BlockdnnLayerNormGrad", "ddst"): lambda x: layer_norm_grad(x, zeros()),
    ("BlockdnnLayerNormGrad", "src"): lambda x: layer_norm_grad(zeros(), x),
    ("BlockdnnPad", "src"): lambda x: bd.ops.pad(x, [[1, 0], [0, 1]], channels=CHANNELS),
    ("BlockdnnEltwise", "src"): lambda x: bd.ops.eltwise(x, "eltwise(exp)", channels=CHANNELS),
    ("BlockdnnEltwise", "args[0]"): lambda x: bd.ops.eltwise(
        zeros(), "binary(max,tensor,#0)", args=[x], channels=CHANNELS
    ),
    ("BlockdnnPool", "src"): lambda x: bd.ops.pool(x, "max", 2, channels=CHANNELS, padding="VALID"),
    ("BlockdnnPoolGrad", "ddst"): lambda x: pool_grad(x, zeros(), zeros()),
    ("BlockdnnPoolGrad", "src"): lambda x: pool_grad(zeros(), x, zeros()),
    ("BlockdnnPoolGrad", "dst"): lambda x: pool_grad(zeros(), zeros(), x),
    ("BlockdnnResize", "src"): lambda x: bd.ops.resize(x, "nearest", channels=CHANNELS, scales=2),
    ("BlockdnnGlobalPool", "src"): lambda x: bd.ops.global_pool(x, "avg", channels=CHANNELS),
    ("BlockdnnSqueezeExcite", "src"): lambda x: bd.ops.squeeze_excite(
        x, weights(20, 4), weights(4), weights(4, 20), weights(20), channels=CHANNELS, squeezed=4
    ),
    ("BlockdnnShuffle", "src"): lambda x: bd.ops.shuffle(
        x, 1, 4, layout="nChw16c", channels=CHANNELS
    ),
    ("BlockdnnConcat", "values[1]"): lambda x: bd.ops.concat(
        [zeros(), x, zeros()], channels=[32, CHANNELS, CHANNELS]
    ),
}
each_call = pytest.mark.parametrize("op, name", CALLS, ids=lambda value: str(value))


def complaint(op, name, node=r"\w+", made_by="", at=r"\[n=1, c=30, h=2, w=0\]"):
    return (
        rf'{SWITCH}: {op} "{node}": input {re.escape(name)}{made_by} is 0.5 at {at}, '
        rf"in the tail of nChw16c \[2, {CHANNELS}, .*\], where all must be zero; what made it must"
    )


@each_call
def test_broken_input(op, name):
    """Run eagerly, then in a graph, where the node that made the input is named as well."""
    call = CALLS[op, name]
    call(zeros())
    if name is None:  # A plain op: whatever it reads is data.
        call(broken())
        return
    with pytest.raises(tf.errors.InvalidArgumentError, match=complaint(op, name)):
        call(broken())

    @tf.function
    def graph(x):
        return call(tf.abs(x, name="guilty"))

    graph(zeros())
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=complaint(op, name, made_by=', made by "guilty",')
    ):
        graph(broken())
    graph(zeros())


def test_operand_of_one_element_a_channel_and_sample():
    x = broken(h=1, w=1)
    at = r"\[n=1, c=30, h=0, w=0\]"
    with pytest.raises(
        tf.errors.InvalidArgumentError, match=complaint("BlockdnnConv", "args[0]", at=at)
    ):
        conv(zeros(), post_ops="binary(mul,sample_channel,#0)", args=[x])


def test_parts_of_wider_tensors():
    """What lies beside a part may be anything; the tail of the wider tensor is the last part's."""
    wide = np.full((2, 4, 3, 4, 16), np.nan, np.float32)  # of 52 channels
    pool = dict(strides=1, padding="SAME")
    wide[:, 1] = 1
    bd.ops.pool(wide, "max", 2, channels=16, src_part=(16, 52), dst_part=(16, 52), **pool)
    wide[:, 2:] = broken()
    message = r"is 0.5 at \[n=1, c=62, h=2, w=0\], in the tail of nChw16c \[2, 52, 3, 4\]"
    bd.ops.pool(wide, "max", 2, channels=16, src_part=(16, 52), **pool)
    with pytest.raises(tf.errors.InvalidArgumentError, match="input src.* " + message):
        bd.ops.pool(wide, "max", 2, channels=20, src_part=(32, 52), **pool)


def test_tails_of_bytes_hold_the_zero_point():
    x = np.full((2, 2, 3, 4, 16), 7, np.uint8)
    types, pool = {"src_quantization": (0.5, 7)}, {"padding": "SAME"}
    calls = [
        lambda x: bd.ops.pool(x, "max", 2, channels=CHANNELS, **pool, **types),
        lambda x: bd.ops.concat([x, x], channels=[20, 20], src_quantizations=[(0.5, 7)] * 2),
        lambda x: bd.ops.shuffle(x, 1, 4, layout="nChw16c", channels=CHANNELS, **types),
        lambda x: bd.ops.eltwise(x, "eltwise(relu)", channels=CHANNELS, **types),
        lambda x: bd.ops.reorder(
            x, "nChw16c", "nhwc", channels=CHANNELS, dtype=tf.float32, **types
        ),
        lambda x: bd.ops.conv(
            x, np.ones((1, 1, 20, 20), np.int8), weight_scales=weights(20) + 1, **pool, **types
        ),
    ]
    for call in calls:
        call(x)
    x[1, 1, 2, 0, 14] = 0
    message = r"is 0 at \[n=1, c=30, h=2, w=0\].*, where all must be the zero point, 7"
    for call in calls:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            call(x)


def test_wrong_shapes_have_their_own_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="src must be nChw16c"):
        bd.ops.pool(
            np.ones((2, 3, 4, 16), np.float32), "max", 2, channels=CHANNELS, padding="VALID"
        )


def test_reorder_of_weights_and_of_strided_memory():
    """Any layout, any type, a part of a larger memory."""
    weights = np.zeros((1, 2, 3, 3, 8, 8), np.int8)  # o = 5, i = 9
    src = bd.TensorDesc((5, 9, 3, 3), "int8", "OIhw8i8o")
    assert bd.ops.reorder(weights, src, "oihw").shape == (5, 9, 3, 3)
    for o, i in ((5, 0), (0, 9)):
        bad = weights.copy()
        bad[0, i // 8, 1, 2, i % 8, o] = 3
        message = rf"input src is 3 at \[o={o}, i={i}, h=1, w=2\], in the tail of OIhw8i8o"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            bd.ops.reorder(bad, src, "oihw")
    part = bd.TensorDesc((2, 9, 3), "float32", "nCw8c", strides=(60, 30, 8), offset=7)
    memory = np.ones(part.size, np.float32)  # also where the part has holes
    for index in np.ndindex(part.padded_dims):
        memory[part.offset(*index)] = index[1] < 9
    assert bd.ops.reorder(memory, part, "ncw").shape == (2, 9, 3)
    memory[part.offset(1, 12, 2)] = -1
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is -1 at \[n=1, c=12, w=2\]"):
        bd.ops.reorder(memory, part, "ncw")


def test_a_healthy_network(floats):
    """Convolutions, a sum, concatenation and pools with channels that fill no block."""
    image = keras.Input((24, 24, 3))
    x = keras.layers.Conv2D(20, 3, activation="sigmoid")(image)
    y = keras.layers.Conv2D(20, 3, padding="same", use_bias=False)(x)
    y = keras.layers.BatchNormalization()(y)
    x = keras.layers.Add()([x, keras.layers.Activation("softplus")(y)])
    x = keras.layers.Concatenate()([x, keras.layers.DepthwiseConv2D(3, padding="same")(x)])
    x = keras.layers.MaxPooling2D(2)(x)
    x = keras.layers.Conv2D(33, 1)(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    model = keras.Model(image, keras.layers.Dense(5)(x))
    fast = bd.optimize(model)
    assert fast.report.counts()["BlockdnnConv"] >= 4
    images = floats(2, 24, 24, 3)
    np.testing.assert_allclose(fast(images), model(images), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", ["conv", "eltwise"])
def test_a_plain_operand_of_bytes_gets_its_zero_point(op):
    """The tail of what is laid out in blocks stands for zero, as that of every uint8 tensor."""
    operand = tf.constant(np.full((2, 3, 4, CHANNELS), 92, np.uint8))
    options = {"post_ops": bd.PostOps().sum(operand=operand), "sum_quantization": (0.5, 90)}
    if op == "conv":
        filters, src = tf.zeros((1, 1, 20, 20), tf.bfloat16), tf.zeros((2, 2, 3, 4, 16), "bfloat16")
        y = bd.ops.conv(src, filters, padding="SAME", **options)
    else:
        y = bd.ops.eltwise(zeros(), channels=CHANNELS, **options)
    assert np.sum(y == 1.0) == 2 * 3 * 4 * CHANNELS
