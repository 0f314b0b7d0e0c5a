"""What happens to the scores of attention between their product and softmax.

    score = scale * product
    score = soft cap * tanh(score / soft cap)
    score = score + bias + ..
    score = score where mask, else a constant
    score = score + late bias + ..

in this order, each of them or none. A mask that lets each query see the keys up to its own is no
tensor: the op leaves those keys out.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ....graph import Body, Node, Ref
from ....ops.records import MAX_BIASES
from .attention_groups import split_scores
from .attention_masks import (
    ORDINARY,
    Bias,
    causal_bias,
    hides,
    is_causal,
    times_rest,
    without_not,
    without_ones,
)

_SAME = frozenset({"Identity", "StopGradient"})
_MOVES = _SAME | {"Reshape", "Transpose"}
BEYOND = "its scores are scaled by more, or less, than float32 has"


@dataclass(frozen=True)
class Scores:
    """The scores that softmax reads.

    Attributes:
        product: the node that multiplies queries and keys.
        order: its axes, as the scores have them; None: as they are.
        head_scale: [N, 1, 1], or a dimension more in front, by which each head is multiplied, too.
        soft_cap: c of c * tanh(score / c), which comes before biases; 0: none.
        biases: what is added.
        late: how many of them, the last ones, are added behind the mask.
        inverted: whether the mask is true where scores are masked.
        hidden: the score of keys that `causal` leaves out, or what is added to it.
        conditions: what the mask was, before it became another tensor or none, and whether
            inverted.
        exact: the same with the causal mask as what it was; None where there is none.
        groups: their shape where a product of [B, K, G T, S] makes scores [B, K, G, T, S].
        heads: (B, N) where a product of [B N, T, S] makes scores [B, N, T, S].
        flat: how many of the biases, the first ones, were added before that.
        nodes: those between it and softmax.
    """

    product: str
    order: tuple[int, ...] | None = None
    nodes: tuple[str, ...] = ()
    scale: float = 1.0
    head_scale: Ref | None = None
    soft_cap: float = 0.0
    biases: tuple[Bias, ...] = ()
    late: int = 0
    mask: Ref | None = None
    inverted: bool = False
    masked: float = 0.0
    causal: bool = False
    hidden: float = 0.0
    conditions: frozenset[tuple[Ref, bool]] = frozenset()
    exact: "Scores | None" = None
    groups: tuple | None = None
    heads: tuple | None = None
    flat: int = 0

    def shape(self, body: Body):
        """Theirs, whatever a bias or mask of unknown sizes would make of it."""
        if self.groups is not None:
            return self.groups
        shape = body.shapes.shape(Ref(self.product))
        if self.heads is not None:
            return (*self.heads, *shape[1:])
        return shape if shape is None or self.order is None else tuple(shape[i] for i in self.order)


def scores_of(ref: Ref, is_product: Callable[[Ref], bool], body: Body) -> Scores | str | None:
    """How `ref` is made of a product; a str where it is, but the op cannot; None for all else."""
    node = body.view.producer(ref)
    if ref.port or node.payload is not None:
        return None
    if is_product(ref):
        return Scores(node.name)
    if node.op in _SAME:
        return _then(scores_of(node.inputs[0], is_product, body), node, body, lambda s: s)
    if node.op == "Reshape":
        ways = (_in_groups, _in_windows, _in_heads)
        found = [way(node, is_product, body) for way in ways]
        return next(
            (one for one in found if isinstance(one, Scores)), next(filter(None, found), None)
        )
    if node.op == "Transpose":
        return _transposed(node, is_product, body)
    if node.op == "Tanh":
        return _capped(node, is_product, body)
    if node.op in ("Mul", "RealDiv"):
        return _scaled(node, is_product, body)
    if node.op in ("Add", "AddV2", "Sub"):
        return _mixed(node, is_product, body) or _biased(node, is_product, body)
    if node.op in ("SelectV2", "Select"):
        return _masked(node, is_product, body)
    return None


def _then(scores, node: Node, body: Body, change: Callable[[Scores], Scores | str]):
    """The scores after `node`, which changes those before it."""
    if not isinstance(scores, Scores):
        return scores
    changed = change(scores)
    if isinstance(changed, str):
        return changed
    more = len(changed.shape(body) or ()) - (body.shapes.rank(node.ref) or 0)
    if more and not (changed.heads and more == 1):  # those of [B N, T, S] have one less
        return "its scores are not known to keep their axes"
    return replace(changed, nodes=(*changed.nodes, node.name))


def is_normal(number: float) -> bool:
    """Whether it is a number with all digits of float32, as an attribute has to be."""
    limits = np.finfo(np.float32)
    return float(limits.tiny) <= abs(number) <= float(limits.max)


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
        return _scaled_by_heads(node, is_product, body) if node.op == "Mul" else None
    ref, factor = scaled

    def change(scores: Scores) -> Scores | str:
        if scores.mask or scores.causal:
            return "its scores are scaled after a mask"
        if math.frexp(factor)[0] not in (0.5, -0.5):  # which would round each number as before
            if any(bias.largest(body) > ORDINARY for bias in scores.biases):
                return "its scores are scaled after a bias that may be a mask"
        biases = tuple(bias.times(factor) for bias in scores.biases)
        scale, cap = scores.scale * factor, scores.soft_cap * abs(factor)
        if not is_normal(scale) or not is_normal(cap or 1.0):
            return BEYOND
        return replace(scores, scale=scale, soft_cap=cap, biases=biases)

    return _then(scores_of(ref, is_product, body), node, body, change)


def _scaled_by_heads(node: Node, is_product, body: Body):
    """A number for each head, as cosine attention learns it."""
    for x, scale in (node.inputs, node.inputs[::-1]):
        scores = scores_of(x, is_product, body)
        if scores is None:
            continue

        def change(scores: Scores, scale=scale) -> Scores | str:
            full, own = scores.shape(body), body.shapes.shape(scale)
            fits = full and own and len(full) == 4 and len(own) in (3, 4)
            fits = fits and own[-3:] == (full[1], 1, 1) and own[:-3] in ((), (1,))
            if not fits or not isinstance(full[1], int):
                return "its scores are multiplied by other than a number, or one a head"
            changed = scores.biases or scores.mask or scores.causal or scores.soft_cap
            if changed or scores.order or scores.groups or scores.head_scale:
                return "its heads are scaled behind something else"
            return replace(scores, head_scale=scale)

        return _then(scores, node, body, change)
    return None


def _capped(node: Node, is_product, body: Body):
    def change(scores: Scores) -> Scores | str:
        if scores.biases or scores.mask or scores.causal or scores.soft_cap:
            return "its scores are capped twice, or behind a bias or mask"
        return replace(scores, soft_cap=1.0)

    return _then(scores_of(node.inputs[0], is_product, body), node, body, change)


def _transposed(node: Node, is_product, body: Body):
    order = body.shapes.numbers(node.inputs[1])

    def change(scores: Scores) -> Scores | str:
        full = scores.shape(body)
        whole = all(body.shapes.rank(bias.ref) == len(full or ()) for bias in scores.biases)
        if order is None or scores.mask or scores.causal or scores.heads or not whole:
            return "its scores are transposed after a mask, or a bias of fewer axes"
        before = scores.order or range(len(order))
        turned = tuple(before[axis] for axis in order)
        biases = tuple(bias.turned(order) for bias in scores.biases)
        return replace(scores, order=turned, biases=biases)

    return _then(scores_of(node.inputs[0], is_product, body), node, body, change)


def _biased(node: Node, is_product, body: Body):
    factor = -1.0 if node.op == "Sub" else 1.0
    for x, bias in (node.inputs, node.inputs[::-1])[: 1 if node.op == "Sub" else 2]:
        scores = scores_of(x, is_product, body)
        if scores is not None:
            return _then(
                scores, node, body, lambda s, bias=bias: _with_bias(s, node, bias, factor, body)
            )
    return None


def _mixed(node: Node, is_product, body: Body):
    """score * m + c * (1 - m), m being 0 or 1: a mask in arithmetic, as GPT-2 has it."""
    for product, other in (node.inputs, node.inputs[::-1])[: 1 if node.op == "Sub" else 2]:
        product = body.view.producer(product)
        if product.op != "Mul" or product.payload is not None:
            continue
        for x, kept in (product.inputs, product.inputs[::-1]):
            masked = times_rest(other, kept, body)
            scores = scores_of(x, is_product, body) if masked is not None else None
            if scores is None:
                continue
            masked = -masked if node.op == "Sub" else masked

            def change(scores: Scores, kept=kept, masked=masked, product=product) -> Scores | str:
                if scores.mask or scores.causal:
                    return "its scores are masked twice"
                if not _fits(kept, node, scores, body):
                    return "the mask of its scores is not known to be broadcast to them"
                inner = (*scores.nodes, product.name)
                return replace(scores, mask=kept, masked=masked, nodes=inner)

            return _then(scores, node, body, change)
    return None


def _in_groups(node: Node, is_product, body: Body):
    """Scores of the groups of grouped-query attention."""
    groups = split_scores(node, body)
    scores = scores_of(node.inputs[0], is_product, body) if groups else None
    if not isinstance(scores, Scores):
        return None
    if scores.biases or scores.mask or scores.causal or scores.order:
        return None
    return _then(scores, node, body, lambda s: replace(s, groups=groups))


def _in_heads(node: Node, is_product, body: Body):
    """Scores of all heads, [B N, T, S], as [B, N, T, S], and back."""
    before, after = body.shapes.shape(node.inputs[0]), body.shapes.shape(node.ref)
    if not before or not after or {len(before), len(after)} != {3, 4} or before[-2:] != after[-2:]:
        return None

    def change(scores: Scores) -> Scores | str:
        heads = after[:2] if len(after) == 4 else before[:2]
        same = scores.heads is not None and scores.heads[1] == heads[1]
        # A bias of another unknown number of sequences makes it unknown.
        if same and (scores.heads == heads or not isinstance(heads[0], int)):
            return scores
        changed = scores.order or scores.groups or scores.causal or scores.mask
        if changed or scores.heads or len(after) == 3:
            return "its scores are reshaped behind a mask, or other than by heads"
        return replace(scores, heads=heads, flat=len(scores.biases))

    return _then(scores_of(node.inputs[0], is_product, body), node, body, change)


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
                return f"a bias of windows is added to masked scores, or is more than {MAX_BIASES}"
            inner = (*scores.nodes, split.name, add.name)
            return replace(scores, biases=(*scores.biases, Bias(bias)), nodes=inner)

        return _then(scores, node, body, change)
    return None


def _with_bias(scores: Scores, node: Node, bias: Ref, factor: float, body: Body) -> Scores | str:
    constant = body.constants.scalar(bias)
    if constant == 0.0 or constant is not None and _changes_no_weight(constant, node, body):
        return scores
    if not _fits(bias, node, scores, body):
        return "what is added to its scores is not known to be broadcast to them"
    added = _added(scores, bias, factor)
    if scores.causal:
        exact = scores.exact and _added(scores.exact, bias, factor)
        if isinstance(added, Scores) and hides(scores.hidden, added.biases, body):
            return replace(added, exact=exact if isinstance(exact, Scores) else None)
        # A row may be without any key.
        if exact is None:
            return "a bias is added to scores that are masked"
        return exact if isinstance(exact, str) else replace(exact, nodes=scores.nodes)
    lowest = causal_bias(bias, body) if factor == 1.0 and not scores.mask else None
    if lowest is None or not hides(lowest, scores.biases, body):
        return added
    if not _is_square(bias, scores, body):
        return added
    exact = None if isinstance(added, str) else added
    return replace(scores, causal=True, hidden=lowest, exact=exact)


def _changes_no_weight(constant: float, node: Node, body: Body) -> bool:
    """Whether the constant is added to all scores last, as the 1e-9 of Hugging Face's softmax is.

    A larger one would cost them digits.
    """
    reader = body.view.only_reader(node.ref)[0]
    while reader is not None and reader.op in _MOVES:
        reader = body.view.only_reader(reader.ref)[0]
    is_last = reader is not None and reader.op == "Softmax" and abs(constant) <= 1.0
    return is_last and any(body.shapes.equal(ref, node.ref) for ref in node.inputs)


def _added(scores: Scores, bias: Ref, factor: float) -> Scores | str:
    if scores.groups is not None:
        return "a bias is added to its scores of groups"
    if len(scores.biases) == MAX_BIASES:
        return f"more than {MAX_BIASES} biases are added to its scores"
    late = scores.late + 1 if scores.mask else 0
    return replace(scores, biases=(*scores.biases, Bias(bias, factor)), late=late)


def _masked(node: Node, is_product, body: Body):
    for x in (1, 2):
        condition, inverted = without_not(node.inputs[0], x == 2, body)
        scores = scores_of(node.inputs[x], is_product, body)
        if scores is not None:
            break
    else:
        return None
    masked = body.constants.scalar(node.inputs[3 - x])

    def change(scores: Scores) -> Scores | str:
        if scores.mask or scores.causal:
            return "its scores are masked twice"
        if masked is None:
            return "masked scores are no constant"
        mask = condition if inverted else without_ones(condition, body)
        fitting = [one for one in (mask, condition) if _fits(one, node, scores, body)]
        scores = replace(scores, conditions=frozenset({(condition, inverted)}))
        selected = replace(scores, masked=masked, inverted=inverted)
        selected = replace(selected, mask=fitting[0]) if fitting else None
        if is_causal(mask, body, inverted) and _is_square(mask, scores, body):
            if hides(masked, scores.biases, body):
                return replace(scores, causal=True, hidden=masked, exact=selected)
        return selected or "the mask of its scores is not known to be broadcast to them"

    return _then(scores, node, body, change)


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
