"""What a chain of post-ops refuses."""

import numpy as np
import tensorflow as tf

import tf_blockdnn as bd

from .calls import BLOCKED, blocked_zeros, conv, raw


def eltwise(post_ops, *args, src=None):
    return bd.ops.eltwise(blocked_zeros() if src is None else src, post_ops, args=args, channels=20)


def raw_eltwise(post_ops, *args):
    return raw(
        "blockdnn_eltwise",
        blocked_zeros(),
        args,
        sum=[],
        into=[],
        layout=BLOCKED,
        channels=20,
        post_ops=post_ops,
    )


# The words of a message -> a call that it refuses.
CASES = {
    r'entry 1 "eltwise\(sine\)": unknown algorithm "sine"; known are relu,': lambda: raw_eltwise(
        "eltwise(relu);eltwise(sine)"
    ),
    r'entry 32 "eltwise\(abs\)": a chain has at most 32 entries; split it over two ops': lambda: (
        raw_eltwise(";".join(["eltwise(abs)"] * 33))
    ),
    r'post_ops entry 1 "sum\(scale=2\)": an op gets the previous dst in args; name '
    r"it, as in ": lambda: raw_eltwise("eltwise(relu);sum(scale=2)"),
    r'post_ops entry 0 "binary\(add,tensor,#1\)": there is no operand #1, the op has '
    r"1 args": lambda: eltwise("binary(add,tensor,#1)", blocked_zeros()),
    r'entry 0 "binary\(add,tensor,#0@16\)": only scalar and channel operands take an '
    r"offset": lambda: eltwise("binary(add,tensor,#0@16)", blocked_zeros()),
    r'entry 0 "binary\(add,tensor,#0\)": the operand must have the shape and layout of dst, '
    r"\[1,2,6,7,16\]; got \[1,2,5,7,16\]": lambda: eltwise(
        "binary(add,tensor,#0)", blocked_zeros(h=5)
    ),
    r'entry 1 "sum\(#0\)": the operand must have the shape and layout of dst, '
    r"\[1,3,6,7,16\]": lambda: conv(
        post_ops="eltwise(relu);sum(#0)", args=[tf.zeros((1, 3, 6, 1, 16))]
    ),
    r'entry 0 "sum\(#0\)": the operand must have the shape and layout of dst': lambda: conv(
        post_ops="sum(#0)", args=[tf.zeros((1, 6, 7, 33))]
    ),
    r'entry 0 "binary\(add,channel,#0\)": the operand has 32 elements, not the 33 needed from '
    r"element 0 on": lambda: conv(post_ops="binary(add,channel,#0)", args=[tf.zeros(32)]),
    r"the operand has 34 elements, not the 33 needed from element 2 on": lambda: conv(
        post_ops="binary(add,channel,#0@2)", args=[tf.zeros(34)]
    ),
    r"the operand has 34 elements": lambda: conv(
        post_ops="binary(add,channel,#0@9223372036854775807)", args=[tf.zeros(34)]
    ),
    r"the operand has 0 elements, not the 1 needed": lambda: eltwise(
        "binary(add,scalar,#0)", tf.zeros(0)
    ),
    r'"binary\(add,sample_channel,#0\)": the operand must be \[1,2,1,1,16\]; got '
    r"\[1,20\]": lambda: eltwise("binary(add,sample_channel,#0)", tf.zeros((1, 20))),
    r'post_ops entry 1 "sum\(scale=2\)": it adds the previous contents of dst; give them': lambda: (
        conv(post_ops=bd.PostOps().eltwise("relu").sum(2))
    ),
    r'dst is given, but no sum of post_ops "eltwise\(relu\)" reads it': lambda: conv(
        post_ops="eltwise(relu)", dst=tf.zeros((1, 3, 6, 7, 16))
    ),
    r'entry 0 "sum\(#0\)": the operand must have the shape and layout of dst, '
    r"\[1,3,6,7,16\]": lambda: conv(post_ops="sum()", dst=tf.zeros((1, 6, 5, 33))),
    r'entry 0 "sum\(\)": the operand must have the shape of dst, 33 channels; got \[1, 6': lambda: (
        conv(post_ops="sum()", dst=tf.zeros((1, 6, 7, 32)))
    ),
    r'entry 0 "sum\(\)": the operand must have the shape of dst, 33 channels; got '
    r"\[6, 7, 33\]": lambda: conv(post_ops="sum()", dst=tf.zeros((6, 7, 33))),
    r'entry 1 "binary\(add,float32\[32\]\)": an operand of shape \[32\] does not fit a '
    r"dst of 33 channels; it must have one element, or be \[33\], \[N, 33\] or of the "
    r"shape": lambda: conv(post_ops=bd.PostOps().eltwise("relu").binary("add", np.zeros(32))),
    r'entry 0 "binary\(add,tensor,#0\)": the operand must have the shape and layout '
    r"of dst, ": lambda: conv(post_ops=bd.PostOps().binary("add", np.zeros((1, 6, 1, 33)))),
    r"\(add,sample_channel,#0\).: the operand must be \[1,3,1,1,16\]; got \[2,3,1,1,16\]": lambda: (
        conv(post_ops=bd.PostOps().binary("add", np.zeros((2, 33))))
    ),
    r'entry 0 "binary\(add,sample_channel,float32\[33\]\)": the operand must have '
    r"\[N, 33\]": lambda: conv(post_ops=bd.PostOps().binary("add", np.zeros(33), "sample_channel")),
}
