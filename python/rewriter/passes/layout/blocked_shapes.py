"""Asks a blocked tensor itself for its shape, where a plain copy was made just for that.

    shape(x) = gather(concat(shape(blocked), [C]), [0, 2, 3, 5])

since a blocked tensor is [N, ceil(C / 16), H, W, 16].
"""

from tensorflow.core.framework import types_pb2

from ....graph import INT32, Body, GraphView, Node, constant_node, gathered, make_node
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
                _redirect(body.view, node, reorder)
        body.view.remove_dead([reorder.name])
    body.view.prune()


def _redirect(view: GraphView, node: Node, reorder: Node) -> None:
    dtype = node.attr["out_type"].type or types_pb2.DT_INT32
    prefix = f"{node.name}/blocked"
    inner = Node(prefix, "Shape", reorder.inputs, node.controls, node.proto)
    inner = view.add(inner)
    channels = view.add(constant_node(f"{prefix}/channels", [reorder.payload.channels], dtype))
    axis = view.add(constant_node(f"{prefix}/axis", 0))
    order = view.add(constant_node(f"{prefix}/order", [0, 2, 3, 5]))
    sizes = [inner.ref, channels.ref, axis.ref]
    joined = view.add(make_node(f"{prefix}/concat", "ConcatV2", sizes, T=dtype, Tidx=INT32))
    view.replace(gathered(node.name, joined.ref, order.ref, axis.ref, dtype))
