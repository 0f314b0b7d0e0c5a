"""Views: tensors that are other ones, x, in another order or with other axes; and how they sink.

What treats all elements, or all channels, alike is done on x, and the view is made of the result,

    f(view(x)) = view(f(x)),

so that views sink until they meet what wants x itself, or the end of the graph.
"""

from typing import ClassVar

import numpy as np

from ....graph import Body, Node, Ref, dtype
from ....graph.elementwise_ops import BINARY, UNARY

_REDUCTIONS = frozenset({"Max", "Mean", "Min", "Sum"})


class Views:
    """One kind of view in a body.

    Attributes:
        below: what the names of nodes end with that work on x.
        axes: of each axis of a view the one of x, where there is one.
        unary: the ops that are done on x, with all their other inputs as they are.
    """

    below: ClassVar[str]
    axes: ClassVar[tuple[int | None, ...]]
    unary: ClassVar[frozenset[str]] = UNARY

    def __init__(self, body: Body):
        self.body = body

    def viewed(self, ref: Ref) -> Ref | None:
        """The x of which `ref` is a view."""
        raise NotImplementedError

    def spread(self, node: Node, ref: Ref) -> Ref | None:
        """What does to x as the other operand of `node` what `ref`, no view, does to the view."""
        raise NotImplementedError

    def put_view(self, node: Node, x: Ref) -> None:
        """Puts the view of x in the place of the node."""
        raise NotImplementedError

    def sink(self, node: Node) -> None:
        """Does the node's work on x, if it can be done there."""
        if node.op in _REDUCTIONS:
            self._reduce(node)
        elif inputs := self._inputs(node):
            self.work_below(node, inputs)

    def work_below(self, node: Node, inputs: list[Ref], proto=None) -> None:
        """Does the node's work on these tensors, and puts the view of the result in its place."""
        name = f"{node.name}/{self.below}"
        done = self.body.view.add(Node(name, node.op, inputs, node.controls, proto or node.proto))
        self.put_view(node, done.ref)

    def operands(self, node: Node) -> list[Ref] | None:
        """The operands of a binary op on x, where it can be done there."""
        found = [self.viewed(ref) or self.spread(node, ref) for ref in node.inputs]
        return found if any(map(self.viewed, node.inputs)) and all(found) else None

    def _inputs(self, node: Node) -> list[Ref] | None:
        if node.op in self.unary:
            x = self.viewed(node.inputs[0])
            return x and [x, *node.inputs[1:]]
        if node.op in BINARY:
            return self.operands(node)
        if node.op == "ConcatV2":
            *values, axis = node.inputs
            found, number = [self.viewed(ref) for ref in values], self.body.shapes.number(axis)
            at = None if number is None else self.axes[number % len(self.axes)]
            return [*found, self._like(node, "axis", at)] if all(found) and at is not None else None
        if node.op == "Pad":
            x, pads = self.viewed(node.inputs[0]), self.body.shapes.value(node.inputs[1])
            if x and pads is not None and None not in self.axes:
                own = np.zeros((self.body.shapes.rank(x), 2), object)
                own[list(self.axes)] = pads
                if all(isinstance(size, int) for size in own.flat):
                    return [x, self._like(node, "paddings", own)]
        return None

    def _reduce(self, node: Node) -> None:
        """What a reduction leaves of x has to have the order that it has in the view."""
        x, numbers = self.viewed(node.inputs[0]), self.body.shapes.numbers(node.inputs[1])
        if x is None or numbers is None:
            return
        gone = {number % len(self.axes) for number in numbers}
        kept = [axis for place, axis in enumerate(self.axes) if place not in gone]
        if node.attr["keep_dims"].b:
            over = [self.axes[place] for place in gone]
            if None not in over:
                self.work_below(node, [x, self._like(node, "axes", sorted(over))])
        elif kept == sorted(kept):
            over = [axis for axis in range(self.body.shapes.rank(x)) if axis not in kept]
            sources = [ref.node for ref in node.inputs]
            self.body.view.set_inputs(node, [x, self._like(node, "axes", over)])
            self.body.view.remove_dead(sources)

    def _like(self, node: Node, what: str, values) -> Ref:
        """Numbers of the type of the node's last input, which they replace."""
        kind = dtype(self.body.view, node.inputs[-1])
        return self.body.writer(node.name).constant(f"{self.below}/{what}", values, kind)
