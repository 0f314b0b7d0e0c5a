"""A function of a loop as the matcher sees it, and the kinds of patterns that cells are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ....graph import Body, Match, Node, Op, Ref, Scalar, Scope, unusual
from ..movement import slices

_ACTIVATIONS = {"Tanh": "tanh", "Relu": "relu", "Sigmoid": "sigmoid"}


class Step(Scope):
    """Patterns see what identities hand on, and each read of a variable as its handle.

    Args:
        body: the function.
        units: of its cell, where they are known.
    """

    def __init__(self, body: Body, units: int | None = None):
        super().__init__(body)
        self.arguments, self.results, self.units = body.inputs, body.view.fetches, units

    def seen(self, ref: Ref) -> Ref:
        position = self.variable(ref)
        return self.strip(ref) if position is None else Ref(self.arguments[position])

    def strip(self, ref: Ref) -> Ref:
        """What an Identity hands on."""
        return self.view.origin(ref, ("Identity", "StopGradient"))

    def producer(self, ref: Ref) -> Node:
        return self.view.producer(self.strip(ref))

    def argument(self, ref: Ref) -> int | None:
        """The position of the argument that `ref` is."""
        ref = self.strip(ref)
        return self.arguments.index(ref.node) if ref.node in self.arguments else None

    def variable(self, ref: Ref) -> int | None:
        """The argument whose value `ref` is: a tensor, or what a variable holds."""
        node = self.producer(ref)
        return self.argument(node.inputs[0] if node.op == "ReadVariableOp" else ref)

    def constant(self, ref: Ref):
        """The value of a constant that stands in the function itself."""
        node = self.producer(ref)
        return self.constants.value(node.ref) if node.op == "Const" else None

    def columns(self, node: Node, rank: int) -> tuple[int, int | None] | None:
        """[begin, end) of a slice x[begin:end] of a vector, or x[:, begin:end]."""
        index = slices.of_strided(node, self.constants, rank)
        if index is None or not all(map(slices.takes_all, index[:-1])):
            return None
        first, last = index[-1].start or 0, index[-1].stop
        ends = first >= 0 and (last is None or last > 0) and index[-1].step in (None, 1)
        return (first, last) if ends else None


@dataclass(frozen=True)
class Is:
    """One tensor."""

    ref: Ref

    def ways(self, ref: Ref, step: Step, found: Match) -> Iterator[Match]:
        if step.seen(self.ref) == ref:
            yield found


@dataclass(frozen=True)
class Sum:
    """A sum of two tensors, one of which may be a bias."""

    a: object
    b: object

    def ways(self, ref: Ref, step: Step, found: Match) -> Iterator[Match]:
        yield from Op("Add|AddV2", self.a, self.b).ways(ref, step, found)
        node = step.view.producer(ref)
        if node.op == "BiasAdd" and not unusual(node):
            inputs = [node.inputs[0], self._one_row(node.inputs[1], step)]
            yield from step.ways_of_all((self.a, self.b), inputs, found)

    @staticmethod
    def _one_row(ref: Ref, step: Step) -> Ref:
        """What a bias is the only row of: Keras adds products of one row so. Or itself."""
        node = step.producer(ref)
        if node.op != "Squeeze" or list(node.attr["squeeze_dims"].list.i) not in ([], [0]):
            return ref
        return node.inputs[0] if step.producer(node.inputs[0]).op == "MatMul" else ref


@dataclass(frozen=True)
class Activation:
    """An activation, of one kind for each name, or its source itself: "linear"."""

    name: str
    source: object

    def ways(self, ref: Ref, step: Step, found: Match) -> Iterator[Match]:
        node, hard = step.view.producer(ref), Sum(self.source, Scalar(3.0))
        kinds = [("hard_sigmoid", Op("RealDiv", Op("Relu6", hard), Scalar(6.0)))]
        if node.op in _ACTIVATIONS:
            kinds.insert(0, (_ACTIVATIONS[node.op], Op(node.op, self.source)))
        for kind, pattern in (*kinds, ("linear", self.source)):
            if found.values.get(self.name, kind) == kind:
                bound = found._replace(values=found.values | {self.name: kind})
                yield from pattern.ways(ref, step, bound)


@dataclass(frozen=True)
class Part:
    """Part k of n of a vector, or of the columns of a matrix, however it is cut."""

    k: int
    n: int
    source: object
    rank: int = 2

    def ways(self, ref: Ref, step: Step, found: Match) -> Iterator[Match]:
        node = step.view.producer(ref)
        if node.op == "Split" and ref.port == self.k and node.attr["num_split"].i == self.n:
            if step.constant(node.inputs[0]).item() in (self.rank - 1, -1):
                yield from step.ways(self.source, node.inputs[1], found)
        elif node.op == "SplitV" and step.units and ref.port == self.k < self.n:
            sizes, axis = map(step.constant, node.inputs[1:])
            if (
                sizes is not None
                and axis.item() in (self.rank - 1, -1)
                and self._is_of(sizes, step)
            ):
                yield from step.ways(self.source, node.inputs[0], found)
        else:
            yield from Gates(self.k, self.k + 1, self.n, self.source, self.rank).ways(
                ref, step, found
            )

    def _is_of(self, sizes, step: Step) -> bool:
        # The rest is a part of its own, be it empty.
        is_rest = self.k == self.n - 1 == sizes.size - 1 and sizes[self.k] == -1
        before = (sizes[: self.k] == step.units).all()
        return before and (sizes[self.k] == step.units or is_rest)


@dataclass(frozen=True)
class Gates:
    """The columns, in a slice of a matrix, of gates k to last of n."""

    k: int
    last: int
    n: int
    source: object
    rank: int = 2

    def ways(self, ref: Ref, step: Step, found: Match) -> Iterator[Match]:
        node = step.view.producer(ref)
        if node.op != "StridedSlice" or not step.units:
            return
        cut, end = step.columns(node, self.rank), self.last * step.units
        ends = {end, None} if self.last == self.n else {end}
        if cut is not None and cut[0] == self.k * step.units and cut[1] in ends:
            yield from step.ways(self.source, node.inputs[0], found)


@dataclass(frozen=True)
class Row:
    """Row k of two."""

    k: int
    source: object

    def ways(self, ref: Ref, step: Step, found: Match) -> Iterator[Match]:
        node = step.view.producer(ref)
        if node.op == "Unpack" and node.attr["axis"].i == 0 and node.attr["num"].i == 2:
            if ref.port == self.k:
                yield from step.ways(self.source, node.inputs[0], found)
        elif node.op == "Squeeze":
            split = step.strip(node.inputs[0])
            node = step.view.producer(split)
            if node.op != "Split" or node.attr["num_split"].i != 2 or split.port != self.k:
                return
            if step.constant(node.inputs[0]).item() == 0:
                yield from step.ways(self.source, node.inputs[1], found)
