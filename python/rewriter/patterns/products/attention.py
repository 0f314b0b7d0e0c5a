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
from ..found import Found
from . import attention_groups
from .attention_found import FoundAttention
from .attention_masks import without_not
from .attention_scores import Scores, scaled_by, scores_of

_MATMULS = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"})
ROOTS = ("Einsum", *sorted(_MATMULS))
_SAME = frozenset({"Identity", "StopGradient"})
_CHANGED = "the weights change before they meet the values: only softmax of the scores is one op"
_GROUPED = "its groups of heads are not rows of one product, from [B, T, N, H] and back"
_READ = "its scores or weights are read elsewhere, too"
# The layouts by axes; "t" stands for rows, those of k and v are keys.
_ORDERS = {
    "btnh": "BTNH",
    "bnth": "BNTH",
    "tbnh": "TBNH",
    "bth": "BTNH",
    "tbh": "TBNH",
}
_PART = "i"  # an axis with an index: of the product that makes queries, keys and values


@dataclass(frozen=True)
class Product:
    """A product of two tensors, a letter an axis."""

    operands: tuple[Ref, Ref]
    labels: tuple[str, str]
    result: str


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The attention that ends with the product `node` of weights and values."""
    by_values = product(node, body)
    if by_values is None:
        return None
    for i in (0, 1):
        weights = _past(by_values.operands[i], _SAME, body)
        if weights.op == "Reshape" and weights.payload is None:  # of groups
            weights = _past(weights.inputs[0], _SAME, body)
        zeroed = _zeroed(weights, body)
        softmax = _past(zeroed[0], _SAME, body) if zeroed else weights
        if softmax.op == "Softmax" and softmax.payload is None:
            return _found(node, softmax, by_values, i, zeroed and zeroed[1], body)
        if _is_dropout_of_softmax(weights, body):
            return _CHANGED
    return None


def _zeroed(node: Node, body: Body) -> tuple[Ref, tuple[Ref, bool]] | None:
    """The weights, and the mask with whether it is inverted, where the node makes those zero."""
    if node.op != "SelectV2" or node.payload is not None:
        return None
    mask, *either = node.inputs
    for i in (0, 1):
        if body.constants.scalar(either[1 - i]) == 0:
            return either[i], without_not(mask, i == 1, body)
    return None


def _found(node: Node, softmax: Node, by_values: Product, i: int, zeroed, body: Body):
    scores = scores_of(softmax.inputs[0], lambda ref: _scores_product(ref, body), body)
    if scores is None or isinstance(scores, str):
        return scores
    if zeroed is not None and zeroed not in scores.conditions:
        return _CHANGED
    if node.attr["T"].type != types_pb2.DT_FLOAT:
        return f"dtype {dtype_name(node.attr['T'].type)}, only float32 is implemented"
    axes = _values_axes(by_values.labels[i], by_values.labels[1 - i], by_values.result)
    by_keys = product(body.view.node(scores.product), body)
    if scores.order is not None:
        result = "".join(by_keys.result[axis] for axis in scores.order)
        by_keys = replace(by_keys, result=result)
    sides = _keys_axes(by_keys)
    if axes is None or sides is None or len(by_keys.result) != len(by_values.labels[i]):
        return "its axes are in another order than [B, N, T, S]"
    (q_ref, q_axes), (k_ref, k_axes) = sides
    merges = body.shapes.rank(by_values.operands[i]) != body.shapes.rank(softmax.ref)
    if merges != (scores.groups is not None):
        return _CHANGED
    end, between = node, frozenset()
    if merges:
        q_ref = attention_groups.queries(q_ref, scores.groups, body) if q_axes == "bnth" else None
        grouped = attention_groups.result(node, scores.groups, body)
        rank = body.shapes.rank(scores.mask) if scores.mask else None
        if not q_ref or not grouped or axes[1] != "bnth" or rank not in (None, 5):
            return _GROUPED
        if rank == 5 and body.shapes.shape(scores.mask)[1:3] != (1, 1):
            return _GROUPED
        q_axes, (end, between), axes = "btnh", grouped, (axes[0], "btnh")
    operands = ((q_ref, q_axes), (k_ref, k_axes), (by_values.operands[1 - i], axes[0]))
    tensors = _sources(operands, scores.head_scale is None, body)
    if None in tensors:
        return "rows of its queries, keys or values do not lie together"
    wrong = _misfit(tensors, body)
    if wrong:
        return wrong
    root, dst = _result(end, axes[1], body)
    if dst not in _ORDERS:
        return "its axes are in another order than [B, N, T, S]"
    inner = _inner_nodes(softmax, scores, by_values.operands[i], body)
    nodes = frozenset({root.name, end.name, *between, node.name, *inner})
    shapes = _readers_of_shapes(inner, body)
    if not body.view.is_private(nodes - {root.name}, nodes | {shape.name for shape in shapes}):
        return _READ
    q, k, v = tensors
    inputs = {"q": q.ref, "k": k.ref, "v": v.ref}
    inputs |= {f"bias{n}": ref for n, (ref, _) in enumerate(scores.biases)}
    if scores.mask is not None:
        inputs["mask"] = scores.mask
    payload = Attention(
        origin=root.name,
        channels=body.shapes.shape(v.ref)[-1],
        head_size=body.shapes.shape(q.ref)[-1],
        layouts=(*(tensor.layout for tensor in tensors), _ORDERS[dst]),
        scale=scores.scale * q.factor * k.factor,
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
        is_grouped=merges,
        factors=tuple(factor for _, factor in scores.biases),
        head_scale=scores.head_scale,
        inverted=scores.inverted,
    )


def product(node: Node, body: Body) -> Product | None:
    """What a node multiplies, if it is a product of two tensors of rank 3 or 4."""
    if node.payload is not None or len(node.inputs) != 2:
        return None
    if node.op == "Einsum":
        return _einsum(node)
    if node.op not in _MATMULS:
        return None
    ranks = {body.shapes.rank(ref) for ref in node.inputs}
    if ranks not in ({3}, {4}):
        return None
    batch = "bn"[: ranks.pop() - 2]
    a = "dt" if node.attr["adj_x"].b else "td"
    b = "sd" if node.attr["adj_y"].b else "ds"
    return Product(tuple(node.inputs), (batch + a, batch + b), batch + "ts")


def _einsum(node: Node) -> Product | None:
    operands, _, result = node.attr["equation"].s.decode().replace(" ", "").partition("->")
    labels = tuple(operands.split(","))
    every = (*labels, result)
    if any("." in text or len({*text}) != len(text) or len(text) not in (3, 4) for text in every):
        return None
    return Product(tuple(node.inputs), labels, result)


def _scores_product(ref: Ref, body: Body) -> bool:
    """Whether `ref` is a product of two computed tensors."""
    node = body.view.producer(ref)
    found = product(node, body) if node.op in ROOTS else None
    return found is not None and not any(map(body.constants.is_constant, found.operands))


def _values_axes(weights: str, values: str, result: str) -> tuple[str, str] | None:
    """The axes of the values as letters of b, n, t (keys) and h, and those of the result."""
    *shared, t, s = weights
    h = "".join({*values} - {*weights})
    ours = {old: new for old, new in zip(shared, "bn", strict=False)}
    fits = s in values and s not in result and t not in values and len(h) == 1
    if not fits or {*values} != {*shared, s, h} or {*result} != {*shared, t, h}:
        return None
    return _rename(values, ours | {s: "t", h: "h"}), _rename(result, ours | {t: "t", h: "h"})


def _keys_axes(by_keys: Product):
    """((queries, axes), (keys, axes)), where axes are letters of b, n, t and h."""
    *shared, t, s = by_keys.result
    ours = {old: new for old, new in zip(shared, "bn", strict=False)}
    for i in (0, 1):
        q, k = by_keys.labels[i], by_keys.labels[1 - i]
        h = "".join({*q} & {*k} - {*shared})
        if len(h) == 1 and {*q} == {*shared, t, h} and {*k} == {*shared, s, h}:
            return (
                (by_keys.operands[i], _rename(q, ours | {t: "t", h: "h"})),
                (by_keys.operands[1 - i], _rename(k, ours | {s: "t", h: "h"})),
            )
    return None


def _rename(labels: str, names: dict[str, str]) -> str:
    return "".join(names[label] for label in labels)


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
) -> Source | None:
    """What the op reads for an operand: past its transposes, scalings and repeated heads.

    With `parts` also past the op that takes it of a larger tensor.
    """
    best, factor, repeats, at = None, 1.0, 1, ()
    while True:
        if axes.replace(_PART, "") in _ORDERS and _PART not in (axes[0], axes[-1]):
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


def _sources(operands, parts: bool, body: Body) -> list[Source | None]:
    """What the op reads for q, k and v: parts of larger tensors where all have the same axis."""
    queries, keys, values = operands
    q = _source(*queries, body, parts=parts)
    k, v = _keys_and_values(keys, values, parts, body)
    if len({tensor.at_axis for tensor in (q, k, v) if tensor is not None and tensor.at}) > 1:
        return _sources(operands, False, body)
    return [q, k, v]


def _keys_and_values(keys, values, parts: bool, body: Body) -> list[Source | None]:
    """Both before their heads are repeated, where both are in the same way."""
    for repeated in (True, False):
        k = _source(*keys, body, repeated=repeated, parts=parts)
        v = _source(*values, body, scales=False, repeated=repeated, parts=parts)
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


def _past(ref: Ref, ops: frozenset[str], body: Body) -> Node:
    node = body.view.producer(ref)
    while node.op in ops and node.payload is None:
        node = body.view.producer(node.inputs[0])
    return node


def _is_dropout_of_softmax(node: Node, body: Body) -> bool:
    """Whether the node multiplies or selects what a softmax of a product gives."""
    if node.op not in ("Mul", "SelectV2") or node.payload is not None:
        return False
    sources = [body.view.producer(ref) for ref in node.inputs]
    sources += [body.view.producer(n.inputs[0]) for n in sources if n.op in ("Mul", "RealDiv")]
    for source in sources:
        if source.op == "Softmax" and source.payload is None:
            found = scores_of(source.inputs[0], lambda ref: _scores_product(ref, body), body)
            return isinstance(found, Scores)
    return False
