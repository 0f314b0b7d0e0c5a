"""Second moments of what layers read: by them rounding their weights is judged."""

import numpy as np

from ...ops.records import Conv

# Of an output channel; a square of so many numbers is kept. A first layer of 7x7 has as many.
MOST_TAPS = 7 * 7 * 3
_MOST_PIXELS = 64  # of a batch that are looked at
_SEED = 0  # All attempts look at the same pixels.
_MOST_ROWS = 2048  # that products read


class Moments:
    """Means and covariances of the sources of the taps of an output channel, over the pixels.

    All output channels of a group read the same. Padding counts as the zeros that it is. No more
    than 64 pixels of a batch are looked at, so time does not grow with the pictures.

    Args:
        conv: the convolution.
    """

    def __init__(self, conv: Conv):
        kh, kw, ic, _ = conv.weights.shape
        taps = kh * kw * ic
        self._conv, self._count = conv, 0
        self._products = np.zeros((conv.groups, taps, taps))
        self._sums = np.zeros((conv.groups, taps))
        self._rng = np.random.default_rng(_SEED)

    def add(self, values: np.ndarray) -> None:
        """Takes in a batch of the source: [N, H, W, C], or in blocks [N, C / 16, H, W, 16]."""
        read = self._read(np.asarray(values, np.float32))
        self._count += read.shape[1]
        self._sums += read.sum(axis=1)
        self._products += read.transpose(0, 2, 1) @ read

    @property
    def means(self) -> np.ndarray:
        """[groups, taps], taps in the order of the weights [kh, kw, ic / groups]."""
        return self._sums / max(self._count, 1)

    @property
    def covariance(self) -> np.ndarray:
        """[groups, taps, taps]."""
        means = self.means
        return self._products / max(self._count, 1) - means[:, :, None] * means[:, None, :]

    def _read(self, values: np.ndarray) -> np.ndarray:
        """What the taps read for some pixels, float64 [groups, pixels, taps]."""
        conv = self._conv
        if values.ndim == 5:
            n, blocks, h, w, lanes = values.shape
            values = values.transpose(0, 2, 3, 1, 4).reshape(n, h, w, blocks * lanes)
        values = values[..., : conv.in_channels]
        sides = [conv.sides(axis, values.shape[1 + axis]) for axis in (0, 1)]
        values = np.pad(values, [(0, 0), *sides, (0, 0)])
        (sh, sw), (dh, dw) = conv.strides, conv.dilations
        *window, ic, _ = conv.weights.shape
        rows = (values.shape[1] - (window[0] - 1) * dh - 1) // sh + 1
        columns = (values.shape[2] - (window[1] - 1) * dw - 1) // sw + 1
        pixels = len(values) * max(rows, 0) * max(columns, 0)
        chosen = self._rng.choice(pixels, min(pixels, _MOST_PIXELS), replace=False)
        n, y, x = np.unravel_index(chosen, (len(values), max(rows, 1), max(columns, 1)))
        taps = [values[n, y * sh + i * dh, x * sw + j * dw] for i, j in np.ndindex(*window)]
        read = np.stack(taps).reshape(len(taps), len(chosen), conv.groups, ic)
        read = read.transpose(2, 1, 0, 3).reshape(conv.groups, len(chosen), len(taps) * ic)
        return read.astype(np.float64)


class SampledRows:
    """Up to 2,048 rows of a tensor [.., columns], whatever the number of batches."""

    def __init__(self, columns: int):
        self.rows, self._keys = np.zeros((0, columns), np.float32), np.zeros(0)
        self._rng = np.random.default_rng(_SEED)

    def add(self, values: np.ndarray) -> None:
        """Takes in a batch; rows with NaN or infinities do not count."""
        rows = np.asarray(values, np.float32).reshape(-1, self.rows.shape[1])
        rows = rows[np.isfinite(rows).all(axis=1)]
        # Those of the least random numbers are a fair sample of all that came.
        keys = np.concatenate([self._keys, self._rng.random(len(rows))])
        kept = np.argsort(keys)[:_MOST_ROWS]
        self._keys, self.rows = keys[kept], np.concatenate([self.rows, rows])[kept]
