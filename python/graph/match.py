"""A small declarative matcher: a pattern is an expression over op names.

    x = Any("x")
    swish = Op("Mul", x, Op("Sigmoid", x))
    found = match(swish, node, view, constants)      # found.refs["x"], found.nodes

Commutative ops are tried in both orders; the same name must bind the same tensor.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .constants import Constants
from .view import GraphView, Node, Ref

_COMMUTATIVE = frozenset({"Add", "AddV2", "Mul", "Maximum", "Minimum"})


@dataclass(frozen=True)
class Any:
    """Any tensor, bound to `name`."""

    name: str


@dataclass(frozen=True)
class Scalar:
    """A constant of one element: near `value` if one is given, bound to `name` if one is."""

    value: float | None = None
    name: str | None = None
    tolerance: float = 1e-5


@dataclass(frozen=True, init=False)
class Op:
    """Output 0 of a node of one of the ops "A|B", with its data inputs matched by `args`."""

    ops: tuple[str, ...]
    args: tuple

    def __init__(self, ops: str, *args):
        object.__setattr__(self, "ops", tuple(ops.split("|")))
        object.__setattr__(self, "args", args)


@dataclass(frozen=True)
class Match:
    """What a pattern bound: tensors, scalars, and the matched nodes, root first."""

    refs: dict[str, Ref] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)
    nodes: tuple[str, ...] = ()


def match(pattern: Op, root: Node, view: GraphView, constants: Constants) -> Match | None:
    """The first way in which `pattern` matches at `root`, or None."""
    if root.op not in pattern.ops:
        return None
    return next(_match(pattern, root.ref, view, constants, Match()), None)


def _match(pattern, ref: Ref, view, constants, found: Match) -> Iterator[Match]:
    if isinstance(pattern, Any):
        if found.refs.get(pattern.name, ref) == ref:
            yield Match({**found.refs, pattern.name: ref}, found.scalars, found.nodes)
    elif isinstance(pattern, Scalar):
        value = constants.scalar(ref)
        if value is None or not _near(value, pattern):
            return
        scalars = {**found.scalars, pattern.name: value} if pattern.name else found.scalars
        yield Match(found.refs, scalars, found.nodes)
    elif ref.port == 0 and ref.node in view:
        node = view.node(ref.node)
        if node.op in pattern.ops and len(node.inputs) == len(pattern.args):
            found = Match(found.refs, found.scalars, (*found.nodes, node.name))
            for args in _orders(node.op, pattern.args):
                yield from _match_all(args, node.inputs, view, constants, found)


def _orders(op: str, args: tuple) -> list[tuple]:
    return [args, args[::-1]] if op in _COMMUTATIVE and len(args) == 2 else [args]


def _match_all(patterns, refs, view, constants, found: Match) -> Iterator[Match]:
    if not patterns:
        yield found
        return
    for first in _match(patterns[0], refs[0], view, constants, found):
        yield from _match_all(patterns[1:], refs[1:], view, constants, first)


def _near(value: float, pattern: Scalar) -> bool:
    if pattern.value is None:
        return True
    return abs(value - pattern.value) <= pattern.tolerance * max(1.0, abs(pattern.value))
