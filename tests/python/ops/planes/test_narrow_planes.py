"""Ops on height and width of bfloat16 and of bytes."""

import numpy as np
import pytest
import tensorflow as tf
from quantized_numpy import BF16, F32, U8, Tensor, assert_stands_for, is_bytes

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa

TYPES = [F32, BF16, U8]
OTHER = (0.03, 90)  # another quantization than that of a source
each_pair = pytest.mark.parametrize("src,dst", [(s, d) for s in TYPES for d in TYPES])


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def quantizations(x, dst):
    """The arguments of an op that reads x, and what the result then stands for."""
    to = OTHER if is_bytes(dst) else None
    return {"src_quantization": x.quantization, "dst_quantization": to, "dtype": dst}, to


def pooled(x, kind, ksize, strides, padding):
    function = {"max": tf.nn.max_pool2d, "avg": tf.nn.avg_pool2d}[kind]
    return function(x.real, ksize, strides, padding).numpy()


@pytest.mark.parametrize("src", TYPES)
def test_the_largest_keeps_its_bits(src, rng):
    x = Tensor(rng, (2, 8, 8, 20), src)
    y = bd.ops.pool(
        x.blocked, "max", 3, channels=20, strides=2, padding="SAME", src_quantization=x.quantization
    )
    assert_stands_for(y, 20, pooled(x, "max", 3, 2, "SAME"), src, x.quantization, steps=0)


@each_pair
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("layout", ["nc", "nhwc", "nChw16c"])
def test_global_pool(src, dst, kind, layout, rng):
    x = Tensor(rng, (2, 5, 6, 21), src)
    types, to = quantizations(x, dst)
    y = bd.ops.global_pool(x.blocked, kind, channels=21, dst_layout=layout, **types).numpy()
    if layout != "nChw16c":
        y = Tensor.blocks(y.reshape(2, 1, 1, 21), to)
    reduce = {"max": np.max, "avg": np.mean}[kind]
    assert_stands_for(y, 21, reduce(x.real, axis=(1, 2), keepdims=True), dst, to)


@pytest.mark.parametrize("src", TYPES)
@pytest.mark.parametrize("paddings", [[[1, 2], [0, 3]], [[-1, 1], [2, -2]], [[0, 0], [0, 0]]])
def test_padding_is_the_zero_point(src, paddings, rng):
    x = Tensor(rng, (2, 4, 5, 19), src)
    y = bd.ops.pad(x.blocked, paddings, channels=19, src_quantization=x.quantization)
    (top, bottom), (left, right) = paddings
    grown = np.pad(x.real, [(0, 0), (2, 2), (3, 3), (0, 0)])
    expected = grown[:, 2 - top : 6 + bottom, 3 - left : 8 + right]
    assert_stands_for(y, 19, expected, src, x.quantization, steps=0)


@pytest.mark.parametrize("src", [BF16, U8])
@pytest.mark.parametrize("op", ["pool", "resize"])
def test_parts_of_wider_tensors(src, op, rng):
    """16 of 48 channels become the last of a tensor whose others stay."""
    x, into = Tensor(rng, (2, 6, 6, 48), src), Tensor(rng, (2, 3, 3, 32), src)
    parts = dict(
        channels=16,
        src_part=(16, 48),
        dst_part=(16, 32),
        into=into.blocked,
        src_quantization=x.quantization,
    )
    if op == "pool":
        y = bd.ops.pool(x.blocked, "max", 2, strides=2, padding="VALID", **parts)
        part = tf.nn.max_pool2d(x.real[..., 16:32], 2, 2, "VALID").numpy()
    else:
        y = bd.ops.resize(x.blocked, "nearest", size=[3, 3], **parts)
        part = x.real[:, 1::2, 1::2, 16:32]
    expected = np.concatenate([into.real[..., :16], part], 3)
    assert_stands_for(y, 32, expected, src, x.quantization, steps=0)


def test_gradients_are_refused():
    x = tf.zeros((1, 1, 4, 4, 16), tf.bfloat16)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = bd.ops.pool(x, "max", 2, channels=16, strides=2, padding="VALID")
    with pytest.raises(ValueError, match="BlockdnnPool of bfloat16 has no gradient"):
        tape.gradient(y, x)
