"""Decides which tensors are blocked.

One walk, producers first. A convolution writes blocks (unless it has few channels
that are read plain); pooling, concat and element-wise work convert only where an
input is already blocked and it pays. Nothing here inserts reorders: that comes last.
"""

from dataclasses import replace

from ....graph import Body, Node, Ref
from ...context import Context
from ...followers import Followers
from ...layout_rows import AFTER_GLOBAL_POOL, CONVERTERS, TRANSPARENT, eltwise, several
from ...patterns.movement import shuffle
from ...patterns.pixels import softmax, squeeze_excite
from ...patterns.planes import depth_pool, pool, resize
from ...primitives import BLOCK, BLOCKED, NHWC, Convolution, GlobalPool, LayerNorm
from ...report import Report
from ..fusion.fuse_post_ops import extend

# Kept nodes of these ops always have a reason in the report.
_ALWAYS_REPORTED = frozenset(
    {"AvgPool", "AvgPool3D", "ConcatV2", "FusedBatchNorm", "FusedBatchNormV3", "MaxPool"}
)
# These take no plain copy of their own, or pass it on to a fetch, or are judged later.
_ASK_LITTLE = frozenset({"Identity", "Shape", *softmax.ROOTS})


class LayoutState:
    """What the converters ask: is this tensor blocked, should that one be?"""

    def __init__(self, body: Body, followers: Followers):
        self.body = body
        self.followers = followers
        finders = (shuffle.find, resize.find, depth_pool.find)
        found = [find(node, body) for node in body.view for find in finders]
        parts = {name for one in found if one for name in getattr(one, "inner", ())}
        self.several = {one.root: one for one in found if one and one.root not in parts}
        self.inside = {name for one in found if one for name in getattr(one, "inside", ())}
        self._root_of_first = {one.first: one.root for one in self.several.values()}
        self._wants: dict[Ref, bool] = {}

    def is_blocked(self, ref: Ref) -> bool:
        node = self.body.view.producer(ref)
        return node.payload is not None and ref.port == 0 and node.payload.dst_layout == BLOCKED

    def wants_blocked(self, ref: Ref) -> bool:
        """Whether a convolution further on reads this tensor, or what becomes of it, in blocks."""
        if ref not in self._wants:
            self._wants[ref] = False  # what a loop back to here adds
            readers = self.body.view.consumers(ref)
            self._wants[ref] = any(self._reads_blocked(node, index) for node, index in readers)
        return self._wants[ref]

    def has_plain_use(self, ref: Ref) -> bool:
        """Whether someone will surely read this tensor plain."""
        view = self.body.view
        return view.is_fetched(ref) or any(
            node.payload is None
            and node.op not in CONVERTERS
            and self.followers.root_of(node.name) is None
            and node.name not in self._root_of_first
            for node, _ in view.consumers(ref)
        )

    def _reads_blocked(self, node: Node, index: int) -> bool:
        if isinstance(node.payload, Convolution):
            conv = node.payload
            if node.roles[index] != "src":  # a residual operand has the layout of the result
                return conv.channels >= BLOCK or self.wants_blocked(node.ref)
            return conv.in_channels >= BLOCK or not conv.may_read_plain
        if isinstance(node.payload, LayerNorm):
            return self.wants_blocked(node.ref)
        if node.payload is not None:
            return node.payload.layout_of(node.roles[index]) == BLOCKED
        root = self.followers.root_of(node.name) or self._root_of_first.get(node.name)
        if root is not None:
            return self.wants_blocked(Ref(root))
        return node.op in TRANSPARENT and self.wants_blocked(node.ref)


def assign_layout(body: Body, context: Context) -> None:
    """Decides which tensors are blocked; pooling, concatenation, shuffles and the like follow."""
    state, report = LayoutState(body, context.followers), context.report
    for entry in body.view.topological():
        if entry.name not in body.view:
            continue
        node = body.view.node(entry.name)
        if isinstance(node.payload, Convolution):
            _settle(node, state)
        elif isinstance(node.payload, LayerNorm):
            blocked = state.is_blocked(node.src) or state.wants_blocked(node.ref)
            node.payload = replace(node.payload, layout=BLOCKED if blocked else NHWC)
        elif node.payload is None:
            _convert(node, state, report)
    _report_boundaries(state, report)


def _settle(node: Node, state: LayoutState) -> None:
    conv, src = node.payload, node.src
    few_in = conv.in_channels < BLOCK and conv.may_read_plain and not state.is_blocked(src)
    few_out = conv.channels < BLOCK and conv.groups == 1 and not state.wants_blocked(node.ref)
    node.payload = replace(
        conv, reads=NHWC if few_in else BLOCKED, writes=NHWC if few_out else BLOCKED
    )


def _convert(node: Node, state: LayoutState, report: Report) -> None:
    if node.name in state.inside:
        return
    found = squeeze_excite.find(node, state.body, state.followers)
    if found and state.is_blocked(found.src):
        _squeeze_excite(found, state)
        return
    converter, sources = _row(node, state)
    if converter is None:
        if node.op in _ALWAYS_REPORTED:
            report.decline(node.name, _foreign_reason(node))
        return
    if not any(state.is_blocked(ref) for ref in sources):
        if node.op in _ALWAYS_REPORTED:
            report.decline(node.name, "nothing it reads is blocked: no gain")
        return
    _place(node, converter(node, state), state, report)


def _place(node: Node, result: Node | str, state: LayoutState, report: Report) -> None:
    """Puts a converted node in its place and lets it absorb what follows."""
    if isinstance(result, str):
        report.decline(node.name, result)
        return
    idioms = state.followers.at_root(node.name)
    if idioms:
        state.followers.consume(idioms[0], result)
    else:
        state.body.view.replace(result)
        state.body.view.remove_dead(ref.node for ref in node.inputs)
    if result.payload.takes_steps:
        extend(result, state.followers)


def _squeeze_excite(found: squeeze_excite.Found, state: LayoutState) -> None:
    """Puts one node in the place of all from the mean to the scales."""
    view, payload = state.body.view, found.payload
    scales = Ref(found.root)
    if payload.writes == NHWC:
        plain = state.has_plain_use(scales) and not state.wants_blocked(scales)
        payload = replace(payload, writes=NHWC if plain else BLOCKED)
    sources = [ref.node for name in found.nodes for ref in view.node(name).inputs]
    view.replace(Node(found.root, payload.op, {"src": found.src}, payload=payload))
    view.remove_dead([*found.nodes, *sources])


def _row(node: Node, state: LayoutState):
    """The node's converter and the tensors of which one must be blocked."""
    idioms = state.followers.at_root(node.name)
    if idioms:
        return eltwise, [idiom.src for idiom in idioms]
    if node.op == "MaxPool":
        return CONVERTERS[node.op], [pool.padded_source(node, state.body)]
    if node.name in state.several:
        return several, [state.several[node.name].src]
    if node.op in AFTER_GLOBAL_POOL:
        pooled = state.body.view.producer(node.inputs[0])
        if isinstance(pooled.payload, GlobalPool) and pooled.payload.writes == "nc":
            return AFTER_GLOBAL_POOL[node.op], [pooled.src]
        return None, ()
    return CONVERTERS.get(node.op), node.inputs


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
