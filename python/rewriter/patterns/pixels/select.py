"""A choice between pictures by a comparison: where(p > q, a, b).

m = p > q, as 1 or 0. Then, exactly, where(m, a, b) is b where m is 0, else -0, plus a where m is
not 0, else -0; a or b may be a number.
"""

from dataclasses import replace

import numpy as np

from ....graph import Body, Node, Ref, Writer
from ....ops.records import Eltwise, Step, binary, eltwise, sum_of
from ...context import Context
from ...rules import Found
from .elementwise.tensor_binary import readings

ROOTS = ("SelectV2", "Select")
_INVERTED = eltwise("linear", alpha=-1.0, beta=1.0)


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
    found = list(readings(compare, body, node.name))
    numbers = [body.constants.scalar(ref) for ref in values]
    tensors = [ref for ref, number in zip(values, numbers, strict=True) if number is None]
    if not found or not tensors or not np.isfinite([n for n in numbers if n is not None]).all():
        return None
    src, (step,), operands = found[0]
    if any(not shapes.equal(ref, node.ref) for ref in (src, *tensors)):
        return None
    mask = Eltwise(origin=node.name, channels=channels, steps=(step,))
    inputs = {"src": src, **operands}
    fill = next((number for number in numbers if number is not None), None)
    steps = (binary("drop" if fill is None else "keep", "tensor", "mask"),)
    steps += (sum_of("sum"),) if fill != 0 else ()

    def prepared(write: Writer) -> dict[str, Ref]:
        def add(what: str, step: Step, inputs: dict[str, Ref]) -> Ref:
            return write.plan(what, replace(mask, steps=(step,)), inputs)

        (first, second), chosen = values, write.plan("mask", mask, inputs)
        rest = add("rest", _INVERTED, {"src": chosen}) if numbers[1] is None else None
        if fill is None:
            kept = add("chosen", binary("drop", "tensor", "mask"), {"src": first, "mask": rest})
            return {"src": second, "mask": chosen, "sum": kept}
        made = {"src": tensors[0], "mask": rest or chosen}
        if fill:
            filled = eltwise("linear", alpha=-fill, beta=fill)
            made["sum"] = add("fill", filled, {"src": made["mask"]})
        return made

    read = inputs | {role: ref for role, ref in zip("ab", values, strict=True) if ref in tensors}
    return Found(replace(mask, steps=steps), read, node.name, nodes, prepare=prepared)
