"""Brings graphs of NCHW tensors to NHWC, the one plain order that all other passes know.

An op with data_format NCHW works on the transposed tensor instead, and its result is transposed
back. The transposes then sink through what treats all elements, or all channels, alike,

    f(transpose(x)) = transpose(f(x)),    to_last(to_first(x)) = x,

until they meet the next one, which cancels them, or the end of the graph.
"""

import numpy as np
from tensorflow.core.framework import node_def_pb2, types_pb2

from ....graph import Body, Node, Ref, is_float32
from ....graph.elementwise_ops import UNARY
from ...context import Context
from .views import Views

_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_BATCH_NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
# op -> the index of the activation among its inputs
_FORMATTED = {
    **dict.fromkeys(("Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool", "BiasAdd"), 0),
    **dict.fromkeys(_BATCH_NORMS, 0),
    "Conv2DBackpropInput": 2,
}


def channels_last(body: Body, context: Context) -> None:
    """Runs what is written for NCHW tensors on NHWC ones; transposes sink and cancel."""
    if not any(_is_first(node) or _order(node, body) == _TO_LAST for node in body.view):
        return
    views = _Transposes(body)
    for node in body.view.topological():
        if node.name not in body.view or body.view.has_control_edges(node.name):
            continue
        if _is_first(node):
            _reformat(node, views)
        elif _order(node, body) == _TO_LAST:
            _cancel(node, views)
        else:
            views.sink(node)


def _is_first(node: Node) -> bool:
    return node.op in _FORMATTED and node.attr["data_format"].s == b"NCHW"


def _order(node: Node, body: Body) -> tuple[int, ...] | None:
    """The constant order of a Transpose of rank 4."""
    if node.op != "Transpose":
        return None
    order = body.shapes.numbers(node.inputs[1])
    if order is None or len(order) != 4:
        return None
    return tuple(axis % 4 for axis in order)


class _Transposes(Views):
    """NCHW tensors of NHWC ones of float32."""

    below = "nhwc"
    axes = _TO_FIRST
    unary = UNARY | {"Identity", "StopGradient"}

    def viewed(self, ref: Ref) -> Ref | None:
        node = self.body.view.producer(ref)
        first = _order(node, self.body) == _TO_FIRST and is_float32(self.body.view, ref)
        return node.inputs[0] if first else None

    def spread(self, node: Node, ref: Ref) -> Ref | None:
        """The NHWC form of a constant that broadcasts over NCHW tensors."""
        if not self.body.constants.is_constant(ref):
            return None
        shape = np.shape(self.body.constants.value(ref))
        if np.prod(shape) == 1 and len(shape) < 4:
            return ref
        if len(shape) not in (3, 4):
            return None
        order = _TO_LAST if len(shape) == 4 else (1, 2, 0)
        return self.body.writer(node.name).add("nhwc/constant", "Transpose", ref, order)

    def put_view(self, node: Node, x: Ref) -> None:
        self.body.shapes.shape(x)  # while its op can be asked for it
        self.body.writer(node.name).put("Transpose", x, _TO_FIRST)

    def to_last(self, ref: Ref) -> Ref:
        """The NHWC form of an activation; one transpose serves all readers."""
        last = self.viewed(ref)
        if last is not None:
            return last
        for reader, index in self.body.view.consumers(ref):
            if index == 0 and _order(reader, self.body) == _TO_LAST:
                return reader.ref
        return self.body.writer(ref.node).add("nhwc", "Transpose", ref, _TO_LAST)


def _reformat(node: Node, views: _Transposes) -> None:
    place, body = _FORMATTED[node.op], views.body
    if node.attr["T"].type != types_pb2.DT_FLOAT or body.shapes.rank(node.inputs[place]) != 4:
        return
    if any(body.view.use_count(Ref(node.name, port)) for port in range(1, 6)):
        return  # a batch normalisation whose statistics are read
    proto = node_def_pb2.NodeDef()
    proto.CopyFrom(node.proto)
    proto.attr["data_format"].s = b"NHWC"
    for key in ("strides", "dilations", "ksize"):
        if key in proto.attr:
            _permute(proto.attr[key].list.i, 1)
    if "explicit_paddings" in proto.attr:
        _permute(proto.attr["explicit_paddings"].list.i, 2)
    inputs = list(node.inputs)
    inputs[place] = views.to_last(inputs[place])
    if node.op == "Conv2DBackpropInput":
        inputs[0] = body.writer(node.name).add("nhwc/sizes", "GatherV2", inputs[0], _TO_LAST, 0)
    views.work_below(node, inputs, proto)


def _permute(values, width: int) -> None:
    """Numbers of N, C, H, W, so many each, to those of N, H, W, C; in place."""
    if values:
        groups = np.reshape(list(values), [4, width])
        values[:] = [int(value) for value in groups[list(_TO_LAST)].reshape(-1)]


def _cancel(node: Node, views: _Transposes) -> None:
    last, view = views.viewed(node.inputs[0]), views.body.view
    if last is not None:
        sources = [ref.node for ref in node.inputs]
        view.replace_uses(node.ref, last)
        view.remove_dead([node.name, *sources])
