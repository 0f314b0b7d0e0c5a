"""Decides which tensors are blocked.

Wanting goes from consumers to producers: a convolution reads blocks, and what may become ours wants
blocks where its result is wanted so. Giving goes from producers to consumers, in one walk: a
convolution writes blocks, unless it has few channels that are read plain, and other work becomes
ours where something that it reads is blocked, if `_when` finds that it pays. Nothing here inserts
reorders: that comes last. What is worth how much is said in cost.py.
"""

from dataclasses import replace

from ....graph import Body, Node, Ref
from ....ops.records import (
    BLOCK,
    BLOCKED,
    NHWC,
    ROW_MOVES,
    BroadcastProduct,
    BroadcastSum,
    Concat,
    Conv,
    Convolution,
    Eltwise,
    GlobalPool,
    Join,
    LayerNorm,
    Pad,
    Reshape,
    SqueezeExcite,
)
from ...context import Context
from ...cost import MANY_OPS, is_worth_reordering, reads_plain, writes_plain
from ...patterns import patterns_of
from ...patterns.pixels import softmax, spread
from ...patterns.planes import reduce
from ...report import Report
from ...rules import Replacement, look
from ..fusion.fuse_post_ops import extend
from ..limit_memory import has_transform

# Kept nodes of these ops always have a reason in the report.
_ALWAYS_REPORTED = frozenset(
    {"AvgPool", "AvgPool3D", "ConcatV2", "FusedBatchNorm", "FusedBatchNormV3", "MaxPool"}
)
# These need no plain copy, only hand it on to an output, or are judged later.
_ASK_LITTLE = frozenset({"Identity", "IdentityN", "Shape", *softmax.RULE.ROOTS})
# What costs as much as it gains where nothing after it reads blocks; all else becomes ours wherever
# it reads them.
_IF_WANTED = (Conv, Eltwise, Join, Pad, Reshape, *ROW_MOVES)
_NO_WINOGRAD = frozenset({"direct", "paired", "auto_smallest"})
_UNWANTED = "nothing after it wants blocks"


class LayoutState:
    """What is asked of each tensor: is it blocked, should it be?"""

    def __init__(self, body: Body, context: Context):
        self.body, self.followers = body, context.followers
        # Only convolutions begin blocks: where there are none, nothing may become anything.
        has_blocks = any(
            isinstance(node.payload, Convolution) or self.is_blocked(node.ref) for node in body.view
        )
        spans = _look_at_all("spans", body, context) if has_blocks else []
        spans = [replacement for _, replacement in spans]
        parts = {name for span in spans for name in span.nodes - {span.root}}
        self.spans = {span.root: span for span in spans if span.root not in parts}
        self.inside = {name for span in self.spans.values() for name in span.nodes - {span.root}}
        # What each node may become a part of, or else become.
        looked = _look_at_all("assign_layout", body, context) if has_blocks else []
        pairs = [(name, span) for span in self.spans.values() for name in (span.root, *span.nodes)]
        pairs += [(name, span) for _, span in looked for name in span.nodes - {span.root}]
        self._may_become = dict(reversed([*pairs, *looked]))
        self._wanted = {
            few: self._find_wanted(few) if has_blocks else set() for few in (False, True)
        }
        self._plain: set[str] = set()  # nodes that neither are blocked nor read blocks

    def reads_only_plain(self, node: Node) -> bool:
        """Whether all that the node reads is plain."""
        return all(ref.node in self._plain for ref in node.inputs)

    def pass_by(self, name: str) -> None:
        """Notes whether a node is plain, after all that it reads."""
        node = self.body.view.node(name)
        if not self.is_blocked(node.ref) and self.reads_only_plain(node):
            self._plain.add(name)

    def is_blocked(self, ref: Ref) -> bool:
        node = self.body.view.producer(ref)
        return node.payload is not None and ref.port == 0 and node.payload.dst_layout == BLOCKED

    def wants_blocked(self, ref: Ref, few: bool = False) -> bool:
        """Whether a convolution further on reads this tensor, or what becomes of it, in blocks.

        Args:
            few: count convolutions of few channels, too, which read plain tensors as well.
        """
        return ref in self._wanted[few]

    def _find_wanted(self, few: bool) -> set[Ref]:
        wanted: set[Ref] = set()
        for node in reversed(self.body.view.topological()):
            for index, ref in enumerate(node.inputs):
                answer = self._reads_blocked(node, index, few)
                if answer in wanted if isinstance(answer, Ref) else answer:
                    wanted.add(ref)
        return wanted

    def has_plain_use(self, ref: Ref) -> bool:
        """Whether someone will surely read this tensor plain."""
        readers = self.body.view.consumers(ref)
        return self.body.view.is_fetched(ref) or any(self.stays_plain(user) for user, _ in readers)

    def stays_plain(self, node: Node) -> bool:
        if node.payload is not None or self.followers.root_of(node.name) is not None:
            return False
        replacement = self._may_become.get(node.name)
        if replacement is None or not isinstance(replacement.payload, Concat):
            return replacement is None
        cuts = replacement.payload.is_slice and replacement.root == node.name
        return cuts and not self.wants_blocked(node.ref, few=True)

    def shares(self, node: Node) -> bool:
        """Whether somebody else reads the source in blocks."""
        for reader, index in self.body.view.consumers(node.src):
            answer = reader is not node and self._reads_blocked(reader, index, False)
            if self.wants_blocked(answer) if isinstance(answer, Ref) else answer:
                return True
        return False

    def _reads_blocked(self, node: Node, index: int, few: bool) -> bool | Ref:
        """Whether a node reads that input in blocks; the tensor of which it has to be asked."""
        if (payload := node.payload) is not None:
            role = node.roles[index]
            if isinstance(payload, Convolution) and role == "src":
                return few or payload.in_channels >= BLOCK or not payload.may_read_plain
            if isinstance(payload, Convolution):  # a residual has the layout of the result
                return payload.channels >= BLOCK or node.ref
            if isinstance(payload, LayerNorm):
                return payload.of_pixels and node.ref
            return payload.layout_of(role) == BLOCKED
        if (root := self.followers.root_of(node.name)) is not None:
            return Ref(root)
        if (replacement := self._may_become.get(node.name)) is None:
            return False
        if node.op in reduce.ROOTS and replacement.root not in self.spans:
            return True  # It writes little, in either layout.
        is_plane = node.op in spread.ROOTS and spread.picture(node, self.body) == 1 - index
        reads = node.inputs[index] in replacement.inputs.values() and not is_plane
        return reads and Ref(replacement.root)


def _look_at_all(name: str, body: Body, context: Context) -> list[tuple[str, Replacement]]:
    """(node, what it may become) by the patterns of that name, the first of a node first."""
    looked = [
        (node.name, look(pattern, node, body, context))
        for node in body.view
        for pattern in patterns_of(name, node.op)
    ]
    return [(node, result) for node, result in looked if isinstance(result, Replacement)]


def assign_layout(body: Body, context: Context) -> None:
    """Decides which tensors are blocked; pooling, concatenation, shuffles and the like follow."""
    state, reasons = LayoutState(body, context), {}
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
        elif node.payload is None and (reason := _convert(node, state, context)):
            reasons[node.name] = reason
        if entry.name in body.view:
            state.pass_by(entry.name)
    for name, reason in reasons.items():
        if name in body.view:  # Others became parts of what came after them.
            context.report.decline(name, reason)
    _report_boundaries(state, context.report)


def _settle(node: Node, state: LayoutState) -> None:
    """In which layouts a convolution reads and writes."""
    conv, body = node.payload, state.body
    reads = conv.may_read_plain and not state.is_blocked(node.src)
    depthwise = (
        isinstance(reader.payload, Conv) and reader.payload.depthwise
        for reader, _ in body.view.consumers(node.ref)
    )
    sizes = body.shapes.shape(node.src)[1:]
    reads = reads and reads_plain(conv, sizes, state.shares(node), any(depthwise))
    ends = conv.groups == 1 and not state.wants_blocked(node.ref)
    plain = ends and (conv.channels < BLOCK or _is_head(node, state))
    node.payload = replace(
        conv, src_layout=NHWC if reads else BLOCKED, dst_layout=NHWC if plain else BLOCKED
    )


def _is_head(node: Node, state: LayoutState) -> bool:
    """Whether the result is needed plain, and stored so as fast as in blocks."""
    conv = node.payload
    if not isinstance(conv, Conv) or not state.has_plain_use(node.ref):
        return False
    if any(state.is_blocked(ref) for role, ref in node.by_role.items() if role != "src"):
        return False
    transforms = conv.algorithm not in _NO_WINOGRAD and has_transform(conv)
    # An unknown size counts as 1.
    many = is_worth_reordering(state.body.shapes.elements(node.ref, nominal=1))
    readers = state.body.view.consumers(node.ref)
    only_plain = all(state.stays_plain(reader) for reader, _ in readers)
    return writes_plain(conv, transforms and many and only_plain)


def _convert(node: Node, state: LayoutState, context: Context) -> str | None:
    """Makes `node` ours where it reads something blocked; returns why not, if that counts."""
    if node.name in state.inside:
        return None
    followers = state.followers
    idioms = followers.at_root(node.name)
    if idioms and (planned := _elementwise(idioms, node, state)) is not None:
        if isinstance(planned, Node):
            extend(followers.consume(idioms[0], planned), followers)
        return planned if isinstance(planned, str) else None
    patterns = patterns_of("assign_layout", node.op)
    if node.name in state.spans:
        results = [state.spans[node.name]]
    elif state.reads_only_plain(node):
        results = []
    else:
        results = [look(pattern, node, state.body, context) for pattern in patterns]
    for result in results:
        sources = result.inputs.values() if isinstance(result, Replacement) else node.inputs
        if result is None or not any(state.is_blocked(ref) for ref in sources):
            continue
        result = result if isinstance(result, str) else _when(result, state)
        if isinstance(result, str):
            return result
        planned = result.put(state.body)
        if planned.payload.takes_steps:
            extend(planned, followers)
        return None
    if node.op not in _ALWAYS_REPORTED:
        return None
    foreign = not patterns and not idioms and _foreign_reason(node)
    return foreign or "nothing it reads is blocked: no gain"


def _when(replacement: Replacement, state: LayoutState) -> Replacement | str:
    """The replacement, in the layout that readers want; or one line that says why not."""
    payload, result = replacement.payload, Ref(replacement.root)
    wanted, kind = state.wants_blocked(result), type(payload)
    if kind is GlobalPool and payload.dst_layout == BLOCKED and not wanted:
        return replace(replacement, payload=replace(payload, dst_layout=NHWC))
    if kind is SqueezeExcite and payload.dst_layout == NHWC:
        if wanted or not state.has_plain_use(result):
            return replace(replacement, payload=replace(payload, dst_layout=BLOCKED))
    if kind is Concat and payload.is_slice:
        reads = state.wants_blocked(result, few=True)
        return replacement if reads else "nothing after it reads blocks"
    if kind in (BroadcastProduct, BroadcastSum, Concat):
        joins = wanted or all(map(state.is_blocked, replacement.inputs.values()))
        return replacement if joins else f"part of what it reads is plain, and {_UNWANTED}"
    if kind in (Conv, Reshape) and (
        replacement.root in state.spans or payload.dst_layout != BLOCKED
    ):
        return replacement
    return _UNWANTED if kind in _IF_WANTED and not wanted else replacement


def _elementwise(idioms: list, node: Node, state: LayoutState) -> Node | str | None:
    """What the idiom that ends at `node` becomes, or why nothing; None where it reads no blocks.

    It is read from the source with most blocked inputs. An activation that TensorFlow runs as many
    ops is one of ours between plain tensors, too.
    """
    shapes = state.body.shapes
    if not any(state.is_blocked(idiom.src) for idiom in idioms):
        for idiom in idioms:
            channels = shapes.features(idiom.src)
            if len(idiom.nodes) >= MANY_OPS and not idiom.operands and channels is not None:
                return _plan_node(node, idiom, channels, NHWC)
        return None

    def blocked(idiom) -> int:
        count = sum(map(state.is_blocked, idiom.inputs.values()))
        return count if state.is_blocked(idiom.src) else 0

    idiom = max(idioms, key=blocked)
    if (channels := shapes.channels(idiom.src)) is None:
        return "its operands have other shapes"
    needed_plain = len(idiom.inputs) > blocked(idiom) or state.has_plain_use(idiom.src)
    if needed_plain and not state.wants_blocked(node.ref):
        return f"{_UNWANTED}, and its input is needed plain anyway"
    return _plan_node(node, idiom, channels, BLOCKED)


def _plan_node(node: Node, idiom, channels: int, layout: str) -> Node:
    payload = Eltwise(origin=node.name, channels=channels, steps=idiom.steps, layout=layout)
    return Node(node.name, payload.op, idiom.inputs, node.controls, payload=payload)


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
