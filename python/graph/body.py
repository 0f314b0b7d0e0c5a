"""A body: one graph with what is known of the tensors. A module: all bodies of one function.

The main body is the function's own graph; each While, If, Case and call that is left in it has
bodies of its own, nested as deep as they are. Captured tensors belong to the module: a variable
that is handed down into a loop is the same variable there, and so is a constant.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from tensorflow.core.framework import function_pb2

from .constants import Constants
from .nodes import Writer
from .shapes import Shapes
from .symbolic import Expr, evaluate
from .view import Attributes, GraphView, Ref

# op -> (attributes that name functions, how many inputs of the op precede the arguments)
_CALLS = {
    "Case": (("branches",), 1),
    "If": (("then_branch", "else_branch"), 1),
    "PartitionedCall": (("f",), 0),
    "StatefulPartitionedCall": (("f",), 0),
    "StatelessCase": (("branches",), 1),
    "StatelessIf": (("then_branch", "else_branch"), 1),
    "StatelessWhile": (("cond", "body"), 0),
    "While": (("cond", "body"), 0),
}


@dataclass(frozen=True)
class Place:
    """Where a body stands: it is function `index` of attribute `key` of the node `caller`."""

    outer: Body
    caller: str
    key: str
    index: int = 0


def called(node) -> Iterator[tuple[str, int, str]]:
    """(attribute, index, function) of each that a Node or NodeDef of a loop or call runs."""
    for key in _CALLS.get(node.op, ((), 0))[0]:
        value = Attributes(node)[key]
        functions = value.list.func if key == "branches" else [value.func]
        for index, function in enumerate(functions):
            yield key, index, function.name


def first_argument(op: str) -> int:
    """The number of the node's input that is the first argument of the functions."""
    return _CALLS[op][1]


class Sizes(NamedTuple):
    """What the unknown sizes of a function's arguments tell of those of the results.

    Attributes:
        arguments: (argument, axis, the size's name) for each that is unknown.
        results: (result, axis, size) for each that is unknown.
    """

    arguments: tuple[tuple[int, int, Hashable], ...] = ()
    results: tuple[tuple[int, int, Expr], ...] = ()

    def known(self, shapes: Sequence) -> Iterator[tuple[int, int, int]]:
        """(result, axis, size) of all that arguments of these TensorShapes tell."""
        sizes = {name: shapes[i][axis] for i, axis, name in self.arguments if shapes[i].rank}
        numbers = {name: size for name, size in sizes.items() if size is not None}
        for result, axis, size in self.results:
            try:
                number = evaluate(size, numbers.__getitem__)
            except KeyError:  # It depends on another one.
                continue
            yield result, axis, number


@dataclass
class Body:
    """One graph, with shapes and constants.

    Attributes:
        name: "" for the main body, "while/body" for that of the node "while", and so on.
        view: the graph.
        constants, shapes: what is known of the tensors. A pass puts a node only in the place of
            one that makes the same tensor, so what is known of a name stays true.
        inputs: the placeholder of each argument, in order.
        place: where it is called; None for the main body.
        bound: placeholder -> the tensor of the outer body that it always holds. (A loop's
            variable is not bound, but what a loop only hands on is.)
        inner: (node, attribute, index) -> the body of that function.
        own_gradients: the nodes of the captured graph by which the gradient is another one than
            that of the formulas it computes: straight-through estimators and the like.
    """

    view: GraphView
    constants: Constants
    shapes: Shapes
    name: str = ""
    inputs: list[str] = field(default_factory=list)
    place: Place | None = None
    bound: dict[str, Ref] = field(default_factory=dict)
    inner: dict[tuple[str, str, int], Body] = field(default_factory=dict)
    own_gradients: tuple[str, ...] = ()

    def label(self, node: str) -> str:
        """How a report names a node of this body."""
        return f"{self.name}/{node}" if self.name else node

    def writer(self, name: str) -> Writer:
        """What adds nodes whose names begin with that of the node `name`."""
        return Writer(self.view, name, self.shapes)

    def known(self, ref: Ref) -> np.ndarray | None:
        """The elements of a tensor of integers, where they are constant or known sizes."""
        value = self.constants.value(ref)
        return self.shapes.value(ref) if value is None else value

    def copy(self) -> Body:
        """A copy of the body, to be edited separately; inner bodies are shared."""
        view = self.view.copy()
        shapes = self.shapes.on(view)
        return replace(self, view=view, constants=self.constants.on(view), shapes=shapes)

    def sizes(self) -> Sizes:
        """The unknown sizes of the arguments and results."""
        unknown = self._unknown(map(Ref, self.inputs))
        atoms = tuple((i, axis, atom) for i, axis, size in unknown for atom, _ in size.terms)
        return Sizes(atoms, self._unknown(self.view.fetches))

    def _unknown(self, refs: Iterable[Ref]) -> tuple[tuple[int, int, Expr], ...]:
        return tuple(
            (i, axis, size)
            for i, ref in enumerate(refs)
            for axis, size in enumerate(self.shapes.shape(ref) or ())
            if isinstance(size, Expr)
        )


@dataclass
class Module:
    """A function taken apart.

    Attributes:
        main: the function's own graph.
        captures: placeholder of the main body -> the tensor outside that it stands for.
        function: what was taken apart.
        functions: name -> definition, of all that the bodies call.
    """

    main: Body
    captures: dict[str, object]
    function: object
    functions: dict[str, function_pb2.FunctionDef]

    @property
    def bodies(self) -> list[Body]:
        """All of them, each before those that it calls."""
        bodies = [self.main]
        for body in bodies:
            bodies.extend(body.inner.values())
        return bodies
