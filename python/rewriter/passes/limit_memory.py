"""Keeps the packed weights of a function within a multiple of its weights.

Packed weights take the memory of plain ones, those that Winograd transforms a multiple of
it: for 3x3 windows 16/9 in F(2x2) and four times in F(4x4). A network of 3x3 convolutions
only would exceed three times the weights: the largest filters, the deepest first, then do
without F(4x4), which gains least where there are most channels and fewest pixels. The weights
of inner products are packed once, for many rows. What paired products add (two vectors beside those
of each block of results, an eighth at most) counts for every convolution.
"""

from dataclasses import replace

from ...graph import Body, Node
from ...layout import BLOCK, num_blocks
from ...native import multiplies
from ...ops.records import Convolution, ConvTranspose, ConvVolume, InnerProduct
from ..context import Context

_BUDGET = 3.0
_SMALL_MODEL = 1 << 20  # floats: packed weights of so few are nobody's concern


# Packed weights by plain ones, at most, by window and stride: the largest kWinogradTransforms has
# (winograd_kernel.h). Strided: only of plain sources, with few channels.
_GROWTH = {
    (3, 3, 1): 4.0,
    (5, 5, 1): 36 / 25,
    (1, 3, 1): 2.0,
    (3, 1, 1): 2.0,
    (1, 7, 1): 9 / 7,
    (7, 1, 1): 9 / 7,
    (7, 7, 2): 4 * 36 / 49,
}
_SMALL = {(3, 3, 1): 16 / 9}  # the largest that takes at most twice the plain weights, if another
# In bfloat16: by split phases, in whole blocks of source channels.
_SPLIT_WINDOW, _SPLIT_GROWTH = (3, 3, 2), 2.0
# Transposed with strides: 4x4 at stride 2 becomes 3x3 of four times the channels, F(4x4) or F(2x2).
_TRANSPOSED = (4 * 36 / 16, 4 * 16 / 16)
_PAIRED = 9 / 8
_TERMS = 1 / 16  # at most, of paired products in Winograd's planes, from so many channels on
_PAIRED_CHANNELS = 32
_INNER_PRODUCT = 1.0  # for many rows; few read them as they are
_NO_GROWTH = (1.0, 1.0)
_MOST_STRIDED_CHANNELS = 4


def limit_memory(body: Body, context: Context) -> None:
    """Keeps packed weights within a multiple of the weights, by restricting algorithms.

    The option memory="normal" bounds all packed weights by three times the weights (or 4 MB, where
    that is more); "low" packs every filter into 9/8 of the size: no Winograd. It reads the weights
    of inner products of few rows as they are.
    """
    nodes = [node for node in body.view.topological() if isinstance(node.payload, Convolution)]
    bf16 = context.options.precision == "bf16" or bool(context.bfloat16)
    bf16 = bf16 and multiplies("bf16")
    growths = {node: _growth(node.payload, bf16) for node in nodes}
    free = [
        node for node in nodes if node.payload.algorithm == "auto" and growths[node] != _NO_GROWTH
    ]
    if context.options.memory == "low":
        for node in free:
            _restrict(node, "auto_smallest")
        for node in body.view:
            if isinstance(node.payload, InnerProduct):
                _restrict(node, "direct")
        return
    convolutions = sum(node.payload.weights.size for node in nodes)
    products = (n.payload for n in body.view if isinstance(n.payload, InnerProduct))
    inner_products = sum(product.in_channels * product.channels for product in products)
    budget = max(_SMALL_MODEL, _BUDGET * (convolutions + inner_products))
    left = budget - _PAIRED * convolutions - _INNER_PRODUCT * inner_products
    left -= sum((growths[node][0] - 1) * node.payload.weights.size for node in free)
    for node in sorted(reversed(free), key=lambda node: node.payload.weights.size, reverse=True):
        auto, small = growths[node]
        if left >= 0:
            return
        if small < auto:
            _restrict(node, "auto_small")
            left += (auto - small) * node.payload.weights.size


def _growth(conv: Convolution, bf16: bool = False) -> tuple[float, float]:
    """Packed weights by plain ones, at most: with algorithm "auto" and "auto_small"."""
    if isinstance(conv, ConvTranspose):
        return _TRANSPOSED
    is_volume, stride = isinstance(conv, ConvVolume), max(conv.strides[-2:])
    *_, kh, kw, channels, _ = conv.weights.shape
    window = (kh, kw, stride)
    is_plain = conv.groups == 1 and conv.strides == (stride, stride) and conv.dilations == (1, 1)
    if not (is_volume or is_plain):
        return _NO_GROWTH
    auto = _GROWTH.get(window, 1.0)
    if not is_volume and stride > 1 and channels > _MOST_STRIDED_CHANNELS:
        is_split = bf16 and window == _SPLIT_WINDOW
        auto = _SPLIT_GROWTH * num_blocks(channels) * BLOCK / channels if is_split else 1.0
    small = _SMALL.get(window, auto if auto <= 2 else 1.0)
    pairs = not is_volume and auto > 1 and stride == 1 and channels >= _PAIRED_CHANNELS
    return (auto * (1 + _TERMS) if pairs else auto), small


def has_transform(conv: Convolution) -> bool:
    """Whether there is a Winograd for the window, stride and groups."""
    return _growth(conv) != _NO_GROWTH


def _restrict(node: Node, algorithm: str) -> None:
    node.payload = replace(node.payload, algorithm=algorithm)
