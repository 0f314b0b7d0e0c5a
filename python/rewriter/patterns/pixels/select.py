"""A choice between pictures by a comparison: where(p > q, a, b).

m = p > q, as 1 or 0. Then, exactly, where(m, a, b) is b where m is 0, else -0, plus a where m is
not 0, else -0; a or b may be a number.
"""

import math
from dataclasses import replace

from ....graph import Body, Node, Ref, Writer
from ....ops.records import Eltwise, Step, binary, eltwise, sum_of
from ...context import Context
from ...rules import Replacement
from .elementwise.functions import readings

ROOTS = ("SelectV2", "Select")
_INVERTED = eltwise("linear", alpha=-1.0, beta=1.0)


def find(node: Node, body: Body, context: Context) -> Replacement | None:
    """The choice that `node` makes, if it is one between pictures, or a picture and a number."""
    condition, *values = node.inputs
    compare, shapes = body.view.producer(condition), body.shapes
    nodes = frozenset({node.name, compare.name})
    channels, reading = shapes.channels(node.ref), next(readings(compare, body, node.name), None)
    numbers = list(map(body.constants.scalar, values))
    tensors = [ref for ref, number in zip(values, numbers, strict=True) if number is None]
    fill = next((number for number in numbers if number is not None), None)
    if node.controls or channels is None or reading is None or not tensors:
        return None
    src, steps, operands = reading
    same = all(shapes.equal(ref, node.ref) for ref in (src, *tensors))
    if (
        not same
        or not math.isfinite(fill or 0.0)
        or not body.view.is_private({compare.name}, nodes)
    ):
        return None
    mask = Eltwise(origin=node.name, channels=channels, steps=steps)
    keeps = binary("drop" if fill is None else "keep", "tensor", "mask")

    def prepare_mask(write: Writer) -> dict[str, Ref]:
        def add(what: str, step: Step, **inputs: Ref) -> Ref:
            return write.plan(what, replace(mask, steps=(step,)), inputs)

        chosen = write.plan("mask", mask, {"src": src, **operands})
        rest = add("rest", _INVERTED, src=chosen) if numbers[1] is None else None
        if fill is None:
            kept = add("chosen", keeps, src=values[0], mask=rest)
            return {"src": values[1], "mask": chosen, "sum": kept}
        refs = {"src": tensors[0], "mask": rest or chosen}
        if fill:
            refs["sum"] = add("fill", eltwise("linear", alpha=-fill, beta=fill), src=refs["mask"])
        return refs

    read = {"src": src, **operands} | dict(zip("ab", tensors, strict=False))
    payload = replace(mask, steps=(keeps, sum_of("sum")) if fill != 0 else (keeps,))
    return Replacement(payload, read, node.name, nodes, prepare=prepare_mask)
