"""Decides which tensors are blocked.

One walk, producers first. A convolution writes blocks (unless it has few channels
that are read plain); pooling, concat and element-wise work convert only where an
input is already blocked and it pays. Nothing here inserts reorders: that comes last.
"""

import functools
import math
from dataclasses import replace

from ....graph import Body, Node, Ref, estimate
from ....ops.records import BLOCK, BLOCKED, NHWC, Conv, Convolution, LayerNorm
from ...context import Context
from ...patterns import PATTERNS
from ...patterns.movement import cut, rows
from ...patterns.pixels import softmax, spread
from ...patterns.planes import reduce
from ...report import Report
from ...rules import Found, look
from ..fusion.fuse_post_ops import extend
from ..limit_memory import has_transform
from .settled import CONVERTED, TRANSPARENT, eltwise, plain_activation, settled

# Kept nodes of these ops always have a reason in the report.
_ALWAYS_REPORTED = frozenset(
    {"AvgPool", "AvgPool3D", "ConcatV2", "FusedBatchNorm", "FusedBatchNormV3", "MaxPool"}
)
# These take no plain copy of their own, or pass it on to a fetch, or are judged later.
_ASK_LITTLE = frozenset({"Identity", "IdentityN", "Shape", *softmax.RULE.ROOTS})

_MUCH = 1 << 13  # elements, which a reorder moves in 2 us
_NO_WINOGRAD = frozenset({"direct", "paired", "auto_smallest"})

# A source that stays in the cache nearest to a core, a pixel at least: what `_reads_once` allows.
_SMALL_SOURCE, _SMALL_PIXEL = 1 << 17, 256


class LayoutState:
    """What is asked of each tensor: is it blocked, should it be?"""

    def __init__(self, body: Body, context: Context):
        self.body = body
        self.followers = context.followers
        found = [
            one
            for node in body.view
            for pattern in PATTERNS["spans"]
            if isinstance(one := look(pattern, node, body, context), Found)
        ]
        parts = {name for one in found for name in one.nodes - {one.root}}
        self.spans = {one.root: one for one in found if one.root not in parts}
        self.inside = {name for one in self.spans.values() for name in one.nodes - {one.root}}
        self._root_of = {name: one.root for one in self.spans.values() for name in one.nodes}
        self._moves: dict[str, bool] = {}
        self._wants: dict[tuple[Ref, bool], bool] = {}

    def is_blocked(self, ref: Ref) -> bool:
        node = self.body.view.producer(ref)
        return node.payload is not None and ref.port == 0 and node.payload.dst_layout == BLOCKED

    def wants_blocked(self, ref: Ref, few: bool = False) -> bool:
        """Whether a convolution further on reads this tensor, or what becomes of it, in blocks.

        Args:
            few: count convolutions of few channels, too, which read plain tensors as well.
        """
        if (ref, few) not in self._wants:
            self._wants[ref, few] = False  # what a loop back to here adds
            readers = self.body.view.consumers(ref)
            wants = any(self._reads_blocked(node, index, few) for node, index in readers)
            self._wants[ref, few] = wants
        return self._wants[ref, few]

    def has_plain_use(self, ref: Ref) -> bool:
        """Whether someone will surely read this tensor plain."""
        readers = self.body.view.consumers(ref)
        return self.body.view.is_fetched(ref) or any(self._stays_plain(one) for one, _ in readers)

    def has_only_plain_uses(self, ref: Ref) -> bool:
        """Whether all that read this tensor will surely read it plain."""
        return all(self._stays_plain(node) for node, _ in self.body.view.consumers(ref))

    def _stays_plain(self, node: Node) -> bool:
        own = self.followers.root_of(node.name) or self._root_of.get(node.name)
        return node.payload is None and not self._may_convert(node) and own is None

    def shares(self, node: Node) -> bool:
        """Whether somebody else reads its source in blocks."""
        readers = self.body.view.consumers(node.src)
        return any(one is not node and self._reads_blocked(one, at, False) for one, at in readers)

    def _reads_blocked(self, node: Node, index: int, few: bool) -> bool:
        if isinstance(node.payload, Convolution):
            conv = node.payload
            if node.roles[index] != "src":  # a residual operand has the layout of the result
                return conv.channels >= BLOCK or self.wants_blocked(node.ref, few)
            return few or conv.in_channels >= BLOCK or not conv.may_read_plain
        if isinstance(node.payload, LayerNorm):
            return node.payload.of_pixels and self.wants_blocked(node.ref, few)
        if node.payload is not None:
            return node.payload.layout_of(node.roles[index]) == BLOCKED
        root = self.followers.root_of(node.name) or self._root_of.get(node.name)
        if root is not None:
            return self.wants_blocked(Ref(root), few)
        if node.op in reduce.ROOTS and reduce.reduced(node, self.body):
            return True  # they read either layout, and write little
        if (picture := self._picture(node)) is not None:
            return index == picture and self.wants_blocked(node.ref, few)
        passes = node.op in TRANSPARENT or self._moves_pixels(node)
        return passes and self.wants_blocked(node.ref, few)

    def _may_convert(self, node: Node) -> bool:
        may = node.op in CONVERTED or self._moves_pixels(node)
        return may or self._picture(node) is not None

    def _moves_pixels(self, node: Node) -> bool:
        """Whether it takes runs of channels, or moves rows or columns."""
        if node.name not in self._moves:
            cuts = node.op in cut.ROOTS and bool(cut.runs(node, self.body))
            self._moves[node.name] = cuts or rows.moves(node, self.body)
        return self._moves[node.name]

    def _picture(self, node: Node) -> int | None:
        """Of work that spreads one operand over the other: the index of that."""
        return spread.picture(node, self.body) if node.op in spread.ROOTS else None


def assign_layout(body: Body, context: Context) -> None:
    """Decides which tensors are blocked; pooling, concatenation, shuffles and the like follow."""
    state = LayoutState(body, context)
    for entry in body.view.topological():
        if entry.name not in body.view:
            continue
        node = body.view.node(entry.name)
        if isinstance(node.payload, Convolution):
            _settle(node, state)
        elif isinstance(node.payload, LayerNorm):
            wanted = state.is_blocked(node.src) or state.wants_blocked(node.ref)
            blocked = node.payload.of_pixels and wanted
            node.payload = replace(node.payload, layout=BLOCKED if blocked else NHWC)
        elif node.payload is None:
            _convert(node, state, context)
    _report_boundaries(state, context.report)


def _settle(node: Node, state: LayoutState) -> None:
    conv, src = node.payload, node.src
    reads_plain = conv.may_read_plain and not state.is_blocked(src) and _reads_once(node, state)
    ends = conv.groups == 1 and not state.wants_blocked(node.ref)
    plain = ends and (conv.channels < BLOCK or _is_head(node, state))
    node.payload = replace(
        conv, src_layout=NHWC if reads_plain else BLOCKED, dst_layout=NHWC if plain else BLOCKED
    )


def _reads_once(node: Node, state: LayoutState) -> bool:
    """Whether it reads plain pixels as fast as blocks, reorder included: few channels, or patches.

    Times of reading plain, of those of a reorder and reading blocks (Zen 4, 2 threads): windows
    that touch, 8x8 32->32 at 56x56 0.94, 4x4 64->64 at 28x28 0.96, 2x2 160->160 at 14x14 1.00;
    but 2x2 96->192 at 56x56 1.23, 3x3 of stride 2 1.0 to 1.4 and of stride 1 2.8. Single pixels of
    stride 1 (Zen 3, 2 threads), 64 to 1024 channels at 8x8 to 56x56: 0.83 to 0.97.
    """
    conv, shapes = node.payload, state.body.shapes
    if conv.in_channels < BLOCK:
        return True
    window = conv.weights.shape[:2]
    if not isinstance(conv, Conv) or window != conv.strides or state.shares(node):
        return False
    if window == (1, 1):  # A depthwise convolution behind it runs in its pass over blocks.
        readers = state.body.view.consumers(node.ref)
        return not any(
            isinstance(one.payload, Conv) and one.payload.depthwise for one, _ in readers
        )
    _, *sizes = shapes.shape(node.src)
    small = math.prod(estimate(size, 64) for size in sizes) <= _SMALL_SOURCE
    return small and conv.in_channels <= _SMALL_PIXEL


def _is_head(node: Node, state: LayoutState) -> bool:
    """Whether its result is needed plain, and stored so as fast as in blocks.

    Times of storing plain, of those of blocks and a reorder (Zen 4, 2 threads): 1x1 256->255 at
    40x40 0.92, 64->64 at 56x56 1.00; 3x3 of stride 2 0.94 to 1.00, windows that touch 0.83 to 1.00;
    with Winograd (Zen 3, 2 threads) 3x3 256->36 at 28x28 0.97, 256->720 there 1.01, 64->64 at 56x56
    1.02, 5x5 64->16 at 64x64 1.02; but 3x3 and 5x5 of stride 1 without it 1.6 to 3.0.
    """
    conv = node.payload
    if not isinstance(conv, Conv):
        return False
    pixels = conv.taps == conv.in_channels and state.is_blocked(node.src)
    transforms = conv.algorithm not in _NO_WINOGRAD and has_transform(conv)
    transforms = transforms and _is_much(node, state) and state.has_only_plain_uses(node.ref)
    operands = [ref for role, ref in node.by_role.items() if role != "src"]
    plain = pixels or transforms or min(conv.strides) > 1
    plain = plain and not any(state.is_blocked(ref) for ref in operands)
    return plain and state.has_plain_use(node.ref)


def _is_much(node: Node, state: LayoutState) -> bool:
    """Whether a reorder of its result is worth a word; an unknown size counts as 1."""
    return state.body.shapes.elements(node.ref, nominal=1) > _MUCH


def _convert(node: Node, state: LayoutState, context: Context) -> None:
    """Makes `node` ours where something that it reads is blocked, or notes why not."""
    if node.name in state.inside:
        return
    report = context.report
    idioms = state.followers.at_root(node.name)
    if any(state.is_blocked(idiom.src) for idiom in idioms):
        result = eltwise(node, state)
        if isinstance(result, str):
            report.decline(node.name, result)
        else:
            extend(state.followers.consume(idioms[0], result), state.followers)
        return
    if idioms and (result := plain_activation(node, state)) is not None:
        extend(state.followers.consume(idioms[0], result), state.followers)
        return
    patterns = _patterns(node.op)
    found = [state.spans[node.name]] if node.name in state.spans else []
    found = found or [look(one, node, state.body, context) for one in patterns]
    for one in found:
        sources = one.inputs.values() if isinstance(one, Found) else node.inputs
        if one is None or not any(state.is_blocked(ref) for ref in sources):
            continue
        result = one if isinstance(one, str) else settled(one, state)
        if isinstance(result, str):
            report.decline(node.name, result)
        else:
            made = result.put(state.body)
            if made.payload.takes_steps:
                extend(made, state.followers)
        return
    if node.op in _ALWAYS_REPORTED:
        foreign = not patterns and not idioms and _foreign_reason(node)
        report.decline(node.name, foreign or "nothing it reads is blocked: no gain")


@functools.cache
def _patterns(op: str) -> list:
    return [one for one in PATTERNS["assign_layout"] if op in one.ROOTS]


def _report_boundaries(state: LayoutState, report: Report) -> None:
    """Names every kept node that needs a plain copy of a blocked tensor."""
    reported = {name for name, _ in report.declined}
    for node in state.body.view:
        silent = node.op in _ASK_LITTLE or node.name in reported
        if node.payload is None and not silent:
            if any(state.is_blocked(ref) for ref in node.inputs):
                report.decline(node.name, f"{node.op} has no blocked form here")


def _foreign_reason(node: Node) -> str:
    if node.op.startswith("FusedBatchNorm"):
        training = node.attr["is_training"].b
        return "it normalises by the batch (is_training)" if training else "no blocked input"
    return f"{node.op} is not implemented"
