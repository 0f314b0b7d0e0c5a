"""Folds the product of a tensor and its scales into the squeeze-and-excitation that makes them.

That op has just read all of the tensor: multiplying it there saves a pass over memory.
"""

from dataclasses import replace

from ....graph import Body, Node
from ....ops.records import BLOCKED, Eltwise, SqueezeExcite
from ...context import Context


def fold_source_scales(body: Body, context: Context) -> None:
    """Folds each product with scales into the squeeze-and-excitation that makes them."""
    for node in body.view:
        if _is_product(node) and not body.view.has_control_edges(node.name):
            _fold(node, body)


def _fold(node: Node, body: Body) -> None:
    view, (src, scales) = body.view, node.inputs
    maker = view.producer(scales)
    if not isinstance(maker.payload, SqueezeExcite) or maker.src != src:
        return
    if view.only_reader(scales)[0] is None:
        return
    payload = replace(maker.payload, dst_layout=BLOCKED, scale_src=True)
    view.replace(Node(node.name, maker.op, maker.by_role, payload=payload))
    view.remove_dead([maker.name])


def _is_product(node: Node) -> bool:
    payload = node.payload
    if not isinstance(payload, Eltwise) or payload.layout != BLOCKED or len(payload.steps) != 1:
        return False
    (step,) = payload.steps
    return (step.kind, step.name, step.shape) == ("binary", "mul", "sample_channel")
