"""Conv2D and DepthwiseConv2dNative, with the padding and the dilation around them."""

import numpy as np
from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, dtype_name
from ....ops.records import Conv
from ...context import Context
from ...precision.carried import weight_steps
from ..found import Found
from ..planes import pad
from . import dilation

ROOTS = ("Conv2D", "DepthwiseConv2dNative")
NAMED = ("dilations", "explicit_paddings", "padding", "strides")


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The convolution of `node`."""
    conv = _plan(node, body, context.options.algorithm)
    if isinstance(conv, str):
        return conv
    found = dilation.unwrap(Found(conv, {"src": node.inputs[0]}, node.name), body)
    return pad.fold_before(found, body)


def _plan(node: Node, body: Body, algorithm: str) -> Conv | str:
    reason = obstacle(node, node.inputs[0], body)
    if reason:
        return reason
    weights = body.constants.value(node.inputs[1])
    channels = body.shapes.channels(node.inputs[0])
    if node.op == "DepthwiseConv2dNative":
        kh, kw, ic, multiplier = weights.shape
        weights = weights.reshape(kh, kw, 1, ic * multiplier)  # the same memory, read as HWIO
        groups = ic
    else:
        groups = channels // weights.shape[2]
    if channels != groups * weights.shape[2] or weights.shape[3] % groups:
        return f"a filter {list(weights.shape)} does not divide {channels} input channels"
    attr = node.attr
    dilations = tuple(attr["dilations"].list.i[1:3]) or (1, 1)
    pads = tuple(attr["explicit_paddings"].list.i[2:6]) or (0, 0, 0, 0)
    return Conv(
        origin=node.name,
        channels=weights.shape[3],
        weights=weights,
        in_channels=channels,
        groups=groups,
        strides=tuple(attr["strides"].list.i[1:3]),
        dilations=dilations,
        padding=attr["padding"].s.decode(),
        explicit_paddings=pads,
        algorithm=algorithm,
        weight_steps=weight_steps(node.inputs[1], weights, body),
    )


def obstacle(node, src, body: Body) -> str | None:
    """Why no convolution of `src` by the filter that is the node's second input is planned."""
    attr, shapes = node.attr, body.shapes
    if attr["T"].type != types_pb2.DT_FLOAT:
        return f"dtype {dtype_name(attr['T'].type)}, only float32 is implemented"
    if shapes.rank(src) != 4:
        return "the input's rank is not known to be 4"
    if shapes.channels(src) is None:
        return "the number of input channels is not known"
    if not body.constants.is_constant(node.inputs[1]):
        return "the weights are computed or assigned inside the function"
    if not np.prod(body.constants.value(node.inputs[1]).shape):
        return "the filter is empty"
    return None
