"""What ops that move values refuse."""

import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.ops.records import Shuffle

from .calls import BLOCKED, blocked_zeros, raw


def desc(layout, dims=(3, 4)):
    return bd.TensorDesc(dims, layout=layout)


def reorder_desc(**changes):
    """A valid reorder of [3, 4] from nc to cn, but for `changes`."""
    arguments = dict(x=tf.zeros((3, 4)), src=desc("nc"), dst=desc("cn")) | changes
    return bd.ops.reorder(**arguments)


def concat_parts(parts):
    values = [tf.zeros((1, 1, 2, 2, 16)), tf.zeros((1, 3, 2, 2, 16))]
    return bd.ops.concat(values, channels=[7, 20], src_parts=parts)


# The words of a message -> a call that it refuses.
CASES = {
    r"src must be nhwc, \[N, H, W, 6\]; got \[1,2,2,5\]": lambda: bd.ops.reorder(
        tf.zeros((1, 2, 2, 5)), "nhwc", BLOCKED, channels=6
    ),
    r"src must be nhwc, \[N, H, W, 5\]; got \[2,2,5\]": lambda: bd.ops.reorder(
        tf.zeros((2, 2, 5)), "nhwc", BLOCKED, channels=5
    ),
    r"src must be nChw16c, \[N, 3, H, W, 16\] for 33 channels; got \[1,2,6,7,16\]": lambda: (
        bd.ops.reorder(blocked_zeros(17), BLOCKED, "nhwc", channels=33)
    ),
    r"src must be nChw16c.*got \[1,2,6,7,8\]": lambda: bd.ops.reorder(
        tf.zeros((1, 2, 6, 7, 8)), BLOCKED, "nhwc", channels=20
    ),
    r'dst_layout: unknown layout "hcwn": names are like nhwc, nChw16c, OIhw16i16o': lambda: (
        bd.ops.reorder(tf.zeros((1, 2, 2, 5)), "nhwc", "hcwn")
    ),
    r"dst_layout ncw has 3 dimensions, not the 4 of the reorder": lambda: bd.ops.reorder(
        tf.zeros((1, 2, 2, 5)), "nhwc", "ncw"
    ),
    r"dims must give dimension 1 \(i\): a tensor in OIhw8i8o does not tell": lambda: raw(
        "blockdnn_reorder",
        tf.zeros((1, 2, 3, 3, 8, 8)),
        into=[],
        src_layout="OIhw8i8o",
        dst_layout="oihw",
    ),
    r"dims must list the 1 to 6 logical dimensions; got 0": lambda: raw(
        "blockdnn_reorder", tf.zeros(4), into=[], src_layout="", dst_layout="", src_strides=[1]
    ),
    r"dims must be given in full where dst has strides or an offset": lambda: raw(
        "blockdnn_reorder",
        tf.zeros(4),
        into=[],
        src_layout="nhwc",
        dst_layout="nchw",
        dst_strides=[1, 1, 1, 1],
    ),
    r"src must be OIhw8i8o, \[3, 2, 3, 3, 8, 8\] for 17 output channels and 9 input channels; "
    r"got \[2,2,3,3,8,8\]": lambda: reorder_desc(
        x=tf.zeros((2, 2, 3, 3, 8, 8)), src=desc("OIhw8i8o", (17, 9, 3, 3)), dst="oihw"
    ),
    r"src has 10 elements, not the 20 that float32 \[3, 4\] strides \[8, 1\] needs": lambda: (
        reorder_desc(x=tf.zeros(10), src=bd.TensorDesc((3, 4), strides=(8, 1)))
    ),
    r"into has 19 elements, not the 20": lambda: reorder_desc(
        dst=bd.TensorDesc((3, 4), strides=(8, 1)), into=tf.zeros(19)
    ),
    r"into must be cn, \[4, 3\]; got \[3,4\]": lambda: reorder_desc(into=tf.zeros((3, 4))),
    r"strides \[3, 1\] of dst, with dims \[3, 4\], let its elements overlap": lambda: reorder_desc(
        dst=bd.TensorDesc((3, 4), strides=(3, 1))
    ),
    r"reorder needs equal dims; src has \(3, 4\), dst \(4, 3\)": lambda: reorder_desc(
        dst=desc("nc", (4, 3))
    ),
    r"scales must be one number, or have 2 dimensions as dims .*; got 1 dimension": lambda: (
        reorder_desc(scales=[1, 2, 3, 4])
    ),
    r"scales of shape \[1, 3\] do not fit dims \[3, 4\]: each .* the same, or 1": lambda: (
        reorder_desc(scales=[[1, 2, 3]])
    ),
    r"into must be one tensor of dst_type int8": lambda: raw(
        "blockdnn_reorder",
        tf.zeros((3, 4)),
        into=[tf.zeros((3, 4))],
        dst_type=tf.int8,
        src_layout="nc",
        dst_layout="nc",
    ),
    r"x is float32, but src describes int8": lambda: reorder_desc(
        src=bd.TensorDesc((3, 4), "int8", "nc")
    ),
    r"into is int8, but the result float32": lambda: reorder_desc(into=tf.zeros((4, 3), tf.int8)),
    r"beta = 2.0 is the factor of into, which is not given": lambda: reorder_desc(beta=2.0),
    r"channels are for layouts given by name; a TensorDesc has its dims": lambda: reorder_desc(
        channels=4
    ),
    r"dtype is for a dst given by name; a TensorDesc has its own": lambda: reorder_desc(
        dtype=tf.int8
    ),
    r"src must be a TensorDesc as dst is one; got 'nc'": lambda: reorder_desc(src="nc"),
    r"src must be a TensorDesc: a tensor of layout OIhw8i8o does not tell its dims": lambda: (
        bd.ops.reorder(tf.zeros((1, 2, 3, 3, 8, 8)), "OIhw8i8o", "oihw")
    ),
    r"channels.*minimum -1": lambda: bd.ops.reorder(blocked_zeros(), BLOCKED, "nhwc", channels=-2),
    r"channels must be given": lambda: bd.ops.reorder(blocked_zeros(), BLOCKED, "nhwc"),
    r"axis = -3 is none of values\[0\], \[2,3\]": lambda: bd.ops.join([tf.zeros((2, 3))], axis=-3),
    r"values\[1\] \[3,3\] must have the sizes of the values before it, \[2,\?\], except along "
    r"axis 1": lambda: bd.ops.join([tf.zeros((2, 3)), tf.zeros((3, 3))], axis=1),
    r"values\[1\] \[3\] must have the sizes of the values before it, \[\?,3\], "
    r"except along axis 0": lambda: bd.ops.join([tf.zeros((2, 3)), tf.zeros(3)], axis=0),
    r"update has 4 elements along axis 1, more than the 3 of into: \[2,4\] and \[2,3\]": lambda: (
        bd.ops.update_slice(tf.zeros((2, 3)), tf.zeros((2, 4)), [0, 0])
    ),
    r"update must have 2 axes; got \[3\] for into \[2,3\]": lambda: bd.ops.update_slice(
        tf.zeros((2, 3)), tf.zeros(3), [0, 0]
    ),
    r"start must be \[2\], an index for each axis of update; got \[1\]": lambda: (
        bd.ops.update_slice(tf.zeros((2, 3)), tf.zeros((1, 1)), [0])
    ),
    r"at\[0\] = 3 is no index of axis 1 of into, \[2,3,4\]": lambda: bd.ops.update_slice(
        tf.zeros((2, 3, 4)), tf.zeros((1, 1)), [0, 0], at=[3]
    ),
    r"at has 2 indices after the first axis of into, which is \[2,3\]": lambda: bd.ops.update_slice(
        tf.zeros((2, 3)), tf.zeros(()), [0], at=[0, 0]
    ),
    r"group = 5 must divide the 12 entries of axis -1": lambda: bd.ops.shuffle(
        tf.zeros((2, 5, 12)), -1, 5
    ),
    r"group = 24 must divide the 12 entries of axis 2": lambda: Shuffle.run(
        tf.zeros((2, 5, 12)), axis=2, group=24, backward=True
    ),
    r"group = 3 must divide the 20 entries of axis 1": lambda: bd.ops.shuffle(
        blocked_zeros(), 1, 3, layout=BLOCKED, channels=20
    ),
    r"group must be at least 1, got 0": lambda: bd.ops.shuffle(tf.zeros((2, 12)), 1, 0),
    r"group must be at least 1, got -3": lambda: bd.ops.shuffle(tf.zeros((2, 12)), 1, -3),
    r"axis = 3 is out of range for a tensor of 3 dimensions; it must be in \[-3, 2\]": lambda: (
        bd.ops.shuffle(tf.zeros((2, 5, 12)), 3, 3)
    ),
    r"axis = -4 is out of range": lambda: bd.ops.shuffle(tf.zeros((2, 5, 12)), -4, 3),
    r"axis = 4 is out of range for a tensor of 4 dimensions": lambda: bd.ops.shuffle(
        blocked_zeros(), 4, 4, layout=BLOCKED, channels=20
    ),
    r"src must have 1 to 6 dimensions; got \[\]": lambda: bd.ops.shuffle(tf.zeros(()), 0, 1),
    r"src must have 1 to 6 dimensions; got \[1,1,1,1,1,1,1\]": lambda: bd.ops.shuffle(
        tf.zeros((1,) * 7), 0, 1
    ),
    r"src must be nhwc, of rank 4; got \[2,5,12\]": lambda: bd.ops.shuffle(
        tf.zeros((2, 5, 12)), -1, 3, layout="nhwc"
    ),
    r"src must be nChw16c, of rank 5 with 2 blocks of 16 for 20 channels; got "
    r"\[2,2,5,16\]": lambda: bd.ops.shuffle(
        tf.zeros((2, 2, 5, 16)), 1, 4, layout=BLOCKED, channels=20
    ),
    r"src must be nChw8c, of rank 5 with 3 blocks of 8 for 20 channels; got "
    r"\[1,2,6,7,16\]": lambda: bd.ops.shuffle(blocked_zeros(), 1, 4, layout="nChw8c", channels=20),
    r'layout "nhcw" is not one that shuffle knows': lambda: bd.ops.shuffle(
        tf.zeros((1, 2, 2, 12)), -1, 3, layout="nhcw"
    ),
    r"channels must be given, at least 1, for layout nChw16c; got 0": lambda: bd.ops.shuffle(
        blocked_zeros(), 1, 4, layout=BLOCKED
    ),
    r"channels = 12 belongs to blocked layouts; leave it out": lambda: bd.ops.shuffle(
        tf.zeros((1, 2, 2, 12)), -1, 3, channels=12
    ),
    r"values\[1\] \[1,2,6,8,16\] must have the batch, height and width": lambda: bd.ops.concat(
        [blocked_zeros(), blocked_zeros(w=8)], channels=[20, 20]
    ),
    r"channels must list the channels, .* of each of the 2 values; got \[20\]": lambda: (
        bd.ops.concat([blocked_zeros(), blocked_zeros()], channels=[20])
    ),
    r"values\[1\] must be nChw16c, \[N, 3, H, W, 16\] for 40 channels": lambda: bd.ops.concat(
        [blocked_zeros(), blocked_zeros()], channels=[20, 40]
    ),
    r"src_quantizations must list \[scale, zero_point\] .*got 2 numbers for 2 values "
    r"of uint8": lambda: bd.ops.concat(
        [tf.cast(blocked_zeros(), tf.uint8)] * 2, channels=[20, 20], src_quantizations=[(1, 0)]
    ),
    r"values\[0\]_quantization of a uint8 tensor must be .*got \[-1, 0\]": lambda: bd.ops.concat(
        [tf.cast(blocked_zeros(), tf.uint8)], channels=[20], src_quantizations=[(-1, 0)]
    ),
    "src_quantization is for uint8": lambda: bd.ops.shuffle(
        blocked_zeros(), 1, 2, layout="nChw16c", channels=20, src_quantization=(1, 3)
    ),
    r"channels must list the channels, from 1 to 2\^31 - 1": lambda: bd.ops.concat(
        [blocked_zeros()], channels=[0]
    ),
    r"src_parts must list .* of each of the 2 values; got \[0, 40\]": lambda: concat_parts(
        [(0, 40)]
    ),
    r"src_parts \[21, 40\] of 20 channels reaches beyond": lambda: concat_parts([(0, 7), (21, 40)]),
    r"src_parts \[-1, 40\] of 20 channels reaches beyond": lambda: concat_parts([(0, 7), (-1, 40)]),
    r"src_parts \[0, 1099511627776\] of 20 channels reaches beyond": lambda: concat_parts(
        [(0, 7), (0, 2**40)]
    ),
}
