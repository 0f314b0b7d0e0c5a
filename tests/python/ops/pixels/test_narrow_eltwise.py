"""Chains on bfloat16 and on bytes, and what quantizes and dequantizes."""

import numpy as np
import pytest
import tensorflow as tf
from blocked_numpy import Blocked
from quantized_numpy import BF16, F32, U8, Tensor, assert_stands_for, is_bytes, stored

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa

TYPES = [F32, BF16, U8]
OTHER = (0.04, 90)


@pytest.fixture
def rng():
    return np.random.default_rng(13)


@pytest.mark.parametrize("src", TYPES)
@pytest.mark.parametrize("other", TYPES)
@pytest.mark.parametrize("dst", TYPES)
@pytest.mark.parametrize("shape", [(2, 5, 7, 19), (1, 3, 3, 32), (0, 4, 4, 8)])
def test_sum_of_two_activations(src, other, dst, shape, rng):
    x, y = Tensor(rng, shape, src), Tensor(rng, shape, other, (0.03, 50))
    scale = rng.uniform(0.5, 2, shape[3]).astype(np.float32)
    to = OTHER if is_bytes(dst) else None
    z = bd.ops.eltwise(
        x.blocked,
        bd.PostOps().binary("add", tf.constant(y.blocked)).binary("mul", scale).eltwise("relu"),
        channels=shape[3],
        dtype=dst,
        src_quantization=x.quantization,
        sum_quantization=y.quantization,
        dst_quantization=to,
    )
    assert_stands_for(z, shape[3], np.maximum((x.real + y.real) * scale, 0), dst, to)


@pytest.mark.parametrize("src", [BF16, U8])
def test_plain_tensors(src, rng):
    x = Tensor(rng, (2, 5, 7, 19), src)
    y = bd.ops.eltwise(
        x.plain,
        "eltwise(relu)",
        layout="nhwc",
        src_quantization=x.quantization,
        dst_quantization=OTHER if is_bytes(src) else None,
    )
    wanted = stored(np.maximum(x.real, 0), src, OTHER)
    np.testing.assert_allclose(y.numpy().astype(float), wanted.astype(float), atol=1)


def test_results_may_take_the_memory_of_a_source_of_their_type(rng):
    x = Tensor(rng, (1, 4, 4, 16), U8)

    @tf.function
    def twice(x):
        for _ in range(2):
            x = bd.ops.eltwise(
                x,
                "eltwise(relu)",
                channels=16,
                src_quantization=(0.05, 117),
                dst_quantization=(0.05, 117),
            )
        return x

    expected = np.maximum(x.real, 0)
    assert_stands_for(twice(x.blocked), 16, expected, U8, x.quantization, steps=0)


@pytest.mark.parametrize("shape", [(2, 5, 7, 19), (1, 3, 3, 32), (0, 4, 4, 8)])
def test_quantize_and_dequantize(shape, rng):
    x = rng.standard_normal(shape).astype(np.float32)
    q = bd.ops.reorder(x, "nhwc", "nChw16c", dtype=tf.uint8, dst_quantization=OTHER)
    assert_stands_for(q, shape[3], x.astype(np.float64), U8, OTHER)
    plain = Blocked.unpack(q, shape[3], OTHER[1]).astype(np.float64)
    back = bd.ops.reorder(
        q, "nChw16c", "nhwc", channels=shape[3], dtype=tf.float32, src_quantization=OTHER
    )
    np.testing.assert_allclose(back, OTHER[0] * (plain - OTHER[1]), rtol=1e-6)
    other = bd.ops.reorder(
        q,
        "nChw16c",
        "nChw16c",
        channels=shape[3],
        src_quantization=OTHER,
        dst_quantization=(0.1, 7),
    )
    assert_stands_for(other, shape[3], OTHER[0] * (plain - OTHER[1]), U8, (0.1, 7))


def test_a_quantization_of_floats_is_refused(rng):
    x = np.zeros((1, 2, 2, 3), np.float32)
    message = "src_quantization is for uint8; src is float32"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        bd.ops.reorder(x, "nhwc", "nChw16c", src_quantization=OTHER)
