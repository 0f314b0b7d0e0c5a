"""Folds the affine maps before a first layer into it, or makes one element-wise op of them.

    conv(s * x + t, w) = conv(x, s * w) + sum over taps and channels of w * t

Keras puts Rescaling and Normalization before EfficientNet's first convolution: four
broadcasting passes over the image. As one op the network takes 6.2 instead of 6.7 ms; the op
itself takes 38 us. A shift cannot go where the convolution pads, since it pads after it.
"""

from dataclasses import replace

import numpy as np

from ....graph import Body, Node, Ref
from ....ops.records import BLOCK, NHWC, Conv, Eltwise, compose_affine
from ...context import Context
from ...followers import Followers
from ...patterns.pixels.elementwise import affine
from ...rules import Idiom


def prepare_sources(body: Body, context: Context) -> None:
    """Folds the affine maps before a first layer into it, or makes one op of them."""
    for node in body.view.topological():
        conv = node.payload
        if isinstance(conv, Conv) and conv.in_channels < BLOCK and conv.groups == 1:
            _prepare(body, context.followers, node)


def _prepare(body: Body, followers: Followers, node: Node) -> None:
    conv, src = node.payload, node.src
    last, read, mapped = None, src, (None, None)
    while idiom := _affine_before(body, followers, read):
        mapped = compose_affine((idiom.scale, idiom.shift), mapped)
        last, read = last or idiom, idiom.src
    if last is None:
        return
    scale, shift = mapped
    shift = shift if shift is not None and shift.any() else None
    if shift is None or conv.padding == "VALID":
        inputs = node.by_role | {"src": read}
        payload = _of_mapped(conv, scale, shift)
        if payload is None:
            return
        body.view.replace(Node(node.name, node.op, inputs, node.controls, payload=payload))
        body.view.remove_dead([src.node])
        return
    channels, steps = conv.in_channels, affine.steps(*mapped)
    payload = Eltwise(origin=last.root, channels=channels, steps=steps, layout=NHWC)
    followers.consume(last, Node(last.root, payload.op, {"src": read}, payload=payload))


def _of_mapped(conv: Conv, scale: np.ndarray | None, shift: np.ndarray | None) -> Conv | None:
    """The convolution of scale * x + shift, in float64 until the weights are written.

    None where float32 does not hold them.
    """
    weights = np.asarray(conv.weights, np.float64)
    if shift is not None:
        taps = np.broadcast_to(np.reshape(shift, [-1, 1]), [conv.in_channels, 1])
        total = (weights * taps).sum((0, 1, 2))
        affine = compose_affine((None, total), (conv.scale, conv.shift))
        conv = replace(conv, scale=affine[0], shift=affine[1])
    if scale is not None:
        weights = weights * np.reshape(scale, [-1, 1])
    return replace(conv, weights=weights).then_affine(None, None)


def _affine_before(body: Body, followers: Followers, ref: Ref) -> Idiom | None:
    """The affine map that makes `ref`, if it has one reader and nothing holds it up."""
    view = body.view
    if ref.port or view.use_count(ref) != 1 or view.producer(ref).controls:
        return None
    if view.is_fetched(ref) or view.has_control_edges(ref.node):
        return None
    return next((idiom for idiom in followers.at_root(ref.node) if idiom.is_affine), None)
