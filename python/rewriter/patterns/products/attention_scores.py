"""What happens to the scores of attention between their product and softmax.

    score = scale * product
    score = soft cap * tanh(score / soft cap)
    score = score + bias + ..
    score = score where mask, else a constant
    score = score + late bias + ..

in this order, each of them or none. It is no rule: they come in any number, and what a mask hides
is proven by recursion over whatever computes it. One that lets each query see the keys up to its
own is no tensor: the op leaves those keys out.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np
from tensorflow.core.framework import types_pb2

from ....graph import (
    Any,
    Axis,
    Body,
    Index,
    Node,
    Op,
    Ref,
    Scalar,
    Size,
    Writer,
    dtype,
    leaves,
    match,
    view_axes,
    views_beside,
    write_views,
)
from ....graph.families import IDENTITIES, PRODUCTS, VIEWS
from ....ops.records import BIAS_ROLES, MAX_BIASES
from ...rules import Declined, require

_VIEWS = frozenset({"ExpandDims", "Identity", "Reshape"})
# What a finite constant must be, so that the exponential is zero beside that of any other score.
NEVER = -1e8
# What scores, and other products of activations, are taken to stay below.
ORDINARY = 1e3
_MOVES = IDENTITIES | {
    *("BroadcastTo", "ExpandDims", "GatherNd", "GatherV2", "Pad", "Reshape", "Roll", "Slice"),
    *("Squeeze", "StridedSlice", "Tile", "Transpose", "Abs", "Neg", "Relu"),
}
_MOST_BOUNDED = 64
_BOUNDED = frozenset({"Cos", "Sigmoid", "Sin", "Softmax", "Tanh"})
# c * (1 - kept), of a mask as 1 and 0
_REST = Op("Mul", Scalar(name="c"), Op("Sub", Scalar(1.0), Any("kept")))
_REST_OF_MASK = Op("Mul", Scalar(name="c"), Op("Sub", Scalar(1.0), Op("Cast", Any("mask"))))
_EITHER = frozenset({"ConcatV2", "Maximum", "Minimum", "Pack", "Select", "SelectV2"})
_CHANGED = "the weights change before they meet the values: only softmax of the scores is one op"
BEYOND = "its scores are scaled by more, or less, than float32 has"


def scaled_by(node: Node, body: Body) -> tuple[Ref, float] | None:
    """x and c where the node is x * c or x / c, a constant of one element that is not zero."""
    for x, c in {"Mul": [(0, 1), (1, 0)], "RealDiv": [(0, 1)]}.get(node.op, ()):
        value = body.constants.scalar(node.inputs[c])
        if value and body.shapes.equal(node.inputs[x], node.ref):
            return node.inputs[x], value if node.op == "Mul" else 1.0 / value
    return None


def is_normal(number: float) -> bool:
    """Whether it is a number with all digits of float32, as an attribute has to be."""
    limits = np.finfo(np.float32)
    return float(limits.tiny) <= abs(number) <= float(limits.max)


Roles = dict[str, list[Index]]  # what each letter of a layout counts


@dataclass(frozen=True)
class Operand:
    """What is broadcast to scores: a bias, times `factor`, or a mask.

    Attributes:
        shape: of the operand.
        axes, sizes: those of the scores beside which the operand's lie.
    """

    ref: Ref
    shape: tuple[Size, ...]
    axes: list[Axis]
    sizes: list[Size]
    factor: float = 1.0

    def largest(self, body: Body) -> float:
        """A bound on the magnitude of what it adds."""
        return abs(self.factor) * largest(self.ref, body)

    @property
    def present(self) -> list[list[Index]] | None:
        """The indices along each axis; None where it is not known which have one element."""
        if any(size not in (1, full) for size, full in zip(self.shape, self.sizes, strict=True)):
            return None
        axes = zip(self.axes, self.shape, strict=True)
        return [[] if size == 1 else leaves(axis) for axis, size in axes]

    def counted(self) -> list[list[Index]]:
        """The indices along those axes that have more than one element."""
        return [axis for axis in self.present or () if axis]

    def views(self, roles: Roles) -> list[tuple[str, list]] | None:
        """The views by which it lies beside scores with these axes."""
        whole, axes = list(roles.values()), list(map(leaves, self.axes))
        present = axes if self.present is None else self.present

        def may_repeat(part: list, axis: list) -> bool:  # the biases of windows, for each picture
            return axis is whole[0] and part == axis[-len(part) :]

        order = [axes.index(role) for role in whole if role in axes]
        views = views_beside(present, self.shape, whole, may_repeat)
        if views != [] and len(axes) == len(whole) == len({*order}):
            return [("Transpose", order)]
        return views if views == [] or self.present is not None else None

    def write(self, role: str, views: list[tuple[str, list]], write: Writer) -> Ref:
        """Adds the views, and what multiplies it."""
        ref = write_views(views, role, self.ref, write)
        return ref if self.factor == 1.0 else write.add(f"{role}/scaled", "Mul", ref, self.factor)


@dataclass
class Scores:
    """How weights are computed from a product, and what counts along their axes.

    Attributes:
        axes: those of the last tensor so far.
        indices: label of the product -> index.
        axes_of: the same of each node.
        keys: what softmax sums over.
        head_scale: by which each head is multiplied.
        kept: a mask of 0 and 1 by which they were multiplied.
        soft_cap: c of c * tanh(score / c), which comes before biases; 0: none.
        late: how many of the biases, the last ones, are added after the mask.
        masked: the score where the mask is false, or true if it is `inverted`.
        condition: what the mask was, before it became another tensor or none, and whether inverted.
        zeroed: whether weights of masked scores become zero.
        causal: the axes of queries and keys of a mask of all keys after a query.
        hidden: the score of those keys, or what is added to it.
    """

    body: Body
    axes: list[Axis]
    indices: dict[str, tuple[Index]]
    axes_of: dict[str, list[Axis]] = field(default_factory=dict)
    keys: Axis | None = None
    scale: float = 1.0
    soft_cap: float = 0.0
    head_scale: Operand | None = None
    kept: Ref | None = None
    biases: list[Operand] = field(default_factory=list)
    late: int = 0
    mask: Operand | None = None
    inverted: bool = False
    masked: float = 0.0
    condition: tuple[Ref, bool] | None = None
    zeroed: bool = False
    causal: list[Axis] | None = None
    hidden: float = 0.0

    @property
    def operands(self) -> dict[str, Operand]:
        """The biases and the mask by the names that the op has for them."""
        biases = dict(zip(BIAS_ROLES, self.biases, strict=False))
        return biases if self.mask is None else biases | {"mask": self.mask}

    def operand(self, x: Ref, *refs: Ref) -> Operand:
        """The first of the tensors that is broadcast to scores, which are the tensor `x`.

        Where neither size is known, the op broadcasts as TensorFlow does.
        """
        full = self.body.shapes.shape(x)
        for ref in refs:
            shape = self.body.shapes.shape(ref)
            if shape is None or len(shape) > len(full):
                continue
            axes, sizes = self.axes[len(full) - len(shape) :], []
            for axis, size in zip(axes, full[len(full) - len(shape) :], strict=True):
                single = leaves(axis)  # whose size is known, if not that of the sum with a bias
                sizes.append(single[0].size if len(single) == 1 else size)
            pairs = zip(shape, sizes, strict=True)
            if all(a in (1, b) or not (isinstance(a, int) or b == 1) for a, b in pairs):
                return Operand(ref, shape, axes, sizes)
        raise Declined("what is added to its scores, or masks them, is not known to be broadcast")

    def multiply(self, factor: float) -> None:
        require(not (self.mask or self.causal), "its scores are scaled after a mask")
        if math.frexp(factor)[0] not in (0.5, -0.5):  # which would round each number as before
            if any(bias.largest(self.body) > ORDINARY for bias in self.biases):
                raise Declined("its scores are scaled after a bias that may be a mask")
        self.biases = [replace(bias, factor=bias.factor * factor) for bias in self.biases]
        self.scale, self.soft_cap = self.scale * factor, self.soft_cap * abs(factor)
        require(is_normal(self.scale) and is_normal(self.soft_cap or 1.0), BEYOND)

    def multiply_heads(self, x: Ref, scale: Ref) -> None:
        """By a number for each head, as cosine attention learns it."""
        others = self.biases or self.mask or self.causal or self.soft_cap or self.head_scale
        require(not others, "its heads are scaled after something else")
        self.head_scale = self.operand(x, scale)

    def cap(self) -> None:
        others = self.biases or self.mask or self.causal or self.soft_cap
        require(not others, "its scores are capped twice, or after a bias or mask")
        self.soft_cap = 1.0

    def add(self, x: Ref, bias: Ref, factor: float) -> None:
        many = f"more than {MAX_BIASES} biases are added to its scores"
        require(len(self.biases) < MAX_BIASES, many)
        self.biases.append(replace(self.operand(x, bias), factor=factor))
        self.late += self.mask is not None

    def select(self, x: Ref, *masks: Ref, masked: float, inverted: bool = False) -> None:
        require(not (self.mask or self.causal), "its scores are masked twice")
        self.mask, self.masked, self.inverted = self.operand(x, *masks), masked, inverted

    def leave_out(self, x: Ref, mask: Ref, hidden: float) -> None:
        """The keys after each query, whose scores would be `hidden`."""
        square = self.operand(x, mask)
        if self.mask or self.causal or square.shape[-2:] != tuple(square.sizes[-2:]):
            raise Declined("its scores are masked twice")
        self.causal, self.hidden, self.kept = square.axes[-2:], hidden, None


def scores_of(path: list, by_keys, body: Body, without: Node | None = None) -> Scores:
    """What the path makes of the product; `without` is a causal mask that the op needs not read."""
    (first, _), *steps = path
    indices: dict[str, Axis] = {}
    for ref, labels in zip(by_keys.refs, by_keys.labels, strict=True):
        name_axes(ref, labels, indices, body)
    scores = Scores(body, [indices[label] for label in by_keys.result], indices)
    scores.axes_of[first.name] = scores.axes
    for at, (node, place) in enumerate(steps):
        axes = view_axes(node, scores.axes, body)
        if axes is not None:
            scores.axes = axes
        elif len(scores.axes) != body.shapes.rank(node.ref) or node.op in VIEWS:
            raise Declined("its scores are reshaped, or not known to keep their axes")
        elif scores.keys is not None:
            require(_is_zeroed(node, place, scores, body), _CHANGED)
            scores.zeroed = True
        elif node.op == "Softmax":
            scores.keys = scores.axes[-1]
        elif node is without:
            scores.condition = _condition(node, place, body)
            scores.leave_out(node.inputs[place], *causal(node, place, body))
        else:
            _take(node, place, steps[at + 1 :], scores, body)
        scores.axes_of[node.name] = scores.axes
    bound = sum(bias.largest(body) for bias in scores.biases)
    hidden = not scores.causal or hides(scores.hidden, bound)
    require(hidden, "a bias is added to scores that are masked")
    return scores


def name_axes(ref: Ref, labels: str, axes: dict[str, Axis], body: Body) -> None:
    """Gives each axis of an operand that has none an index; others have to be of its size."""
    for label, size in zip(labels, body.shapes.shape(ref), strict=True):
        sizes = [leaf.size for leaf in leaves(axes.setdefault(label, (Index(size),)))]
        if sum(not isinstance(count, int) for count in sizes) > 1 or math.prod(sizes) != size:
            raise Declined("q, k and v are not known to be of the same sequences and sizes")


def _take(node: Node, place: int, later: list, scores: Scores, body: Body) -> None:
    """One step, after which the later ones come."""
    x, kept, scores.kept = node.inputs[place], scores.kept, None
    if node.op == "Tanh":
        return scores.cap()
    if node.op in ("Select", "SelectV2"):
        masked = body.constants.scalar(node.inputs[3 - place])
        require(masked is not None, "masked scores are no constant")
        scores.condition = condition, inverted = _condition(node, place, body)
        mask = condition if inverted else without_ones(condition, body)
        return scores.select(x, mask, condition, masked=masked, inverted=inverted)
    other = node.inputs[1 - place]
    if node.op in ("Mul", "RealDiv"):
        scaled = scaled_by(node, body)
        if scaled and scaled[0] == x:
            return scores.multiply(scaled[1])
        after, at = later[0]
        if node.op == "Mul" and after.op in ("Add", "AddV2", "Sub"):
            if _times_rest(after.inputs[1 - at], other, body) is not None:
                scores.kept = other
                return None
        require(node.op == "Mul", "its scores are divided by other than a number")
        return scores.multiply_heads(x, other)
    factor = -1.0 if node.op == "Sub" else 1.0
    if kept is not None:  # score * m + c * (1 - m), m being 0 or 1: as GPT-2 has it
        return scores.select(x, kept, masked=factor * _times_rest(other, kept, body))
    constant = body.constants.scalar(other)
    # As the 1e-9 of Hugging Face's softmax; a larger one would cost them digits.
    is_last = next(after.op for after, _ in later if after.op not in VIEWS) == "Softmax"
    is_small = constant is not None and is_last and abs(constant) <= 1.0
    if constant == 0.0 or is_small and body.shapes.equal(x, node.ref):
        return None
    return scores.add(x, other, factor)


def _condition(node: Node, place: int, body: Body) -> tuple[Ref, bool] | None:
    """The mask of a selection that is no negation, and whether it is inverted."""
    select = node.op in ("Select", "SelectV2")
    return without_not(node.inputs[0], place == 2, body) if select else None


def _is_zeroed(node: Node, place: int, scores: Scores, body: Body) -> bool:
    """Whether a selection makes the weights of masked scores zero."""
    condition = _condition(node, place, body)
    same = condition is not None and condition == scores.condition
    return same and body.constants.scalar(node.inputs[3 - place]) == 0


def causal(node: Node, place: int, body: Body) -> tuple[Ref, float] | None:
    """The mask or bias of a step that hides keys after the query, and what their scores become."""
    if node.op in ("Add", "AddV2"):
        mask = node.inputs[1 - place]
        hidden = causal_bias(mask, body)
    elif condition := _condition(node, place, body):
        (mask, inverted), hidden = condition, body.constants.scalar(node.inputs[3 - place])
        mask = mask if inverted else without_ones(mask, body)
        hidden = hidden if is_causal(mask, body, inverted) else None
    else:
        return None
    return None if hidden is None or not hides(hidden, 0.0) else (mask, hidden)


def _times_rest(ref: Ref, kept: Ref, body: Body) -> float | None:
    """c where `ref` is c * (1 - kept), and that of zeros and ones."""
    node = body.view.producer(ref)
    if node.payload is not None or not _is_zero_or_one(kept, body):
        return None
    if node.op != "Mul":
        return _times_constant_rest(ref, kept, body)
    rest = match(_REST, node, body)
    return rest.values["c"] if rest and rest.refs["kept"] == kept else None


def _times_constant_rest(ref: Ref, kept: Ref, body: Body) -> float | None:
    value, kept = body.constants.value(ref), body.constants.value(kept)
    if value is None or kept is None or value.shape != kept.shape or kept.all():
        return None
    factor = float(value[kept == 0].flat[0])
    return factor if np.array_equal(value, factor * (1 - kept)) else None


def _is_zero_or_one(ref: Ref, body: Body) -> bool:
    """Whether each element of a tensor is 0 or 1."""
    ref = body.view.origin(ref, _VIEWS | {"StridedSlice"})
    node = body.view.producer(ref)
    if node.op == "Cast" and dtype(body.view, node.inputs[0]) == types_pb2.DT_BOOL:
        return True
    value = body.constants.value(ref)
    return value is not None and bool(np.isin(value, (0, 1)).all())


def without_not(mask: Ref, inverted: bool, body: Body) -> tuple[Ref, bool]:
    """A mask that is no negation, and whether it is inverted then."""
    while (node := body.view.producer(mask)).op == "LogicalNot":
        mask, inverted = node.inputs[0], not inverted
    return mask, inverted


def without_ones(mask: Ref, body: Body) -> Ref:
    """The mask without others, true everywhere, with which it was joined."""
    joined = mask
    while joined is not None:
        mask = joined
        node = body.view.producer(mask)
        if node.op in IDENTITIES:
            joined = node.inputs[0]
        else:
            pairs = (node.inputs, node.inputs[::-1]) if node.op == "LogicalAnd" else ()
            joined = next((rest for ones, rest in pairs if _is_all(True, ones, body)), None)
    return mask


def _is_all(value, ref: Ref, body: Body) -> bool:
    """Whether each element of a tensor is `value`."""
    ref = body.view.origin(ref, _VIEWS)
    node = body.view.producer(ref)
    constant = body.constants.value(node.inputs[1] if node.op == "Fill" else ref)
    return constant is not None and bool(np.all(constant == value))


def _counts(ref: Ref, axis: int, body: Body) -> Ref | None:
    """The tensor of ones that a running sum along this axis counts."""
    node = body.view.producer(ref)
    if node.op != "Cumsum" or node.attr["exclusive"].b or node.attr["reverse"].b:
        return None
    rank, along = body.shapes.rank(node.inputs[0]), body.shapes.number(node.inputs[1])
    counts = rank is not None and along is not None and along % rank == rank + axis
    return node.inputs[0] if counts and _is_all(1, node.inputs[0], body) else None


def is_causal(mask: Ref, body: Body, inverted: bool = False) -> bool:
    """Whether a mask is true where the key is not after the query: s <= t; or false there."""
    views = {*_VIEWS, "StridedSlice"}
    mask = _before_views(mask, views, body)
    while (node := body.view.producer(mask)).op == "LogicalNot":
        mask, inverted = _before_views(node.inputs[0], views, body), not inverted
    if node.op == "MatrixBandPart" and not inverted:
        limits = [body.shapes.number(ref) for ref in node.inputs[1:]]
        return limits == [-1, 0] and _is_all(True, node.inputs[0], body)
    if node.op == "GreaterEqual" and not inverted:
        rows, columns = (_counts(node.inputs[i], axis, body) for i, axis in ((0, -2), (1, -1)))
        return rows is not None and rows == columns
    value = body.constants.value(mask)
    if value is None or value.ndim < 2 or value.dtype != bool:
        return False
    seen = np.tri(*value.shape[-2:], dtype=bool) != inverted
    return np.array_equal(value, np.broadcast_to(seen, value.shape))


def _before_views(ref: Ref, ops: Collection[str], body: Body) -> Ref:
    """What a tensor is a view of by such ops, as far as queries and keys stay the last two axes."""
    while (node := body.view.producer(ref)).op in ops:
        before, after = (body.shapes.shape(ref) for ref in (node.inputs[0], node.ref))
        strides = body.shapes.numbers(node.inputs[3]) if node.op == "StridedSlice" else [1]
        keeps = before and after and len(before) >= 2 and before[-2:] == after[-2:]
        if not keeps or strides is None or {*strides} != {1}:
            break
        ref = node.inputs[0]
    return ref


def causal_bias(bias: Ref, body: Body) -> float | None:
    """c where a bias is (1 - mask) * c of such a mask; the largest where it has several.

    It is a constant, or computed so from a mask.
    """
    bias = _before_views(bias, _VIEWS, body)
    node = body.view.producer(bias)
    if (rest := match(_REST_OF_MASK, node, body)) is not None:
        return rest.values["c"] if is_causal(rest.refs["mask"], body) else None
    value = body.constants.value(bias)
    if value is None or value.ndim < 2 or value.dtype.kind != "f":
        return None
    seen = np.broadcast_to(np.tri(*value.shape[-2:], dtype=bool), value.shape)
    return float(value[~seen].max(initial=-np.inf)) if np.all(value[seen] == 0) else None


def hides(value: float, biases: float) -> bool:
    """Whether scores that become `value`, or have it added, count for nothing beside the others.

    They do not where `biases`, a bound on these, may be as low as the value: of a row in which it
    hides all other keys, softmax weighs those that `value` hides as well. -inf hides them beside
    any finite score, and a row of nothing else is NaN with them and without.
    """
    return value == -math.inf or value + 2 * biases <= NEVER


def largest(ref: Ref, body: Body) -> float:
    """A bound on the magnitude of a bias; inf where nothing is known of it, as of an input.

    Products of activations are taken to be as small as scores are. Nobody makes a bias of more
    than some ops, so that it is not followed farther.
    """
    known: dict[Ref, float] = {}

    def bound(ref: Ref) -> float:
        if ref not in known and len(known) < _MOST_BOUNDED:
            known[ref] = math.inf  # of what leads back here
            known[ref] = _bound(ref, bound, body)
        return known.get(ref, math.inf)

    return bound(ref)


def _bound(ref: Ref, bound, body: Body) -> float:
    node = body.view.producer(ref)
    if ref.port or node.payload is not None:
        return math.inf
    if node.op == "Const" or not body.constants.live and body.constants.is_constant(ref):
        return _magnitude(body.constants.value(ref))
    if node.op == "ResourceGather" and not body.constants.live:
        resource = body.constants.origin(node.inputs[0])
        return _magnitude(body.constants.value_of_variable(resource))
    if node.op in _MOVES:
        return bound(node.inputs[0])
    if node.op == "Cast":
        is_bool = dtype(body.view, node.inputs[0]) == types_pb2.DT_BOOL
        return 1.0 if is_bool else bound(node.inputs[0])
    if node.op in PRODUCTS:
        return ORDINARY
    if node.op in _BOUNDED:
        return 1.0
    if node.op in _EITHER:
        first = 1 if node.op.startswith("Select") else 0
        last = -1 if node.op == "ConcatV2" else None
        return max(map(bound, node.inputs[first:last]))
    if node.op in ("Add", "AddV2", "AddN", "Sub"):
        return sum(map(bound, node.inputs))
    if node.op == "Mul":
        return math.prod(map(bound, node.inputs))
    if node.op == "RealDiv" and (divisor := body.constants.scalar(node.inputs[1])):
        return bound(node.inputs[0]) / abs(divisor)
    return math.inf


def _magnitude(value: np.ndarray | None) -> float:
    if value is None or value.dtype.kind not in "biuf":
        return math.inf
    most = float(np.abs(value.astype(np.float64)).max(initial=0.0))
    return math.inf if math.isnan(most) else most
