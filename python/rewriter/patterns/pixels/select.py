"""A choice between pictures by a comparison: where(p > q, a, b).

m = p > q, as 1 or 0. Then, exactly, where(m, a, b) is b where m is 0, else -0, plus a where m is
not 0, else -0; a or b may be a number.
"""

from dataclasses import dataclass, replace

import numpy as np

from ....graph import Body, GraphView, Node, Ref
from ....ops.records import Eltwise, binary, eltwise, sum_of
from ...context import Context
from ..found import Found
from .elementwise.comparison import compared

ROOTS = ("SelectV2", "Select")
_INVERTED = eltwise("linear", alpha=-1.0, beta=1.0)


@dataclass(frozen=True, kw_only=True)
class _FoundSelect(Found):
    """The choice, and what has to be made before it.

    Attributes:
        mask: makes 1 where the first is chosen, else 0; of "src" and its operand.
        numbers: of the first and the second, where they are no tensors.
    """

    mask: Eltwise
    numbers: tuple[float | None, float | None]

    def node(self, view: GraphView) -> Node:
        of_mask = {r: ref for r, ref in self.inputs.items() if r not in ("a", "b")}
        mask = self._add("mask", self.mask.steps, of_mask, view)
        first, second = self.numbers
        if first is None and second is None:
            rest = self._add("rest", (_INVERTED,), {"src": mask}, view)
            chosen = self._masked("chosen", "drop", self.inputs["a"], rest, view)
            steps = (binary("drop", "tensor", "mask"), sum_of("sum"))
            return self._root(steps, {"src": self.inputs["b"], "mask": mask, "sum": chosen})
        role, number = ("a", second) if first is None else ("b", first)
        if role == "b":
            mask = self._add("rest", (_INVERTED,), {"src": mask}, view)
        inputs = {"src": self.inputs[role], "mask": mask}
        steps = (binary("keep", "tensor", "mask"),)
        if number:
            fill = eltwise("linear", alpha=-number, beta=number)
            steps += (sum_of("sum"),)
            inputs["sum"] = self._add("fill", (fill,), {"src": mask}, view)
        return self._root(steps, inputs)

    def _root(self, steps, inputs) -> Node:
        payload = replace(self.payload, steps=steps)
        return Node(self.root, payload.op, inputs, payload=payload)

    def _masked(self, what: str, how: str, src: Ref, mask: Ref, view: GraphView) -> Ref:
        return self._add(what, (binary(how, "tensor", "mask"),), {"src": src, "mask": mask}, view)

    def _add(self, what: str, steps, inputs: dict[str, Ref], view: GraphView) -> Ref:
        payload = replace(self.payload, steps=steps)
        return view.add(Node(f"{self.root}/{what}", payload.op, inputs, payload=payload)).ref


def find(node: Node, body: Body, context: Context) -> Found | None:
    """The choice that `node` makes, if it is one between pictures, or a picture and a number."""
    condition, *values = node.inputs
    compare, shapes = body.view.producer(condition), body.shapes
    nodes = frozenset({node.name, compare.name})
    channels, rank = shapes.channels(node.ref), shapes.rank(node.ref)
    if node.controls or channels is None or rank != 4:
        return None
    if not body.view.is_private({compare.name}, within=nodes):
        return None
    found = compared(compare, body, node.name)
    numbers = [body.constants.scalar(ref) for ref in values]
    tensors = [ref for ref, number in zip(values, numbers, strict=True) if number is None]
    if not found or not tensors or not np.isfinite([n for n in numbers if n is not None]).all():
        return None
    src, step, operands = found[0]
    if any(not shapes.equal(ref, node.ref) for ref in (src, *tensors)):
        return None
    payload = Eltwise(origin=node.name, channels=channels, steps=(step,))
    given = dict(zip("ab", values, strict=True))
    inputs = {"src": src, **operands}
    inputs |= {role: ref for role, ref in given.items() if ref in tensors}
    return _FoundSelect(payload, inputs, node.name, nodes, mask=payload, numbers=tuple(numbers))
