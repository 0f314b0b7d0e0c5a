"""Joins a 1x1 convolution with the depthwise one that alone reads it.

The op that runs both keeps the tensor between them in cache, and where its plan finds two
passes faster, runs these: nothing is lost by joining.
"""

from ....graph import Body, Node
from ....ops.records import BLOCKED, Conv, ConvDepthwise
from ...context import Context

_ONE = (1, 1)


def fuse_depthwise(body: Body, context: Context) -> None:
    """Joins a 1x1 convolution with the depthwise one that alone reads it."""
    for node in body.view.topological():
        if _is_depthwise(node.payload):
            first = body.view.producer(node.src)
            if _is_pointwise(first) and body.view.is_only_for(first.ref, node):
                _join(body, first, node)


def _is_depthwise(payload) -> bool:
    if (
        not isinstance(payload, Conv)
        or payload.src_layout != BLOCKED
        or payload.dst_layout != BLOCKED
    ):
        return False
    if payload.src_part or payload.dst_part or payload.is_narrow or payload.is_typed:
        return False
    return payload.groups == payload.in_channels == payload.channels


def _is_pointwise(node: Node) -> bool:
    """Whether it is a dense 1x1 convolution of every pixel whose chain reads no tensors."""
    conv = node.payload
    if not isinstance(conv, Conv) or conv.src_layout != BLOCKED or conv.dst_layout != BLOCKED:
        return False
    padded = conv.padding == "EXPLICIT" and any(conv.explicit_paddings)
    return (
        (conv.weights.shape[:2], conv.strides, conv.groups) == (_ONE, _ONE, 1)
        and not padded
        and not conv.dst_part
        and not conv.is_narrow
        and not conv.is_typed
        and node.roles == ("src",)
    )


def _join(body: Body, first: Node, depthwise: Node) -> None:
    payload = ConvDepthwise(
        origin=depthwise.payload.origin,
        channels=depthwise.payload.channels,
        steps=depthwise.payload.steps,
        src_part=first.payload.src_part,
        first=first.payload,
        algorithm="direct" if first.payload.algorithm == "winograd" else first.payload.algorithm,
        depthwise=depthwise.payload,
    )
    inputs = depthwise.by_role | {"src": first.src}
    joined = Node(depthwise.name, payload.op, inputs, depthwise.controls, payload=payload)
    body.view.replace(joined)
    body.view.remove_dead([first.name])
