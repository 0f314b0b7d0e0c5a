"""What a pattern finds; the form that all patterns have.

A pattern teaches the rewriter that some nodes mean one thing that we have an op for. It is a module
with

    ROOTS   the ops of the nodes at which it is looked for
    NAMED   the attributes at which it looks, if there are any
    find(node, body, context) -> Replacement | str | None

None: the node is something else. A str: one line that says why TensorFlow keeps what could have
been found; it ends up in the report. A `Rule` has the same form. `PATTERNS` in patterns/__init__.py
lists them by the pass that asks. They ask by `look`, which states what holds for all patterns.
Element-wise work has separate patterns, which give an `Idiom` (patterns/pixels/elementwise).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ...graph import Body, Node, Ref, Writer, unusual
from ...ops.records import Record, Step


@dataclass(frozen=True)
class Replacement:
    """A planned primitive, and the nodes in whose place it comes.

    Attributes:
        payload: the primitive.
        inputs: role -> tensor, of all that it reads.
        root: the node whose result it computes, and whose name it takes.
        nodes: the root and all others that it computes; others may go on reading those.
        notes: (node, reason): what it would have computed, too, if not for the reason.
        prepare: adds what stands before the primitive; returns what that reads instead of `inputs`.
        finish: puts, in the place of the root, what reads the primitive's result.
    """

    payload: Record
    inputs: Mapping[str, Ref]
    root: str
    nodes: frozenset[str] = frozenset()
    notes: tuple[tuple[str, str], ...] = field(default=())
    prepare: Callable[[Writer], Mapping[str, Ref]] | None = None
    finish: Callable[[Writer, Ref], None] | None = None

    def put(self, body: Body) -> Node:
        """Puts the primitive into the graph, and removes what nobody needs any more."""
        view, replaced = body.view, list(dict.fromkeys((self.root, *self.nodes)))
        old, write = [view.node(name) for name in replaced], body.writer(self.root)
        controls = list(dict.fromkeys(name for node in old for name in node.controls))
        sources = [ref.node for node in old for ref in node.inputs]
        inputs = self.prepare(write) if self.prepare else self.inputs
        if self.finish:
            node = view.producer(write.plan("planned", self.payload, inputs))
            self.finish(write, node.ref)
        else:
            planned = Node(self.root, self.payload.op, dict(inputs), controls, payload=self.payload)
            node = view.replace(planned)
        view.remove_dead([*replaced[1:], *sources])
        return node


@dataclass(frozen=True)
class Idiom:
    """A chain of steps from `src` to the output of `root`, which has the same shape.

    Attributes:
        root: the node whose output 0 is the result.
        src: the source.
        operands: role -> tensor, of those that steps read. A role begins with the root's name,
            so that the roles of all idioms that one primitive absorbs are different.
        steps: what happens to the source.
        nodes: the root and every node in between; all but the root are private.
        scale, shift: for a per-channel affine map, float64 [channels]: the map itself.
    """

    root: str
    src: Ref
    steps: tuple[Step, ...]
    nodes: frozenset[str]
    operands: Mapping[str, Ref] = field(default_factory=dict)
    scale: np.ndarray | None = field(default=None, repr=False)
    shift: np.ndarray | None = field(default=None, repr=False)

    @property
    def inputs(self) -> dict[str, Ref]:
        """role -> tensor, of the source and the operands."""
        return {"src": self.src, **self.operands}

    @property
    def is_affine(self) -> bool:
        return self.scale is not None or self.shift is not None


def look(pattern, node: Node, body: Body, context) -> Replacement | str | None:
    """What a pattern finds at a node that nobody has planned yet.

    An attribute that the pattern does not name has the default in all nodes that it replaces:
    what it may mean otherwise, nobody has thought of. What weights alone determine is computed
    once, and by TensorFlow (emit.py).
    """
    if node.op not in pattern.ROOTS or node.payload is not None:
        return None
    if body.constants.is_constant(node.ref):
        return None
    named = getattr(pattern, "NAMED", ())
    if setting := unusual(node, named):
        return f"{setting} is not implemented"
    result = pattern.find(node, body, context)
    if not isinstance(result, Replacement):
        return result
    nodes = [body.view.node(name) for name in (result.root, *sorted(result.nodes))]
    settings = [unusual(node, named) for node in nodes if node.payload is None]
    return next((f"{setting} is not implemented" for setting in settings if setting), result)
