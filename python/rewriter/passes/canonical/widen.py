"""Writes what computes in bfloat16 as float32, and remembers which sums of products did.

Keras's `mixed_bfloat16` casts weights of float32 where they are used, and tensors between layers.
All other passes know float32 graphs, so this one takes the casts away; `lower_precision` then lets
those convolutions and products read and write bfloat16 again, with sums of float32. Values that
TensorFlow would round after each op keep the digits of float32 between two of ours.
"""

import functools

import numpy as np
from tensorflow.core.framework import types_pb2

from ....graph import (
    FLOAT32,
    Body,
    GraphView,
    Node,
    Ref,
    Writer,
    attribute_types,
    dtype,
    dtype_name,
    make_node,
    outputs,
)
from ....graph.families import BINARY, CONVOLUTIONS, PRODUCTS, STEPS, UNARY, VOLUMES
from ....tensorflow_private import tensor_util
from ...context import Context

_BF16 = types_pb2.DT_BFLOAT16
# Sums of products: only where one is of bfloat16 there is something to gain.
_SUMS = PRODUCTS | CONVOLUTIONS - VOLUMES
# What computes the same of float32, but for rounding.
_WIDE = _SUMS.union(
    (UNARY | BINARY) - STEPS,
    (
        "AddN AvgPool BatchToSpaceND BiasAdd Cast ConcatV2 Const DepthToSpace ExpandDims "
        "FusedBatchNormV3 Gather GatherV2 Identity IdentityN LogSoftmax Max MaxPool Mean Min "
        "MirrorPad Pack Pad PadV2 Reshape ResizeBilinear ResizeNearestNeighbor Select SelectV2 "
        "Slice Softmax SpaceToBatchND SpaceToDepth Split SplitV Squeeze StopGradient StridedSlice "
        "Sum Tile Transpose Unpack"
    ).split(),
)


def widen(body: Body, context: Context) -> dict:
    """Turns arithmetic in bfloat16, as of `mixed_bfloat16`, into float32, without casts."""
    view = body.view
    nodes = [node for node in view.topological() if node.op in _WIDE and _has_bfloat16(node)]
    sums = [node.name for node in nodes if node.op in _SUMS]
    if not sums:
        return {}
    types = {node.name: [kind for _, kind in outputs(node)] for node in nodes}
    for node in nodes:
        view.replace(_widen_node(node))
    casts: dict[Ref, Ref] = {}
    for node in view.topological():  # casts that are added here are not among them
        inputs = [_read(view, node, ref, types, casts) for ref in node.inputs]
        if inputs != node.inputs:
            view.set_inputs(node, inputs)
    view.fetches = [_cast_to_bfloat16(view, ref, types, casts) for ref in view.fetches]
    for cast in (view.node(node.name) for node in nodes if node.op == "Cast"):
        is_idle = cast.attr["SrcT"].type == cast.attr["DstT"].type == FLOAT32
        if is_idle and not (view.has_control_edges(cast.name) or view.is_fetched(cast.ref)):
            view.bypass(cast, cast.inputs[0])
    return {"bfloat16": frozenset(map(body.label, sums))}


def _has_bfloat16(node: Node) -> bool:
    if node.op == "Cast":  # One to an integer must see the rounded number.
        kinds = {node.attr["SrcT"].type, node.attr["DstT"].type}
        return _BF16 in kinds and kinds <= {_BF16, FLOAT32}
    attributes = [node.attr[name] for name in _type_attributes(node.op)]
    return any(value.type == _BF16 or _BF16 in value.list.type for value in attributes)


@functools.cache
def _type_attributes(op: str) -> tuple[str, ...]:
    kinds = attribute_types(op).items()
    return tuple(name for name, kind in kinds if kind in ("type", "list(type)"))


def _widen_node(node: Node) -> Node:
    """The node of float32 where it was of bfloat16."""
    wide = Node.from_proto(node.to_proto())
    for value in wide.proto.attr.values():
        if value.type == _BF16:
            value.type = FLOAT32
        for place, kind in enumerate(value.list.type):
            if kind == _BF16:
                value.list.type[place] = FLOAT32
    if node.op == "Const":
        values = tensor_util.MakeNdarray(node.attr["value"].tensor).astype(np.float32)
        return make_node(node.name, "Const", (), node.controls, dtype=FLOAT32, value=values)
    return wide


def _read(view: GraphView, reader: Node, ref: Ref, types, casts) -> Ref:
    """What the node reads in the place of `ref`: float32 if it is widened, else the old type."""
    was = types.get(ref.node)
    if reader.name in types:
        is_low_precision = was is None and dtype(view, ref) == _BF16
        return _cast(view, ref, FLOAT32, casts) if is_low_precision else ref
    return _cast_to_bfloat16(view, ref, types, casts)


def _cast_to_bfloat16(view: GraphView, ref: Ref, types, casts) -> Ref:
    """The tensor as bfloat16, if it was that."""
    was = types.get(ref.node)
    return _cast(view, ref, _BF16, casts) if was and was[ref.port] == _BF16 else ref


def _cast(view: GraphView, ref: Ref, to: int, casts: dict[Ref, Ref]) -> Ref:
    if ref not in casts:
        source = {FLOAT32: _BF16, _BF16: FLOAT32}[to]
        types = {"SrcT": source, "DstT": to}
        casts[ref] = Writer(view, ref.node).add(dtype_name(to), "Cast", ref, **types)
    return casts[ref]
