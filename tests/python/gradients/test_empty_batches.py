"""A batch of nothing, through every op and back."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

IMAGE, BLOCKS, ROWS = tf.zeros((0, 6, 5, 20)), tf.zeros((0, 2, 6, 5, 16)), tf.zeros((0, 20))


def case(op, src, /, *shapes, **options):
    """(the function, its inputs: the source, and ones of these shapes)."""
    return functools.partial(getattr(bd.ops, op), **options), src, *map(tf.ones, shapes)


def conv(weights=(3, 3, 20, 24), src=BLOCKS, **options):
    return case("conv", src, weights, padding="SAME", **options)


def lstm(*inputs):
    return bd.ops.rnn(*inputs, cell="lstm").dst


def joined(x):
    return bd.ops.concat([x, x], channels=[20, 20])


PLAIN = dict(src_layout="nhwc", dst_layout="nhwc", post_ops="eltwise(relu)")
SHRINKING = dict(strides=2, padding="VALID", channels=20)
CASES = {
    "conv": conv(),
    "conv, plain": conv(src=IMAGE, **PLAIN),
    "conv, strided": conv(strides=2),
    "conv, dilated": conv(dilations=2),
    "conv, strided, dilated": conv(strides=2, dilations=2),
    "conv, groups": conv((3, 3, 5, 24), groups=4),
    "conv, groups, direct": conv((3, 3, 5, 24), groups=4, strides=2, how="direct"),
    "conv, depthwise": conv((3, 3, 1, 20), groups=20),
    "conv, multiplier": conv((3, 3, 1, 40), groups=20, strides=2),
    "conv, chain": conv(post_ops="eltwise(swish)"),
    "pair": case("conv_depthwise", BLOCKS, (1, 1, 20, 24), (3, 3, 24, 1), padding="SAME"),
    "volume": case("conv_volume", BLOCKS, (3, 3, 3, 20, 24), depth=3, padding="SAME"),
    "volume, strided": case(
        "conv_volume", BLOCKS, (3, 3, 3, 20, 24), depth=3, strides=2, padding="VALID"
    ),
    "inner_product": case("inner_product", ROWS, (20, 24)),
    "packed_matmul": case("packed_matmul", ROWS, (20, 24)),
    "rnn": (lstm, tf.zeros((0, 3, 20)), tf.ones((20, 64)), tf.ones((16, 64))),
    "pool": case("pool", BLOCKS, kind="max", ksize=2, **SHRINKING),
    "pool, means": case("pool", BLOCKS, kind="avg", ksize=3, **SHRINKING),
    "global_pool": case("global_pool", BLOCKS, kind="avg", channels=20),
    "resize": case("resize", BLOCKS, kind="bilinear", size=(12, 10), channels=20),
    "pad": case("pad", BLOCKS, paddings=[[1, 1], [2, 2]], channels=20),
    "concat": (joined, BLOCKS),
    "reorder": case("reorder", IMAGE, src="nhwc", dst="nChw16c"),
    "shuffle": case("shuffle", IMAGE, axis=3, group=5),
    "eltwise": case("eltwise", BLOCKS, post_ops="eltwise(swish)", channels=20),
    "layer_norm": case("layer_norm", BLOCKS, (20,), (20,), channels=20),
    "squeeze_excite": case(
        "squeeze_excite", BLOCKS, (20, 4), (4,), (4, 20), (20,), channels=20, squeezed=4
    ),
    "softmax": case("softmax", ROWS),
}
for kernel, stride in ((1, 1), (5, 3), (1, 2)):
    for layout, outputs in (("nChw16c", 24), ("nChw16c", 3), ("nhwc", 3)):
        for crop, options in ((0, {"post_ops": "eltwise(swish)"}), (kernel + 1, {})):
            options |= {"strides": stride, "crops": [[crop, -1], [0, crop]], "dst_layout": layout}
            name = f"transposed {kernel} {stride} {layout} {outputs} {crop}"
            CASES[name] = case("conv_transpose", BLOCKS, (kernel, kernel, outputs, 20), **options)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_there_and_back(name, traced):
    function, *inputs = CASES[name]

    def both(*xs):
        with tf.GradientTape() as tape:
            tape.watch(xs)
            y = function(*xs)
        return y, tape.gradient(y, xs)

    y, gradients = (tf.function(both) if traced else both)(*inputs)
    assert 0 in y.shape
    for x, gradient in zip(inputs, gradients, strict=True):
        assert gradient.shape == x.shape
        np.testing.assert_array_equal(gradient, np.zeros(x.shape))
