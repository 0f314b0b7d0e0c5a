"""Ops by which models that were quantized elsewhere say so: floats in, the nearest of a grid out.

FakeQuantWithMinMaxVars and its kin, with n bits, l = 0, or 1 of a narrow range, h = 2^n - 1:

    step = (max - min) / (h - l),   z = round(l - min / step), halves away from zero, in [l, h]
    k = floor(x / step - (l - z) + 1/2) + (l - z), clamped:    l - z <= k <= h - z,   y = step * k

QuantizeAndDequantizeV2 to V4, with a range that is given, signed or not:

    l, h = -2^(n-1), 2^(n-1) - 1, or 0, 2^n - 1;  l is greater by 1 where the range is narrow
    step = max(min / l, max / h) of those that are positive;  l <= k <= h,   y = step * k
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .view import Node, Ref

_FAKE = ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
_BOTH_WAYS = ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
QUANTIZING = frozenset((*_FAKE, *_BOTH_WAYS))


class Grid(NamedTuple):
    """The numbers step * k for integers low <= k <= high, one grid a tensor or a channel.

    Attributes:
        step, low, high: float64 and integers, of shape [] or [channels]; a step of 0 is a grid of
            nothing but zero.
        axis: of the channels; None where one grid holds for all.
    """

    step: np.ndarray
    low: np.ndarray
    high: np.ndarray
    axis: int | None = None


def grid(node: Node, value: Callable[[Ref], np.ndarray | None]) -> Grid | str:
    """The grid of the result of one of `QUANTIZING`, or one line that says why it is not known.

    Args:
        value: of a tensor that is constant, else None.
    """
    if node.op in _FAKE:
        return _of_fake(node, value)
    return _of_both_ways(node, value)


def _of_fake(node: Node, value) -> Grid | str:
    attr = node.attr
    if node.op.endswith("Args"):  # these two have defaults
        least = np.asarray(attr["min"].f if "min" in attr else -6.0)
        most = np.asarray(attr["max"].f if "max" in attr else 6.0)
    else:
        least, most = value(node.inputs[1]), value(node.inputs[2])
    if least is None or most is None:
        return "its range is computed"
    first = 1 if attr["narrow_range"].b else 0
    last = 2 ** (attr["num_bits"].i or 8) - 1
    least, most = (np.asarray(bound, np.float32) for bound in (least, most))
    if not (np.isfinite(least).all() and np.isfinite(most).all() and (least <= most).all()):
        return "its range is no range"
    step = (most - least) / np.float32(last - first)
    with np.errstate(all="ignore"):
        zero = np.where(step > 0, np.float32(first) - least / step, first)
    if ((step == 0) & (least != 0)).any():
        return "its range is one number, which is not zero"
    zero = np.clip(np.floor(zero + 0.5), first, last).astype(np.int64)
    axis = -1 if node.op.endswith("PerChannel") else None
    return Grid(step.astype(np.float64), first - zero, last - zero, axis)


def _of_both_ways(node: Node, value) -> Grid | str:
    attr = node.attr
    bits = attr["num_bits"].i or 8
    if node.op.endswith("V3"):
        given = value(node.inputs[3])
        bits = 0 if given is None else int(given)
    if not 2 <= bits <= 16:
        return "its number of bits is computed" if not bits else f"it has {bits} bits"
    if not ("range_given" in attr and attr["range_given"].b):
        # V2 and V4 find a range where none is given; the default of V3 is that one is.
        if not (node.op.endswith("V3") and "range_given" not in attr):
            return "its range is that of each call"
    least, most = value(node.inputs[1]), value(node.inputs[2])
    if least is None or most is None:
        return "its range is computed"
    is_signed = attr["signed_input"].b if "signed_input" in attr else True
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
    low += is_signed and attr["narrow_range"].b
    least, most = (np.asarray(bound, np.float64) for bound in (least, most))
    of_low = least / low if low else np.zeros_like(least)
    step = np.maximum(np.maximum(of_low, most / high), 0.0)
    if not np.isfinite(step).all():
        return "its range is no range"
    axis = attr["axis"].i if "axis" in attr else -1
    lows, highs = np.full(step.shape, low), np.full(step.shape, high)
    return Grid(
        step.astype(np.float32).astype(np.float64), lows, highs, axis if axis >= 0 else None
    )
