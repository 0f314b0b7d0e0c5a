"""Joins neighbouring 1-D layers: between them, planes of height 1 stay planes.

TensorFlow runs a 1-D convolution or pooling as a 2-D one of height 1: ExpandDims, Conv2D,
Squeeze. What stands between two of them (bias, normalisation, activation, addition,
concatenation, padding, the SpaceToBatchND and BatchToSpaceND of a dilation) works on [N, W, C] and
would end the blocked region. The same work on [N, 1, W, C] gives the same numbers, so it is done
there,

    f(squeeze(x)) = squeeze(f(x)),    expand(squeeze(x)) = x,

and the squeezes sink to the end of the chain.
"""

import numpy as np

from ....graph import INT32, Body, Node, Ref, constant_node, make_node
from ....graph.elementwise_ops import BINARY, UNARY
from ...context import Context

_UNARY = UNARY | {"BiasAdd"}
# op -> the attribute with the type of its third input
_MARGINS = {"SpaceToBatchND": "Tpaddings", "BatchToSpaceND": "Tcrops"}


def join_one_dimension(body: Body, context: Context) -> None:
    """Keeps the ops between 1-D convolutions on planes of height 1, as the convolutions are."""
    for node in body.view.topological():
        if node.name not in body.view or body.view.has_control_edges(node.name):
            continue
        if node.op == "ExpandDims":
            _cancel(node, body)
        elif node.op == "Mean":
            _reduce_plane(node, body)
        elif inputs := _on_planes(node, body):
            _sink(node, inputs, body)


def _plane(ref: Ref, body: Body) -> Ref | None:
    """The [N, 1, W, C] of which `ref` is [N, W, C], squeezed."""
    node = body.view.producer(ref)
    if node.op != "Squeeze" or ref.port or body.constants.is_constant(ref):
        return None
    shape = body.shapes.shape(node.inputs[0])
    dims = list(node.attr["squeeze_dims"].list.i)
    if shape is None or len(shape) != 4 or [dim % 4 for dim in dims] != [1]:
        return None
    return node.inputs[0]


def _on_planes(node: Node, body: Body) -> list[Ref] | None:
    """The inputs with which the node makes the plane of its result, where it can."""
    if node.attr["data_format"].s == b"NCHW":
        return None
    if node.op in _UNARY:
        plane = _plane(node.inputs[0], body)
        return plane and [plane, *node.inputs[1:]]
    if node.op in BINARY:
        planes = [_plane(ref, body) for ref in node.inputs]
        pairs = list(zip(planes, node.inputs, strict=True))
        if any(planes) and all(plane or _broadcasts(ref, body) for plane, ref in pairs):
            return [plane or ref for plane, ref in pairs]
    if node.op == "ConcatV2":
        *values, axis = node.inputs
        planes, number = [_plane(ref, body) for ref in values], body.shapes.number(axis)
        if all(planes) and number is not None and number % 3 == 2:
            return [*planes, _constant(node, "axis", 3, body)]
    if node.op == "Pad":
        plane, pads = _plane(node.inputs[0], body), body.shapes.value(node.inputs[1])
        if plane and pads is not None and all(isinstance(size, int) for size in pads.flat):
            return [plane, _constant(node, "paddings", np.insert(pads, 1, 0, axis=0), body)]
    if node.op in _MARGINS:
        return _on_blocks(node, body)
    return None


def _on_blocks(node: Node, body: Body) -> list[Ref] | None:
    """The inputs of SpaceToBatchND, or of its inverse, over a plane: a block of [1, size]."""
    source, block, margins = node.inputs
    sizes, values = body.shapes.numbers(block), body.shapes.value(margins)
    if sizes is None or len(sizes) != 1 or values is None:
        return None
    plane = _plane(source, body) or _new_plane(node, body)
    if plane is None:
        return None
    margins = _below_zeros(node, margins, body)
    return [plane, _constant(node, "block_shape", [1, *sizes], body), margins]


def _new_plane(node: Node, body: Body) -> Ref | None:
    """The plane of a 3-D source, where the only reader of the node wants a plane anyway."""
    readers = [reader.op for reader, _ in body.view.consumers(node.ref)]
    rank = body.shapes.rank(node.inputs[0])
    if node.op != "SpaceToBatchND" or readers != ["ExpandDims"] or rank != 3:
        return None
    axis = body.view.add(constant_node(f"{node.name}/axis", 1)).ref
    inputs, types = [node.inputs[0], axis], {"T": node.attr["T"], "Tdim": INT32}
    return body.view.add(make_node(f"{node.name}/expand", "ExpandDims", inputs, **types)).ref


def _below_zeros(node: Node, margins: Ref, body: Body) -> Ref:
    """The paddings or crops [1, 2], which may depend on the width, as [2, 2] with none of H."""
    dtype = node.attr[_MARGINS[node.op]].type
    zeros = body.view.add(constant_node(f"{node.name}/height", [[0, 0]], dtype)).ref
    axis = body.view.add(constant_node(f"{node.name}/axis", 0)).ref
    inputs, types = [zeros, margins, axis], {"T": dtype, "Tidx": INT32}
    return body.view.add(make_node(f"{node.name}/margins", "ConcatV2", inputs, **types)).ref


def _broadcasts(ref: Ref, body: Body) -> bool:
    """Whether it is a constant that lies against [N, 1, W, C] as against [N, W, C]."""
    shape = body.shapes.shape(ref)
    if shape is None or not body.constants.is_constant(ref):
        return False
    return len(shape) < 3 or (len(shape) == 3 and shape[0] == 1)


def _sink(node: Node, inputs: list[Ref], body: Body) -> None:
    """Does the node's work on planes; squeezes the result under the node's name."""
    shape = body.shapes.shape(node.ref)
    plane = body.view.add(Node(f"{node.name}/plane", node.op, inputs, proto=node.proto))
    if shape is not None and len(shape) == 3:
        body.shapes.put(plane.ref, (shape[0], 1, *shape[1:]))
    sources = [ref.node for ref in node.inputs]
    squeeze = make_node(node.name, "Squeeze", [plane.ref], T=node.attr["T"], squeeze_dims=[1])
    body.view.replace(squeeze)
    body.view.remove_dead(sources)


def _cancel(node: Node, body: Body) -> None:
    """expand(squeeze(x)) = x"""
    plane, axis = _plane(node.inputs[0], body), body.shapes.number(node.inputs[1])
    if plane and axis is not None and axis % 4 == 1:
        body.view.replace_uses(node.ref, plane)
        body.view.remove_dead([node.name])


def _reduce_plane(node: Node, body: Body) -> None:
    """mean(squeeze(x)) over W is the mean of x over its plane."""
    plane, axes = _plane(node.inputs[0], body), body.shapes.numbers(node.inputs[1])
    if plane is None or axes is None or node.attr["keep_dims"].b:
        return
    if [axis % 3 for axis in axes] == [1]:
        sources = [ref.node for ref in node.inputs]
        dtype = node.attr["Tidx"].type
        over = body.view.add(constant_node(f"{node.name}/axes", [1, 2], dtype)).ref
        body.view.set_inputs(node, [plane, over])
        body.view.remove_dead(sources)


def _constant(node: Node, what: str, values, body: Body) -> Ref:
    key = {"axis": "Tidx", "paddings": "Tpaddings", "block_shape": "Tblock_shape"}[what]
    array = np.asarray(values).astype(np.int64)
    return body.view.add(constant_node(f"{node.name}/{what}", array, node.attr[key].type)).ref
