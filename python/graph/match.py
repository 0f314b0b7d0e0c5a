"""A matcher: a pattern is a DAG of ops, in which one object is one tensor.

    x = Any("x")
    swish = x * Op("Sigmoid", x)
    swished = match(swish, node, body)      # swished.refs["x"], swished.nodes

Commutative ops are tried in both orders, spellings of one thing are alternatives (`OneOf`), and an
operand whose default is neutral may be absent. A formula has these constants to the bit, and ops
as they are without attributes: what has others is another formula. A pattern is whatever has
`ways`, so that a file of patterns may have other kinds, too.
"""

import copy
import operator
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from .families import RESHAPES
from .nodes import unusual
from .types import attribute_types, defaults, definition, value_of
from .view import Node, Ref

_COMMUTATIVE = frozenset({"Add", "AddV2", "Mul", "Maximum", "Minimum", "SquaredDifference"})
_OPERATORS = {
    "add": ("Add|AddV2", 0.0),
    "sub": ("Sub", 0.0),
    "mul": ("Mul", 1.0),
    "truediv": ("RealDiv", 1.0),
}


class Match(NamedTuple):
    """What a pattern bound.

    Attributes:
        refs: operand -> tensor.
        values: parameter -> number, attribute or size; None of an operand that is absent.
        nodes: those of the pattern, the root first.
        tensors: part of the pattern -> tensor.
        proofs: what has to hold of sizes when all is bound.
    """

    refs: dict[str, Ref] = {}
    values: dict[str, object] = {}
    nodes: tuple[str, ...] = ()
    tensors: dict = {}
    proofs: tuple[Callable[["Match"], bool], ...] = ()

    def bind(self, name: str, value) -> "Match | None":
        """The match with the value of a parameter; None where that has another one."""
        if self.values.get(name, value) == value:
            return self._replace(values=self.values | {name: value})
        return None


class Pattern:
    """What a tensor may be: the result of one of the ops, if any, and all that `ways` asks."""

    ops: frozenset[str] = frozenset()

    def __neg__(self) -> "Op":
        return Op("Neg", self)

    def __str__(self) -> str:
        return " or ".join(sorted(self.ops)) or str(vars(self))


class Any(Pattern):
    """Any tensor, bound to `name` if it has one, or an attribute or size; see above of defaults."""

    def __init__(self, name: str | None = None, default: float | None = None):
        self.name, self.default = name, default

    def ways(self, ref: Ref, scope: "Scope", match: Match) -> Iterator[Match]:
        if self.name is None:
            yield match
        elif self.name not in match.values and match.refs.get(self.name, ref) == ref:
            yield match._replace(refs=match.refs | {self.name: ref})


class Scalar(Pattern):
    """A constant of one element: equal to `value` and bound to `name` where these are not None.

    A value that float32 does not have is either of the numbers around it: people write it in
    different ways, and rounding decides.
    """

    def __init__(self, value: float | None = None, name: str | None = None):
        self.value, self.name = value, name

    def ways(self, ref: Ref, scope: "Scope", match: Match) -> Iterator[Match]:
        value = scope.constants.scalar(ref)
        if value is not None and self._fits(value):
            bound = match.bind(self.name, value) if self.name else match
            yield from [bound] if bound else []

    def _fits(self, value: float) -> bool:
        if self.value is None or value == self.value:
            return True
        nearest = np.float32(self.value)
        is_rounded = float(nearest) != self.value
        return is_rounded and abs(value - self.value) < float(abs(np.spacing(nearest)))


class Numbers(Pattern):
    """A tensor of integers: numbers, parameters and sizes; -1 is what is left."""

    def __init__(self, values: list):
        self.values = values

    def ways(self, ref: Ref, scope: "Scope", match: Match) -> Iterator[Match]:
        value = scope.shapes.value(ref)
        yield from [] if value is None else self.unify(value.flat, match, scope)

    def unify(self, values, match: Match | None, scope: "Scope") -> Iterator[Match]:
        """The match where these are the numbers of the pattern."""
        if len(values) != len(self.values):
            return
        for wanted, value in zip(self.values, values, strict=True):
            if isinstance(wanted, Sized):
                proof = lambda match, w=wanted, v=value: w.value(scope, match) == v  # noqa: E731
                match = match._replace(proofs=(*match.proofs, proof))
            elif isinstance(wanted, Any):
                match = match.bind(wanted.name, value)
            elif wanted not in (-1, value):
                return
            if match is None:
                return
        yield match


class Axes(Pattern):
    """Axes of a tensor, from either end."""

    def __init__(self, of: Pattern, *axes: int):
        self.of, self.axes = of, axes

    def ways(self, ref: Ref, scope: "Scope", match: Match) -> Iterator[Match]:
        def proof(match: Match) -> bool:
            rank, numbers = scope.shapes.rank(match.tensors[self.of]), scope.shapes.numbers(ref)
            known = rank and numbers is not None
            return known and {a % rank for a in self.axes} == {a % rank for a in numbers}

        yield match._replace(proofs=(*match.proofs, proof))


class Sized:
    """A size that is computed of tensors' shapes, of parameters and of numbers."""

    def __init__(self, function: Callable, *args):
        self.function, self.args = function, args

    def value(self, scope: "Scope", match: Match):
        """The size; None where it is of one that is not known."""

        def known(arg):
            if isinstance(arg, Sized):
                return arg.value(scope, match)
            if isinstance(arg, Any) and arg.name in match.values:
                return match.values[arg.name]
            return scope.shapes.shape(match.tensors[arg]) if isinstance(arg, Pattern) else arg

        try:
            return self.function(*map(known, self.args))
        except TypeError:
            return None


def sizes_of(x: Pattern, rank: int) -> list[Sized]:
    """Those of x, which has that rank."""
    take = lambda sizes, at: sizes[at] if len(sizes) == rank else None  # noqa: E731
    return [Sized(take, x, at) for at in range(rank)]


class Op(Pattern):
    """Output 0 of a node of one of the ops "A|B", with data inputs matched by `args`.

    `Op(..)[1]` is output 1.

    Raises:
        ValueError: there is no such op, or it has other inputs or no such attribute.
    """

    def __init__(self, ops: str, *args, **attributes):
        self.ops, self.args = frozenset(ops.split("|")), tuple(map(pattern_of, args))
        self.attributes, self.port = attributes, 0
        for op in self.ops:
            inputs = definition(op).input_arg
            if len(inputs) != len(args) and not any(argument.number_attr for argument in inputs):
                raise ValueError(f"{op} takes {len(inputs)} inputs, not {len(args)}")
            if unknown := attributes.keys() - attribute_types(op).keys():
                raise ValueError(f"{op} has no attribute {min(unknown)!r}")

    def __getitem__(self, port: int) -> "Op":
        output = copy.copy(self)
        output.port = port
        return output

    def ways(self, ref: Ref, scope: "Scope", match: Match) -> Iterator[Match]:
        if ref.port != self.port or not scope.makes(self.ops, ref):
            return
        node, here = scope.view.node(ref.node), None
        orders = [self.args, self.args[::-1]][: 1 + (node.op in _COMMUTATIVE)]
        for args in orders if len(node.inputs) == len(self.args) else ():
            if all(map(scope.may_be, args, node.inputs)):
                here = here or self._with_attributes(node, match)
                yield from scope.ways_of_all(args, node.inputs, here) if here else ()

    def _with_attributes(self, node: Node, match: Match) -> Match | None:
        """The match with the node, where all attributes are as they are wanted."""
        bound = {key: name for key, name in self.attributes.items() if isinstance(name, Any)}
        if unusual(node, bound, **self.attributes):
            return None
        match = match._replace(nodes=(*match.nodes, node.name))
        for key, parameter in bound.items():
            value = value_of(node.attr[key]) if key in node.attr else defaults(node.op)[key]
            match = match and match.bind(parameter.name, value)
        return match


class Reshaped(Pattern):
    """A tensor in another shape, whatever op says so."""

    ops = RESHAPES

    def __init__(self, x: Pattern, sizes: list):
        self.args, self.sizes = (x,), Numbers(sizes)

    def ways(self, ref: Ref, scope: "Scope", match: Match) -> Iterator[Match]:
        shape = scope.shapes.shape(ref) if scope.makes(self.ops, ref) else None
        if shape is not None:
            match = match._replace(nodes=(*match.nodes, ref.node))
            for way in self.sizes.unify(shape, match, scope):
                yield from scope.ways(self.args[0], scope.view.node(ref.node).inputs[0], way)


class Viewed(Pattern):
    """A tensor, or one with the same elements in their order in another shape."""

    def __init__(self, x: Pattern):
        self.x = x

    def ways(self, ref: Ref, scope: "Scope", match: Match) -> Iterator[Match]:
        yield from scope.ways(self.x, ref, match)
        if scope.makes(RESHAPES | {"Transpose"}, ref):
            node = scope.view.node(ref.node)
            if node.op != "Transpose" or self._keeps_order(node, scope):
                match = match._replace(nodes=(*match.nodes, node.name))
                yield from self.ways(scope.seen(node.inputs[0]), scope, match)

    @staticmethod
    def _keeps_order(node: Node, scope: "Scope") -> bool:
        """Whether axes of other sizes than one stay in their order."""
        sizes, order = scope.shapes.shape(node.inputs[0]), scope.shapes.numbers(node.inputs[1])
        if sizes is None or order is None:
            return False
        moved = [axis % len(sizes) for axis in order if sizes[axis] != 1]
        return moved == sorted(moved)


class OneOf(Pattern):
    """Any of the patterns, the first ones first; the last one is what is left without `absent`."""

    def __init__(self, *patterns, absent: str | None = None):
        self.patterns, self.absent = tuple(map(pattern_of, patterns)), absent
        ops = [getattr(pattern, "ops", None) for pattern in self.patterns]
        self.ops = frozenset().union(*ops) if all(ops) else frozenset()

    def ways(self, ref: Ref, scope: "Scope", match: Match) -> Iterator[Match]:
        for pattern in self.patterns:
            if self.absent and pattern is self.patterns[-1]:
                match = None if self.absent in match.refs else match.bind(self.absent, None)
            if match and scope.may_be(pattern, ref):
                yield from scope.ways(pattern, ref, match)


class Binding(Pattern):
    """A pattern that says what a parameter is: `Binding(tanh, f="tanh")`."""

    def __init__(self, pattern: Pattern, **values):
        self.pattern, self.values, self.ops = pattern, values, pattern.ops

    def ways(self, ref: Ref, scope: "Scope", match: Match) -> Iterator[Match]:
        for name, value in self.values.items():
            match = match and match.bind(name, value)
        yield from scope.ways(self.pattern, ref, match) if match else ()


def pattern_of(value):
    """A number or list of a formula as a pattern; all else as it is."""
    if isinstance(value, int | float):
        return Scalar(value)
    return Numbers(value) if isinstance(value, list) else value


def _operator(name: str, mirrored: bool) -> Callable:
    ops, neutral = _OPERATORS[name]

    def combine(self, other):
        if isinstance(other, Sized):
            return NotImplemented
        a, b = map(pattern_of, (other, self) if mirrored else (self, other))
        left = -b if name == "sub" else b
        for absent, rest in ((b, a), (a, left))[: 1 + (name != "truediv")]:
            if isinstance(absent, Any) and absent.default == neutral:
                return OneOf(Op(ops, a, b), rest, absent=absent.name)
        return Op(ops, a, b)

    return combine


for _name in _OPERATORS:
    setattr(Pattern, f"__{_name}__", _operator(_name, False))
    setattr(Pattern, f"__r{_name}__", _operator(_name, True))
Sized.__mul__ = lambda a, b: Sized(operator.mul, a, b)
Sized.__floordiv__ = lambda a, b: Sized(operator.floordiv, a, b)


class Scope:
    """The graph in which patterns are looked for.

    Attributes:
        nearest: (tensors so far, part of a pattern, tensor): where the way ended that came nearest
            to a match. It is updated where it is not None.
    """

    def __init__(self, body, nearest: tuple | None = None):
        self.view, self.constants, self.shapes = body.view, body.constants, body.shapes
        self.nearest = nearest

    def seen(self, ref: Ref) -> Ref:
        """The tensor that patterns see in the place of `ref`."""
        return ref

    def ways(self, pattern, ref: Ref, match: Match | None = None) -> Iterator[Match]:
        """All ways in which `ref` is `pattern`, beside what `match` has."""
        ref, match, missed = self.seen(ref), match or Match(), True
        bound = match.tensors.get(pattern)
        if bound is None:
            match = match._replace(tensors=match.tensors | {pattern: ref})
            ways = pattern.ways(ref, self, match)
        else:  # or the same number, written twice
            ways = [match] if bound == ref or self._are_one_number(bound, ref) else []
        for way in ways:
            missed = False
            yield way
        if missed and self.nearest and len(match.tensors) > self.nearest[0]:
            self.nearest = (len(match.tensors), pattern, ref)

    def proven(self, pattern, ref: Ref) -> Iterator[Match]:
        """All ways in which `ref` is `pattern` and sizes are what they have to be."""
        for match in self.ways(pattern, ref) if self.fits(pattern, ref) else ():
            if all(proof(match) for proof in match.proofs):
                yield match

    def may_be(self, pattern, ref: Ref) -> bool:
        """False where the op that makes `ref` is none of the pattern's: nothing need be bound."""
        ops = getattr(pattern, "ops", None)
        return not ops or bool(self.nearest) or self.makes(ops, self.seen(ref))

    def fits(self, pattern, ref: Ref) -> bool:
        """The same, one op further: most nodes are rejected here, before anything is bound."""
        if isinstance(pattern, OneOf):
            return any(self.fits(way, ref) for way in pattern.patterns)
        if not self.may_be(pattern, ref) or not isinstance(pattern, Op | Reshaped) or self.nearest:
            return self.may_be(pattern, ref)
        inputs, args = self.view.node(ref.node).inputs, pattern.args
        return any(all(map(self.may_be, order, inputs)) for order in (args, args[::-1]))

    def makes(self, ops: frozenset[str], ref: Ref) -> bool:
        """Whether `ref` is an output of a node of one of the ops."""
        return ref.node in self.view and self.view.node(ref.node).op in ops

    def ways_of_all(self, patterns, refs, match: Match) -> Iterator[Match]:
        """The same of as many patterns as tensors."""
        if not patterns:
            yield match
            return
        for first in self.ways(patterns[0], refs[0], match):
            yield from self.ways_of_all(patterns[1:], refs[1:], first)

    def _are_one_number(self, a: Ref, b: Ref) -> bool:
        return None is not self.constants.scalar(a) == self.constants.scalar(b)


def match(pattern: Op | OneOf, root: Node, body) -> Match | None:
    """The first way in which `pattern` matches at `root`, or None."""
    return next(Scope(body).proven(pattern, root.ref), None)
