"""Ops by which models that were quantized elsewhere say so: floats in, the nearest of a grid out.

FakeQuantWithMinMaxVars and its kin move the ends of their range so that zero is one of the numbers;
QuantizeAndDequantizeV2 to V4 with a known range put zero in the middle or at the begin. Which
numbers there are follows from the least and the greatest: what the op makes of very large ones.
"""

from typing import NamedTuple

import numpy as np

from .view import Node

_FAKE = ("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
_BOTH_WAYS = ("QuantizeAndDequantizeV2", "QuantizeAndDequantizeV3", "QuantizeAndDequantizeV4")
QUANTIZING = frozenset((*_FAKE, *_BOTH_WAYS))
_LARGE = np.float32(1e38)


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


def grid(node: Node, constants) -> Grid | str:
    """The grid of the result of one of `QUANTIZING`, or one line that says why it is not known.

    Args:
        constants: of the graph.
    """
    attr, is_fake = node.attr, node.op in _FAKE
    bits = attr["num_bits"].i or 8
    if node.op.endswith("V3"):
        bits = constants.value(node.inputs[3])
    if bits is None or not 2 <= int(bits) <= 16:
        return "its number of bits is computed" if bits is None else f"it has {bits} bits"
    # V2 and V4 compute the range where the node has none; the default of V3 is that it has one.
    has_range = attr["range_given"].b if "range_given" in attr else node.op.endswith("V3")
    if not (is_fake or has_range):
        return "its range is that of each call"
    ranges = [constants.value(ref) for ref in node.inputs[1:3]]
    if any(bound is None for bound in ranges):
        return "its range is computed"
    is_signed = not is_fake and (attr["signed_input"].b if "signed_input" in attr else True)
    is_narrow = attr["narrow_range"].b and (is_fake or is_signed)
    axis = attr["axis"].i if "axis" in attr else -1
    shape = np.shape(ranges[0]) if ranges else ()
    places = (*(1,) * axis, *(shape or (1,)))
    ends = [constants.apply(node, np.full(places, end)) for end in (-_LARGE, _LARGE)]
    if any(end is None or not np.isfinite(end).all() for end in ends):
        return "its range is no range"
    least, most = (end.astype(np.float64).reshape(shape) for end in ends)
    step = (most - least) / (2 ** int(bits) - 1 - is_narrow)
    if (step < 0).any() or ((step == 0) & (least != 0)).any():
        return "its range is no range"
    low = np.rint(np.where(step > 0, least / np.where(step > 0, step, 1), 0)).astype(np.int64)
    channels = -1 if node.op.endswith("PerChannel") else axis if axis >= 0 else None
    return Grid(step, low, low + (2 ** int(bits) - 1 - is_narrow), channels)
