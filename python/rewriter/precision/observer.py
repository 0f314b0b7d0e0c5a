"""What is remembered of a tensor's values: not they, but how often which come."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .quantize import Quantization, decibels

# On either side of zero: 16 bins for each step of a byte that holds one side.
_HALF = 16 * 256
# Bins on either side of zero. What lies within the first becomes zero where bytes reach to the last
# bin; what lies beyond the second, and nothing in between, are sentinels such as -1e9.
_HALF_STEP, _FAR = 8, 512
_SHRUNK = tuple(np.geomspace(0.98, 0.02, 40))  # of the whole range, for the least square error


class Choice(NamedTuple):
    """A quantization, the method that chose it, and the signal to noise in dB."""

    quantization: Quantization
    method: str
    snr: float


@dataclass
class Means:
    """The mean of each channel."""

    sums: np.ndarray | float = 0.0  # over all but the channels
    pixels: int = 0

    def add(self, values: np.ndarray) -> None:
        """Takes in a batch: [N, .., C], or in blocks [N, C / 16, H, W, 16]."""
        if values.ndim == 5:
            self.sums = self.sums + values.sum(axis=(0, 2, 3), dtype=np.float64).ravel()
            self.pixels += values.shape[0] * values.shape[2] * values.shape[3]
        else:
            rows = values.reshape(-1, values.shape[-1]) if values.ndim else values.reshape(1, 1)
            self.sums = self.sums + rows.sum(axis=0, dtype=np.float64)
            self.pixels += len(rows)

    @property
    def means(self) -> np.ndarray:
        """The mean of each channel, tails included."""
        return np.asarray(self.sums) / max(self.pixels, 1)


@dataclass
class Observer(Means):
    """Minimum, maximum, mean of each channel and a histogram of all values but zero.

    Zero costs no byte anything, and ReLU and tails of channels make many. The histogram's bins are
    [i * width, (i + 1) * width) for -_HALF <= i < _HALF. Where a value lies beyond them the width
    doubles and neighbours join, which loses nothing but fineness, so that one pass over the data is
    enough and memory does not grow with it.
    """

    low: float = math.inf
    high: float = -math.inf
    count: int = 0
    energy: float = 0.0
    width: float = 0.0
    bins: np.ndarray = field(default_factory=lambda: np.zeros(2 * _HALF, np.int64), repr=False)

    def add(self, values: np.ndarray) -> None:
        """Takes in a batch: [N, .., C], or in blocks [N, C / 16, H, W, 16].

        Raises:
            ValueError: it holds NaN or infinities.
        """
        values = np.asarray(values, np.float32)
        if not values.size:
            return
        low, high = float(values.min()), float(values.max())
        if not (math.isfinite(low) and math.isfinite(high)):
            raise ValueError("it becomes NaN or infinite on the calibration data")
        self.low, self.high = min(self.low, low), max(self.high, high)
        self.count += values.size
        self.energy += float(np.einsum("i,i->", values.ravel(), values.ravel(), dtype=np.float64))
        super().add(values)
        self._widen(max(-low, high))
        if self.width:
            scaled = values[values != 0] * np.float32(1 / self.width)
            numbers = np.clip(np.floor(scaled).astype(np.int64), -_HALF, _HALF - 1)
            self.bins += np.bincount(numbers + _HALF, minlength=2 * _HALF)

    def choose(self) -> Choice:
        """The quantization of the least square error, of the whole range or of a part of it.

        Values that were all equal have the range from zero to them, and are exact.
        """
        if self.low > self.high:
            return Choice(Quantization.of_range(0.0, 0.0), "min-max", math.inf)
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        ranges = [(low * a, high * b) for s in _SHRUNK for a, b in ((s, s), (1, s), (s, 1))]
        candidates = [Quantization.of_range(*ends) for ends in ((low, high), *ranges)]
        noise, place = min((self.noise(each), place) for place, each in enumerate(candidates))
        return Choice(
            candidates[place], "mse" if place else "min-max", decibels(self.energy, noise)
        )

    def noise(self, quantization: Quantization) -> float:
        """The sum of the squares of what bytes of that quantization lose.

        A value in the range loses at most half a step, on average step^2 / 12; zero nothing; one
        beyond the range what lies between it and the range.
        """
        if self.low == self.high:
            value = np.float32([self.low])
            back = quantization.dequantized(quantization.quantized(value))
            return self.count * float((back[0] - value[0]) ** 2)
        least, most = quantization.range
        if not self.width:
            return 0.0
        centers = (np.arange(-_HALF, _HALF) + 0.5) * self.width
        beyond = np.maximum(np.maximum(least - centers, centers - most), 0.0)
        inside = int(self.bins[beyond == 0].sum())
        return float((self.bins * np.square(beyond)).sum()) + inside * quantization.scale**2 / 12

    def drowns(self, quantization: Quantization) -> bool:
        """Whether bytes of it have no step for most values, since others are far from them all."""
        inside = slice(_HALF - _HALF_STEP, _HALF + _HALF_STEP)
        beside = slice(_HALF - _FAR, _HALF + _FAR)
        near, middle, all_values = self.bins[inside].sum(), self.bins[beside].sum(), self.bins.sum()
        if not 0 < all_values - middle < near == middle:
            return False
        return quantization.scale / 2 >= _HALF_STEP * self.width

    def _widen(self, most: float) -> None:
        """Makes the bins reach to `most`."""
        if most <= 0:
            return
        if not self.width:
            self.width = most / (_HALF - 1)
        while most >= self.width * _HALF:
            joined = self.bins.reshape(-1, 2).sum(axis=1)
            self.bins[:] = 0
            self.bins[_HALF // 2 : _HALF // 2 + _HALF] = joined
            self.width *= 2
