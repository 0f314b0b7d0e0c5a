"""Writes a split of pictures as one slice a part, each of which may then be blocked or not."""

from ....graph import Body, Node, Ref, is_float32, moved
from ....ops.records import Convolution
from ...context import Context
from ...followers import Followers

_OPS = ("Split", "SplitV")


def cut_channels(body: Body, context: Context) -> dict:
    """Writes splits of channels as slices, in networks with convolutions of ours."""
    view = body.view
    if not any(isinstance(node.payload, Convolution) for node in view):
        return {}
    cut = [node for node in view if node.op in _OPS and _cut(node, body)]
    view.remove_dead([node.name for node in cut])
    # Those known so far read what has gone.
    return {"followers": Followers(body)} if cut else {}


def _cut(node: Node, body: Body) -> bool:
    view, shapes = body.view, body.shapes
    (src,) = moved(node)[:1]
    whole, count = shapes.shape(src), node.attr["num_split"].i
    parts = [shapes.shape(Ref(node.name, port)) for port in range(count)]
    if whole is None or len(whole) != 4 or shapes.channels(src) is None or None in parts:
        return False
    axes = [axis for axis in range(1, 4) if any(part[axis] != whole[axis] for part in parts)]
    sizes = [part[axes[0]] for part in parts] if len(axes) == 1 else [None]
    if not all(isinstance(size, int) for size in sizes) or sum(sizes) != whole[axes[0]]:
        return False
    (axis,) = axes
    if not is_float32(view, src) or view.has_control_edges(node.name):
        return False
    if any(view.is_fetched(Ref(node.name, port)) for port in range(len(sizes))):
        return False
    for port, size in enumerate(sizes):
        if not view.use_count(Ref(node.name, port)):
            continue
        part = body.writer(node.name).cut(f"part_{port}", src, axis, sum(sizes[:port]), size)
        view.replace_uses(Ref(node.name, port), part)
    return True
