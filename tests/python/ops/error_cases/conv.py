"""What a convolution refuses."""

import tensorflow as tf

import tf_blockdnn as bd

from .calls import BLOCKED, blocked_zeros, conv, raw


def raw_conv(sum=(), **attributes):
    """A 1x1 convolution as the op takes it, with those attributes beside."""
    return raw(
        "blockdnn_conv",
        blocked_zeros(),
        tf.zeros((1, 1, 20, 3)),
        [],
        sum=list(sum),
        weight_scales=[],
        into=[],
        src_layout=BLOCKED,
        dst_layout=BLOCKED,
        channels=20,
        weights_shape=[1, 1, 20, 3],
        **attributes,
    )


# What is wrong -> a call that does it, and the words its message must have.
CASES = {
    "conv: channels": (
        lambda: conv(src=blocked_zeros(40)),
        r"src must be nChw16c, \[N, 2, H, W, 16\] for 20 channels",
    ),
    "conv: plain source in a blocked layout": (
        lambda: conv(src=tf.zeros((1, 6, 7, 20))),
        r"src must be nChw16c.*got \[1,6,7,20\]",
    ),
    "conv: blocked source in a plain layout": (
        lambda: conv(src_layout="nhwc"),
        r"src must be nhwc, \[N, H, W, 20\]",
    ),
    "conv: a sum that nothing reads": (
        lambda: raw_conv(sum=[tf.zeros((2, 1, 6, 7, 16))], padding="SAME"),
        "no entry of post_ops reads the input sum; leave it out",
    ),
    "conv: a sum that is read twice": (
        lambda: raw_conv(
            sum=[tf.zeros((2, 1, 6, 7, 16))], padding="SAME", post_ops="sum(#0);sum(#0)"
        ),
        r'entry 1 "sum\(#0\)": the input sum is for one sum',
    ),
    "conv: unknown layout": (lambda: conv(dst_layout="nChw8c"), r"dst_layout.*nChw8c"),
    "conv: groups": (
        lambda: conv(groups=3, weights=tf.zeros((3, 3, 6, 33)), channels=20),
        r"groups = 3 must divide both the 20 input channels and the 33 output channels",
    ),
    "conv: no groups": (lambda: conv(groups=0, channels=20), r"groups.*minimum 1"),
    "conv: weights of other channels": (
        lambda: conv(weights=tf.zeros((3, 3, 21, 33)), channels=20),
        r"weights_shape \[3, 3, 21, 33\] must have channels / groups = 20 / 1 = 20",
    ),
    "conv: rank of weights_shape": (
        lambda: conv(weights_shape=[3, 3, 20], channels=20),
        r"weights_shape must be \[kh, kw, ic / groups, oc\]",
    ),
    "conv: a zero in weights_shape": (
        lambda: conv(weights_shape=[3, 0, 20, 33]),
        r"weights_shape must be .*at least 1; got \[3, 0, 20, 33\]",
    ),
    "conv: enormous weights_shape": (
        lambda: conv(weights_shape=[2**31 - 1, 2**31 - 1, 20, 2**31 - 1]),
        r"weights_shape .* has too many elements",
    ),
    "conv: weights too small": (
        lambda: conv(weights=tf.zeros(100), weights_shape=[3, 3, 20, 33]),
        r"weights have 100 elements, not the 5940 .* from weights_offset = 0 on",
    ),
    "conv: weights_offset": (
        lambda: conv(weights_offset=1),
        r"weights have 5940 elements, not the 5940 .* from weights_offset = 1 on",
    ),
    "conv: negative weights_offset": (
        lambda: conv(weights_offset=-1),
        r"weights_offset.*minimum 0",
    ),
    "conv: weights without shape": (
        lambda: conv(weights=tf.zeros(5940)),
        r"weights of shape \(5940,\) are not \[kh, kw, .*\]; give weights_shape",
    ),
    "conv: strides": (lambda: conv(strides=0), r"strides must be .*at least 1; got \[0, 0\]"),
    "conv: three strides": (
        lambda: conv(strides=[1, 1, 1]),
        r"strides must be an integer or \[height, width\]",
    ),
    "conv: dilations": (lambda: conv(dilations=[1, -2]), r"dilations must be .*got \[1, -2\]"),
    "conv: padding": (lambda: conv(padding="FULL"), r'padding must be "SAME", "VALID" or'),
    "conv: negative padding": (
        lambda: conv(padding=[[0, -1], [0, 0]]),
        r"explicit_paddings must be .*got \[0, -1, 0, 0\]",
    ),
    "conv: window does not fit": (
        lambda: conv(dilations=6, padding="VALID"),
        r"height: window of 13 elements does not fit into 6",
    ),
    "conv: algorithm": (lambda: conv(algorithm="fft"), r"algorithm.*fft"),
    "conv: explicit_paddings with SAME": (
        lambda: raw_conv(padding="SAME", explicit_paddings=[1, 1, 1, 1]),
        r'explicit_paddings \[1, 1, 1, 1\] need padding="EXPLICIT", not "SAME"',
    ),
    "conv: EXPLICIT without explicit_paddings": (
        lambda: raw_conv(padding="EXPLICIT"),
        r"explicit_paddings must be \[top, bottom, left, right\].*got \[\]",
    ),
    "conv: larger than any memory": (
        lambda: conv(weights=tf.zeros((1, 1, 20, 33)), padding=[[2**30, 2**30]] * 2),
        r"larger than any memory",
    ),
    "fold_batch_norm: a product that overflows": (
        lambda: raw(
            "blockdnn_fold_batch_norm",
            *[tf.zeros(2**16)] * 6,
            channels=2**16,
            inner=2**48,
        ),
        r"inner must be within 2\^47, got 281474976710656",
    ),
    "conv_volume: explicit padding": (
        lambda: bd.ops.conv_volume(
            blocked_zeros(n=2), tf.zeros((1, 1, 1, 20, 3)), depth=2, padding=[[1, 1]] * 3
        ),
        r'padding must be "SAME" or "VALID", got .*tf.pad',
    ),
}
