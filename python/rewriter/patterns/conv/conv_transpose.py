"""Conv2DBackpropInput: transposed convolution.

Of stride 1 it is an ordinary convolution by the filter turned around:

    y[p] = sum over k of x[p + before - k] w[k] = sum over k of x[p - (K - 1 - before) + k] w[K-1-k]
"""

from ....graph import Body, Node
from ....ops.records import Conv, Convolution, ConvTranspose
from ...context import Context
from ..found import Found
from ..planes import pad
from .convolution import obstacle

ROOTS = ("Conv2DBackpropInput",)
NAMED = ("dilations", "explicit_paddings", "padding", "strides")
_SRC = 2  # the input that is the source
MOST_STRIDE = 16


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The transposed convolution of `node`."""
    conv = _plan(node, body, context.options.algorithm)
    if isinstance(conv, str):
        return conv
    found = Found(conv, {"src": node.inputs[_SRC]}, node.name)
    return pad.fold_before(found, body) if isinstance(conv, Conv) else found


def _plan(node: Node, body: Body, algorithm: str) -> Convolution | str:
    attr, src = node.attr, node.inputs[_SRC]
    reason = obstacle(node, src, body)
    if reason:
        return reason
    weights, channels = body.constants.value(node.inputs[1]), body.shapes.channels(src)
    strides = tuple(attr["strides"].list.i[1:3])
    if channels != weights.shape[3]:
        return f"a filter {list(weights.shape)} of groups of {channels} input channels"
    if any(size != 1 for size in attr["dilations"].list.i):
        return "a dilated transposed convolution is not implemented"
    if max(strides) > MOST_STRIDE:
        return f"strides above {MOST_STRIDE} are not implemented"
    crops = _crops(node, body, weights.shape, strides)
    if crops is None:
        return "its size is not proven to grow with that of its source alone"
    common = dict(
        origin=node.name,
        channels=weights.shape[2],
        in_channels=channels,
        algorithm=algorithm,
    )
    if strides != (1, 1):
        return ConvTranspose(weights=weights, strides=strides, crops=crops, **common)
    ends = [weights.shape[axis // 2] - 1 - crop for axis, crop in enumerate(crops)]
    if min(ends) < 0:
        return "it cuts off more than its filter reaches"
    turned = weights[::-1, ::-1].transpose(0, 1, 3, 2)
    return Conv(weights=turned, padding="EXPLICIT", explicit_paddings=tuple(ends), **common)


def _crops(node, body: Body, kernel, strides) -> tuple[int, ...] | None:
    """[top, bottom, left, right]: what is missing of (size - 1) * stride + kernel pixels."""
    src, dst = body.shapes.shape(node.inputs[_SRC]), body.shapes.shape(node.ref)
    padding, pads = node.attr["padding"].s, node.attr["explicit_paddings"].list.i
    if dst is None or len(dst) != 4:
        return None
    crops = []
    for axis in (0, 1):
        beyond = dst[1 + axis] - src[1 + axis] * strides[axis]
        if not isinstance(beyond, int):
            return None
        total = kernel[axis] - strides[axis] - beyond
        before = pads[2 + 2 * axis] if padding == b"EXPLICIT" else 0
        if padding == b"SAME":
            if not -strides[axis] < beyond <= 0:  # no source has that size: TensorFlow complains
                return None
            before = max(0, total) // 2
        elif padding == b"VALID" and not -strides[axis] < total <= 0:
            return None
        crops += [before, total - before]
    return tuple(crops)
