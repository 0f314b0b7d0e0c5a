"""What masks and biases of attention are made of.

Which of them let each query see the keys up to its own, and how large the numbers of a bias may be.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from tensorflow.core.framework import types_pb2

from ....graph import Any, Body, Op, Ref, Scalar, dtype, match

_SAME = frozenset({"Identity", "StopGradient"})
_VIEWS = frozenset({"ExpandDims", "Identity", "Reshape"})
# What a finite constant must be, so that its exponential is zero beside that of any other score.
NEVER = -1e8
# What scores, and other products of activations, are taken to stay below.
ORDINARY = 1e3
_MOVES = _SAME | {
    *("BroadcastTo", "ExpandDims", "GatherNd", "GatherV2", "Pad", "Reshape", "Roll", "Slice"),
    *("Squeeze", "StridedSlice", "Tile", "Transpose", "Abs", "Neg", "Relu"),
}
_PRODUCTS = frozenset({"BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Einsum", "MatMul"})
_BOUNDED = frozenset({"Cos", "Sigmoid", "Sin", "Softmax", "Tanh"})
# c * (1 - kept), of a mask as 1 and 0
_REST = Op("Mul", Scalar(name="c"), Op("Sub", Scalar(1.0), Any("kept")))
_REST_OF_MASK = Op("Mul", Scalar(name="c"), Op("Sub", Scalar(1.0), Op("Cast", Any("mask"))))
_EITHER = frozenset({"ConcatV2", "Maximum", "Minimum", "Pack", "Select", "SelectV2"})


@dataclass(frozen=True)
class Bias:
    """What is added to scores: in `shape`, its axes in another order, times `factor`."""

    ref: Ref
    factor: float = 1.0
    shape: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None

    def times(self, factor: float) -> "Bias":
        return replace(self, factor=self.factor * factor)

    def turned(self, order) -> "Bias":
        """With axis order[i] as axis i."""
        before = self.order or range(len(order))
        after = tuple(before[axis] for axis in order)
        return replace(self, order=None if after == tuple(range(len(order))) else after)

    def largest(self, body: Body) -> float:
        """A bound on its magnitude."""
        return abs(self.factor) * largest(self.ref, body)


def times_rest(ref: Ref, kept: Ref, body: Body) -> float | None:
    """c where `ref` is c * (1 - kept), and that of zeros and ones."""
    node = body.view.producer(ref)
    if node.payload is not None or not _is_zero_or_one(kept, body):
        return None
    if node.op != "Mul":
        return _times_constant_rest(ref, kept, body)
    found = match(_REST, node, body)
    return found.values["c"] if found and found.refs["kept"] == kept else None


def _times_constant_rest(ref: Ref, kept: Ref, body: Body) -> float | None:
    value, kept = body.constants.value(ref), body.constants.value(kept)
    if value is None or kept is None or value.shape != kept.shape or kept.all():
        return None
    factor = float(value[kept == 0].flat[0])
    return factor if np.array_equal(value, factor * (1 - kept)) else None


def _is_zero_or_one(ref: Ref, body: Body) -> bool:
    node = body.view.producer(ref)
    if node.op in _VIEWS or node.op == "StridedSlice":
        return _is_zero_or_one(node.inputs[0], body)
    if node.op == "Cast" and dtype(body.view, node.inputs[0]) == types_pb2.DT_BOOL:
        return True
    value = body.constants.value(ref)
    return value is not None and bool(np.isin(value, (0, 1)).all())


def without_not(mask: Ref, inverted: bool, body: Body) -> tuple[Ref, bool]:
    """A mask that is no negation, and whether it is inverted then."""
    node = body.view.producer(mask)
    if node.op != "LogicalNot":
        return mask, inverted
    return without_not(node.inputs[0], not inverted, body)


def without_ones(mask: Ref, body: Body) -> Ref:
    """The mask itself where it was joined with one that is true everywhere."""
    node = body.view.producer(mask)
    if node.op in _SAME:
        return without_ones(node.inputs[0], body)
    if node.op == "LogicalAnd":
        for i in (0, 1):
            if _is_all(True, node.inputs[i], body):
                return without_ones(node.inputs[1 - i], body)
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


def is_causal(mask: Ref, body: Body, inverted: bool = False) -> bool:
    """Whether a mask is true where the key is not behind the query: s <= t; or false there."""
    node = body.view.producer(mask)
    if node.op == "LogicalNot":
        return is_causal(node.inputs[0], body, not inverted)
    if node.op == "MatrixBandPart" and not inverted:
        limits = [body.shapes.number(ref) for ref in node.inputs[1:]]
        return limits == [-1, 0] and _is_all(True, node.inputs[0], body)
    if node.op == "GreaterEqual" and not inverted:
        rows, columns = (_counts(node.inputs[i], axis, body) for i, axis in ((0, -2), (1, -1)))
        return rows is not None and rows == columns
    if node.op in _VIEWS or node.op == "StridedSlice":
        before, after = (body.shapes.shape(ref) for ref in (node.inputs[0], node.ref))
        keeps = before and after and before[-2:] == after[-2:] and len(before) >= 2
        if node.op == "StridedSlice":
            strides = body.shapes.numbers(node.inputs[3])
            keeps = keeps and strides is not None and {*strides} == {1}
        return bool(keeps) and is_causal(node.inputs[0], body, inverted)
    value = body.constants.value(mask)
    if value is None or value.ndim < 2 or value.dtype != bool:
        return False
    seen = np.tri(*value.shape[-2:], dtype=bool) != inverted
    return np.array_equal(value, np.broadcast_to(seen, value.shape))


def causal_bias(bias: Ref, body: Body) -> float | None:
    """c where a bias is (1 - mask) * c of such a mask; the largest where it has several.

    It is a constant, or made so of a mask.
    """
    node = body.view.producer(bias)
    if node.op in _VIEWS:
        before, after = (body.shapes.shape(ref) for ref in (node.inputs[0], node.ref))
        keeps = before and after and len(before) >= 2 and before[-2:] == after[-2:]
        return causal_bias(node.inputs[0], body) if keeps else None
    if (found := match(_REST_OF_MASK, node, body)) is not None:
        return found.values["c"] if is_causal(found.refs["mask"], body) else None
    value = body.constants.value(bias)
    if value is None or value.ndim < 2 or value.dtype.kind != "f":
        return None
    seen = np.broadcast_to(np.tri(*value.shape[-2:], dtype=bool), value.shape)
    return float(value[~seen].max(initial=-np.inf)) if np.all(value[seen] == 0) else None


def hides(value: float, biases, body: Body) -> bool:
    """Whether scores that become `value`, or have it added, count for nothing beside the others.

    They do not where a bias may be as low as the value: of a row in which it hides all other keys,
    softmax weighs those that `value` hides as well. -inf hides them beside any finite score, and a
    row of nothing else is NaN with them and without.
    """
    if value == -math.inf:
        return True
    return value + 2 * sum(bias.largest(body) for bias in biases) <= NEVER


def largest(ref: Ref, body: Body) -> float:
    """A bound on the magnitude of a bias; inf where nothing is known of it, as of an input.

    Products of activations are taken to be as small as scores are.
    """
    known: dict[Ref, float] = {}

    def bound(ref: Ref) -> float:
        if ref not in known:
            known[ref] = math.inf  # of what leads back here
            known[ref] = _bound(ref, bound, body)
        return known[ref]

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
    if node.op in _PRODUCTS:
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
