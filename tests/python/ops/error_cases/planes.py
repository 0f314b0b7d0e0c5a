"""What ops on height and width refuse."""

import tensorflow as tf

import tf_blockdnn as bd

from .calls import blocked_zeros


def pool(**changes):
    arguments = dict(src=blocked_zeros(), kind="max", ksize=3, channels=20, padding="VALID")
    return bd.ops.pool(**arguments | changes)


# What is wrong -> a call that does it, and the words its message must have.
CASES = {
    "pool: kind": (lambda: pool(kind="min"), r"kind.*min"),
    "pool: channels": (lambda: pool(channels=40), r"src must be nChw16c, \[N, 3, H, W, 16\]"),
    "pool: ksize": (lambda: pool(ksize=[3, 0]), r"ksize must be .*got \[3, 0\]"),
    "pool: strides": (lambda: pool(strides=[0, 1]), r"strides must be .*got \[0, 1\]"),
    "pool: paddings": (
        lambda: pool(padding=[[3, 0], [0, 0]]),
        r"explicit_paddings 3 and 0 must be smaller than ksize 3",
    ),
    "pool: window does not fit": (lambda: pool(ksize=9), r"height: window of 9 elements"),
    "global pool: layout": (
        lambda: bd.ops.global_pool(blocked_zeros(), "avg", channels=20, dst_layout="cn"),
        r"dst_layout.*cn",
    ),
    "global pool: rank": (
        lambda: bd.ops.global_pool(tf.zeros((1, 6, 7, 20)), "avg", channels=20),
        r"src must be nChw16c",
    ),
    # A plan has an entry for each row and column.
    "resize: more rows than a plan holds": (
        lambda: bd.ops.resize(blocked_zeros(), channels=20, kind="nearest", size=[2**31 - 1, 1]),
        r"size must be \[height, width\], each from 1 to 16777216",
    ),
    "resize: scales to more rows than a plan holds": (
        lambda: bd.ops.resize(blocked_zeros(), channels=20, kind="nearest", scales=[2**22, 1]),
        r"6 pixels times 4194304 are more than 16777216",
    ),
    # TensorFlow's own shapes end the process where their elements do not fit int64.
    "resize: larger than any memory": (
        lambda: bd.ops.resize(
            tf.zeros((2**10, 1, 1, 1, 16)), channels=1, kind="nearest", size=[2**22] * 2
        ),
        r"a tensor of \[1024,1,4194304,4194304,16\] is larger than any memory",
    ),
    "pool: bytes that stand for nothing": (
        lambda: pool(src=tf.cast(blocked_zeros(), tf.uint8)),
        r"src_quantization of a uint8 tensor must be \[scale, zero_point\], .*got \[\]",
    ),
    "pool: quantization of floats": (
        lambda: pool(src_quantization=(1, 0)),
        "src_quantization is for uint8; src is float32, so leave it out",
    ),
    "pool: zero point": (
        lambda: pool(dtype=tf.uint8, dst_quantization=(1, 256)),
        r"dst_quantization of a uint8 tensor must be .*got \[1, 256\]",
    ),
    "pool: scale": (
        lambda: pool(dtype=tf.uint8, dst_quantization=(0, 1)),
        r"dst_quantization of a uint8 tensor must be .*got \[0, 1\]",
    ),
    "resize: into of another type": (
        lambda: bd.ops.resize(
            blocked_zeros(),
            "nearest",
            channels=20,
            scales=1,
            dtype=tf.bfloat16,
            into=blocked_zeros(),
        ),
        "into must have the type of the result, bfloat16; got float32",
    ),
    "pad: bytes that stand for nothing": (
        lambda: bd.ops.pad(tf.cast(blocked_zeros(), tf.uint8), [[1, 0], [0, 0]], channels=20),
        "src_quantization of a uint8 tensor must be",
    ),
    "pad: larger than any memory": (
        lambda: bd.ops.pad(blocked_zeros(), [[2**30, 2**30]] * 2, channels=20),
        r"larger than any memory",
    ),
}
