"""Inserts the layout changes that are left: one a tensor and direction, where they are read.

A tensor of one pixel and whole blocks lies the same in both layouts, so it is only reshaped."""

from ....graph import Body, GraphView, Node, Ref
from ....ops.records import BLOCK, BLOCKED, NHWC, Reorder, Reshape
from ...context import Context


def place_reorders(body: Body, context: Context) -> None:
    """Adds a layout change only where a blocked tensor meets a plain one."""
    placed: dict[tuple[Ref, str], Ref] = {}
    view = body.view
    for node in view.topological():
        inputs = [
            _in_layout(body, ref, _wanted(node, index), placed)
            for index, ref in enumerate(node.inputs)
        ]
        if inputs != node.inputs:
            view.set_inputs(node, inputs)
    view.fetches = [_in_layout(body, ref, NHWC, placed) for ref in view.fetches]


def _wanted(node: Node, index: int) -> str:
    return NHWC if node.payload is None else node.payload.layout_of(node.roles[index])


def _layout(view: GraphView, ref: Ref) -> str:
    payload = view.producer(ref).payload
    blocked = payload is not None and payload.dst_layout == BLOCKED
    return BLOCKED if blocked else NHWC


def _in_layout(body: Body, ref: Ref, wanted: str, placed) -> Ref:
    view = body.view
    have = _layout(view, ref)
    if have == wanted:
        return ref
    if (ref, wanted) not in placed:
        producer = view.producer(ref)
        channels = producer.payload.channels if producer.payload else body.shapes.channels(ref)
        write, inputs, kind = body.writer(ref.node), {"src": ref}, Reorder
        if _is_one_in_memory(body, ref, channels):
            blocks = [channels // BLOCK, 1, 1, BLOCK]
            shape = [-1, *blocks] if wanted == BLOCKED else [-1, 1, 1, channels]
            inputs["shape"], kind = write.constant(f"{wanted}/shape", shape), Reshape
        payload = kind(origin=ref.node, channels=channels, src_layout=have, dst_layout=wanted)
        placed[ref, wanted] = write.plan(wanted, payload, inputs, body.shapes.shape(ref))
    return placed[ref, wanted]


def _is_one_in_memory(body: Body, ref: Ref, channels: int) -> bool:
    """Whether both layouts are the same: whole blocks of one pixel an image."""
    shape = body.shapes.shape(ref)
    return shape is not None and shape[1:3] == (1, 1) and channels % BLOCK == 0
