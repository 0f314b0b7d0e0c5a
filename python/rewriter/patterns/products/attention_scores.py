"""What happens to the scores of attention between their product and softmax.

    score = scale * product + bias + bias; score where mask, else a constant

in this order, each of them or none. A mask that lets each query see the keys up to its own is no
tensor: the op leaves those keys out.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ....graph import Body, Node, Ref
from ....ops.records import MAX_BIASES
from .attention_groups import split_scores

_SAME = frozenset({"Identity", "StopGradient"})
_VIEWS = frozenset({"ExpandDims", "Identity", "Reshape"})
# What a finite constant must be, so that its exponential is zero beside that of any other score.
_NEVER = -1e8
# A constant of at most so much, added to all scores, only costs them digits.
_SMALL = 1.0


@dataclass(frozen=True)
class Scores:
    """The scores that softmax reads.

    Attributes:
        product: the node that multiplies queries and keys.
        order: its axes, as the scores have them; None: as they are.
        biases: what is added, each with a factor.
        conditions: what the mask was, before it became another tensor or none.
        groups: their shape where a product of [B, K, G T, S] makes scores [B, K, G, T, S].
        nodes: those between it and softmax.
    """

    product: str
    order: tuple[int, ...] | None = None
    nodes: tuple[str, ...] = ()
    scale: float = 1.0
    biases: tuple[tuple[Ref, float], ...] = ()
    mask: Ref | None = None
    masked: float = 0.0
    causal: bool = False
    conditions: frozenset[Ref] = frozenset()
    groups: tuple | None = None

    def shape(self, body: Body):
        """Theirs, whatever a bias or mask of unknown sizes would make of it."""
        if self.groups is not None:
            return self.groups
        shape = body.shapes.shape(Ref(self.product))
        return shape if shape is None or self.order is None else tuple(shape[i] for i in self.order)


def scores_of(ref: Ref, is_product: Callable[[Ref], bool], body: Body) -> Scores | str | None:
    """How `ref` is made of a product; a str where it is, but the op cannot; None for all else."""
    node = body.view.producer(ref)
    if ref.port or node.payload is not None:
        return None
    if is_product(ref):
        return Scores(node.name)
    if node.op in _SAME:
        return _then(scores_of(node.inputs[0], is_product, body), node, lambda s: s)
    if node.op == "Reshape":
        return _in_groups(node, is_product, body) or _in_windows(node, is_product, body)
    if node.op == "Transpose":
        return _transposed(node, is_product, body)
    if node.op in ("Mul", "RealDiv"):
        return _scaled(node, is_product, body)
    if node.op in ("Add", "AddV2", "Sub"):
        return _biased(node, is_product, body)
    if node.op in ("SelectV2", "Select"):
        return _masked(node, is_product, body)
    return None


def _then(scores, node: Node, change: Callable[[Scores], Scores | str]):
    """The scores after `node`, which changes those before it."""
    if not isinstance(scores, Scores):
        return scores
    changed = change(scores)
    if isinstance(changed, str):
        return changed
    return replace(changed, nodes=(*changed.nodes, node.name))


def scaled_by(node: Node, body: Body) -> tuple[Ref, float] | None:
    """x and c where the node is x * c or x / c, a constant of one element that is not zero."""
    for x, c in [(0, 1), (1, 0)] if node.op == "Mul" else [(0, 1)]:
        value = body.constants.scalar(node.inputs[c])
        if value and body.shapes.equal(node.inputs[x], node.ref):
            return node.inputs[x], value if node.op == "Mul" else 1.0 / value
    return None


def _scaled(node: Node, is_product, body: Body):
    scaled = scaled_by(node, body)
    if scaled is None:
        return None
    ref, factor = scaled

    def change(scores: Scores) -> Scores | str:
        if scores.mask or scores.causal:
            return "its scores are scaled after a mask"
        biases = tuple((bias, before * factor) for bias, before in scores.biases)
        return replace(scores, scale=scores.scale * factor, biases=biases)

    return _then(scores_of(ref, is_product, body), node, change)


def _transposed(node: Node, is_product, body: Body):
    order = body.shapes.numbers(node.inputs[1])

    def change(scores: Scores) -> Scores | str:
        if order is None or scores.biases or scores.mask or scores.causal:
            return "its scores are transposed after a bias or mask"
        before = scores.order or range(len(order))
        return replace(scores, order=tuple(before[axis] for axis in order))

    return _then(scores_of(node.inputs[0], is_product, body), node, change)


def _biased(node: Node, is_product, body: Body):
    factor = -1.0 if node.op == "Sub" else 1.0
    for x, bias in (node.inputs, node.inputs[::-1])[: 1 if node.op == "Sub" else 2]:
        scores = scores_of(x, is_product, body)
        if scores is not None:
            return _then(scores, node, lambda s, bias=bias: _with_bias(s, node, bias, factor, body))
    return None


def _in_groups(node: Node, is_product, body: Body):
    """Scores of the groups of grouped-query attention."""
    groups = split_scores(node, body)
    scores = scores_of(node.inputs[0], is_product, body) if groups else None
    if not isinstance(scores, Scores):
        return None
    if scores.biases or scores.mask or scores.causal or scores.order:
        return None
    return _then(scores, node, lambda s: replace(s, groups=groups))


def _in_windows(node: Node, is_product, body: Body):
    """A bias of each window: scores [B W, N, T, S] as [B, W, N, T, S], and back."""
    add, shape = body.view.producer(node.inputs[0]), body.shapes.shape
    if add.op not in ("Add", "AddV2") or add.payload is not None:
        return None
    for x, bias in (add.inputs, add.inputs[::-1]):
        split, own = body.view.producer(x), shape(bias)
        if split.op != "Reshape" or split.payload is not None:
            continue
        scores = scores_of(split.inputs[0], is_product, body)
        if scores is None:
            continue

        def change(scores: Scores, bias=bias, own=own, split=split) -> Scores | str:
            full, wide = scores.shape(body), shape(split.ref)
            fits = own and full and wide and len(own) == len(wide) == len(full) + 1
            if not fits or shape(add.ref) != wide or shape(node.ref) != full:
                return "its scores are reshaped, not to windows with a bias each"
            windows = own[0] == 1 and own[1] == wide[1] and wide[2:] == full[1:]
            if not windows or any(a not in (1, b) for a, b in zip(own[2:], full[1:], strict=True)):
                return "what is added to its scores is not known to be broadcast to them"
            if scores.mask or scores.causal or len(scores.biases) == MAX_BIASES:
                return "a bias is added to scores that are masked, or have two"
            inner = (*scores.nodes, split.name, add.name)
            return replace(scores, biases=(*scores.biases, (bias, 1.0)), nodes=inner)

        return _then(scores, node, change)
    return None


def _with_bias(scores: Scores, node: Node, bias: Ref, factor: float, body: Body) -> Scores | str:
    constant = body.constants.scalar(bias)
    if constant is not None and abs(constant) <= _SMALL:
        return scores  # softmax does not change with a constant
    if scores.mask or scores.causal:
        return "a bias is added to scores that are masked"
    if not _fits(bias, node, scores, body):
        return "what is added to its scores is not known to be broadcast to them"
    if factor == 1.0 and _is_causal_bias(bias, body) and _is_square(bias, scores, body):
        return replace(scores, causal=True)
    if scores.groups is not None:
        return "a bias is added to its scores of groups"
    if len(scores.biases) == MAX_BIASES:
        return f"more than {MAX_BIASES} biases are added to its scores"
    return replace(scores, biases=(*scores.biases, (bias, factor)))


def _masked(node: Node, is_product, body: Body):
    condition, x, otherwise = node.inputs
    scores = scores_of(x, is_product, body)
    if scores is None:
        return None
    masked = body.constants.scalar(otherwise)

    def change(scores: Scores) -> Scores | str:
        if scores.mask or scores.causal:
            return "its scores are masked twice"
        if masked is None:
            return "masked scores are no constant"
        mask = _without_ones(condition, body)
        if masked <= _NEVER and _is_causal(mask, body) and _is_square(mask, scores, body):
            return replace(scores, causal=True, conditions=frozenset({condition}))
        for one in (mask, condition):
            if _fits(one, node, scores, body):
                conditions = frozenset({condition})
                return replace(scores, mask=one, masked=masked, conditions=conditions)
        return "the mask of its scores is not known to be broadcast to them"

    return _then(scores, node, change)


def _fits(bias: Ref, node: Node, scores: Scores, body: Body) -> bool:
    """Whether a bias or mask is broadcast to scores that keep their shape.

    Where neither size is known, the op broadcasts as TensorFlow does.
    """
    full, own, result = scores.shape(body), body.shapes.shape(bias), body.shapes.shape(node.ref)
    if None in (full, own, result) or not len(own) <= len(full) == len(result):
        return False
    sizes = zip(own[::-1], full[::-1], strict=False)
    return all(a in (1, b) or not (isinstance(a, int) or b == 1) for a, b in sizes)


def _is_square(mask: Ref, scores: Scores, body: Body) -> bool:
    """Whether a mask has all queries and keys of the scores."""
    full, own = scores.shape(body), body.shapes.shape(mask)
    return full is not None and own is not None and len(own) > 1 and own[-2:] == full[-2:]


def _without_ones(mask: Ref, body: Body) -> Ref:
    """The mask itself where it was joined with one that is true everywhere."""
    node = body.view.producer(mask)
    if node.op in _SAME:
        return _without_ones(node.inputs[0], body)
    if node.op == "LogicalAnd":
        for i in (0, 1):
            if _is_all(True, node.inputs[i], body):
                return _without_ones(node.inputs[1 - i], body)
    return mask


def _is_all(value, ref: Ref, body: Body) -> bool:
    """Whether each element of a tensor is `value`."""
    node = body.view.producer(ref)
    if node.op in _VIEWS:
        return _is_all(value, node.inputs[0], body)
    if node.op == "Fill":
        return _is_all(value, node.inputs[1], body)
    found = body.constants.value(ref)
    return found is not None and bool(np.all(found == value))


def _counts(ref: Ref, axis: int, body: Body) -> Ref | None:
    """The tensor of ones that a running sum along this axis counts."""
    node = body.view.producer(ref)
    if node.op != "Cumsum" or node.attr["exclusive"].b or node.attr["reverse"].b:
        return None
    rank, along = body.shapes.rank(node.inputs[0]), body.shapes.number(node.inputs[1])
    counts = rank is not None and along is not None and along % rank == rank + axis
    return node.inputs[0] if counts and _is_all(1, node.inputs[0], body) else None


def _is_causal(mask: Ref, body: Body) -> bool:
    """Whether a mask is true where the key is not behind the query: s <= t."""
    node = body.view.producer(mask)
    if node.op == "MatrixBandPart":
        limits = [body.shapes.number(ref) for ref in node.inputs[1:]]
        return limits == [-1, 0] and _is_all(True, node.inputs[0], body)
    if node.op == "GreaterEqual":
        rows, columns = (_counts(node.inputs[i], axis, body) for i, axis in ((0, -2), (1, -1)))
        return rows is not None and rows == columns
    if node.op in _VIEWS or node.op == "StridedSlice":
        before, after = (body.shapes.shape(ref) for ref in (node.inputs[0], node.ref))
        keeps = before and after and before[-2:] == after[-2:] and len(before) >= 2
        if node.op == "StridedSlice":
            strides = body.shapes.numbers(node.inputs[3])
            keeps = keeps and strides is not None and {*strides} == {1}
        return bool(keeps) and _is_causal(node.inputs[0], body)
    value = body.constants.value(mask)
    if value is None or value.ndim < 2 or value.dtype != bool:
        return False
    return np.array_equal(
        value, np.broadcast_to(np.tri(*value.shape[-2:], dtype=bool), value.shape)
    )


def _is_causal_bias(bias: Ref, body: Body) -> bool:
    """Whether a bias is (1 - mask) * c of such a mask, or that as a constant."""
    node = body.view.producer(bias)
    if node.op in _VIEWS:
        before, after = (body.shapes.shape(ref) for ref in (node.inputs[0], node.ref))
        keeps = before and after and len(before) >= 2 and before[-2:] == after[-2:]
        return bool(keeps) and _is_causal_bias(node.inputs[0], body)
    if node.op == "Mul":
        for i in (0, 1):
            factor, inverse = body.constants.scalar(node.inputs[i]), node.inputs[1 - i]
            sub = body.view.producer(inverse)
            if factor is None or factor > _NEVER or sub.op != "Sub":
                continue
            cast = body.view.producer(sub.inputs[1])
            if body.constants.scalar(sub.inputs[0]) == 1 and cast.op == "Cast":
                return _is_causal(cast.inputs[0], body)
    value = body.constants.value(bias)
    if value is None or value.ndim < 2 or value.dtype.kind != "f":
        return False
    seen = np.broadcast_to(np.tri(*value.shape[-2:], dtype=bool), value.shape)
    return bool(np.all(value[seen] == 0) and np.all(value[~seen] <= _NEVER))
