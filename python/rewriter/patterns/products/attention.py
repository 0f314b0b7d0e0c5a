"""Attention between its projections: two products, and softmax of scores between them.

    scores [B, N, T, S] = q k^T, scaled, with masks and biases; softmax(scores) v

A product is an Einsum or a BatchMatMul; either way its operands have labelled axes. Transposes
around it only permute the labels, so that the op reads q, k and v where they lie, and writes the
result where its reader wants it. What happens to the scores is attention_scores.py.
"""

from dataclasses import dataclass, replace

from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, Ref, dtype_name
from ....ops.records import Attention
from ...context import Context
from ...rules import Found
from . import attention_groups
from .attention_found import FoundAttention
from .attention_masks import Bias, without_not
from .attention_products import NAMED, ROOTS, Axes, Product, axes_of, is_of_tensors, product
from .attention_scores import BEYOND, Scores, is_normal, scaled_by, scores_of

__all__ = ["NAMED", "ROOTS", "find"]
_SAME = frozenset({"Identity", "StopGradient"})
_CHANGED = "the weights change before they meet the values: only softmax of the scores is one op"
_GROUPED = "its groups of heads are not rows of one product, from [B, T, N, H] and back"
_READ = "its scores or weights are read elsewhere, too"
_ORDER = "its axes are in another order than [B, N, T, S]"
_HEADS = "its scores have heads that its queries, keys or values have in another way"
# The layouts by axes; "t" stands for rows, those of k and v are keys.
_ORDERS = {
    "btnh": "BTNH",
    "bnth": "BNTH",
    "tbnh": "TBNH",
    "bth": "BTNH",
    "tbh": "TBNH",
}
_PART = "i"  # an axis with an index: of the product that makes queries, keys and values


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The attention that ends with the product `node` of weights and values."""
    by_values = product(node, body)
    if by_values is None:
        return None
    for i in (0, 1):
        weights = _past(by_values.operands[i], body)
        if weights.op == "Reshape" and weights.payload is None:  # of groups, or of heads
            weights = _past(weights.inputs[0], body)
        if weights.op == "Transpose" and weights.payload is None:
            turned = _turned(by_values, i, body.shapes.numbers(weights.inputs[1]))
            weights = _past(weights.inputs[0], body)
        else:
            turned = by_values
        zeroed = _zeroed(weights, body)
        softmax = _past(zeroed[0], body) if zeroed else weights
        if softmax.op == "Softmax" and softmax.payload is None and turned is not None:
            return _found(node, softmax, turned, i, zeroed and zeroed[1], body)
        if _is_dropout_of_softmax(weights, body):
            return _CHANGED
    return None


def _turned(by_values: Product, i: int, order: list[int] | None) -> Product | None:
    """The product of weights as they are before a transpose."""
    labels = list(by_values.labels)
    if order is None or len(order) != len(labels[i]):
        return None
    labels[i] = "".join(labels[i][order.index(axis)] for axis in range(len(order)))
    return replace(by_values, labels=tuple(labels))


def _zeroed(node: Node, body: Body) -> tuple[Ref, tuple[Ref, bool]] | None:
    """The weights, and the mask with whether it is inverted, where the node makes those zero."""
    if node.op != "SelectV2" or node.payload is not None:
        return None
    mask, *either = node.inputs
    for i in (0, 1):
        keeps_axes = body.shapes.rank(either[i]) == body.shapes.rank(node.ref)
        if body.constants.scalar(either[1 - i]) == 0 and keeps_axes:
            return either[i], without_not(mask, i == 1, body)
    return None


def _found(node: Node, softmax: Node, by_values: Product, i: int, zeroed, body: Body):
    scores = scores_of(softmax.inputs[0], lambda ref: is_of_tensors(ref, body), body)
    if scores is None or isinstance(scores, str):
        return scores
    if zeroed is not None and zeroed not in scores.conditions:
        return _CHANGED
    if node.attr["T"].type != types_pb2.DT_FLOAT:
        return f"dtype {dtype_name(node.attr['T'].type)}, only float32 is implemented"
    by_keys = product(body.view.node(scores.product), body)
    if scores.order is not None:
        result = "".join(by_keys.result[axis] for axis in scores.order)
        by_keys = replace(by_keys, result=result)
    reason = _ORDER
    for axes in axes_of(by_keys, by_values, i):
        found = _with_axes(node, softmax, by_values.operands[i], scores, axes, zeroed, body)
        if not isinstance(found, str):
            return found
        reason = found if reason is _ORDER else reason
    return reason


def _with_axes(
    node: Node, softmax: Node, weights: Ref, scores: Scores, axes: Axes, zeroed, body: Body
) -> FoundAttention | str:
    """The attention, its axes read in one way."""
    between, end, dst = frozenset(), node, axes.dst
    tensors = biases = None
    parts = scores.head_scale is None
    if scores.groups is not None:
        q = attention_groups.queries(axes.q[0], scores.groups, body)
        grouped = attention_groups.result(node, scores.groups, body)
        rank = body.shapes.rank(scores.mask) if scores.mask else None
        if not q or not grouped or (axes.q[1], dst) != ("bnth", "bnth") or rank not in (None, 5):
            return _GROUPED
        if rank == 5 and body.shapes.shape(scores.mask)[1:3] != (1, 1):
            return _GROUPED
        (end, between), axes = grouped, replace(axes, q=(q, "btnh"))
        dst = "btnh"
    elif len(dst) == 3 and (split := _split_result(node, dst, body)) is not None:
        tensors = _sources(axes, parts, body, of_heads=True)
        biases = tensors and _of_heads(scores, tensors[0], body)
        if biases is not None:
            end, between, dst = split, frozenset({node.name}), "bnth"
    shape = body.shapes.shape
    if scores.groups is None and len(shape(weights)) != len(shape(softmax.ref)):
        if scores.heads is None or shape(weights)[-2:] != shape(softmax.ref)[-2:]:
            return _CHANGED
    if biases is None:
        if scores.heads is not None:
            return _HEADS
        tensors, biases = _sources(axes, parts, body), scores.biases
    if tensors is None:
        return "rows of its queries, keys or values do not lie together"
    if (order := axes.order) is not None:
        whole = all(body.shapes.rank(bias.ref) == len(order) for bias in biases)
        if scores.mask or scores.causal or scores.groups or scores.head_scale or not whole:
            return _ORDER
        biases = tuple(bias.turned(order) for bias in biases)
    if wrong := _misfit(tensors, body):
        return wrong
    root, dst = _result(end, dst, body)
    if dst not in _ORDERS:
        return _ORDER
    inner = _inner_nodes(softmax, scores, weights, body)
    nodes = frozenset({root.name, end.name, *between, node.name, *inner})
    shapes = _readers_of_shapes(inner, body)
    ranks = {body.shapes.rank(shape.inputs[0]) for shape in shapes}
    if not body.view.is_private(nodes - {root.name}, nodes | {shape.name for shape in shapes}):
        return _READ
    q, k, v = tensors
    scale = scores.scale * q.factor * k.factor
    if not is_normal(scale):
        return BEYOND
    if order is not None and shapes or ranks - {len(q.axes.replace(_PART, ""))}:
        return _READ
    inputs = {"q": q.ref, "k": k.ref, "v": v.ref}
    inputs |= {f"bias{n}": bias.ref for n, bias in enumerate(biases)}
    if scores.mask is not None:
        inputs["mask"] = scores.mask
    payload = Attention(
        origin=root.name,
        channels=body.shapes.shape(v.ref)[-1],
        head_size=body.shapes.shape(q.ref)[-1],
        layouts=(*(tensor.layout for tensor in tensors), _ORDERS[dst]),
        scale=scale,
        soft_cap=scores.soft_cap,
        late_biases=scores.late,
        causal=scores.causal,
        masked_value=scores.masked,
        zero_masked=zeroed is not None and scores.mask is not None,
        q_at=q.at,
        k_at=k.at,
        v_at=v.at,
        at_axis=max(tensor.at_axis for tensor in tensors),
    )
    return FoundAttention(
        payload,
        inputs,
        root.name,
        nodes,
        shapes=tuple(shapes),
        axes=(q.axes, k.axes),
        is_grouped=scores.groups is not None,
        biases=biases,
        head_scale=scores.head_scale,
        inverted=scores.inverted,
    )


def _sources(axes: Axes, parts: bool, body: Body, of_heads: bool = False) -> "list[Source] | None":
    """What the op reads for q, k and v: parts of larger tensors where all have the same axis.

    Or, of all heads in one axis, what has them in two.
    """
    q = _source(*axes.q, body, parts=parts, of_heads=of_heads)
    found = [q, *_keys_and_values(axes.k, axes.v, parts, body, of_heads)]
    if None in found:
        return None
    if len({tensor.at_axis for tensor in found if tensor.at}) > 1:
        return _sources(axes, False, body, of_heads)
    return found


def _of_heads(scores: Scores, q: "Source", body: Body) -> tuple[Bias, ...] | None:
    """The biases of scores [B N, T, S] as those of [B, N, T, S]."""
    sizes = dict(zip(q.axes, body.shapes.shape(q.ref), strict=True))
    full = body.shapes.shape(Ref(scores.product))
    if scores.heads not in (None, (sizes["b"], sizes["n"])) or scores.mask and not scores.heads:
        return None
    target = (-1, sizes["n"], *full[1:])
    biases = []
    for n, bias in enumerate(scores.biases):
        own = body.shapes.shape(bias.ref)
        if len(own) == 3 and own[0] != 1 and (n < scores.flat or scores.heads is None):
            if not all(isinstance(size, int) for size in target) or own != full:
                return None
            bias = replace(bias, shape=target)
        biases.append(bias)
    return tuple(biases)


def _split_result(node: Node, axes: str, body: Body) -> Node | None:
    """The only reader of [B N, T, H], where that makes [B, N, T, H] of it."""
    reader = body.view.only_reader(node.ref)[0]
    if axes != "bth" or reader is None or reader.op != "Reshape" or reader.payload is not None:
        return None
    before, after = body.shapes.shape(node.ref), body.shapes.shape(reader.ref)
    return reader if before and after and len(after) == 4 and before[1:] == after[2:] else None


@dataclass(frozen=True)
class Source:
    """A tensor that the op can read, with the scalar by which the product sees it multiplied."""

    ref: Ref
    axes: str
    factor: float = 1.0
    repeats: int = 1  # heads that share each of its
    at: tuple[int, ...] = ()  # the index of its axis _PART

    @property
    def at_axis(self) -> int:
        """The axis of that index."""
        return self.axes.index(_PART) if self.at else 1

    @property
    def layout(self) -> str:
        """As the op names it."""
        return _ORDERS[self.axes.replace(_PART, "")]


def _source(
    ref: Ref,
    axes: str,
    body: Body,
    scales: bool = True,
    repeated: bool = False,
    parts: bool = False,
    of_heads: bool = False,
) -> Source | None:
    """What the op reads for an operand: past its transposes, scalings and repeated heads.

    With `parts` also past the op that takes it of a larger tensor; with `of_heads` it is
    [B, N, ..] of which a reshape makes the operand [B N, ..].
    """
    best, factor, repeats, at = None, 1.0, 1, ()
    while True:
        own = axes.replace(_PART, "")
        if own in _ORDERS and _PART not in (axes[0], axes[-1]) and (len(own) == 4 or not of_heads):
            best = Source(ref, axes, factor, repeats, at)
        node = body.view.producer(ref)
        if parts and not at and node.op == "Unpack" and node.payload is None:
            axis = node.attr["axis"].i % (len(axes) + 1)
            axes, at, ref = axes[:axis] + _PART + axes[axis:], (ref.port,), node.inputs[0]
            continue
        if ref.port or node.payload is not None:
            return best
        if node.op == "Transpose":
            order = body.shapes.numbers(node.inputs[1])
            if order is None or len(order) != len(axes):
                return best
            axes = "".join(axes[order.index(axis)] for axis in range(len(axes)))
            ref = node.inputs[0]
        elif node.op in _SAME:
            ref = node.inputs[0]
        elif of_heads and axes[0] == "b" and len(own) == 3 and not at and _merges_heads(node, body):
            ref, axes = node.inputs[0], f"bn{axes[1:]}"
        elif scales and node.op in ("Mul", "RealDiv") and (scaled := scaled_by(node, body)):
            ref, factor = scaled[0], factor * scaled[1]
        elif (
            repeated
            and not at
            and repeats == 1
            and (inner := attention_groups.repeated(node, axes, body))
        ):
            ref, repeats = inner
        else:
            return best


def _merges_heads(node: Node, body: Body) -> bool:
    before, after = body.shapes.shape(node.inputs[0]), body.shapes.shape(node.ref)
    known = node.op == "Reshape" and before and after and (len(before), len(after)) == (4, 3)
    return bool(known) and before[2:] == after[1:]


def _keys_and_values(keys, values, parts: bool, body: Body, of_heads: bool) -> list[Source | None]:
    """Both before their heads are repeated, where both are in the same way."""
    for repeated in (True, False):
        options = {"repeated": repeated, "parts": parts, "of_heads": of_heads}
        k = _source(*keys, body, **options)
        v = _source(*values, body, scales=False, **options)
        if k is None or v is None or k.repeats == v.repeats:
            break
    return [k, v]


def _misfit(tensors: list[Source], body: Body) -> str | None:
    """Why q, k and v, as the op would read them, are not those of one attention."""
    sizes = []
    for tensor in tensors:
        shape = body.shapes.shape(tensor.ref)
        if shape is None or not isinstance(shape[-1], int) or not shape[-1]:
            return "the sizes of its heads are not known"
        sizes.append(dict(zip(tensor.axes, shape, strict=True)))
    q, k, v = sizes
    if not q["b"] == k["b"] == v["b"] or k["t"] != v["t"] or q["h"] != k["h"]:
        return "q, k and v are not known to be of the same sequences, keys and sizes"
    heads, shared = q.get("n", 1), k.get("n", 1)
    if v.get("n", 1) != shared:
        return "its keys and values have different numbers of heads"
    known = isinstance(heads, int) and isinstance(shared, int) and shared > 0
    if heads != shared and not (known and heads % shared == 0):
        return "its queries have heads that are no multiple of those of its keys"
    return None


def _result(node: Node, axes: str, body: Body) -> tuple[Node, str]:
    """The node whose result the op makes, and the order of its axes: past one transpose."""
    readers = body.view.consumers(node.ref)
    if axes in _ORDERS and (len(readers) != 1 or axes == "bth" or body.view.is_fetched(node.ref)):
        return node, axes
    reader = readers[0][0] if len(readers) == 1 else None
    if reader is not None and reader.op == "Transpose" and reader.payload is None:
        order = body.shapes.numbers(reader.inputs[1])
        turned = "".join(axes[axis] for axis in order) if order and len(order) == 4 else ""
        if turned in _ORDERS and not body.view.has_control_edges(node.name):
            return reader, turned
    return node, axes


def _inner_nodes(softmax: Node, scores: Scores, weights: Ref, body: Body) -> set[str]:
    """All nodes that only make the weights."""
    names = {softmax.name, *scores.nodes, scores.product}
    node = body.view.producer(weights)
    while node.name != softmax.name:
        names.add(node.name)
        zeroed = _zeroed(node, body)
        node = body.view.producer(zeroed[0] if zeroed else node.inputs[0])
    return names


def _readers_of_shapes(names: set[str], body: Body) -> list[Node]:
    """The nodes that ask for the shape of scores: masks of open sizes are made by it."""
    shape = body.shapes.shape
    readers = [reader for name in names for reader, _ in body.view.consumers(Ref(name))]
    return [n for n in readers if n.op == "Shape" and len(shape(n.inputs[0]) or ()) in (3, 4)]


def _past(ref: Ref, body: Body) -> Node:
    return body.view.producer(body.view.origin(ref, _SAME))


def _is_dropout_of_softmax(node: Node, body: Body) -> bool:
    """Whether the node multiplies or selects what a softmax of a product gives."""
    if node.op not in ("Mul", "SelectV2") or node.payload is not None:
        return False
    sources = [body.view.producer(ref) for ref in node.inputs]
    sources += [body.view.producer(n.inputs[0]) for n in sources if n.op in ("Mul", "RealDiv")]
    for source in sources:
        if source.op == "Softmax" and source.payload is None:
            found = scores_of(source.inputs[0], lambda ref: is_of_tensors(ref, body), body)
            return isinstance(found, Scores)
    return False
