"""Computes on pictures what graphs compute on views of them whose channels are split in two axes.

A Reshape of x [N, H, W, C] to [N, H, W, G, K] with G K = C moves nothing. What is computed there
element by element, or as means of groups, and comes back by another Reshape, is as well computed on
x itself; group normalisation is spelled like this:

    f(view(x), s) = view(f(x, t)),        s [N, 1, 1, G or 1, K or 1],  t [N, 1, 1, C] the same
    mean over H, W, K of view(x) = mean over K of view(mean over H, W of x)
"""

import math

import numpy as np
from tensorflow.core.framework import types_pb2

from ....graph import FLOAT32, INT32, Body, Node, Ref, constant_node, is_float32, make_node
from ....graph.elementwise_ops import BINARY, UNARY
from ...context import Context

_UNARY = UNARY | {"Identity"}


def channel_views(body: Body, context: Context) -> None:
    """Computes on a picture what is written for a view of it with channels split in two axes."""
    views: dict[Ref, Ref] = {}  # a view -> the picture, of the same elements
    for node in body.view.topological():
        if node.name not in body.view or body.view.has_control_edges(node.name):
            continue
        if node.op == "Reshape":
            _reshape(node, views, body)
        elif node.inputs and any(ref in views for ref in node.inputs):
            if node.op in _UNARY and is_float32(body.view, node.ref):
                _elementwise(node, [views[node.inputs[0]]], views, body)
            elif node.op in BINARY and is_float32(body.view, node.ref):
                pictures = [_picture(ref, node, views, body) for ref in node.inputs]
                if None not in pictures:
                    _elementwise(node, pictures, views, body)
            elif node.op == "Mean":
                _mean(node, views[node.inputs[0]], body)
    body.view.remove_dead([ref.node for ref in views])


def _reshape(node: Node, views: dict[Ref, Ref], body: Body) -> None:
    """Notes a split of channels; what joins them again is the picture."""
    src, shapes = node.inputs[0], body.shapes
    if src in views:
        if shapes.equal(views[src], node.ref) and not body.view.is_fetched(node.ref):
            body.view.replace_uses(node.ref, views[src])
            body.view.remove_dead([node.name])
        return
    before, after = shapes.shape(src), shapes.shape(node.ref)
    channels = shapes.channels(src)
    if channels is None or after is None or len(after) != 5 or before[1:3] == (1, 1):
        return
    if after[:3] == before[:3] and all(isinstance(size, int) for size in after[3:]):
        if math.prod(after[3:]) == channels and is_float32(body.view, src):
            views[node.ref] = src


def _picture(ref: Ref, node: Node, views: dict[Ref, Ref], body: Body) -> Ref | None:
    """What an operand of `node` is to a picture of the node's shape; None for most operands."""
    if ref in views:
        return views[ref] if body.shapes.equal(ref, node.ref) else None
    shape, groups = body.shapes.shape(ref), body.shapes.shape(node.ref)
    if shape == ():
        return ref
    if shape is None or groups is None or len(shape) != 5 or shape[1:3] != (1, 1):
        return None
    if any(own not in (1, size) for own, size in zip(shape[3:], groups[3:], strict=True)):
        return None
    if shape[3:] != groups[3:]:
        one = np.ones((1, 1, 1, *groups[3:]))
        ones = body.view.add(constant_node(f"{node.name}/ones", one, types_pb2.DT_FLOAT))
        spread = make_node(f"{node.name}/spread", "Mul", [ref, ones.ref], T=FLOAT32)
        ref = body.view.add(spread).ref
    channels = math.prod(groups[3:])
    return _reshaped(f"{node.name}/channels", ref, (shape[0], 1, 1, channels), body)


def _elementwise(node: Node, pictures: list[Ref], views: dict[Ref, Ref], body: Body) -> None:
    """The same op on pictures; who reads the view still may."""
    made = body.view.add(Node(f"{node.name}/picture", node.op, pictures, proto=node.proto))
    picture = next(views[ref] for ref in node.inputs if ref in views)
    body.shapes.put(made.ref, body.shapes.shape(picture))
    views[node.ref] = made.ref


def _mean(node: Node, picture: Ref, body: Body) -> None:
    """A mean of groups as one of channels, of which few numbers are left to be averaged."""
    axes = body.shapes.numbers(node.inputs[1])
    shape, groups = body.shapes.shape(picture), body.shapes.shape(node.inputs[0])
    if not node.attr["keep_dims"].b or axes is None:
        return
    if sorted(axis % 5 for axis in axes) != [1, 2, 4]:
        return
    plane = body.view.add(constant_node(f"{node.name}/plane", [1, 2]))
    means = body.view.add(
        Node(f"{node.name}/channels", "Mean", [picture, plane.ref], proto=node.proto)
    )
    body.shapes.put(means.ref, (shape[0], 1, 1, shape[3]))
    of_groups = _reshaped(f"{node.name}/groups", means.ref, (shape[0], 1, 1, *groups[3:]), body)
    last = body.view.add(constant_node(f"{node.name}/last", [4]))
    body.view.replace(Node(node.name, "Mean", [of_groups, last.ref], proto=node.proto))


def _reshaped(name: str, src: Ref, shape: tuple, body: Body) -> Ref:
    sizes = [size if isinstance(size, int) else -1 for size in shape]
    to = body.view.add(constant_node(f"{name}/shape", sizes))
    made = body.view.add(make_node(name, "Reshape", [src, to.ref], T=FLOAT32, Tshape=INT32))
    body.shapes.put(made.ref, shape)
    return made.ref
