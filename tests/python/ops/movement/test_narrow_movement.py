"""Ops that move bfloat16 and bytes."""

import numpy as np
import pytest
from quantized_numpy import BF16, U8, Tensor, assert_stands_for

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("channels", [[16, 32], [3, 20, 17]])
def test_concat_brings_bytes_to_one_quantization(channels, rng):
    values = [Tensor(rng, (2, 3, 4, c), U8, (0.01 * c, 7 * c)) for c in channels]
    y = bd.ops.concat(
        [x.blocked for x in values],
        channels=channels,
        src_quantizations=[x.quantization for x in values],
        dst_quantization=(0.1, 40),
    )
    expected = np.concatenate([x.real for x in values], 3)
    assert_stands_for(y, sum(channels), expected, U8, (0.1, 40))


@pytest.mark.parametrize("dtype", [BF16, U8])
def test_slices_and_parts(dtype, rng):
    x, into = Tensor(rng, (2, 3, 4, 40), dtype), Tensor(rng, (2, 3, 4, 52), dtype)
    y = bd.ops.concat(
        [x.blocked],
        channels=[20],
        src_parts=[(7, 40)],
        dst_part=(32, 52),
        into=into.blocked,
        src_quantizations=x.quantization and [x.quantization],
    )
    expected = np.concatenate([into.real[..., :32], x.real[..., 7:27]], 3)
    assert_stands_for(y, 52, expected, dtype, x.quantization, steps=0)
