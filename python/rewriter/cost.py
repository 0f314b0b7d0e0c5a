"""What is worth converting: every number that says so, the reason, and the times behind it.

Times are those of kernels and reorders on the machines named, with two threads. A size that is not
known counts as 64 unless it is said otherwise.
"""

import math
from collections.abc import Iterable

from ..graph import Body, Node, estimate
from ..native import multiplies
from ..ops.records import BLOCK, Conv, Convolution

# So many passes over memory take longer than one with all of the arithmetic, whoever runs them.
MANY_OPS = 4
# Where both ways are measured, what takes more than this part of the other's time gains noise.
NOTICED = 0.98


def reads_plain(conv: Convolution, sizes: Iterable, is_shared: bool, feeds_depthwise: bool) -> bool:
    """Whether a convolution reads plain pixels as fast as blocks, reorder included.

    It does with few channels, or where it reads each pixel once. Times of reading plain, of those
    of a reorder and reading blocks: windows that touch (Zen 4), 8x8 32->32 at 56x56 0.94, 4x4
    64->64 at 28x28 0.96, 2x2 160->160 at 14x14 1.00, but 2x2 96->192 at 56x56 1.23, which does not
    stay in the cache nearest to a core; 3x3 of stride 2 1.0 to 1.4 and of stride 1 2.8. Single
    pixels of stride 1 (Zen 3), 64 to 1024 channels at 8x8 to 56x56: 0.83 to 0.97.

    Args:
        sizes: height, width and channels of what it reads.
        is_shared: whether others read that in blocks.
        feeds_depthwise: whether a depthwise convolution reads the result, which then runs in the
            pass over blocks.
    """
    if conv.in_channels < BLOCK:
        return True
    window = conv.weights.shape[:2]
    if not isinstance(conv, Conv) or window != conv.strides or is_shared:
        return False
    if window == (1, 1):
        return not feeds_depthwise
    in_cache = math.prod(estimate(size, 64) for size in sizes) <= 1 << 17
    return in_cache and conv.in_channels <= 256


def writes_plain(conv: Conv, transforms: bool) -> bool:
    """Whether a convolution stores a plain result as fast as one in blocks, which is reordered.

    Times of storing plain, of those of blocks and a reorder (Zen 4): 1x1 256->255 at 40x40 0.92,
    64->64 at 56x56 1.00, of plain pixels 64->192 at 56x56 0.85, 256->768 at 14x14 0.93; 3x3 of
    stride 2 0.94 to 1.00, windows that touch 0.83 to 1.00; with Winograd (Zen 3) 3x3 256->36 at
    28x28 0.97, 256->720 there 1.01, 64->64 at 56x56 1.02, 5x5 64->16 at 64x64 1.02; but 3x3 and 5x5
    of stride 1 without it 1.6 to 3.0.

    Args:
        transforms: whether it has a transform, and many results that are read plain alone.
    """
    return conv.taps == conv.in_channels or transforms or min(conv.strides) > 1


def is_worth_reordering(elements: int) -> bool:
    """Whether reordering so many is worth a word: 8192 move in 2 us."""
    return elements > 1 << 13


def pays_for_reorders(conv: Convolution) -> bool:
    """Whether a convolution gains more than a reorder before and one after it cost.

    Reorder, convolution with bias and relu and reorder at 56x56, against TensorFlow with oneDNN, in
    microseconds (Zen 5):

        3x3  16 -> 16   153 against  199        1x1   64 -> 64   268 against 253
        3x3  64 -> 64   454 against 1106        1x1  256 -> 64   673 against 582
        depthwise 3x3, 64 channels              147 against 135

    A depthwise one with bias between two reorders, against TensorFlow without and with oneDNN, by
    min (Zen 3); some 350 us of each are the call:

        3x3  128 channels  56 x 56   626 against  873   711 against  767
             640           14 x 14   459 against  598   517 against  719
        5x5  128           56 x 56   963 against 1649   733 against 1120
             640           14 x 14   494 against  760   697 against  925
        7x7  128           56 x 56  1746 against 3069  1897 against 1643
        3x3  of stride 2   14 x 14   521 against  502   487 against  584

    So one dense kernel larger than 1x1 pays, and so does a depthwise one of stride 1 and at most
    5x5 taps.
    """
    kh, kw = conv.weights.shape[:2]
    return kh * kw > 1 and (not conv.depthwise or (conv.strides == (1, 1) and kh * kw <= 25))


def gains_by_blocks(written: int, moved: int) -> bool:
    """Whether convolutions that gain little each pay for the reorders around them all.

    They do if these move less than twice the elements that they write. What they read as plain
    pixels counts as moved, since that takes about as long as a reorder.
    """
    return moved < 2 * written


def is_slower_product(rows: int, ic: int, oc: int) -> bool:
    """Whether TensorFlow's product by oneDNN is faster: what is written outweighs arithmetic.

    With a bias against TensorFlow with oneDNN (Zen 4), rows x K -> N, TensorFlow's time over ours:

        3136 x 160 -> 640  0.91    12544 x 64 -> 256  0.84    12544 x 128 -> 512  0.90
        3136 x  96 -> 384  1.05     3136 x 64 -> 256  1.00     3136 x 384 -> 1536 0.98
        12544 x 256 -> 64  1.45      197 x 768 -> 3072 1.16     128 x 768 -> 30522 1.04

    Unknown sizes count as 1, so a product with an open batch is judged by one sample.
    """
    return rows * oc >= 2_000_000 and ic <= 256 and oc > ic


_SLOW = {
    "int8": "this CPU has no VNNI: int8 is slower here than float32",
    "bf16": "this CPU has no AVX512-BF16: bf16 is slower here than float32",
}
# A product's time without VNNI, that of float32 being 1: of bytes, of a depthwise one of floats and
# of bytes, and of a window that Winograd's algorithm computes, of bytes and in float32. What an
# element of a result takes beside, more than in float32 (docs/experiments.md).
_OF_BYTES, _DEPTHWISE, _DEPTHWISE_OF_BYTES = 0.73, 1.3, 2.6
_ELEMENT_OF_BYTES = 14
_WINOGRAD_OF_BYTES = {(3, 3): 0.29}
_WINOGRAD = {(3, 3): 0.38, (5, 5): 0.54, (1, 3): 0.75, (3, 1): 0.75, (1, 7): 0.64, (7, 1): 0.64}


def slow_in_bf16() -> str | None:
    """One line where this CPU does not multiply bfloat16 as it is."""
    return None if multiplies("bf16") else _SLOW["bf16"]


def slow_in_int8(body: Body, convolutions: Iterable[Node]) -> str | None:
    """One line where those convolutions take longer here on bytes than in float32.

    Without instructions for bytes they are ahead where sums are long, unless Winograd's algorithm
    applies in float32 alone.
    """
    if multiplies("int8"):
        return None
    of_floats = of_bytes = 0.0
    for node in convolutions:
        conv = node.payload
        count = body.shapes.elements(node.ref)
        products = count * conv.taps
        window = tuple(conv.weights.shape[:2])
        plain = conv.groups == 1 and conv.strides == conv.dilations == (1, 1)
        by_floats = _DEPTHWISE if conv.depthwise else _WINOGRAD.get(window, 1.0) if plain else 1.0
        by_bytes = _WINOGRAD_OF_BYTES.get(window, _OF_BYTES) if plain else _OF_BYTES
        of_floats += products * by_floats
        of_bytes += products * (_DEPTHWISE_OF_BYTES if conv.depthwise else by_bytes)
        of_bytes += count * _ELEMENT_OF_BYTES
    return _SLOW["int8"] if of_bytes > of_floats else None
