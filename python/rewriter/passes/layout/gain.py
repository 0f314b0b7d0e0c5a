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

from ....graph import Body, Node
from ....ops.records import BLOCK, BLOCKED, NHWC, Conv, Convolution, Reorder
from ...context import AS_PRODUCT, Context

_DEPTHWISE_TAPS = 25
_REASON = "between plain tensors the two reorders would cost more than the convolution gains"


def leave_losing(body: Body, context: Context) -> None:
    """Starts again without the convolutions that would lose more by reorders than they gain."""
    if not context.options.deterministic:  # what TensorFlow computes need not be that
        context.leave.update(_losing(body))
    context.parts = _parts(body) + [part for part in context.parts if part not in _parts(body)]


def _parts(body: Body) -> list[tuple[str, ...]]:
    """What `Context.parts` holds, of one body."""
    moved: dict[tuple[str, ...], int] = {}
    for island in islands(body):
        convolutions = [node for node in island if isinstance(node.payload, Convolution)]
        reorders = [node for node in island if isinstance(node.payload, Reorder)]
        if convolutions and reorders:
            part = tuple(body.label(node.payload.origin) for node in convolutions)
            moved[part] = sum(_elements(body, node) for node in reorders)
    return sorted(moved, key=moved.get, reverse=True)


def _reads_many_plain(node: Node) -> bool:
    """Whether a convolution of whole blocks of channels reads plain pixels."""
    return node.payload.src_layout == NHWC and node.payload.in_channels >= BLOCK


def _losing(body: Body) -> dict[str, str]:
    """Convolutions better left alone, by the name they had in the graph -> the reason."""
    losing: dict[str, str] = {}
    for island in islands(body):
        reorders = [node for node in island if isinstance(node.payload, Reorder)]
        convolutions = [node for node in island if isinstance(node.payload, Convolution)]
        plain = [node for node in convolutions if _reads_many_plain(node)]
        if not (reorders or plain) or any(map(_pays, convolutions)):
            continue
        if all(isinstance(node.payload, Conv) and node.payload.is_dense for node in convolutions):
            losing.update((body.label(node.payload.origin), AS_PRODUCT) for node in convolutions)
            continue
        moved = sum(_elements(body, node) for node in reorders)
        moved += sum(body.shapes.elements(node.src) for node in plain)
        written = sum(_elements(body, node) for node in convolutions)
        if moved >= 2 * written:
            losing.update((body.label(node.payload.origin), _REASON) for node in convolutions)
    return losing


def _pays(node: Node) -> bool:
    """Whether it gains more than the reorders of its island cost."""
    kh, kw = node.payload.weights.shape[:2]
    small = node.payload.strides == (1, 1) and kh * kw <= _DEPTHWISE_TAPS
    return kh * kw > 1 and (small or not node.payload.depthwise)


def _elements(body: Body, node: Node) -> int:
    """How many elements a primitive writes."""
    return body.shapes.elements(node.ref)


def islands(body: Body) -> list[list[Node]]:
    """Planned nodes joined by the blocked tensors between them."""
    parent: dict[str, str] = {}

    def find(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    planned = [node for node in body.view.topological() if node.payload is not None]
    for node in planned:
        parent[node.name] = node.name
        for ref in node.inputs:
            if ref.node in parent and body.view.producer(ref).payload.dst_layout == BLOCKED:
                parent[find(node.name)] = find(ref.node)
    islands: dict[str, list[Node]] = {}
    for node in planned:
        islands.setdefault(find(node.name), []).append(node)
    return list(islands.values())
