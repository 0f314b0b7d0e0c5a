"""Tensors of low-precision types and what they stand for, in NumPy, written from the definition."""

import numpy as np
import tensorflow as tf
from blocked_numpy import Blocked

F32, BF16, U8 = np.float32, tf.bfloat16.as_numpy_dtype, np.uint8


def is_bytes(dtype):
    return np.dtype(dtype) == np.uint8


def real(x, quantization=()):
    """What the elements stand for, float64."""
    scale, zero_point = quantization or (1.0, 0)
    return float(np.float32(scale)) * (np.asarray(x, np.float64) - zero_point)


def stored(x, dtype, quantization=()):
    """How real numbers are stored: rounded to nearest, ties to even, and saturated."""
    if not is_bytes(dtype):
        return np.asarray(x, np.float32).astype(dtype)
    scale, zero_point = quantization
    return np.clip(np.rint(x / float(np.float32(scale))) + zero_point, 0, 255).astype(np.uint8)


class Tensor:
    """Random elements of a type, plain and in blocks, with their quantization.

    Attributes:
        plain: [N, H, W, C] as stored.
        blocked: the same in blocks; the tail stands for zero.
        real: what it stands for.
        quantization: (scale, zero_point), or None.
    """

    def __init__(self, rng, shape, dtype, quantization=(0.05, 117)):
        self.quantization = quantization if is_bytes(dtype) else None
        if is_bytes(dtype):
            self.plain = rng.integers(0, 256, shape, np.uint8)
        else:
            self.plain = rng.standard_normal(shape).astype(np.float32).astype(dtype)
        self.blocked = self.blocks(self.plain, self.quantization)
        self.real = real(self.plain, self.quantization or ())

    @staticmethod
    def blocks(plain, quantization):
        return Blocked.pack(plain, tail_of(quantization))


def tail_of(quantization):
    return quantization[1] if quantization else 0


def assert_stands_for(blocked, channels, expected, dtype, quantization=None, steps=1):
    """Whether a blocked result is what is expected, within so many steps of its type, and holds
    the zero point in its tail."""
    assert np.asarray(blocked).dtype == np.dtype(dtype)
    plain = Blocked.unpack(blocked, channels, tail_of(quantization))
    wanted = stored(expected, dtype, quantization or ())
    if is_bytes(dtype):
        assert np.abs(plain.astype(int) - wanted.astype(int)).max(initial=0) <= steps
    else:
        relative = {4: 2e-6, 2: 2**-7}[np.dtype(dtype).itemsize]
        np.testing.assert_allclose(
            plain.astype(np.float64), wanted.astype(np.float64), rtol=relative, atol=2e-6
        )
