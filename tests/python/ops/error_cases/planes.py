"""What ops on height and width refuse."""

import tensorflow as tf

import tf_blockdnn as bd

from .calls import blocked_zeros


def pool(**changes):
    arguments = dict(src=blocked_zeros(), kind="max", ksize=3, channels=20, padding="VALID")
    return bd.ops.pool(**arguments | changes)


def resize(shape=(1, 1, 4, 4, 16), **changes):
    return bd.ops.resize(tf.zeros(shape), "nearest", **dict(channels=16, scales=2) | changes)


# The words of a message -> a call that it refuses.
CASES = {
    r"kind.*min": lambda: pool(kind="min"),
    r"src must be nChw16c, \[N, 3, H, W, 16\]": lambda: pool(channels=40),
    r"ksize must be .*got \[3, 0\]": lambda: pool(ksize=[3, 0]),
    r"strides must be .*got \[0, 1\]": lambda: pool(strides=[0, 1]),
    r"explicit_paddings 3 and 0 must be smaller than ksize 3": lambda: pool(
        padding=[[3, 0], [0, 0]]
    ),
    r"height: window of 9 elements": lambda: pool(ksize=9),
    r"dst_layout.*cn": lambda: bd.ops.global_pool(
        blocked_zeros(), "avg", channels=20, dst_layout="cn"
    ),
    r"src must be nChw16c": lambda: bd.ops.global_pool(tf.zeros((1, 6, 7, 20)), "avg", channels=20),
    # A plan has an entry for each row and column.
    r"size must be \[height, width\], each from 1 to 16777216": lambda: bd.ops.resize(
        blocked_zeros(), channels=20, kind="nearest", size=[2**31 - 1, 1]
    ),
    r"6 pixels times 4194304 are more than 16777216": lambda: bd.ops.resize(
        blocked_zeros(), channels=20, kind="nearest", scales=[2**22, 1]
    ),
    # TensorFlow's own shapes end the process where their elements do not fit int64.
    r"a tensor of \[1024,1,4194304,4194304,16\] is larger than any memory": lambda: bd.ops.resize(
        tf.zeros((2**10, 1, 1, 1, 16)), channels=1, kind="nearest", size=[2**22] * 2
    ),
    r"src_quantization of a uint8 tensor must be \[scale, zero_point\], .*got \[\]": lambda: pool(
        src=tf.cast(blocked_zeros(), tf.uint8)
    ),
    "src_quantization is for uint8; src is float32, so leave it out": lambda: pool(
        src_quantization=(1, 0)
    ),
    r"dst_quantization of a uint8 tensor must be .*got \[1, 256\]": lambda: pool(
        dtype=tf.uint8, dst_quantization=(1, 256)
    ),
    r"dst_quantization of a uint8 tensor must be .*got \[0, 1\]": lambda: pool(
        dtype=tf.uint8, dst_quantization=(0, 1)
    ),
    "into must have the type of the result, bfloat16; got float32": lambda: bd.ops.resize(
        blocked_zeros(), "nearest", channels=20, scales=1, dtype=tf.bfloat16, into=blocked_zeros()
    ),
    "src_quantization of a uint8 tensor must be": lambda: bd.ops.pad(
        tf.cast(blocked_zeros(), tf.uint8), [[1, 0], [0, 0]], channels=20
    ),
    r"larger than any memory": lambda: bd.ops.pad(
        blocked_zeros(), [[2**30, 2**30]] * 2, channels=20
    ),
    r"src must be nChw16c.*got \[1,1,4,4,8\]": lambda: resize((1, 1, 4, 4, 8)),
    "either scales or size": lambda: resize(scales=0),
    "either scales or": lambda: resize(size=[2, 2]),
    "either scales": lambda: resize(scales=None),
}
# Those of kernels, of which no shape tells.
OF_KERNELS = {
    "no pixels": lambda: resize((1, 1, 0, 4, 16), scales=None, size=[2, 2]),
}
