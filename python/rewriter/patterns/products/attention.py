"""Attention between its projections: two products, and softmax of scores between them.

    scores [B, N, T, S] = q k^T, scaled, capped, with biases and masks; softmax(scores) v

It is no rule: reshapes and transposes may stand anywhere, and what happens to scores comes in any
number. So the way is followed from the weights back to the product of queries and keys, and then
forward again with what counts along each axis (graph/indices.py). In the end each index is one of
the batch, the heads, the queries or the keys, and all tensors have to be read as the op reads them:
past transposes, repeated heads and reshapes, of heads in one axis with sequences or in groups.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tensorflow.core.framework.types_pb2 import DT_BOOL

from ....graph import (
    INT32,
    Axis,
    Body,
    Index,
    Node,
    Product,
    Ref,
    Size,
    Writer,
    dtype,
    leaves,
    open_sizes,
    product,
    size_of,
    view_axes,
)
from ....graph.families import BATCH_MATMULS, VIEWS
from ....ops.records import Attention
from ...context import Context
from ...rules import Declined, Replacement, require
from .attention_scores import (
    BEYOND,
    Roles,
    Scores,
    causal,
    is_normal,
    name_axes,
    scaled_by,
    scores_of,
)

ROOTS = ("Einsum", *sorted(BATCH_MATMULS))
NAMED = ("adj_x", "adj_y", "equation")
_LAYOUTS = ("btnh", "bnth", "tbnh")
_PART = "i"  # an axis with an index: of the product that makes queries, keys and values
# op -> the inputs through which scores, or weights, may come.
_WEIGHTS = dict.fromkeys((*VIEWS, "RealDiv", "Softmax"), (0,)) | {"Mul": (0, 1)}
_WEIGHTS |= dict.fromkeys(("Select", "SelectV2"), (1, 2))
_SCORES = _WEIGHTS | {"Add": (0, 1), "AddV2": (0, 1), "Sub": (0,), "Tanh": (0,), "Softmax": ()}
_MOVES = frozenset({"BroadcastTo", "Tile", "Transpose", "Unpack"})
_READ = "its scores or weights are read elsewhere, too"
_ORDER = "its sequences, heads and rows lie in another way than the op reads them"
_SCALED = "its scores are multiplied by other than a number, or one a head"


def _factors(node: Node, body: Body) -> Product | None:
    """What a node multiplies, if it is a product of two tensors that broadcasts nothing."""
    factors = product(node, body.shapes) if node.op in ROOTS else None
    if factors is None or not factors.is_distinct or len(factors.refs) != 2:
        return None
    return factors if all({*factors.batch} <= {*text} for text in factors.labels) else None


def find(node: Node, body: Body, context: Context) -> Replacement | str | None:
    """The attention that ends with the product `node` of weights and values."""
    by_values, reason = _factors(node, body), None
    for i in (0, 1) if by_values else ():
        if path := _path(by_values.refs[i], body):
            # A mask of all keys after the query need not be read; if that fails, it is read.
            hiding = [step for step, place in path[1:] if causal(step, place, body)]
            for without in [*hiding, None]:
                try:
                    return _replacement(node, by_values, i, path, without, body)
                except Declined as declined:
                    reason = str(declined)
            return reason
    return None


def _path(ref: Ref, body: Body) -> list[tuple[Node, int]] | None:
    """The nodes from a product to the weights `ref`, each with the input by which they come."""
    tried, stack = set(), [(ref, _WEIGHTS, None)]
    while stack:
        ref, ops, path = stack.pop()
        node, key = body.view.producer(ref), (ref, ops is _SCORES)
        if ref.port or node.payload is not None or key in tried:
            continue
        tried.add(key)
        if ops is _SCORES and (factors := _factors(node, body)):
            if not any(map(body.constants.is_constant, factors.refs)):
                nodes = [(node, 0)]
                while path:
                    *step, path = path
                    nodes.append(tuple(step))
                return nodes
        before = _SCORES if node.op == "Softmax" else ops
        for place in ops.get(node.op, ())[::-1]:
            stack.append((node.inputs[place], before, (node, place, path)))
    return None


@dataclass(frozen=True)
class Source:
    """A tensor that the op can read, or write.

    Attributes:
        factor: by which the product sees it multiplied.
        saved: how many nodes that move memory are not needed where it is read.
        part: the axis whose index is known, and that index.
        nodes: the node that makes the result, and those before it.
    """

    ref: Ref
    axes: list[Axis]
    factor: float = 1.0
    saved: int = 0
    part: tuple[Index, int] | None = None
    nodes: tuple[str, ...] = ()


class Placed(NamedTuple):
    """A source as the op reads it, in a layout, of which _PART is an axis.

    Attributes:
        shape: in which it has that layout; None: it has it.
        row: of how many elements the rows are.
    """

    source: Source
    layout: str
    shape: list[Size] | None
    row: Size

    @property
    def name(self) -> str:
        """The layout as the op names it."""
        letters = self.layout.replace(_PART, "")
        return next(
            layout for layout in _LAYOUTS if letters in (layout, layout.replace("n", ""))
        ).upper()

    @property
    def cost(self) -> tuple[int, int]:
        """For comparing: saved moves of memory count first, then whether it is reshaped."""
        return -self.source.saved, self.shape is not None

    @property
    def at(self) -> tuple[int, ...]:
        return (self.source.part[1],) if self.source.part else ()

    def write(self, role: str, write: Writer) -> Ref:
        """Adds what reshapes it."""
        if self.shape is None:
            return self.source.ref
        known = None if -1 in self.shape else self.shape
        sizes = open_sizes(self.shape)
        return write.add(f"{role}/rows", "Reshape", self.source.ref, sizes, shape=known)


def _sources(ref: Ref, axes: list[Axis], body: Body, scales=False, repeats=False) -> list[Source]:
    """All of which views make an operand, it first: scaled, or with repeated heads, too."""
    sources, factor, saved, part = [], 1.0, 0, None
    while True:
        sources.append(Source(ref, axes, factor, saved, part))
        node = body.view.producer(ref)
        saved += node.op in _MOVES
        if node.payload is not None or ref.port and node.op != "Unpack":
            return sources
        if node.op == "Unpack" and part is None:
            part = Index(node.attr["num"].i), ref.port
            axis = node.attr["axis"].i % (len(axes) + 1)
            axes = [*axes[:axis], part[:1], *axes[axis:]]
        elif (before := view_axes(node, axes, body, back=True)) is not None:
            axes = before
        elif scales and (scaled := scaled_by(node, body)):
            ref, factor = scaled[0], factor * scaled[1]
            continue
        elif repeats and (before := _undo_repeat(node, axes, body)) is not None:
            axes = before
        else:
            return sources
        ref = node.inputs[0]


def _undo_repeat(node: Node, axes: list[Axis], body: Body) -> list[Axis] | None:
    """The axes of what a node repeats along axes of one element."""
    if node.op not in ("BroadcastTo", "Tile"):
        return None
    shapes = [body.shapes.shape(ref) for ref in (node.inputs[0], node.ref)]
    if None in shapes or len({*map(len, shapes)}) > 1:
        return None
    sizes = list(zip(*shapes, strict=True))
    if any(a not in (1, b) for a, b in sizes):
        return None
    return [axis if a == b else () for axis, (a, b) in zip(axes, sizes, strict=True)]


def _results(node: Node, axes: list[Axis], body: Body) -> list[Source]:
    """The product's result, and all views of it that alone read it."""
    results = [Source(node.ref, axes, nodes=(node.name,))]
    while True:
        reader, place = body.view.only_reader(node.ref)
        after = None if reader is None or place else view_axes(reader, axes, body)
        if after is None:
            return results
        node, axes, saved = reader, after, results[-1].saved + (reader.op in _MOVES)
        results.append(Source(node.ref, axes, 1.0, saved, nodes=(*results[-1].nodes, node.name)))


def _place(source: Source, roles: Roles, body: Body) -> Placed | None:
    """How the op reads a source in which the roles have these indices."""
    letter_of = {leaf: letter for letter, role in roles.items() for leaf in role}
    if source.part:
        letter_of[source.part[0]], roles = _PART, roles | {_PART: [source.part[0]]}
    letters = []
    for axis in map(leaves, source.axes):
        counted = {letter_of.get(leaf) for leaf in axis}
        if len(counted) > 1 or None in counted:
            return None
        letters.append(counted.pop() if counted else "")
    order = [letter for letter, _ in itertools.groupby(filter(None, letters))]
    wanted = [leaf for letter in order for leaf in roles[letter]]
    if wanted != [leaf for axis in source.axes for leaf in leaves(axis)]:
        return None
    best, row = None, size_of(leaf.size for leaf in roles["h"])
    for layout in _layouts("n" in roles, source.part):
        if order != [letter for letter in layout if roles[letter]]:
            continue
        if len(letters) == len(layout) and all(
            here == letter or not here and not roles[letter]
            for here, letter in zip(letters, layout, strict=True)
        ):
            return Placed(source, layout, None, row)
        sizes = body.shapes.shape(source.ref)
        pairs = list(zip(letters, sizes, strict=True))
        shape = [size_of(size for here, size in pairs if here == letter) for letter in layout]
        if open_sizes(shape).count(-1) < 2:
            best = best or Placed(source, layout, shape, row)
    return best


def _layouts(heads: bool, part) -> Iterator[str]:
    """Those that the op has, with the axis of parts anywhere but at an end."""
    for layout in _LAYOUTS:
        layout = layout if heads else layout.replace("n", "")
        if not part:
            yield layout
        for at in range(1, len(layout)) if part else ():
            yield layout[:at] + _PART + layout[at:]


def _best(sources: list[Source], roles: Roles, body: Body) -> Placed | None:
    """The source that saves most, the farthest of those that are read as they are."""
    placed = [placement for source in sources[::-1] if (placement := _place(source, roles, body))]
    return min(placed, key=lambda placement: placement.cost, default=None)


class Plan(NamedTuple):
    """How the op reads q, k, v and writes the result, and the views of each bias and mask."""

    placed: list[Placed]
    views: dict[str, list]

    @property
    def cost(self) -> tuple[int, int]:
        """The same of all of them; transposes of biases are small beside those of the others."""
        turned = sum(op == "Transpose" for views in self.views.values() for op, _ in views)
        moves, reshapes = map(sum, zip(*(placed.cost for placed in self.placed), strict=True))
        return moves, reshapes + turned


def _replacement(
    node: Node, by_values: Product, i: int, path: list, without, body: Body
) -> Replacement:
    """The attention whose weights, operand i of the last product, the path makes."""
    by_keys = _factors(path[0][0], body)
    scores = scores_of(path, by_keys, body, without)
    plan = _plan(node, by_keys, by_values, i, scores, body)
    q, k, v, dst = plan.placed
    root, inner = dst.source.ref.node, {*scores.axes_of, *dst.source.nodes}
    readers = [(name, n) for name in scores.axes_of for n, _ in body.view.consumers(Ref(name))]
    shapes = {n: scores.axes_of[name] for name, n in readers if n.op == "Shape"}
    require(body.view.is_private(inner - {root}, inner | {n.name for n in shapes}), _READ)
    every = [leaves(axis) for axis in (*q.source.axes, *k.source.axes)]
    require(all(leaves(axis) in every for axes in shapes.values() for axis in axes), _READ)
    scale = scores.scale * q.source.factor * k.source.factor
    require(is_normal(scale), BEYOND)
    known = all(isinstance(source.row, int) and source.row > 0 for source in (k, v))
    require(known, "the sizes of its heads are not known")
    payload = Attention(
        origin=root,
        channels=v.row,
        head_size=k.row,
        layouts=tuple(placed.name for placed in plan.placed),
        scale=scale,
        soft_cap=scores.soft_cap,
        late_biases=scores.late,
        causal=scores.causal is not None,
        masked_value=scores.masked,
        zero_masked=scores.zeroed and scores.mask is not None,
        q_at=q.at,
        k_at=k.at,
        v_at=v.at,
        at_axis=max(1, *(placed.layout.find(_PART) for placed in plan.placed)),
    )

    def prepare(write: Writer) -> dict[str, Ref]:
        inputs = {
            role: placed.write(role, write) for role, placed in zip("qkv", (q, k, v), strict=True)
        }
        if scores.head_scale is not None:
            shape = [-1 if letter == "n" else 1 for letter in q.layout]
            of_heads = write.add("scale", "Reshape", scores.head_scale.ref, shape)
            inputs["q"] = write.add("scaled", "Mul", inputs["q"], of_heads)
        for role, operand in scores.operands.items():
            inputs[role] = operand.write(role, plan.views[role], write)
        if scores.mask is not None:
            mask = inputs["mask"]
            if dtype(body.view, mask) != DT_BOOL:
                mask = write.add("mask", "Cast", mask, DstT=DT_BOOL)
            inputs["mask"] = write.add("seen", "LogicalNot", mask) if scores.inverted else mask
        for reader, axes in shapes.items():
            places = [every.index(leaves(axis)) for axis in axes]
            _replace_shape(reader, q.source.ref, k.source.ref, places, body)
        return inputs

    def finish(write: Writer, ref: Ref) -> None:
        write.put("Reshape", ref, open_sizes(body.shapes.shape(dst.source.ref)))

    nodes = frozenset({root, *inner})
    return Replacement(payload, {}, root, nodes, prepare=prepare, finish=dst.shape and finish)


def _replace_shape(reader: Node, q: Ref, k: Ref, places: list[int], body: Body) -> None:
    """The same shape out of those of q and k: masks of open sizes ask for that of scores."""
    write, kind = body.writer(reader.name), reader.attr["out_type"].type or INT32
    sizes = [write.add(role, "Shape", ref, out_type=kind) for role, ref in (("q", q), ("k", k))]
    sizes = write.add("sizes", "ConcatV2", sizes, 0)
    body.view.bypass(reader, write.add("scores", "GatherV2", sizes, places, 0))


def _plan(node: Node, by_keys: Product, by_values: Product, i: int, scores: Scores, body: Body):
    """The cheapest way to read all tensors as the op does."""
    both = [
        (ref, [scores.indices[label] for label in labels])
        for ref, labels in zip(by_keys.refs, by_keys.labels, strict=True)
    ]
    axes = dict(zip(by_values.labels[i], scores.axes, strict=True))
    name_axes(by_values.refs[1 - i], by_values.labels[1 - i], axes, body)
    values = by_values.refs[1 - i], [axes[label] for label in by_values.labels[1 - i]]
    results = _results(node, [axes[label] for label in by_values.result], body)
    summed = [axes[label] for label in by_values.labels[i] if label not in by_values.result]
    plans = []
    for queries, keys in (both, both[::-1]):
        q = _sources(*queries, body, scales=True)
        for repeats in (True, False):  # of keys and values in the same way
            k = _sources(*keys, body, True, repeats)
            v = _sources(*values, body, False, repeats)
            if len({frozenset({*_indices_of(x[0])} - {*_indices_of(x[-1])}) for x in (k, v)}) == 1:
                break
        order = [leaf for label in by_keys.result for leaf in leaves(scores.indices[label])]
        in_q, in_k = _indices_of(q[-1]), _indices_of(k[-1])
        s = [leaf for leaf in order if leaf in in_k and leaf not in in_q]
        if s == leaves(scores.keys) == [leaf for axis in summed for leaf in leaves(axis)]:
            shared = [leaf for leaf in order if leaf in in_q and leaf in in_k]
            rows = [leaf for leaf in order if leaf in in_q and leaf not in in_k]
            for roles, heads in _ways(shared, rows, s, len(by_keys.result) > 3):
                plans.append(_place_all((q, k, v, results), roles, heads, order, scores, body))
    plans = [plan for plan in plans if plan is not None]
    require(plans, _SCALED if scores.head_scale else _ORDER)
    return min(plans, key=lambda plan: plan.cost)


def _indices_of(source: Source) -> list[Index]:
    """What counts along the axes."""
    return [leaf for axis in source.axes for leaf in leaves(axis)]


def _ways(shared: list, rows: list, keys: list, has_heads: bool) -> Iterator[tuple[Roles, list]]:
    """All ways to take what counts along scores for sequences, heads, queries and keys.

    With each come the heads of keys. Queries may have more: groups that share each of those.
    """
    places = sorted(range(len(shared) + 1), key=lambda at: abs(at - 1))
    for groups, at in itertools.product(range(len(rows) + 1), places):
        for batch, heads in ((shared[:at], shared[at:]), (shared[at:], shared[:at])):
            roles = {"b": batch, "n": heads + rows[:groups], "t": rows[groups:], "s": keys}
            if not has_heads and not roles["n"]:
                del roles["n"]
            yield roles, heads


def _place_all(tensors, roles: Roles, heads: list, order: list, scores: Scores, body: Body):
    """How tensors are read where scores have these roles; None where the op cannot do it."""
    of_keys, wanted = roles | {"n": heads, "t": roles["s"]}, []
    for sources, letters in zip(tensors, (roles, of_keys, of_keys, roles), strict=True):
        letters = {letter: letters[letter] for letter in "bnt" if letter in roles}
        letters["h"] = [leaf for leaf in _indices_of(sources[0]) if leaf not in order]
        wanted.append((sources, letters))
    q, k, v, result = (letters["h"] for _, letters in wanted)
    if q != k or v != result:
        return None
    placed = [_best(sources, letters, body) for sources, letters in wanted]
    parts = {placement.layout.find(_PART) for placement in placed if placement and placement.at}
    if len(parts) > 1 or scores.head_scale:  # parts have to be along the same axis, and as they are
        placed = [_best([x for x in all_ if not x.part], letters, body) for all_, letters in wanted]
    views = {role: operand.views(roles) for role, operand in scores.operands.items()}
    if None in placed or None in views.values():
        return None
    if scores.causal and [leaves(axis) for axis in scores.causal] != [roles["t"], roles["s"]]:
        return None
    if scores.head_scale and scores.head_scale.counted() != [roles.get("n")]:
        return None
    open_result = placed[3].shape and open_sizes(body.shapes.shape(placed[3].source.ref))
    return None if open_result and open_result.count(-1) > 1 else Plan(placed, views)
