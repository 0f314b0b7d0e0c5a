import numpy as np
import pytest
from quantized_numpy import BF16, U8, Tensor, assert_stands_for

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


def test_the_same_value_twice(floats, blocked):
    x = floats(1, 2, 3, 10)
    packed = blocked.pack(x)
    joined = bd.ops.concat([packed, packed], channels=[10, 10])
    np.testing.assert_array_equal(blocked.unpack(joined, 20), np.concatenate([x, x], 3))


@pytest.mark.parametrize("dtype", [BF16, U8])
def test_slices_and_parts(dtype):
    rng = np.random.default_rng(5)
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
