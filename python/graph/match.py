"""A small declarative matcher: a pattern is an expression over op names.

    x = Any("x")
    swish = Op("Mul", x, Op("Sigmoid", x))
    found = match(swish, node, view, constants)      # found.refs["x"], found.nodes

Commutative ops are tried in both orders; the same name must bind the same tensor. A formula is its
constants to the bit, and its ops as they are without attributes: what has others is another
formula. Spellings of one thing are alternatives, `OneOf`, so that what stands around them is looked
at once. A pattern is whatever has `ways`, so that a file of patterns may have kinds of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from .constants import Constants
from .nodes import unusual
from .view import GraphView, Node, Ref

_COMMUTATIVE = frozenset({"Add", "AddV2", "Mul", "Maximum", "Minimum"})


@dataclass(frozen=True)
class Match:
    """What a pattern bound: tensors, scalars, kinds of ops, and the matched nodes, root first."""

    refs: dict[str, Ref] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()


@dataclass
class Scope:
    """The graph in which patterns are looked for."""

    view: GraphView
    constants: Constants

    def seen(self, ref: Ref) -> Ref:
        """The tensor that patterns see in the place of `ref`."""
        return ref

    def ways(self, pattern, ref: Ref, found: Match | None = None) -> Iterator[Match]:
        """All ways in which `ref` is `pattern`, beside what is `found`."""
        yield from pattern.ways(self.seen(ref), self, found or Match())

    def may_be(self, pattern, ref: Ref) -> bool:
        """False where the op that makes `ref` is none of the pattern's: nothing need be bound."""
        if isinstance(pattern, OneOf):
            return any(self.may_be(one, ref) for one in pattern.patterns)
        if not isinstance(pattern, Op):
            return True
        ref = self.seen(ref)
        return not ref.port and ref.node in self.view and self.view.node(ref.node).op in pattern.ops

    def ways_of_all(self, patterns, refs, found: Match) -> Iterator[Match]:
        """The same of as many patterns as tensors."""
        if not patterns:
            yield found
            return
        for first in self.ways(patterns[0], refs[0], found):
            yield from self.ways_of_all(patterns[1:], refs[1:], first)


@dataclass(frozen=True)
class Any:
    """Any tensor, bound to `name`."""

    name: str

    def ways(self, ref: Ref, scope: Scope, found: Match) -> Iterator[Match]:
        bound = found.refs.get(self.name)
        if bound is None:
            refs = {**found.refs, self.name: ref}
            yield Match(refs, found.scalars, found.kinds, found.nodes)
        elif bound == ref:
            yield found


@dataclass(frozen=True)
class Scalar:
    """A constant of one element: `value` if one is given, bound to `name` if one is.

    A value that float32 does not have is either of the numbers around it: people write it in
    different ways, and rounding decides.
    """

    value: float | None = None
    name: str | None = None

    def ways(self, ref: Ref, scope: Scope, found: Match) -> Iterator[Match]:
        value = scope.constants.scalar(ref)
        if value is None or not self._fits(value):
            return
        bound = {self.name: value} if self.name else {}
        yield Match(found.refs, found.scalars | bound, found.kinds, found.nodes)

    def _fits(self, value: float) -> bool:
        if self.value is None or value == self.value:
            return True
        nearest = np.float32(self.value)
        is_rounded = float(nearest) != self.value
        return is_rounded and abs(value - self.value) < float(abs(np.spacing(nearest)))


@dataclass(frozen=True, init=False)
class Op:
    """Output 0 of a node of one of the ops "A|B", with its data inputs matched by `args`.

    The node is nobody's plan yet. Its attributes are those given, and others have their defaults.
    """

    ops: tuple[str, ...]
    args: tuple
    attributes: dict

    def __init__(self, ops: str, *args, **attributes):
        object.__setattr__(self, "ops", tuple(ops.split("|")))
        object.__setattr__(self, "args", args)
        object.__setattr__(self, "attributes", attributes)

    def ways(self, ref: Ref, scope: Scope, found: Match) -> Iterator[Match]:
        if ref.port or ref.node not in scope.view:
            return
        node = scope.view.node(ref.node)
        if node.op in self.ops and len(node.inputs) == len(self.args) and node.payload is None:
            if unusual(node, **self.attributes):
                return
            here = None
            for args in self._orders(node.op):
                if all(map(scope.may_be, args, node.inputs)):
                    nodes = (*found.nodes, node.name)
                    here = here or Match(found.refs, found.scalars, found.kinds, nodes)
                    yield from scope.ways_of_all(args, node.inputs, here)

    def _orders(self, op: str) -> list[tuple]:
        is_commutative = op in _COMMUTATIVE and len(self.args) == 2
        return [self.args, self.args[::-1]] if is_commutative else [self.args]


@dataclass(frozen=True, init=False)
class OneOf:
    """Any of the patterns, the first ones first."""

    patterns: tuple

    def __init__(self, *patterns):
        object.__setattr__(self, "patterns", patterns)

    def ways(self, ref: Ref, scope: Scope, found: Match) -> Iterator[Match]:
        for pattern in self.patterns:
            if scope.may_be(pattern, ref):
                yield from pattern.ways(ref, scope, found)


def match(pattern: Op | OneOf, root: Node, view: GraphView, constants: Constants) -> Match | None:
    """The first way in which `pattern` matches at `root`, or None."""
    scope = Scope(view, constants)
    return next(scope.ways(pattern, root.ref), None) if scope.may_be(pattern, root.ref) else None
