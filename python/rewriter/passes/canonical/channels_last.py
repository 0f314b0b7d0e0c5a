"""Brings graphs of NCHW tensors to NHWC, the one plain order that all other passes know.

An op with data_format NCHW works on the transposed tensor instead, and its result is transposed
back. The transposes then sink through what treats all elements, or all channels, alike,

    f(transpose(x)) = transpose(f(x)),    to_last(to_first(x)) = x,

until they meet the next one, which cancels them, or the end of the graph.
"""

import numpy as np
from tensorflow.core.framework import node_def_pb2, types_pb2

from ....graph import (
    FLOAT32,
    INT32,
    Body,
    Node,
    Ref,
    constant_node,
    gathered,
    is_float32,
    make_node,
)
from ....graph.elementwise_ops import BINARY, UNARY
from ...context import Context

_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
_BATCH_NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})
# op -> the index of the activation among its inputs
_FORMATTED = {
    **dict.fromkeys(("Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool", "BiasAdd"), 0),
    **dict.fromkeys(_BATCH_NORMS, 0),
    "Conv2DBackpropInput": 2,
}
_UNARY = UNARY | {"Identity", "StopGradient"}
_REDUCTIONS = frozenset({"Mean", "Max", "Sum", "Min"})
_KEYS = {"axis": "Tidx", "axes": "Tidx", "paddings": "Tpaddings"}


def channels_last(body: Body, context: Context) -> None:
    """Runs what is written for NCHW tensors on NHWC ones; transposes sink and cancel."""
    if not any(_is_first(node) or _order(node, body) == _TO_LAST for node in body.view):
        return
    for node in body.view.topological():
        if node.name not in body.view or body.view.has_control_edges(node.name):
            continue
        if _is_first(node):
            _reformat(node, body)
        elif _order(node, body) == _TO_LAST:
            _cancel(node, body)
        elif node.op in _REDUCTIONS:
            _reduce(node, body)
        elif inputs := _on_last(node, body):
            _put(node, node.op, inputs, node.proto, body)


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


def _last(ref: Ref, body: Body) -> Ref | None:
    """The NHWC tensor of float32 of which `ref` is the transpose."""
    node = body.view.producer(ref)
    first = _order(node, body) == _TO_FIRST and is_float32(body.view, ref)
    return node.inputs[0] if first else None


def _to_last(ref: Ref, body: Body) -> Ref:
    """The NHWC form of an activation; one transpose serves all readers."""
    last = _last(ref, body)
    if last is not None:
        return last
    for reader, index in body.view.consumers(ref):
        if index == 0 and _order(reader, body) == _TO_LAST:
            return reader.ref
    return body.view.add(_transpose(f"{ref.node}/nhwc", ref, _TO_LAST, body)).ref


def _transpose(name: str, ref: Ref, order, body: Body) -> Node:
    perm = body.view.add(constant_node(f"{name}/order", order))
    return make_node(name, "Transpose", [ref, perm.ref], T=FLOAT32, Tperm=INT32)


def _put(node: Node, op: str, inputs: list[Ref], proto, body: Body) -> None:
    """Does the node's work on NHWC tensors; transposes the result back under the node's name."""
    sources = [ref.node for ref in node.inputs]
    done = body.view.add(Node(f"{node.name}/nhwc", op, inputs, node.controls, proto))
    body.shapes.shape(done.ref)  # while its op can be asked for it
    body.view.replace(_transpose(node.name, done.ref, _TO_FIRST, body))
    body.view.remove_dead(sources)


def _reformat(node: Node, body: Body) -> None:
    place = _FORMATTED[node.op]
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
    inputs[place] = _to_last(inputs[place], body)
    if node.op == "Conv2DBackpropInput":
        inputs[0] = _gathered(f"{node.name}/nhwc/sizes", inputs[0], body)
    _put(node, node.op, inputs, proto, body)


def _permute(values, width: int) -> None:
    """Numbers of N, C, H, W, so many each, to those of N, H, W, C; in place."""
    if values:
        groups = np.reshape(list(values), [4, width])
        values[:] = [int(value) for value in groups[list(_TO_LAST)].reshape(-1)]


def _gathered(name: str, sizes: Ref, body: Body) -> Ref:
    """[N, C, H, W] -> [N, H, W, C]"""
    order = body.view.add(constant_node(f"{name}/order", _TO_LAST))
    axis = body.view.add(constant_node(f"{name}/axis", 0))
    return body.view.add(gathered(name, sizes, order.ref, axis.ref, INT32)).ref


def _cancel(node: Node, body: Body) -> None:
    last = _last(node.inputs[0], body)
    if last is not None:
        sources = [ref.node for ref in node.inputs]
        body.view.replace_uses(node.ref, last)
        body.view.remove_dead([node.name, *sources])


def _reduce(node: Node, body: Body) -> None:
    """A mean over height and width has the same values either way."""
    last, axes = _last(node.inputs[0], body), body.shapes.numbers(node.inputs[1])
    if last is None or axes is None:
        return
    if sorted(axis % 4 for axis in axes) != [2, 3]:
        return
    over = _constant(node, "axes", [1, 2], body)
    if node.attr["keep_dims"].b:
        _put(node, node.op, [last, over], node.proto, body)
    else:
        sources = [ref.node for ref in node.inputs]
        body.view.set_inputs(node, [last, over])
        body.view.remove_dead(sources)


def _on_last(node: Node, body: Body) -> list[Ref] | None:
    """The inputs with which the node makes the NHWC form of its result, where it can."""
    if node.op in _UNARY and len(node.inputs) == 1:
        last = _last(node.inputs[0], body)
        return last and [last]
    if node.op in BINARY:
        lasts = [_last(ref, body) or _constant_last(node, ref, body) for ref in node.inputs]
        return lasts if any(_last(ref, body) for ref in node.inputs) and all(lasts) else None
    if node.op == "ConcatV2":
        *values, axis = node.inputs
        lasts, number = [_last(ref, body) for ref in values], body.shapes.number(axis)
        if all(lasts) and number is not None:
            moved = _TO_LAST.index(number % 4)
            return [*lasts, _constant(node, "axis", moved, body)]
    if node.op == "Pad":
        last, pads = _last(node.inputs[0], body), body.shapes.value(node.inputs[1])
        if last and pads is not None and all(isinstance(size, int) for size in pads.flat):
            return [last, _constant(node, "paddings", pads[list(_TO_LAST)], body)]
    return None


def _constant_last(node: Node, ref: Ref, body: Body) -> Ref | None:
    """The NHWC form of a constant that broadcasts over NCHW tensors."""
    if not body.constants.is_constant(ref):
        return None
    shape = np.shape(body.constants.value(ref))
    if np.prod(shape) == 1 and len(shape) < 4:
        return ref
    if len(shape) not in (3, 4):
        return None
    order = _TO_LAST if len(shape) == 4 else (1, 2, 0)
    return body.view.add(_transpose(f"{node.name}/nhwc/constant", ref, order, body)).ref


def _constant(node: Node, what: str, values, body: Body) -> Ref:
    array = np.asarray(values).astype(np.int64)
    dtype = node.attr[_KEYS[what]].type
    return body.view.add(constant_node(f"{node.name}/nhwc/{what}", array, dtype)).ref
