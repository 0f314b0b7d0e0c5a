"""Bytes in the place of floats: a byte q stands for scale * (q - zero_point); bfloat16 weights.

Weights of bytes are int8, symmetric, of one scale an output channel; activations are uint8 of one
scale and one zero point a tensor. Zero is always exact, since channel tails and padding hold it.
"""

import math
from typing import NamedTuple

import numpy as np
import tensorflow as tf

BF16 = tf.bfloat16.as_numpy_dtype
LEVELS = 255  # steps between the first and the last number of a byte
MOST_WEIGHT = 127
INT4_LEVELS = 15
GROUP = 128  # rows of weights of 4 bits that share a step: as Keras and NNCF have them
_GROUPS = (32, 64, 128, 256)  # that others use
_FEW = 8  # columns that tell whether it is worth looking at all
_SHRUNK_INT4, _FITS_INT4 = 0.9, 3
# Below it a range holds only zeros, or is so narrow that 1 / scale is no float32.
_LEAST_SCALE = 1e-30
# How much of a source's variance is taken for noise that no calibration has seen: as much again.
_UNSEEN = 1.0
_UNSEEN_ROWS = 0.05  # the same of rows of products, which are many
_SHARES = (0.25, 0.5, 0.75, 1.0)  # of what columns of rows differ by that weights take over
_GAIN, _FARTHEST = 0.8, 1e3
_MOST_SWEEPS = 10
_AT_ONCE = 1 << 20  # elements


class Quantization(NamedTuple):
    """What a uint8 tensor stands for."""

    scale: float
    zero_point: int

    @classmethod
    def of_range(cls, low: float, high: float) -> "Quantization":
        """The one whose bytes reach from `low` to `high`, widened to hold zero.

        Raises:
            ValueError: a bound is no finite number, or low is above high.
        """
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError(f"a range must be two finite numbers, ascending; got {low}, {high}")
        low, high = min(low, 0.0), max(high, 0.0)
        scale = float(np.float32((high - low) / LEVELS))
        if scale < _LEAST_SCALE:
            scale = 1.0  # all zeros, of any scale
        zero_point = int(np.clip(np.rint(-low / scale), 0, LEVELS))
        return cls(scale, zero_point)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest number that a byte stands for."""
        return -self.scale * self.zero_point, self.scale * (LEVELS - self.zero_point)

    def quantized(self, values: np.ndarray) -> np.ndarray:
        """The bytes of the values: rounded to nearest, ties to even, saturated; NaN is zero."""
        scaled = np.asarray(values, np.float32) * np.float32(1 / self.scale)
        scaled = np.nan_to_num(np.rint(scaled), nan=0.0, posinf=1e9, neginf=-1e9)
        return np.clip(scaled + self.zero_point, 0, LEVELS).astype(np.uint8)

    def dequantized(self, values: np.ndarray) -> np.ndarray:
        """What the bytes stand for."""
        return np.float32(self.scale) * (values.astype(np.int32) - self.zero_point)


def quantize_weights(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights [.., output channels] as (int8, the scales of the channels as float32).

    Each channel's greatest magnitude becomes 127. A channel of zeros has the scale 1.

    Raises:
        ValueError: a weight is NaN or infinite.
    """
    most = np.zeros(weights.shape[-1], weights.dtype)
    for (some,) in _blocks(weights):
        most = np.maximum(most, np.abs(some).max(axis=0, initial=0.0))
    if not np.isfinite(most).all():
        raise ValueError("weights hold NaN or infinities, which no byte stands for")
    scales = (most / MOST_WEIGHT).astype(np.float32)
    scales[scales < _LEAST_SCALE] = 1.0
    stored = np.empty(weights.shape, np.int8)
    for some, out in _blocks(weights, stored):
        steps = np.rint(some.astype(np.float64) / scales)
        out[...] = np.clip(steps, -MOST_WEIGHT, MOST_WEIGHT)
    return stored, scales


def balance(weights: np.ndarray, read: np.ndarray) -> np.ndarray | None:
    """What to multiply columns of rows by before they become bytes; weights are divided by it.

    A column of large numbers takes steps from all others of the rows. Of several ways to share this
    with the weights (Xiao et al., SmoothQuant, 2023) it is the one whose rounding adds least to the
    results of some rows: a number is off by step^2 / 12.

    Args:
        weights: [rows, columns].
        read: some rows of what is multiplied, [.., rows of the weights].

    Returns: float32 [rows]; None where nothing is gained.
    """
    parts = [
        (np.abs(some).max(axis=1), np.square(some).sum(axis=1)) for (some,) in _blocks(weights)
    ]
    of_weights, energies = map(np.concatenate, zip(*parts, strict=True))
    of_read, squares = np.abs(read).max(axis=0), np.square(read).mean(axis=0)
    known = (of_read > _LEAST_SCALE) & (of_weights > _LEAST_SCALE)

    def lost(factors: np.ndarray) -> float:
        most = np.zeros(weights.shape[1])
        inverse = np.broadcast_to((1 / factors)[:, None], weights.shape)
        for some, by in _blocks(weights, inverse):
            most = np.maximum(most, np.abs(some * by).max(axis=0))
        of_rows, of_columns = np.square(np.abs(read * factors).max(axis=1)).mean(), most @ most
        return of_rows * (energies / factors**2).sum() + of_columns * (squares * factors**2).sum()

    best, least = None, _GAIN * lost(np.ones(len(weights), np.float32))
    for share in _SHARES if known.any() else ():
        factors = np.ones(len(weights))
        factors[known] = of_weights[known] ** (1 - share) / of_read[known] ** share
        middle = np.median(factors[known])
        factors[known] = np.clip(factors[known] / middle, 1 / _FARTHEST, _FARTHEST)
        if lost(factors) < least:
            best, least = factors.astype(np.float32), lost(factors)
    return best


def quantize_int4(
    weights: np.ndarray, group: int = GROUP, read: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, int]:
    """Weights [rows, columns] as numbers of 4 bits, with a step and an offset a group of rows.

    Each number is the nearest; or, where it is known how the numbers that rows are multiplied by
    belong together, the rows after it make up for what rounding a row loses (Frantar et al.,
    GPTQ, 2022). Where a column of a group has a zero, zero stays exact.

    Args:
        read: some rows of what is multiplied, [.., rows of the weights].

    Returns: uint8 [ceil(rows / 2), columns], float32 [2, groups, columns], and the rows of a group,
        as `bd.ops.inner_product` takes them.

    Raises:
        ValueError: a weight is NaN or infinite.
    """
    if not np.isfinite(weights).all():
        raise ValueError("weights hold NaN or infinities, which no 4 bits stand for")
    rows, columns = weights.shape
    group = min(group, rows)
    groups = -(-rows // group)
    numbers, scales = np.empty(weights.shape, np.uint8), np.empty((2, groups, columns), np.float32)
    carries = None if read is None else _carries(read)
    left = weights if read is None else np.array(weights, np.float32)
    for index in range(groups):
        part = slice(index * group, (index + 1) * group)
        some = np.asarray(left[part], np.float32)
        step, offset = scales[:, index] = _grid(some, (weights[part] == 0).any(axis=0))
        if carries is None:
            numbers[part] = _numbers(some, step, offset)
            continue
        lost = np.empty_like(some)
        for row in range(len(some)):
            at = part.start + row
            of_row = _numbers(some[row], step, offset)
            numbers[at] = of_row
            lost[row] = (some[row] - (of_row * step + offset)) / carries[at, at]
            after = carries[at, at + 1 : part.start + len(some)]
            some[row + 1 :] -= after[:, None] * lost[row]
        left[part.stop :] -= carries[part, part.stop :].T @ lost
    return pack_int4(numbers), scales, group


def _grid(some: np.ndarray, has_zero: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(step, offset) of each column: a grid of 16 numbers that leaves little square error.

    Rounding to a grid and fitting the grid to what was rounded take turns; either lessens the
    error. A little less than the range, to begin with, gains more by smaller steps than it loses.
    """
    low, high = some.min(axis=0), some.max(axis=0)
    beyond = np.float32((1 - _SHRUNK_INT4) / 2) * (high - low)
    step, offset = (high - low) * np.float32(_SHRUNK_INT4 / INT4_LEVELS), low + beyond
    for _ in range(_FITS_INT4):
        numbers = _numbers(some, step, offset).astype(np.float32)
        mean, middle = numbers.mean(axis=0), some.mean(axis=0)
        numbers -= mean
        spread = np.einsum("rc,rc->c", numbers, numbers)
        fits = np.einsum("rc,rc->c", numbers, some) / np.where(spread > 0, spread, 1)
        step = np.where(fits > 0, fits, step)
        offset = middle - step * mean
    step[step < _LEAST_SCALE] = 0.0  # All numbers of the column are equal: the offset.
    zero = np.clip(np.rint(-offset / np.where(step > 0, step, 1)), 0, INT4_LEVELS)
    return step, np.where(has_zero, -zero * step, offset)


def _numbers(some: np.ndarray, step: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """The number from 0 to 15 that is nearest to each weight."""
    steps = (some - offset) / np.where(step > 0, step, np.float32(1))
    return np.clip(np.rint(steps), 0, INT4_LEVELS).astype(np.uint8)


def _carries(read: np.ndarray) -> np.ndarray:
    """How much of what each row loses those after it take over: upper triangular [rows, rows]."""
    moments = (read.T @ read).astype(np.float64)
    moments += _UNSEEN_ROWS * np.trace(moments) / len(moments) * np.eye(len(moments))
    return np.linalg.cholesky(np.linalg.inv(moments)).T.astype(np.float32)


def pack_int4(numbers: np.ndarray) -> np.ndarray:
    """Numbers 0 to 15, [rows, columns], two rows to one of bytes: the first in the lower bits."""
    even, odd = numbers[::2], numbers[1::2]
    packed = even.astype(np.uint8)
    packed[: len(odd)] |= (odd << 4).astype(np.uint8)
    return packed


def dequantize_int4(packed: np.ndarray, scales: np.ndarray, group: int, rows: int) -> np.ndarray:
    """What `quantize_int4` returned stands for, float32 [rows, columns]."""
    numbers = np.stack([packed & 15, packed >> 4], axis=1).reshape(-1, packed.shape[1])[:rows]
    of_row = np.arange(rows) // group
    with np.errstate(over="ignore"):
        return numbers * scales[0, of_row] + scales[1, of_row]


def as_int4(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, int] | None:
    """Weights that are numbers of 4 bits already, as `quantize_int4` returns them; else None.

    They are if in groups of rows each column has at most 16 numbers, whole steps apart: so has what
    Keras's quantize("int4"), GPTQ and AWQ make of weights, and what others do.
    """
    for group in sorted({min(group, len(weights)) for group in (*_GROUPS, len(weights))})[::-1]:
        if _in_groups(weights[:, :_FEW], group) is not None:
            return _in_groups(weights, group)
    return None


def _in_groups(weights: np.ndarray, group: int) -> tuple[np.ndarray, np.ndarray, int] | None:
    """What `as_int4` returns of weights in groups of so many rows."""
    rows, columns = weights.shape
    numbers = np.empty(weights.shape, np.uint8)
    scales = np.empty((2, -(-rows // group), columns), np.float32)
    for index in range(scales.shape[1]):
        part = slice(index * group, (index + 1) * group)
        of_group = _whole_steps(np.asarray(weights[part], np.float64))
        if of_group is None:
            return None
        numbers[part], scales[0, index], scales[1, index] = of_group
    return pack_int4(numbers), scales, group


def _whole_steps(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """(numbers 0 to 15, step, offset) of each column of values that are so many steps apart."""
    low = values.min(axis=0)
    reach = values.max(axis=0) - low
    gaps = np.diff(np.sort(values, axis=0), axis=0, prepend=low[None])
    # Numbers that are nearer to each other than this are equal but for rounding.
    gaps[gaps <= reach / (100 * INT4_LEVELS)] = np.inf
    least = gaps.min(axis=0)
    numbers, step = np.full(values.shape, -1.0), np.zeros_like(reach)
    for parts in (1, 2, 3):  # of the least distance: there may be no neighbours
        count = np.where(reach > 0, np.rint(reach * parts / least), 1.0)
        steps = np.where(reach > 0, reach / count, 0.0)  # of equal numbers, the offset is all
        multiples = (values - low) / np.where(reach > 0, steps, 1.0)
        fits = (count <= INT4_LEVELS) & (np.abs(multiples - np.rint(multiples)).max(axis=0) < 1e-3)
        new = fits & (numbers[0] < 0)
        numbers[:, new], step[new] = np.rint(multiples[:, new]), steps[new]
    if numbers.min() < 0:
        return None
    return numbers.astype(np.uint8), step.astype(np.float32), low.astype(np.float32)


def _blocks(*arrays):
    """Rows of arrays [.., channels] of one shape, as many at a time as temporary copies may have.

    The weights of a layer can be most of what the process holds, and the passes make several copies
    of what they look at, some in float64.
    """
    rows = [np.reshape(array, (-1, array.shape[-1])) for array in map(np.asarray, arrays)]
    step = max(1, _AT_ONCE // max(1, rows[0].shape[1]))
    for first in range(0, len(rows[0]), step):
        yield [row[first : first + step] for row in rows]


def bfloat16_weights(weights: np.ndarray) -> np.ndarray:
    """Weights [.., input channels, output channels] as bfloat16, with the sum of each window.

    The taps of a window read neighbouring pixels, which are much alike, so of the errors that
    rounding makes their sum counts most. Each tap takes over what those before it have lost, from
    the largest to the smallest (error diffusion). Steps are proportional to numbers, so the last
    loses least. Zeros stay zeros.
    """
    windows = weights.reshape(-1, math.prod(weights.shape[-2:]))
    if len(windows) < 2:
        return weights.astype(BF16)
    order = np.argsort(-np.abs(windows), axis=0)
    stored, lost = np.empty(windows.shape, BF16), np.float32(0)
    for place in order[:, None]:
        tap = np.take_along_axis(windows, place, 0)
        rounded = ((tap + lost) * (tap != 0)).astype(BF16)
        lost = lost + tap - rounded.astype(np.float32)
        np.put_along_axis(stored, place, rounded, 0)
    return stored.reshape(weights.shape)


def round_weights(
    weights: np.ndarray, stored: np.ndarray, scales: np.ndarray, covariance: np.ndarray
) -> np.ndarray:
    """Weights rounded up or down, or further, so that the results of the convolution lose least.

    The result is off by d' x, where d is what rounding takes from the weights and x is what the
    taps read. Its variance d' C d depends on how errors of several taps add up: neighbouring pixels
    are much alike, and errors of opposite signs cancel. It is lessened by one weight after another,
    each becoming the best integer while the others stay, until none moves (coordinate descent, on
    the objective of Nagel et al., Up or Down? Adaptive Rounding, 2020, and of Frantar et al., GPTQ,
    2022). The mean is left to `bias_correction`.

    Args:
        weights: [kh, kw, ic / groups, oc].
        stored: int8, the same shape: where to begin.
        scales: [oc].
        covariance: C, [groups, taps, taps]; the mean is added to the diagonal, since pictures
            differ from those of calibration.

    Returns: int8, the shape of `weights`.
    """
    groups, taps, _ = covariance.shape
    shape = taps, groups, weights.shape[-1] // groups
    steps = (weights / scales.astype(np.float64)).reshape(shape).transpose(1, 0, 2)
    rounded = stored.astype(np.float64).reshape(shape).transpose(1, 0, 2).copy()
    unseen = _UNSEEN * np.einsum("gtt->g", covariance) / taps
    unseen[unseen <= 0] = 1.0  # Of a source that is constant nothing but the sizes of errors count.
    covariance = covariance + unseen[:, None, None] * np.eye(taps)
    slopes = covariance @ (steps - rounded)  # [groups, taps, oc / groups]
    for _ in range(_MOST_SWEEPS):
        is_settled = True
        for tap in range(taps):
            wanted = rounded[:, tap] + np.rint(slopes[:, tap] / covariance[:, tap, tap, None])
            moved = np.clip(wanted, -MOST_WEIGHT, MOST_WEIGHT) - rounded[:, tap]
            if moved.any():
                rounded[:, tap] += moved
                slopes -= covariance[:, :, tap, None] * moved[:, None]
                is_settled = False
        if is_settled:
            break
    return rounded.transpose(1, 0, 2).reshape(weights.shape).astype(np.int8)


def snr(wanted: np.ndarray, stored: np.ndarray, scales: np.ndarray | float = 1.0) -> float:
    """Signal to noise in dB: 10 log10(sum(wanted^2) / sum((wanted - got)^2)); inf where equal.

    Args:
        stored: what was got is `stored` times the scales of the channels.
    """
    signal = noise = 0.0
    for some, kept in _blocks(wanted, stored):
        some, got = some.astype(np.float64), kept.astype(np.float32) * scales
        signal, noise = signal + np.square(some).sum(), noise + np.square(some - got).sum()
    return decibels(float(signal), float(noise))


def decibels(signal: float, noise: float) -> float:
    """The ratio of two energies in dB; inf without noise, -inf without a signal or with NaN."""
    if noise == 0:
        return math.inf
    if not signal > 0 or not math.isfinite(noise):
        return -math.inf
    return 10 * math.log10(signal / noise)


def bias_correction(
    weights: np.ndarray, quantized: np.ndarray, scales: np.ndarray, means: np.ndarray
) -> np.ndarray:
    """What rounding the weights takes from the mean of each output channel.

    The result of a convolution is off by sum((w - w') * x), whose mean away from the borders is the
    sum over the taps of (w - w') times the mean of the source's channel.

    Args:
        weights, quantized: [kh, kw, ic / groups, oc].
        scales: [oc].
        means: [ic], of the source's channels.

    Returns: float64 [oc], to be added to the bias.
    """
    *_, ic, oc = weights.shape
    lost = (weights - quantized * scales.astype(np.float64)).sum(axis=(0, 1))  # [ic / groups, oc]
    groups = len(means) // ic
    sources = means.reshape(groups, ic)  # Output channels of one group lie side by side.
    return np.einsum("gi,igo->go", sources, lost.reshape(ic, groups, oc // groups)).reshape(oc)
