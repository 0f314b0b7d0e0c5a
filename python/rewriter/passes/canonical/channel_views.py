"""Computes on pictures what graphs compute on views of them whose channels are split in two axes.

A Reshape of x [N, H, W, C] to [N, H, W, G, K] with G K = C moves nothing. What is computed there
element by element, or as means of groups, and comes back by another Reshape, is as well computed on
x itself; group normalisation is spelled like this:

    f(view(x), s) = view(f(x, t)),        s [N, 1, 1, G or 1, K or 1],  t [N, 1, 1, C] the same
    mean over H, W, K of view(x) = mean over K of view(mean over H, W of x)
"""

import math

import numpy as np

from ....graph import Body, Node, Ref, is_float32
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
    write = body.writer(node.name)
    if shape[3:] != groups[3:]:
        ref = write.add("spread", "Mul", ref, np.ones((1, 1, 1, *groups[3:])))
    return write.reshape("channels", ref, (shape[0], 1, 1, math.prod(groups[3:])))


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
    write, one = body.writer(node.name), (shape[0], 1, 1)
    means = write.add("means", "Mean", picture, [1, 2], keep_dims=True, shape=(*one, shape[3]))
    write.put("Mean", write.reshape("groups", means, (*one, *groups[3:])), [4], keep_dims=True)
