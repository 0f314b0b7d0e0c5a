"""The maximum or mean of each plane."""

from ....graph import Body, Node
from ...context import Context
from ...primitives import BLOCKED, GlobalPool
from ..found import Found

_KINDS = {"Max": "max", "Mean": "avg"}
ROOTS = tuple(_KINDS)


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """A Mean or Max over height and width."""
    src, axes = node.inputs[0], body.shapes.numbers(node.inputs[1])
    channels = body.shapes.channels(src)
    if axes is None or channels is None:
        return "the axes or the channels are not known"
    if sorted(axis % 4 for axis in axes) != [1, 2]:
        return "it reduces other axes than height and width"
    payload = GlobalPool(
        origin=node.name,
        channels=channels,
        kind=_KINDS[node.op],
        writes=BLOCKED if node.attr["keep_dims"].b else "nc",
    )
    return Found(payload, {"src": src}, node.name)
