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


def conv_depthwise(**changes):
    arguments = dict(
        src=tf.zeros((1, 2, 6, 7, 16)),
        weights=tf.zeros((1, 1, 20, 33)),
        depthwise_weights=tf.zeros((3, 3, 33, 1)),
        padding="SAME",
    )
    return bd.ops.conv_depthwise(**arguments | changes)


def pooled(**changes):
    arguments = dict(src=tf.zeros((1, 1, 8, 8, 16)), weights=tf.zeros((3, 3, 16, 16)))
    return conv(**arguments | changes)


def conv_transpose(shape=(1, 1, 4, 4, 16), **changes):
    arguments = dict(strides=2) | changes
    return bd.ops.conv_transpose(tf.zeros(shape), tf.zeros((3, 3, 16, 16)), **arguments)


def conv_volume(shape=(4, 1, 4, 4, 16), **changes):
    arguments = dict(depth=4, padding="SAME") | changes
    return bd.ops.conv_volume(tf.zeros(shape), tf.zeros((3, 3, 3, 16, 16)), **arguments)


def of_bytes(**changes):
    arguments = dict(
        src=tf.zeros((2, 2, 8, 9, 16), tf.uint8),
        weights=tf.zeros((3, 3, 20, 33), tf.int8),
        src_quantization=(0.05, 117),
        weight_scales=tf.ones(33),
    )
    return conv(**arguments | changes)


# The words of a message -> a call that it refuses.
CASES = {
    r"src must be nChw16c, \[N, 2, H, W, 16\] for 20 channels": lambda: conv(src=blocked_zeros(40)),
    r"src must be nChw16c.*got \[1,6,7,20\]": lambda: conv(src=tf.zeros((1, 6, 7, 20))),
    r"src must be nhwc, \[N, H, W, 20\]": lambda: conv(src_layout="nhwc"),
    "no entry of post_ops reads the input sum; leave it out": lambda: raw_conv(
        sum=[tf.zeros((2, 1, 6, 7, 16))], padding="SAME"
    ),
    r'entry 1 "sum\(#0\)": the input sum is for one sum': lambda: raw_conv(
        sum=[tf.zeros((2, 1, 6, 7, 16))], padding="SAME", post_ops="sum(#0);sum(#0)"
    ),
    r"dst_layout.*nChw8c": lambda: conv(dst_layout="nChw8c"),
    r"groups = 3 must divide both the 20 input channels and the 33 output channels": lambda: conv(
        groups=3, weights=tf.zeros((3, 3, 6, 33)), channels=20
    ),
    r"groups.*minimum 1": lambda: conv(groups=0, channels=20),
    r"weights_shape \[3, 3, 21, 33\] must have channels / groups = 20 / 1 = 20": lambda: conv(
        weights=tf.zeros((3, 3, 21, 33)), channels=20
    ),
    r"weights_shape must be \[kh, kw, ic / groups, oc\]": lambda: conv(
        weights_shape=[3, 3, 20], channels=20
    ),
    r"weights_shape must be .*at least 1; got \[3, 0, 20, 33\]": lambda: conv(
        weights_shape=[3, 0, 20, 33]
    ),
    r"weights_shape .* has too many elements": lambda: conv(
        weights_shape=[2**31 - 1, 2**31 - 1, 20, 2**31 - 1]
    ),
    r"weights have 100 elements, not the 5940 .* from weights_offset = 0 on": lambda: conv(
        weights=tf.zeros(100), weights_shape=[3, 3, 20, 33]
    ),
    r"weights have 5940 elements, not the 5940 .* from weights_offset = 1 on": lambda: conv(
        weights_offset=1
    ),
    r"weights_offset.*minimum 0": lambda: conv(weights_offset=-1),
    r"weights of shape \(5940,\) are not \[kh, kw, .*\]; give weights_shape": lambda: conv(
        weights=tf.zeros(5940)
    ),
    r"strides must be .*at least 1; got \[0, 0\]": lambda: conv(strides=0),
    r"strides must be an integer or \[height, width\]": lambda: conv(strides=[1, 1, 1]),
    r"dilations must be .*got \[1, -2\]": lambda: conv(dilations=[1, -2]),
    r'padding must be "SAME", "VALID" or': lambda: conv(padding="FULL"),
    r"explicit_paddings must be .*got \[0, -1, 0, 0\]": lambda: conv(padding=[[0, -1], [0, 0]]),
    r"height: window of 13 elements does not fit into 6": lambda: conv(
        dilations=6, padding="VALID"
    ),
    "how: 'fft' is none of the words auto, direct": lambda: conv(how="fft"),
    r'explicit_paddings \[1, 1, 1, 1\] need padding="EXPLICIT", not "SAME"': lambda: raw_conv(
        padding="SAME", explicit_paddings=[1, 1, 1, 1]
    ),
    r"explicit_paddings must be \[top, bottom, left, right\].*got \[\]": lambda: raw_conv(
        padding="EXPLICIT"
    ),
    r"larger than any memory": lambda: conv(
        weights=tf.zeros((1, 1, 20, 33)), padding=[[2**30, 2**30]] * 2
    ),
    r"inner must be within 2\^47, got 281474976710656": lambda: raw(
        "blockdnn_fold_batch_norm", *[tf.zeros(2**16)] * 6, channels=2**16, inner=2**48
    ),
    r'padding must be "SAME" or "VALID", got .*tf.pad': lambda: bd.ops.conv_volume(
        blocked_zeros(n=2), tf.zeros((1, 1, 1, 20, 3)), depth=2, padding=[[1, 1]] * 3
    ),
    r"weights_shape \[3, 3, 20, 33\] must be \[1, 1,": lambda: conv_depthwise(
        weights=tf.zeros((3, 3, 20, 33))
    ),
    "weights of shape .* are not .kh, kw, .*; give weights": lambda: conv_depthwise(
        weights=tf.zeros((20, 33))
    ),
    r"depthwise_weights_shape \[3, 3, 20, 1\] must be \[kh, kw, 1, 33\]": lambda: conv_depthwise(
        depthwise_weights=tf.zeros((3, 3, 20, 1))
    ),
    r"depthwise: weights_shape|depthwise_weights_shape": lambda: conv_depthwise(
        depthwise_weights_shape=[3, 3]
    ),
    "depthwise: weights have 297 elements, not the 297": lambda: conv_depthwise(
        depthwise_weights_offset=9
    ),
    "src must be nChw16c": lambda: conv_depthwise(src=tf.zeros((1, 3, 6, 7, 16))),
    "depthwise: strides must be": lambda: conv_depthwise(strides=0),
    "depthwise: explicit_paddings must be": lambda: conv_depthwise(padding=[[9, 0], [0, -1]]),
    'padding must be "SAME"': lambda: conv_depthwise(padding="same-ish"),
    "depthwise: height: ": lambda: conv_depthwise(
        depthwise_weights=tf.zeros((9, 9, 33, 1)), padding="VALID"
    ),
    "previous contents of dst": lambda: conv_depthwise(post_ops="sum()"),
    "has 3 elements": lambda: conv_depthwise(post_ops="binary(add,channel,#0)", args=[tf.zeros(3)]),
    "depthwise: post_ops entry 0 .* has 3 elements": lambda: conv_depthwise(
        depthwise_post_ops="binary(add,channel,#0)", depthwise_args=[tf.zeros(3)]
    ),
    "what": lambda: conv_depthwise(depthwise_post_ops="eltwise(what)"),
    "how: 'mine' is none of the words": lambda: conv_depthwise(how="mine"),
    r"pool must be \[2, 2\] or nothing; got \[3, 3\]: use an op of its own": lambda: pooled(pool=3),
    r"pool must be \[2, 2\]": lambda: pooled(pool=[2, 1]),
    r"pool must be an integer or \[height, width\]": lambda: pooled(pool=(2, 2, 2)),
    "pool must be an integer or": lambda: pooled(pool="2"),
    "pool needs dst_layout nChw16c; reorder its result": lambda: pooled(pool=2, dst_layout="nhwc"),
    r"shape and layout of dst before pooling, \[1,1,8,8,16\]; got \[1,1,4,4,16\]": lambda: pooled(
        pool=2, post_ops="sum(#0)", args=[tf.zeros((1, 1, 4, 4, 16))]
    ),
    r"src must be nChw16c.*got \[1,1,4,4,8\]": lambda: conv_transpose((1, 1, 4, 4, 8)),
    "channels = 15": lambda: conv_transpose(channels=15),
    "strides": lambda: conv_transpose(strides=0),
    "negative": lambda: conv_transpose(crops=[[-1, 0], [0, 0]]),
    "exceed": lambda: conv_transpose(crops=[[9, 9], [0, 0]]),
    "weights have": lambda: conv_transpose(weights_offset=1),
    "weights_shape": lambda: conv_transpose(weights_shape=[3, 3, 16]),
    "dst=": lambda: conv_transpose(post_ops="sum()"),
    r"src must be nChw16c.*got \[4,1,4,4,8\]": lambda: conv_volume((4, 1, 4, 4, 8)),
    "no whole volumes of 4": lambda: conv_volume((5, 1, 4, 4, 16)),
    "5 slices, .* not 2 volumes": lambda: conv_volume(
        (5, 1, 4, 4, 16), depth=0, volumes=tf.zeros([2, 9])
    ),
    "4 slices, .* not 0 volumes": lambda: conv_volume(depth=0, volumes=tf.zeros([0])),
    "volumes must have a batch": lambda: conv_volume(depth=0, volumes=0.0),
    "a tensor of volumes where depth is 0": lambda: conv_volume(depth=0),
    "of volumes where depth is 0, and only there": lambda: conv_volume(volumes=tf.zeros([1])),
    "channels = 1": lambda: conv_volume(channels=15),
    "strides must": lambda: conv_volume(strides=[1, 0, 1]),
    "weights_shape must": lambda: conv_volume(weights_shape=[3, 3, 16, 16]),
    "weights have .* elements": lambda: conv_volume(weights_offset=1),
    "src_quantization of a uint8 tensor must be": lambda: of_bytes(src_quantization=None),
    r"must be \[scale, zero_point\].*got \[0, 3\]": lambda: of_bytes(src_quantization=(0.0, 3)),
    r"must be \[scale, zero_point\].*got \[1, 3.5\]": lambda: of_bytes(src_quantization=(1.0, 3.5)),
    r"must be \[scale, zero_point\].*got \[(1e-38|0), 3\]": lambda: of_bytes(
        src_quantization=(1e-38, 3)
    ),
    r"must be \[scale, zero_point\].*got \[1, (1.4|0)": lambda: of_bytes(
        src_quantization=(1, 1e-45)
    ),
    "weights of int8 need weight_scales, one tensor": lambda: of_bytes(weight_scales=None),
    r"weight_scales must be \[33\]": lambda: of_bytes(weight_scales=tf.ones(3)),
    "dst_quantization of a uint8 tensor must be": lambda: of_bytes(dtype=tf.uint8),
    "dst_quantization is for uint8; dst is float32": lambda: of_bytes(dst_quantization=(1, 2)),
    r"src_quantization must be \(scale, zero_point\)": lambda: of_bytes(src_quantization="high"),
    "into must have the type of the result, float32; got uint8": lambda: of_bytes(
        into=tf.zeros((2, 3, 8, 9, 16), tf.uint8)
    ),
    "sum_quantization is for uint8": lambda: of_bytes(sum_quantization=(1, 2)),
}
# Those of kernels, of which no shape tells.
OF_KERNELS = {
    "pools where Winograd's tiles hold whole windows": lambda: pooled(
        pool=2, post_ops="eltwise(swish)"
    ),
    "pools where Winograd's tiles hold": lambda: pooled(pool=2, how="direct"),
    "at most 16": lambda: conv_transpose(strides=[1, 17]),
    # Plans have an entry for each row of a stride: 2^31 of them would end the process.
    "strides of at most 65536": lambda: conv(strides=[2**31 - 1, 1]),
    "fewer than 16": lambda: conv_transpose(dst_layout="nhwc"),
}
