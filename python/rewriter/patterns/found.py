"""What a pattern finds; the form that all patterns have.

A pattern teaches the rewriter that some nodes mean one thing that we have an op for. It is a module
with

    ROOTS   the ops of the nodes at which it is looked for
    find(node, body, context) -> Found | str | None

None: the node is something else. A str: one line that says why TensorFlow keeps what could have
been found; it ends up in the report. `PATTERNS` in this folder's __init__.py lists them by the pass
that asks. Element-wise work has patterns of its own, which find steps (pixels/elementwise).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...graph import Body, GraphView, Node, Ref, Writer
from ...ops.records import Record


@dataclass(frozen=True)
class Found:
    """A planned primitive, and the nodes in whose place it comes.

    Attributes:
        payload: the primitive.
        inputs: role -> tensor, of all that it reads.
        root: the node whose result it computes, and whose name it takes.
        nodes: the root and all others that it computes; others may go on reading those.
        notes: (node, reason): what it would have computed, too, if not for the reason.
        prepare: adds what stands before the primitive; returns what that reads instead of `inputs`.
    """

    payload: Record
    inputs: Mapping[str, Ref]
    root: str
    nodes: frozenset[str] = frozenset()
    notes: tuple[tuple[str, str], ...] = field(default=())
    prepare: Callable[[Writer], Mapping[str, Ref]] | None = None

    def node(self, view: GraphView) -> Node:
        """The node that takes the place of the root."""
        controls = [name for one in (self.root, *self.nodes) for name in view.node(one).controls]
        controls = list(dict.fromkeys(controls))
        inputs = self.prepare(Writer(view, self.root)) if self.prepare else self.inputs
        return Node(self.root, self.payload.op, dict(inputs), controls, payload=self.payload)

    def put(self, body: Body) -> Node:
        """Puts the primitive into the graph, and removes what nobody needs any more."""
        view, replaced = body.view, {self.root, *self.nodes}
        sources = [ref.node for name in replaced for ref in view.node(name).inputs]
        node = view.replace(self.node(view))
        view.remove_dead([*(replaced - {self.root}), *sources])
        return node
