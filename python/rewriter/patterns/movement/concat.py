"""Concatenation of channels."""

from ....graph import Body, Node
from ....ops.records import Concat
from ...context import Context
from ...rules import Replacement

ROOTS = ("ConcatV2",)


def find(node: Node, body: Body, context: Context) -> Replacement | str | None:
    """The concatenation of `node`."""
    values, axis = node.inputs[:-1], body.shapes.number(node.inputs[-1])
    if any(body.shapes.rank(ref) != 4 for ref in values):
        return "the rank is not known to be 4"
    if axis is None or axis % 4 != 3:
        return "it does not join channels"
    values = [ref for ref in values if body.shapes.shape(ref)[3] != 0]  # nothing to join
    channels = tuple(body.shapes.channels(ref) for ref in values)
    if None in channels or not channels:
        return "the number of channels is not known, or zero"
    payload = Concat(origin=node.name, channels=sum(channels), parts=channels)
    return Replacement(payload, payload.roles(values), node.name)
