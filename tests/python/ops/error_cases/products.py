"""What products refuse."""

import numpy as np
import tensorflow as tf

import tf_blockdnn as bd


def attention(q=(2, 5, 6, 8), k=(2, 7, 3, 8), v=(2, 7, 3, 4), **changes):
    """A valid attention but for `changes`; tensors by their shapes."""
    tensors = [np.zeros(shape, np.float32) for shape in (q, k, v)]
    return bd.ops.attention(*tensors, **changes)


def bias(*shape):
    return np.zeros(shape, np.float32)


SCORES = r"must be broadcastable to the scores, \[2,6,5,7\]; got "


def inner_product(**changes):
    arguments = dict(src=np.zeros((3, 20), "f"), weights=np.zeros((20, 24), "f"))
    return bd.ops.inner_product(**arguments | changes)


def packed_matmul(a, b, **options):
    return bd.ops.packed_matmul(np.zeros(a, "f"), np.zeros(b, "f"), **options)


def rnn(h=(2, 8), c=(2, 8), mask=(2, 3), lengths=(2,), **changes):
    """A valid layer but for `changes`; tensors by their shapes."""
    shapes = dict(src=[2, 3, 4], kernel=[4, 32], recurrent_kernel=[8, 32], bias=[32]) | changes
    return bd.ops.rnn(
        **{name: np.zeros(shape, "f") for name, shape in shapes.items()},
        cell="lstm",
        initial_state=[np.zeros(h, "f"), np.zeros(c, "f")],
        mask=np.zeros(mask, bool),
        lengths=np.zeros(lengths, np.int32),
    )


BYTES, ROW = np.ones((4, 3), np.int8), np.ones((2, 4), np.float32)
UNSIGNED, ONES = np.ones((2, 4), np.uint8), np.ones(3, np.float32)


# The words of a message -> a call that it refuses.
CASES = {
    r"q, k and v must all be of rank 4, or of rank 3: one head; q is \[5,8\]": lambda: attention(
        q=(5, 8), k=(7, 8), v=(7, 4)
    ),
    r"q, k and v must all be of rank 4, or of rank 3: one head; v is \[\]": lambda: attention(v=()),
    r"q, k and v must all be of rank 4, or of rank 3: one head; k is \[2,7,8\]": lambda: attention(
        k=(2, 7, 8)
    ),
    "k has 3 sequences, not 2": lambda: attention(k=(3, 7, 3, 8)),
    "k has 9 elements a row, not 8": lambda: attention(k=(2, 7, 3, 9)),
    "v has 6 keys, not 7": lambda: attention(v=(2, 6, 3, 4)),
    r"k_at: 4 is no index of axis 1 of \[2,4,7,3,8\]": lambda: attention(
        k=(2, 4, 7, 3, 8), k_at=[4]
    ),
    r"q_at: 0 is no index of axis 4 of \[2,5,6,8,2\]": lambda: attention(
        q=(2, 5, 6, 8, 2), q_at=[0], at_axis=4
    ),
    "at_axis must be at most 16, not 2147483647": lambda: attention(at_axis=2**31 - 1),
    "at_axis must fit 32 bits, got 2147483648": lambda: attention(at_axis=2**31),
    "late_biases must fit 32 bits, got 1099511627776": lambda: attention(
        biases=[bias(7)], late_biases=2**40
    ),
    "q, k and v must all be of rank 4, or of rank 3: one head; v is": lambda: attention(
        v=(2, 4, 7, 3, 4)
    ),
    "v has 1 heads, not 3": lambda: attention(v=(2, 7, 1, 4)),
    "q has 6 heads, no multiple of the 4 of k and v": lambda: attention(
        k=(2, 7, 4, 8), v=(2, 7, 4, 4)
    ),
    "q has 6 heads, no multiple of the 0 of k and v": lambda: attention(
        k=(2, 7, 0, 8), v=(2, 7, 0, 4)
    ),
    "bias 0 " + SCORES + r"\[2,6,5,6\]": lambda: attention(biases=bias(2, 6, 5, 6)),
    "bias 1 " + SCORES + r"\[3,1,7\]": lambda: attention(biases=[bias(7), bias(3, 1, 7)]),
    "bias 0 " + SCORES + r"\[3,1,1,7\]": lambda: attention(biases=bias(3, 1, 1, 7)),
    "mask " + SCORES + r"\[2,1,6,5,7\]": lambda: attention(mask=np.ones((2, 1, 6, 5, 7), bool)),
    "attention adds at most 4 biases, not 5; add them before": lambda: attention(
        biases=[bias(7)] * 5
    ),
    "late_biases: of 1 biases 2 cannot be added after the mask": lambda: attention(
        biases=[bias(7)], late_biases=2
    ),
    "soft_cap must be a positive number, or 0 for none; got -1": lambda: attention(soft_cap=-1.0),
    "soft_cap must be a positive number, or 0 for none; got": lambda: attention(soft_cap=1e-45),
    r"src must be \[.., 20\]": lambda: inner_product(src=np.zeros((3, 19), np.float32)),
    "weights_shape must be": lambda: inner_product(weights_shape=[20]),
    "weights have 480 elements": lambda: inner_product(weights_shape=[20, 25]),
    r"weights have 480 elements.* from weights_offset = 1": lambda: inner_product(weights_offset=1),
    "the op has 0 args": lambda: inner_product(post_ops="sum(#0)"),
    r"must be \[3,24\]; got \[4,24\]": lambda: inner_product(
        post_ops="binary(mul,sample_channel,#0)", args=[np.zeros((4, 24), np.float32)]
    ),
    "dst has no samples; use a channel operand": lambda: inner_product(
        src=np.zeros(20, np.float32),
        post_ops="binary(mul,sample_channel,#0)",
        args=[np.zeros((1, 24), np.float32)],
    ),
    "shape and layout of dst": lambda: inner_product(
        post_ops="binary(mul,tensor,#0)", args=[np.zeros((3, 23), np.float32)]
    ),
    "a has 3 terms and b 4": lambda: packed_matmul([2, 3], [4, 5]),
    "a has 3 terms": lambda: packed_matmul([3, 2], [4, 5], transpose_a=True),
    "b must be a matrix": lambda: packed_matmul([2, 3], [3]),
    "a must be a matrix": lambda: packed_matmul([2, 3, 4], [2, 5], transpose_a=True),
    r"c must be \[2,5\]": lambda: packed_matmul([2, 3], [3, 5], c=np.zeros((2, 4), np.float32)),
    "post_ops": lambda: packed_matmul([2, 3], [3, 5], post_ops="sum()"),
    "weights of int8 need weight_scales, one tensor of a scale an output channel; got 0": lambda: (
        bd.ops.inner_product(ROW, BYTES)
    ),
    "weights of float32 have no weight_scales; got 1": lambda: bd.ops.inner_product(
        ROW, ROW.T @ ROW, weight_scales=np.ones(4, np.float32)
    ),
    r"weight_scales must hold a scale for each of 3 output channels; got \[2\]": lambda: (
        bd.ops.packed_matmul(ROW, BYTES, weight_scales=ONES[:2])
    ),
    r"src_quantization of a uint8 tensor must be \[scale, zero_point\]": lambda: (
        bd.ops.packed_matmul(UNSIGNED, BYTES, weight_scales=ONES)
    ),
    "src_quantization is for uint8; src is float32, so leave it out": lambda: bd.ops.packed_matmul(
        ROW, BYTES, weight_scales=ONES, src_quantization=(1.0, 0)
    ),
    "a of uint8 is multiplied by b of int8, not of float32": lambda: bd.ops.packed_matmul(
        UNSIGNED, ROW.T, src_quantization=(1.0, 0)
    ),
    "there is no product of bfloat16 and int8; make a float32": lambda: bd.ops.packed_matmul(
        tf.cast(ROW, tf.bfloat16), BYTES, weight_scales=ONES
    ),
    "quantize_rows is for a of float32 and b of int8, not for float32 and float32": lambda: (
        bd.ops.packed_matmul(ROW, ROW.T, quantize_rows=True)
    ),
    "a of bfloat16 cannot be transposed; transpose it before": lambda: bd.ops.packed_matmul(
        tf.cast(ROW.T, tf.bfloat16), ROW.T @ ROW[:, :2], transpose_a=True
    ),
    r"take sample_channel operands for rows \[N, ic\] only; use a tensor operand": lambda: (
        bd.ops.inner_product(
            np.ones((2, 5, 4), np.float32),
            BYTES,
            weight_scales=ONES,
            post_ops="binary(mul,sample_channel,#0)",
            args=(np.ones((2, 3), np.float32),),
        )
    ),
    r"src must be \[batch, steps, inputs\]": lambda: rnn(src=[2, 4]),
    r"kernel must be \[inputs, gates \* units\] = \[4, 32\]": lambda: rnn(kernel=[5, 32]),
    "kernel must be": lambda: rnn(kernel=[4, 28]),
    "recurrent_kernel must be": lambda: rnn(recurrent_kernel=[7, 32]),
    "4 columns a unit": lambda: rnn(recurrent_kernel=[8, 33]),
    "at least one unit": lambda: rnn(recurrent_kernel=[0, 0]),
    r"bias must be \[gates \* units\] = \[32\]": lambda: rnn(bias=[31]),
    "bias must be": lambda: rnn(bias=[3, 32]),
    r"initial_state must be \[batch, units\] = \[2, 8\]": lambda: rnn(h=[2, 7]),
    "initial_state must be": lambda: rnn(c=[3, 8]),
    r"mask must be \[batch, steps\] = \[2, 3\]": lambda: rnn(mask=[2, 4]),
    "mask must be": lambda: rnn(mask=[2, 3, 1]),
    r"lengths must be \[batch\] = \[2\]": lambda: rnn(lengths=[3]),
}
