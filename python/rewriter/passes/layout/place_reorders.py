"""Inserts the layout changes that are left: one a tensor and direction, where they are read."""

from ....graph import Body, GraphView, Node, Ref
from ...context import Context
from ...primitives import BLOCKED, NHWC, Reorder


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
        payload = Reorder(origin=ref.node, channels=channels, reads=have, writes=wanted)
        node = Node(f"{ref.node}/{wanted}", payload.op, {"src": ref}, payload=payload)
        placed[ref, wanted] = view.add(node).ref
    return placed[ref, wanted]
