"""Finds convolutions for which changing the layout costs more than it gains.

Measured on one island (reorder, convolution with bias and relu, reorder) of 56 x 56
pixels against TensorFlow with oneDNN, 2 cores of a Zen 5, in microseconds:

    3x3  16 -> 16   153 against  199        1x1   64 -> 64   268 against 253
    3x3  64 -> 64   454 against 1106        1x1  256 -> 64   673 against 582
    depthwise 3x3, 64 channels              147 against 135

Two reorders and a depthwise kernel with bias between them, against TensorFlow
without and with oneDNN, 2 cores of a Zen 3, by min; some 350 us of each are the call:

    3x3  128 channels  56 x 56   626 against  873   711 against  767
         640           14 x 14   459 against  598   517 against  719
    5x5  128           56 x 56   963 against 1649   733 against 1120
         640           14 x 14   494 against  760   697 against  925
    7x7  128           56 x 56  1746 against 3069  1897 against 1643
    3x3  of stride 2   14 x 14   521 against  502   487 against  584

So one dense kernel larger than 1x1 pays for its island, and so does a depthwise one of
stride 1 and at most 5x5 taps. Others gain little over TensorFlow's; an island of them pays
only if its reorders move less than twice the elements that its convolutions write. What a
convolution reads as plain pixels counts as moved, since that takes about as long as a reorder.
Dense layers alone need no blocks: as inner products they have no reorders at all.
"""

from collections import defaultdict
from dataclasses import dataclass, field

from ....graph import Body, Node, Ref
from ....ops.records import BLOCK, BLOCKED, NHWC, Conv, Convolution
from ...context import AS_PRODUCT, Context
from .place_reorders import PLAIN, change, formats_read, is_one_in_memory

_DEPTHWISE_TAPS = 25
_REASON = "between plain tensors the two reorders would cost more than the convolution gains"


@dataclass
class _Island:
    """Planned nodes joined by the blocked tensors between them.

    Attributes:
        convolutions: those among them.
        moved: how many elements the reorders at its edges move; 0 where it has none.
    """

    convolutions: list[Node] = field(default_factory=list)
    moved: int = 0


def leave_losing(body: Body, context: Context) -> None:
    """Starts again without the convolutions that would lose more by reorders than they gain."""
    islands = _islands(body)
    if not context.options.deterministic:  # what TensorFlow computes need not be that
        for island in islands:
            if (reason := _loss(island, body)) is not None:
                context.leave.update(dict.fromkeys(_labels(island, body), reason))
    reordered = sorted((i for i in islands if i.moved), key=lambda i: i.moved, reverse=True)
    parts = [_labels(island, body) for island in reordered]
    context.parts = parts + [part for part in context.parts if part not in parts]


def _labels(island: _Island, body: Body) -> tuple[str, ...]:
    return tuple(body.label(node.payload.origin) for node in island.convolutions)


def _loss(island: _Island, body: Body) -> str | None:
    """Why its convolutions are better left alone; None where they are not."""
    convolutions = island.convolutions
    plain = [node for node in convolutions if _reads_many_plain(node)]
    if not (island.moved or plain) or any(map(_pays, convolutions)):
        return None
    if all(isinstance(node.payload, Conv) and node.payload.is_dense for node in convolutions):
        return AS_PRODUCT
    moved = island.moved + sum(body.shapes.elements(node.src) for node in plain)
    written = sum(body.shapes.elements(node.ref) for node in convolutions)
    return _REASON if moved >= 2 * written else None


def _reads_many_plain(node: Node) -> bool:
    """Whether a convolution of whole blocks of channels reads plain pixels."""
    return node.payload.src_layout == NHWC and node.payload.in_channels >= BLOCK


def _pays(node: Node) -> bool:
    """Whether it gains more than the reorders of its island cost."""
    kh, kw = node.payload.weights.shape[:2]
    small = node.payload.strides == (1, 1) and kh * kw <= _DEPTHWISE_TAPS
    return kh * kw > 1 and (small or not node.payload.depthwise)


def _islands(body: Body) -> list[_Island]:
    """All that have convolutions; what reads one tensor in blocks is of one island."""
    view, parent = body.view, {}

    def root(key: str | Ref) -> str | Ref:
        while parent.setdefault(key, key) != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    reordered = {(ref, change(body, ref, PLAIN)) for ref in view.fetches}
    for node in view.topological():
        reads = list(zip(node.inputs, formats_read(node), strict=True))
        if node.op != "Shape":
            reordered.update((ref, change(body, ref, wanted)) for ref, wanted in reads)
        joined = [ref for ref, wanted in reads if wanted.layout == BLOCKED]
        if node.payload is not None and node.payload.dst_layout == BLOCKED:
            joined.append(node.ref)
        for ref in joined:
            parent[root(ref)] = root(node.name)
    islands: dict[str | Ref, _Island] = defaultdict(_Island)
    for node in view.topological():
        if isinstance(node.payload, Convolution):
            islands[root(node.name)].convolutions.append(node)
    for ref, (own, wanted) in reordered:
        if own != wanted and not is_one_in_memory(body, ref) and root(ref) in islands:
            islands[root(ref)].moved += body.shapes.elements(ref)
    return list(islands.values())
