"""A batch of nothing, through every op and back."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

ops = bd.ops


def _zeros(*shape):
    return tf.zeros(shape)


def _ones(*shape):
    return tf.ones(shape)


IMAGE, BLOCKS = _zeros(0, 6, 5, 20), _zeros(0, 2, 6, 5, 16)
CASES = {
    "conv": (lambda x, w: ops.conv(x, w, padding="SAME"), BLOCKS, _ones(3, 3, 20, 24)),
    "conv, plain": (
        lambda x, w: ops.conv(
            x, w, src_layout="nhwc", dst_layout="nhwc", post_ops="eltwise(relu)", padding="SAME"
        ),
        IMAGE,
        _ones(3, 3, 20, 24),
    ),
    "conv, strided": (
        lambda x, w: ops.conv(x, w, strides=2, padding="SAME"),
        BLOCKS,
        _ones(3, 3, 20, 24),
    ),
    "conv, dilated": (
        lambda x, w: ops.conv(x, w, dilations=2, padding="SAME"),
        BLOCKS,
        _ones(3, 3, 20, 24),
    ),
    "conv, strided, dilated": (
        lambda x, w: ops.conv(x, w, strides=2, dilations=2, padding="SAME"),
        BLOCKS,
        _ones(3, 3, 20, 24),
    ),
    "conv, groups": (
        lambda x, w: ops.conv(x, w, groups=4, padding="SAME"),
        BLOCKS,
        _ones(3, 3, 5, 24),
    ),
    "conv, groups, direct": (
        lambda x, w: ops.conv(x, w, groups=4, strides=2, algorithm="direct", padding="SAME"),
        BLOCKS,
        _ones(3, 3, 5, 24),
    ),
    "conv, depthwise": (
        lambda x, w: ops.conv(x, w, groups=20, padding="SAME"),
        BLOCKS,
        _ones(3, 3, 1, 20),
    ),
    "conv, multiplier": (
        lambda x, w: ops.conv(x, w, groups=20, strides=2, padding="SAME"),
        BLOCKS,
        _ones(3, 3, 1, 40),
    ),
    "conv, chain": (
        lambda x, w: ops.conv(x, w, post_ops="eltwise(swish)", padding="SAME"),
        BLOCKS,
        _ones(3, 3, 20, 24),
    ),
    "conv_depthwise": (
        lambda x, w, d: ops.conv_depthwise(x, w, d, padding="SAME"),
        BLOCKS,
        _ones(1, 1, 20, 24),
        _ones(3, 3, 24, 1),
    ),
    "conv_volume": (
        lambda x, w: ops.conv_volume(x, w, depth=3, padding="SAME"),
        BLOCKS,
        _ones(3, 3, 3, 20, 24),
    ),
    "conv_volume, strided": (
        lambda x, w: ops.conv_volume(x, w, depth=3, strides=2, padding="VALID"),
        BLOCKS,
        _ones(3, 3, 3, 20, 24),
    ),
    "inner_product": (lambda x, w: ops.inner_product(x, w), _zeros(0, 20), _ones(20, 24)),
    "packed_matmul": (lambda x, w: ops.packed_matmul(x, w), _zeros(0, 20), _ones(20, 24)),
    "rnn": (
        lambda x, w, u: ops.rnn(x, w, u, cell="lstm").dst,
        _zeros(0, 3, 20),
        _ones(20, 64),
        _ones(16, 64),
    ),
    "pool": (lambda x: ops.pool(x, "max", 2, strides=2, channels=20, padding="VALID"), BLOCKS),
    "pool, means": (
        lambda x: ops.pool(x, "avg", 3, strides=2, padding="SAME", channels=20),
        BLOCKS,
    ),
    "global_pool": (lambda x: ops.global_pool(x, "avg", channels=20), BLOCKS),
    "resize": (lambda x: ops.resize(x, "bilinear", size=(12, 10), channels=20), BLOCKS),
    "pad": (lambda x: ops.pad(x, [[1, 1], [2, 2]], channels=20), BLOCKS),
    "concat": (lambda x: ops.concat([x, x], channels=[20, 20]), BLOCKS),
    "reorder": (lambda x: ops.reorder(x, "nhwc", "nChw16c"), IMAGE),
    "shuffle": (lambda x: ops.shuffle(x, 3, 5), IMAGE),
    "eltwise": (lambda x: ops.eltwise(x, "eltwise(swish)", channels=20), BLOCKS),
    "layer_norm": (
        lambda x, g, b: ops.layer_norm(x, g, b, channels=20),
        BLOCKS,
        _ones(20),
        _ones(20),
    ),
    "squeeze_excite": (
        lambda x, *w: ops.squeeze_excite(x, *w, channels=20, squeezed=4),
        BLOCKS,
        _ones(20, 4),
        _ones(4),
        _ones(4, 20),
        _ones(20),
    ),
    "softmax": (lambda x: ops.softmax(x), _zeros(0, 20)),
}
TRANSPOSED = {}
for kernel, stride in ((1, 1), (3, 1), (2, 2), (3, 2), (4, 2), (5, 3), (1, 2)):
    for layout, outputs in (("nChw16c", 24), ("nChw16c", 3), ("nhwc", 3)):
        for crop, options in (
            (0, {}),
            (1, {"algorithm": "direct"}),
            (0, {"post_ops": "eltwise(swish)"}),
            (kernel + 1, {}),
        ):
            name = f"transposed {kernel} {stride} {layout} {outputs} {crop} {options}"
            TRANSPOSED[name] = (
                functools.partial(
                    ops.conv_transpose,
                    strides=stride,
                    crops=[[crop, -1], [0, crop]],
                    dst_layout=layout,
                    **options,
                ),
                BLOCKS,
                _ones(kernel, kernel, outputs, 20),
            )


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", CASES | TRANSPOSED)
def test_there_and_back(name, traced):
    function, *inputs = (CASES | TRANSPOSED)[name]

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
