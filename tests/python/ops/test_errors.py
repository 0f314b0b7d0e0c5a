"""Every bad argument is refused with one line that names it, built and run."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.native import library

BLOCKED = "nChw16c"


def blocked_zeros(channels=20, n=1, h=6, w=7):
    return tf.zeros((n, -(-channels // 16), h, w, 16))


def conv(**changes):
    """A valid convolution of 20 to 33 channels, but for `changes`."""
    arguments = dict(src=blocked_zeros(), weights=tf.zeros((3, 3, 20, 33))) | changes
    return bd.ops.conv(**arguments)


def eltwise(post_ops, *args, src=None):
    return bd.ops.eltwise(blocked_zeros() if src is None else src, post_ops, args=args, channels=20)


def raw_eltwise(post_ops, *args):
    return raw(
        "blockdnn_eltwise",
        blocked_zeros(),
        args,
        into=[],
        layout=BLOCKED,
        channels=20,
        post_ops=post_ops,
    )


def pool(**changes):
    arguments = dict(src=blocked_zeros(), kind="max", ksize=3, channels=20) | changes
    return bd.ops.pool(**arguments)


def raw(op, *inputs, **attrs):
    return getattr(library(), op)(*inputs, **attrs)


def desc(layout, dims=(3, 4)):
    return bd.TensorDesc(dims, layout=layout)


def reorder_desc(**changes):
    """A valid reorder of [3, 4] from nc to cn, but for `changes`."""
    arguments = dict(x=tf.zeros((3, 4)), src=desc("nc"), dst=desc("cn")) | changes
    return bd.ops.reorder(**arguments)


# What is wrong -> a call that does it, and the words its message must have.
CASES = {
    # reorder
    "reorder: channels of a plain tensor": (
        lambda: bd.ops.reorder(tf.zeros((1, 2, 2, 5)), "nhwc", BLOCKED, channels=6),
        r"src must be nhwc, \[N, H, W, 6\]; got \[1,2,2,5\]",
    ),
    "reorder: rank": (
        lambda: bd.ops.reorder(tf.zeros((2, 2, 5)), "nhwc", BLOCKED, channels=5),
        r"src must be nhwc, \[N, H, W, 5\]; got \[2,2,5\]",
    ),
    "reorder: blocks of a blocked tensor": (
        lambda: bd.ops.reorder(blocked_zeros(17), BLOCKED, "nhwc", channels=33),
        r"src must be nChw16c, \[N, 3, H, W, 16\] for 33 channels; got \[1,2,6,7,16\]",
    ),
    "reorder: lanes of a blocked tensor": (
        lambda: bd.ops.reorder(tf.zeros((1, 2, 6, 7, 8)), BLOCKED, "nhwc", channels=20),
        r"src must be nChw16c.*got \[1,2,6,7,8\]",
    ),
    "reorder: unknown layout": (
        lambda: bd.ops.reorder(tf.zeros((1, 2, 2, 5)), "nhwc", "hcwn"),
        r'dst_layout: unknown layout "hcwn": names are like nhwc, nChw16c, OIhw16i16o',
    ),
    "reorder: layouts of another rank": (
        lambda: bd.ops.reorder(tf.zeros((1, 2, 2, 5)), "nhwc", "ncw"),
        r"dst_layout ncw has 3 dimensions, not the 4 of the reorder",
    ),
    "reorder: blocked weights by name": (
        lambda: raw(
            "blockdnn_reorder",
            tf.zeros((1, 2, 3, 3, 8, 8)),
            into=[],
            src_layout="OIhw8i8o",
            dst_layout="oihw",
        ),
        r"dims must give dimension 1 \(i\): a tensor in OIhw8i8o does not tell how much of it is",
    ),
    "reorder: no layout and no dims": (
        lambda: raw(
            "blockdnn_reorder", tf.zeros(4), into=[], src_layout="", dst_layout="", src_strides=[1]
        ),
        r"dims must list the 1 to 6 logical dimensions; got 0",
    ),
    "reorder: strides of unknown dims": (
        lambda: raw(
            "blockdnn_reorder",
            tf.zeros(4),
            into=[],
            src_layout="nhwc",
            dst_layout="nchw",
            dst_strides=[1, 1, 1, 1],
        ),
        r"dims must be given in full where dst has strides or an offset",
    ),
    "reorder: shape of weights": (
        lambda: reorder_desc(
            x=tf.zeros((2, 2, 3, 3, 8, 8)),
            src=desc("OIhw8i8o", (17, 9, 3, 3)),
            dst="oihw",
        ),
        r"src must be OIhw8i8o, \[3, 2, 3, 3, 8, 8\] for 17 output channels and 9 input channels; "
        r"got \[2,2,3,3,8,8\]",
    ),
    "reorder: memory too small": (
        lambda: reorder_desc(x=tf.zeros(10), src=bd.TensorDesc((3, 4), strides=(8, 1))),
        r"src has 10 elements, not the 20 that float32 \[3, 4\] strides \[8, 1\] needs",
    ),
    "reorder: into too small": (
        lambda: reorder_desc(dst=bd.TensorDesc((3, 4), strides=(8, 1)), into=tf.zeros(19)),
        r"into has 19 elements, not the 20",
    ),
    "reorder: into of another shape": (
        lambda: reorder_desc(into=tf.zeros((3, 4))),
        r"into must be cn, \[4, 3\]; got \[3,4\]",
    ),
    "reorder: elements that overlap": (
        lambda: reorder_desc(dst=bd.TensorDesc((3, 4), strides=(3, 1))),
        r"strides \[3, 1\] of dst, with dims \[3, 4\], let its elements overlap",
    ),
    "reorder: other dims": (
        lambda: reorder_desc(dst=desc("nc", (4, 3))),
        r"reorder needs equal dims; src has \(3, 4\), dst \(4, 3\)",
    ),
    "reorder: scales of another rank": (
        lambda: reorder_desc(scales=[1, 2, 3, 4]),
        r"scales must be one number, or have 2 dimensions as dims \[3, 4\] have; got 1 dimension",
    ),
    "reorder: scales of another size": (
        lambda: reorder_desc(scales=[[1, 2, 3]]),
        r"scales of shape \[1, 3\] do not fit dims \[3, 4\]: each dimension must be the same, or 1",
    ),
    "reorder: types": (
        lambda: raw(
            "blockdnn_reorder",
            tf.zeros((3, 4)),
            into=[tf.zeros((3, 4))],
            dst_type=tf.int8,
            src_layout="nc",
            dst_layout="nc",
        ),
        r"into must be one tensor of dst_type int8",
    ),
    "reorder: x of another type": (
        lambda: reorder_desc(src=bd.TensorDesc((3, 4), "int8", "nc")),
        r"x is float32, but src describes int8",
    ),
    "reorder: into of another type": (
        lambda: reorder_desc(into=tf.zeros((4, 3), tf.int8)),
        r"into is int8, but the result float32",
    ),
    "reorder: beta without into": (
        lambda: reorder_desc(beta=2.0),
        r"beta = 2.0 is the factor of into, which is not given",
    ),
    "reorder: channels of a description": (
        lambda: reorder_desc(channels=4),
        r"channels are for layouts given by name; a TensorDesc has its dims",
    ),
    "reorder: dtype of a description": (
        lambda: reorder_desc(dtype=tf.int8),
        r"dtype is for a dst given by name; a TensorDesc has its own",
    ),
    "reorder: a name and a description": (
        lambda: reorder_desc(src="nc"),
        r"src must be a TensorDesc as dst is one; got 'nc'",
    ),
    "reorder: weights that do not tell": (
        lambda: bd.ops.reorder(tf.zeros((1, 2, 3, 3, 8, 8)), "OIhw8i8o", "oihw"),
        r"src must be a TensorDesc: a tensor of layout OIhw8i8o does not tell its dims",
    ),
    "reorder: channels of a blocked tensor below 0": (
        lambda: bd.ops.reorder(blocked_zeros(), BLOCKED, "nhwc", channels=-2),
        r"channels.*minimum -1",
    ),
    "reorder: channels not given": (
        lambda: bd.ops.reorder(blocked_zeros(), BLOCKED, "nhwc"),
        r"channels must be given",
    ),
    # convolution
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
        lambda: raw(
            "blockdnn_conv",
            blocked_zeros(),
            tf.zeros((1, 1, 20, 3)),
            [],
            into=[],
            src_layout=BLOCKED,
            dst_layout=BLOCKED,
            channels=20,
            weights_shape=[1, 1, 20, 3],
            padding="SAME",
            explicit_paddings=[1, 1, 1, 1],
        ),
        r'explicit_paddings \[1, 1, 1, 1\] need padding="EXPLICIT", not "SAME"',
    ),
    "conv: EXPLICIT without explicit_paddings": (
        lambda: raw(
            "blockdnn_conv",
            blocked_zeros(),
            tf.zeros((1, 1, 20, 3)),
            [],
            into=[],
            src_layout=BLOCKED,
            dst_layout=BLOCKED,
            channels=20,
            weights_shape=[1, 1, 20, 3],
            padding="EXPLICIT",
        ),
        r"explicit_paddings must be \[top, bottom, left, right\].*got \[\]",
    ),
    # post-ops
    "post-ops: unknown function": (
        lambda: raw_eltwise("eltwise(relu);eltwise(sine)"),
        r'entry 1 "eltwise\(sine\)": unknown algorithm "sine"; known are relu,',
    ),
    "post-ops: 33 entries": (
        lambda: raw_eltwise(";".join(["eltwise(abs)"] * 33)),
        r'entry 32 "eltwise\(abs\)": a chain has at most 32 entries; split it over two ops',
    ),
    "post-ops: sum of nothing": (
        lambda: raw_eltwise("eltwise(relu);sum(scale=2)"),
        r'post_ops entry 1 "sum\(scale=2\)": an op gets the previous dst in args; name it, as in ',
    ),
    "post-ops: no such operand": (
        lambda: eltwise("binary(add,tensor,#1)", blocked_zeros()),
        r'post_ops entry 0 "binary\(add,tensor,#1\)": there is no operand #1, the op has 1 args',
    ),
    "post-ops: offset into a tensor": (
        lambda: eltwise("binary(add,tensor,#0@16)", blocked_zeros()),
        r'entry 0 "binary\(add,tensor,#0@16\)": only scalar and channel operands take an offset',
    ),
    "post-ops: tensor of another shape": (
        lambda: eltwise("binary(add,tensor,#0)", blocked_zeros(h=5)),
        r'entry 0 "binary\(add,tensor,#0\)": the operand must have the shape and layout of dst, '
        r"\[1,2,6,7,16\]; got \[1,2,5,7,16\]",
    ),
    "post-ops: sum of another shape": (
        lambda: conv(post_ops="eltwise(relu);sum(#0)", args=[tf.zeros((1, 3, 6, 1, 16))]),
        r'entry 1 "sum\(#0\)": the operand must have the shape and layout of dst, \[1,3,6,7,16\]',
    ),
    "post-ops: sum of another layout": (
        lambda: conv(post_ops="sum(#0)", args=[tf.zeros((1, 6, 7, 33))]),
        r'entry 0 "sum\(#0\)": the operand must have the shape and layout of dst',
    ),
    "post-ops: too few channels": (
        lambda: conv(post_ops="binary(add,channel,#0)", args=[tf.zeros(32)]),
        r'entry 0 "binary\(add,channel,#0\)": the operand has 32 elements, not the 33 needed from '
        r"element 0 on",
    ),
    "post-ops: channels beyond the end": (
        lambda: conv(post_ops="binary(add,channel,#0@2)", args=[tf.zeros(34)]),
        r"the operand has 34 elements, not the 33 needed from element 2 on",
    ),
    "post-ops: enormous offset": (
        lambda: conv(post_ops="binary(add,channel,#0@9223372036854775807)", args=[tf.zeros(34)]),
        r"the operand has 34 elements",
    ),
    "post-ops: empty scalar": (
        lambda: eltwise("binary(add,scalar,#0)", tf.zeros(0)),
        r"the operand has 0 elements, not the 1 needed",
    ),
    "post-ops: sample_channel shape": (
        lambda: eltwise("binary(add,sample_channel,#0)", tf.zeros((1, 20))),
        r'"binary\(add,sample_channel,#0\)": the operand must be \[1,2,1,1,16\]; got \[1,20\]',
    ),
    "post-ops: sum without dst": (
        lambda: conv(post_ops=bd.PostOps().eltwise("relu").sum(2)),
        r'post_ops entry 1 "sum\(scale=2\)": it adds the previous contents of dst; give them',
    ),
    "post-ops: dst without sum": (
        lambda: conv(post_ops="eltwise(relu)", dst=tf.zeros((1, 3, 6, 7, 16))),
        r'dst is given, but no sum of post_ops "eltwise\(relu\)" reads it',
    ),
    "post-ops: dst of another shape": (
        lambda: conv(post_ops="sum()", dst=tf.zeros((1, 6, 5, 33))),
        r'entry 0 "sum\(#0\)": the operand must have the shape and layout of dst, \[1,3,6,7,16\]',
    ),
    "post-ops: dst of other channels": (
        lambda: conv(post_ops="sum()", dst=tf.zeros((1, 6, 7, 32))),
        r'entry 0 "sum\(\)": the operand must have the shape of dst, 33 channels; got \[1, 6',
    ),
    "post-ops: dst of another rank": (
        lambda: conv(post_ops="sum()", dst=tf.zeros((6, 7, 33))),
        r'entry 0 "sum\(\)": the operand must have the shape of dst, 33 channels; got \[6, 7, 33\]',
    ),
    "post-ops: a tensor that fits nothing": (
        lambda: conv(post_ops=bd.PostOps().eltwise("relu").binary("add", np.zeros(32))),
        r'entry 1 "binary\(add,float32\[32\]\)": an operand of shape \[32\] does not fit a '
        r"dst of 33 channels; it must have one element, or be \[33\], \[N, 33\] or of the shape",
    ),
    "post-ops: a tensor of another plane": (
        lambda: conv(post_ops=bd.PostOps().binary("add", np.zeros((1, 6, 1, 33)))),
        r'entry 0 "binary\(add,tensor,#0\)": the operand must have the shape and layout of dst, ',
    ),
    "post-ops: another number of samples": (
        lambda: conv(post_ops=bd.PostOps().binary("add", np.zeros((2, 33)))),
        r"\(add,sample_channel,#0\).: the operand must be \[1,3,1,1,16\]; got \[2,3,1,1,16\]",
    ),
    "post-ops: sample_channel by word": (
        lambda: conv(post_ops=bd.PostOps().binary("add", np.zeros(33), "sample_channel")),
        r'entry 0 "binary\(add,sample_channel,float32\[33\]\)": the operand must have \[N, 33\]',
    ),
    # pooling
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
    # shuffle
    "shuffle: group does not divide": (
        lambda: bd.ops.shuffle(tf.zeros((2, 5, 12)), -1, 5),
        r"group = 5 must divide the 12 entries of axis -1",
    ),
    "shuffle: way back, group does not divide": (
        lambda: bd.ops.shuffle_grad(tf.zeros((2, 5, 12)), 2, 24),
        r"group = 24 must divide the 12 entries of axis 2",
    ),
    "shuffle: group does not divide the channels of a blocked tensor": (
        lambda: bd.ops.shuffle(blocked_zeros(), 1, 3, layout=BLOCKED, channels=20),
        r"group = 3 must divide the 20 entries of axis 1",
    ),
    "shuffle: group": (
        lambda: bd.ops.shuffle(tf.zeros((2, 12)), 1, 0),
        r"group must be at least 1, got 0",
    ),
    "shuffle: negative group": (
        lambda: bd.ops.shuffle(tf.zeros((2, 12)), 1, -3),
        r"group must be at least 1, got -3",
    ),
    "shuffle: axis": (
        lambda: bd.ops.shuffle(tf.zeros((2, 5, 12)), 3, 3),
        r"axis = 3 is out of range for a tensor of 3 dimensions; it must be in \[-3, 2\]",
    ),
    "shuffle: negative axis": (
        lambda: bd.ops.shuffle(tf.zeros((2, 5, 12)), -4, 3),
        r"axis = -4 is out of range",
    ),
    "shuffle: axis of a blocked tensor": (
        lambda: bd.ops.shuffle(blocked_zeros(), 4, 4, layout=BLOCKED, channels=20),
        r"axis = 4 is out of range for a tensor of 4 dimensions",
    ),
    "shuffle: scalar": (
        lambda: bd.ops.shuffle(tf.zeros(()), 0, 1),
        r"src must have 1 to 6 dimensions; got \[\]",
    ),
    "shuffle: seven dimensions": (
        lambda: bd.ops.shuffle(tf.zeros((1,) * 7), 0, 1),
        r"src must have 1 to 6 dimensions; got \[1,1,1,1,1,1,1\]",
    ),
    "shuffle: rank of a plain layout": (
        lambda: bd.ops.shuffle(tf.zeros((2, 5, 12)), -1, 3, layout="nhwc"),
        r"src must be nhwc, of rank 4; got \[2,5,12\]",
    ),
    "shuffle: rank of a blocked layout": (
        lambda: bd.ops.shuffle(tf.zeros((2, 2, 5, 16)), 1, 4, layout=BLOCKED, channels=20),
        r"src must be nChw16c, of rank 5 with 2 blocks of 16 for 20 channels; got \[2,2,5,16\]",
    ),
    "shuffle: lanes of a blocked layout": (
        lambda: bd.ops.shuffle(blocked_zeros(), 1, 4, layout="nChw8c", channels=20),
        r"src must be nChw8c, of rank 5 with 3 blocks of 8 for 20 channels; got \[1,2,6,7,16\]",
    ),
    "shuffle: unknown layout": (
        lambda: bd.ops.shuffle(tf.zeros((1, 2, 2, 12)), -1, 3, layout="nhcw"),
        r'layout "nhcw" is not one that shuffle knows',
    ),
    "shuffle: channels not given": (
        lambda: bd.ops.shuffle(blocked_zeros(), 1, 4, layout=BLOCKED),
        r"channels must be given, at least 1, for layout nChw16c; got 0",
    ),
    "shuffle: channels of a plain tensor": (
        lambda: bd.ops.shuffle(tf.zeros((1, 2, 2, 12)), -1, 3, channels=12),
        r"channels = 12 belongs to blocked layouts; leave it out",
    ),
    # concat
    "concat: planes": (
        lambda: bd.ops.concat([blocked_zeros(), blocked_zeros(w=8)], channels=[20, 20]),
        r"values\[1\] \[1,2,6,8,16\] must have the batch, height and width",
    ),
    "concat: number of channels": (
        lambda: bd.ops.concat([blocked_zeros(), blocked_zeros()], channels=[20]),
        r"channels must list the channels, .* of each of the 2 values; got \[20\]",
    ),
    "concat: blocks": (
        lambda: bd.ops.concat([blocked_zeros(), blocked_zeros()], channels=[20, 40]),
        r"values\[1\] must be nChw16c, \[N, 3, H, W, 16\] for 40 channels",
    ),
    "concat: no channels": (
        lambda: bd.ops.concat([blocked_zeros()], channels=[0]),
        r"channels must list the channels, at least 1",
    ),
}
ERRORS = (ValueError, tf.errors.InvalidArgumentError)


@pytest.mark.parametrize("what", CASES)
def test_while_it_runs(what):
    call, message = CASES[what]
    with pytest.raises(ERRORS, match=message):
        call()


@pytest.mark.parametrize("what", CASES)
def test_while_a_graph_is_built(what):
    call, message = CASES[what]
    with pytest.raises(ERRORS, match=message):
        with tf.Graph().as_default():
            call()


def test_shapes_unknown_until_it_runs():
    """Shape functions cannot see the mistake: the kernel must."""

    @tf.function(input_signature=[tf.TensorSpec(None), tf.TensorSpec(None), tf.TensorSpec(None)])
    def conv(src, weights, bias):
        return bd.ops.conv(
            src,
            weights,
            weights_shape=[3, 3, 20, 33],
            post_ops="binary(add,channel,#0)",
            args=[bias],
        )

    good = [blocked_zeros(), tf.zeros((3, 3, 20, 33)), tf.zeros(33)]
    assert conv(*good).shape == (1, 3, 6, 7, 16)
    for i, bad, message in [
        (0, tf.zeros((1, 2, 6, 7)), "src must be nChw16c"),
        (0, tf.zeros((1, 1, 6, 7, 16)), "src must be nChw16c"),
        (1, tf.zeros((3, 3, 20, 32)), "weights have 5760 elements"),
        (2, tf.zeros(()), "the operand has 1 elements"),
    ]:
        inputs = list(good)
        inputs[i] = bad
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            conv(*inputs)
    assert conv(*good).shape == (1, 3, 6, 7, 16)


def test_other_types_are_refused():
    with pytest.raises((TypeError, *ERRORS)):
        conv(src=tf.zeros((1, 2, 6, 7, 16), tf.float64), weights=np.zeros((3, 3, 20, 33)))
