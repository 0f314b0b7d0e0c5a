"""Writes a split of channels as one slice a part, each of which may then be blocked or not."""

from ....graph import FLOAT32, INT32, Body, Node, Ref, constant_node, is_float32, make_node
from ....ops.records import Convolution
from ...context import Context
from ...followers import Followers
from ...patterns.movement import routing

_OPS = ("Split", "SplitV")


def cut_channels(body: Body, context: Context) -> None:
    """Makes slices of splits of channels, in networks with convolutions of ours."""
    view = body.view
    if not any(isinstance(node.payload, Convolution) for node in view):
        return
    cut = [node for node in view if node.op in _OPS and _cut(node, body)]
    if cut:
        view.remove_dead([node.name for node in cut])
        context.followers = Followers(body)  # those known so far read what has gone


def _cut(node: Node, body: Body) -> bool:
    view, shapes = body.view, body.shapes
    (src,) = routing.values(node)[:1]
    sizes = [shapes.channels(Ref(node.name, port)) for port in range(node.attr["num_split"].i)]
    channels = shapes.rank(src) == 4 and shapes.channels(src)
    if not channels or None in sizes or sum(sizes) != channels or channels in sizes:
        return False
    if not is_float32(view, src) or view.has_control_edges(node.name):
        return False
    if any(view.is_fetched(Ref(node.name, port)) for port in range(len(sizes))):
        return False
    first = 0
    for port, size in enumerate(sizes):
        name = f"{node.name}/part_{port}"
        begin = view.add(constant_node(f"{name}/begin", [0, 0, 0, first]))
        count = view.add(constant_node(f"{name}/size", [-1, -1, -1, size]))
        inputs = [src, begin.ref, count.ref]
        part = view.add(make_node(name, "Slice", inputs, T=FLOAT32, Index=INT32))
        shapes.put(part.ref, (*shapes.shape(src)[:-1], size))
        view.replace_uses(Ref(node.name, port), part.ref)
        first += size
    return True
