"""The blocked layout in NumPy, written from its definition."""

import numpy as np


class Blocked:
    """nChw16c: [N, ceil(C / 16), H, W, 16]."""

    @staticmethod
    def pack(x, tail=0):
        """[N, H, W, C] -> [N, ceil(C / 16), H, W, 16] with `tail` in the tail."""
        n, h, w, c = x.shape
        padded = np.full((n, h, w, -(-c // 16) * 16), tail, x.dtype)
        padded[..., :c] = x
        return padded.reshape(n, h, w, -(-c // 16), 16).transpose(0, 3, 1, 2, 4).copy()

    @staticmethod
    def unpack(x, channels, tail=0):
        """The inverse of pack; fails unless the tail is `tail`."""
        x = np.asarray(x)
        n, blocks, h, w, _ = x.shape
        assert blocks == -(-channels // 16)
        plain = x.transpose(0, 2, 3, 1, 4).reshape(n, h, w, blocks * 16)
        np.testing.assert_array_equal(plain[..., channels:], tail)
        return plain[..., :channels]
