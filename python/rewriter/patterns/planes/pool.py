"""Max and average pooling."""

import math

from ....graph import Body, Node
from ....ops.records import Pool
from ...context import Context
from ..found import Found
from .pad import constant_pad, is_non_negative, zero_pad

KINDS = {"MaxPool": "max", "AvgPool": "avg"}
ROOTS = tuple(KINDS)
NAMED = ("explicit_paddings", "ksize", "padding", "strides")


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The pooling of `node`, with the Pad before it.

    A maximum takes -inf for what it pads itself, as a Pad may, or one of 0 where all elements are
    >= 0; no window lies in the padding altogether.
    """
    attr, src = node.attr, node.inputs[0]
    channels = body.shapes.channels(src)
    ksize, strides = list(attr["ksize"].list.i), list(attr["strides"].list.i)
    if channels is None:
        return "the number of channels is not known"
    if any(list_[axis] != 1 for list_ in (ksize, strides) for axis in (0, 3)):
        return "it pools over the batch or the channels"
    padding, pads = attr["padding"].s.decode(), tuple(attr["explicit_paddings"].list.i[2:6])
    if padding == "VALID":
        src, padding, pads = _with_pad(node, src, ksize, body)
    payload = Pool(
        origin=node.name,
        channels=channels,
        kind=KINDS[node.op],
        ksize=tuple(ksize[1:3]),
        strides=tuple(strides[1:3]),
        padding=padding,
        explicit_paddings=pads or (0, 0, 0, 0),
    )
    return Found(payload, {"src": src}, node.name)


def _with_pad(node, src, ksize, body: Body):
    if node.op != "MaxPool" or not body.view.producer(src).inputs:
        return src, "VALID", ()
    inner = body.view.producer(src).inputs[0]
    pads = constant_pad(body, src, -math.inf)
    if isinstance(pads, str) and is_non_negative(body, inner):
        pads = zero_pad(body, src)
    if isinstance(pads, str) or max(pads[:2]) >= ksize[1] or max(pads[2:]) >= ksize[2]:
        return src, "VALID", ()
    return inner, "EXPLICIT", pads
