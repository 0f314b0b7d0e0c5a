"""The maximum or mean of each plane."""

from ....graph import Body, Node
from ....ops.records import BLOCKED, GlobalPool
from ...context import Context
from ..found import Found

_KINDS = {"Max": "max", "Mean": "avg"}
ROOTS = tuple(_KINDS)


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """A Mean or Max over height and width."""
    src = node.inputs[0]
    channels = body.shapes.channels(src)
    if channels is None:
        return "the channels are not known"
    if not reduces_planes(node, body):
        return "it reduces other axes than height and width"
    payload = GlobalPool(
        origin=node.name,
        channels=channels,
        kind=_KINDS[node.op],
        dst_layout=BLOCKED if node.attr["keep_dims"].b else "nc",
    )
    return Found(payload, {"src": src}, node.name)


def reduces_planes(node: Node, body: Body) -> bool:
    """Whether it reduces height and width of [N, H, W, C], and nothing else."""
    axes = body.shapes.numbers(node.inputs[1])
    is_picture = body.shapes.rank(node.inputs[0]) == 4
    return is_picture and axes is not None and sorted(axis % 4 for axis in axes) == [1, 2]
