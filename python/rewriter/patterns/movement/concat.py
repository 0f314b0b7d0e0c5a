"""ConcatV2 along the channels: NodeDef -> planned Concat, or the reason why not."""

from ....graph import Body
from ...primitives import Concat


def plan(node, body: Body) -> Concat | str:
    values, axis = node.inputs[:-1], body.shapes.value(node.inputs[-1])
    if any(body.shapes.rank(ref) != 4 for ref in values):
        return "the rank is not known to be 4"
    if axis is None or int(axis) % 4 != 3:
        return "it does not join channels"
    channels = tuple(body.shapes.channels(ref) for ref in values)
    if None in channels:
        return "the number of channels is not known"
    return Concat(origin=node.name, channels=sum(channels), parts=channels)
