"""Asks a blocked tensor itself for its shape, where a plain copy was made just for that.

    shape(x) = gather(concat(shape(blocked), [C]), [0, 2, 3, 5])

since a blocked tensor is [N, ceil(C / 16), H, W, 16].
"""

from tensorflow.core.framework import node_def_pb2, types_pb2

from ....graph import Body, GraphView, Node
from ...context import Context
from ...primitives import NHWC, Reorder
from ..canonical.constant_shapes import constant_node


def read_shapes_of_blocked(body: Body, context: Context) -> None:
    """Lets Shape ops read a blocked tensor itself, where a plain copy was made just for them."""
    for reorder in body.view:
        payload = reorder.payload
        if not isinstance(payload, Reorder) or payload.writes != NHWC:
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
    concat = node_def_pb2.NodeDef(name=f"{prefix}/concat", op="ConcatV2")
    concat.attr["N"].i = 2
    concat.attr["T"].type = dtype
    concat.attr["Tidx"].type = types_pb2.DT_INT32
    joined = view.add(
        Node(concat.name, concat.op, [inner.ref, channels.ref, axis.ref], proto=concat)
    )
    gather = node_def_pb2.NodeDef(name=node.name, op="GatherV2")
    gather.attr["Tparams"].type = dtype
    gather.attr["Tindices"].type = types_pb2.DT_INT32
    gather.attr["Taxis"].type = types_pb2.DT_INT32
    view.replace(Node(node.name, gather.op, [joined.ref, order.ref, axis.ref], proto=gather))
