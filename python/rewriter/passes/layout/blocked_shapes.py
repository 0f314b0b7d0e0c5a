"""Asks a blocked tensor itself for its shape, where a plain copy was made just for that.

    shape(x) = gather(concat(shape(blocked), [C]), [0, 2, 3, 5])

since a blocked tensor is [N, ceil(C / 16), H, W, 16].
"""

from ....graph import INT32, Body, Node
from ....ops.records import NHWC, Reorder
from ...context import Context


def read_shapes_of_blocked(body: Body, context: Context) -> None:
    """Lets Shape ops read a blocked tensor itself, where a plain copy was made just for them."""
    for reorder in body.view:
        payload = reorder.payload
        if not isinstance(payload, Reorder) or payload.dst_layout != NHWC:
            continue
        for node, _ in body.view.consumers(reorder.ref):
            if node.op == "Shape":
                _redirect(node, reorder, body)
        body.view.remove_dead([reorder.name])
    body.view.prune()


def _redirect(node: Node, reorder: Node, body: Body) -> None:
    write, dtype = body.writer(node.name), node.attr["out_type"].type or INT32
    blocked = write.add("blocked", "Shape", *reorder.inputs, out_type=dtype)
    channels = write.constant("channels", [reorder.payload.channels], dtype)
    write.put("GatherV2", write.add("sizes", "ConcatV2", [blocked, channels], 0), [0, 2, 3, 5], 0)
