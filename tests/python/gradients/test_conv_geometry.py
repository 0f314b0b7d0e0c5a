"""Gradients of transposed and 3-D convolutions."""

import plain_formulas as plain
import pytest
import tensorflow as tf
from checked import check

import tf_blockdnn as bd


@pytest.mark.parametrize("function", ["tanh", "softplus"])  # told by the result, and not
@pytest.mark.parametrize("kernel, crops", [(4, (1, 1)), (3, (0, 1)), (1, (0, -1))])
def test_conv_transpose(kernel, crops, function, floats):
    size = 3 * 2 + kernel - sum(crops)

    def formula(x, weights, bias):
        shape = [2, 6 + max(kernel, 2), 6 + max(kernel, 2), 20]
        full = tf.nn.conv2d_transpose(x, weights, shape, 2, "VALID")
        return getattr(tf.math, function)(
            full[:, crops[0] : crops[0] + size, crops[0] : crops[0] + size] + bias
        )

    check(
        lambda x, weights, bias: plain.unblock(
            bd.ops.conv_transpose(
                plain.block(x),
                weights,
                strides=2,
                crops=[crops, crops],
                post_ops=bd.PostOps()
                .binary("add", bias)
                .eltwise({"softplus": "soft_relu"}.get(function, function)),
            ),
            20,
        ),
        formula,
        [floats(2, 4, 4, 5), floats(kernel, kernel, 20, 5), floats(20)],
        second=function == "tanh",
    )


VOLUMES = {
    "stride 1": ((3, 3, 3), (1, 1, 1), "SAME", "tanh"),
    "VALID": ((2, 3, 2), (1, 1, 1), "VALID", "tanh"),
    "even": ((2, 2, 2), (1, 1, 1), "SAME", "tanh"),
    "strided": ((3, 3, 3), (2, 2, 1), "SAME", "tanh"),
    "depth alone": ((3, 1, 1), (3, 1, 1), "SAME", "tanh"),
    "not from the result": ((3, 3, 3), (1, 2, 1), "SAME", "swish"),
}


@pytest.mark.parametrize("case", VOLUMES)
@pytest.mark.parametrize("layout", ["nhwc", "nChw16c"])
def test_conv_volume(layout, case, floats):
    window, strides, padding, function = VOLUMES[case]

    def ours(x, weights):
        slices = tf.reshape(x, [-1, 4, 5, 6])
        src = slices if layout == "nhwc" else plain.block(slices)
        y = bd.ops.conv_volume(
            src,
            weights,
            depth=3,
            strides=strides,
            padding=padding,
            post_ops=f"eltwise({function})",
            src_layout=layout,
            dst_layout=layout,
        )
        return y if layout == "nhwc" else plain.unblock(y, 20)

    def formula(x, weights):
        y = tf.nn.conv3d(x, weights, [1, *strides, 1], padding)
        y = tf.tanh(y) if function == "tanh" else y * tf.sigmoid(y)
        return tf.reshape(y, [-1, *y.shape[2:]])

    check(ours, formula, [floats(2, 3, 4, 5, 6), floats(*window, 6, 20)], second=False)
