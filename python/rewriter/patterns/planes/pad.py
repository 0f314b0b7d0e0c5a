"""Padding and cutting of planes, by itself or folded into the convolution that reads it."""

import math
from dataclasses import replace

from ....graph import Body, Node
from ....ops.records import Concat, Conv, Pad
from ...context import Context
from ...rules import Found
from ..movement import slices

ROOTS = ("Pad", "PadV2", "Slice", "StridedSlice")
NAMED = slices.NAMED

_NON_NEGATIVE = frozenset({"Abs", "Exp", "Relu", "Relu6", "Sigmoid", "Softplus", "Sqrt", "Square"})
_KEEPS_SIGN = frozenset({"AvgPool", "ConcatV2", "MaxPool", "Pad"})


def zero_pad(body: Body, ref) -> tuple[int, int, int, int] | str:
    """(top, bottom, left, right) if `ref` is a constant spatial zero Pad, else why not."""
    node = body.view.producer(ref)
    if isinstance(node.payload, Pad):
        return node.payload.paddings if min(node.payload.paddings) >= 0 else "it cuts off"
    return constant_pad(body, ref, 0.0)


def constant_pad(body: Body, ref, value: float) -> tuple[int, int, int, int] | str:
    """(top, bottom, left, right) if `ref` is a spatial Pad with that value, else why not."""
    node = body.view.producer(ref)
    if node.op not in ("Pad", "PadV2", "MirrorPad"):
        return "not a Pad"
    if node.op == "MirrorPad":
        return "it mirrors"
    if value != (body.constants.scalar(node.inputs[2]) if node.op == "PadV2" else 0.0):
        return f"it pads with another value than {'zero' if value == 0.0 else value}"
    if body.view.has_control_edges(node.name):
        return "control edges order it"
    pads = body.shapes.value(node.inputs[1])
    if pads is None or pads.shape != (4, 2) or not all(isinstance(p, int) for p in pads.flat):
        return "its paddings are not constant"
    if any(pads[0]) or any(pads[3]) or min(pads.flat) < 0:
        return "it pads the batch or the channels"
    return (*pads[1], *pads[2])


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """Rows and columns of zeros, or fewer rows and columns."""
    channels = body.shapes.channels(node.inputs[0])
    if channels is None:
        return "the rank is not known to be 4, or the channels are not known"
    if not isinstance(constant_pad(body, node.ref, -math.inf), str):
        return None  # maxima pad by themselves
    sides = _cropped(node, body) if node.op in slices.OPS else zero_pad(body, node.ref)
    if isinstance(sides, str):
        return sides
    payload = Pad(origin=node.name, channels=channels, paddings=tuple(map(int, sides)))
    return Found(payload, {"src": node.inputs[0]}, node.name)


def fold_before(found: Found, body: Body) -> Found:
    """The convolution with the zero Pad before it, or with a note why it reads the Pad's result."""
    src, conv = found.inputs["src"], found.payload
    if body.view.producer(src).op not in ("Pad", "PadV2", "MirrorPad"):
        return found
    pads = zero_pad(body, src)
    if isinstance(pads, str):
        return replace(found, notes=((src.node, f"not folded into the convolution: {pads}"),))
    padded = _into_convolution(conv, pads, body.shapes.shape(src)[1:3])
    if padded is None:
        reason = "not folded: SAME padding of an unknown size with a stride"
        return replace(found, notes=((src.node, reason),))
    return replace(found, payload=padded, inputs={"src": body.view.producer(src).inputs[0]})


def _cropped(node: Node, body: Body) -> tuple[int, int, int, int] | str:
    """(-top, -bottom, -left, -right) that a slice cuts off planes, or the reason why not."""
    shape = body.shapes.shape(node.inputs[0])
    index = slices.of(node, body, 4) if shape and len(shape) == 4 else None
    if index is None or not (slices.takes_all(index[0]) and slices.takes_all(index[3])):
        return "it does not cut rows and columns of known numbers"
    sides: list[int] = []
    for one, size in zip(index[1:3], shape[1:3], strict=True):
        first, stop = one.start or 0, one.stop or 0
        if stop > 0:
            stop = stop - size if isinstance(size, int) else 1
        if first < 0 or stop > 0 or one.step not in (None, 1) or one.stop == 0:
            return "it does not cut rows and columns of known numbers"
        if isinstance(size, int) and first - stop > size:
            return "nothing is left"
        sides += [-first, stop]
    return tuple(sides)


def _into_convolution(conv: Conv, pads, sizes) -> Conv | None:
    """The convolution that pads by `pads` itself.

    Args:
        sizes: height and width of the padded input, which SAME padding depends on.
    """
    if conv.padding == "SAME":
        own = _same_paddings(conv, sizes)
        if own is None:
            return None
    else:
        own = conv.explicit_paddings if conv.padding == "EXPLICIT" else (0, 0, 0, 0)
    total = tuple(a + b for a, b in zip(own, pads, strict=True))
    return replace(conv, padding="EXPLICIT", explicit_paddings=total)


def _same_paddings(conv: Conv, sizes) -> tuple[int, ...] | None:
    result: list[int] = []
    for i, size in enumerate(sizes):
        window = (conv.weights.shape[i] - 1) * conv.dilations[i] + 1
        if conv.strides[i] == 1:
            need = window - 1
        elif isinstance(size, int):
            outputs = -(-size // conv.strides[i])
            need = max((outputs - 1) * conv.strides[i] + window - size, 0)
        else:
            return None
        result += [need // 2, need - need // 2]
    return tuple(result)


def is_non_negative(body: Body, ref, depth: int = 16) -> bool:
    """Whether every element is proven >= 0, so that 0 is as good as -inf to a maximum."""
    node = body.view.producer(ref)
    if ref.port or depth == 0:
        return False
    if node.payload is not None:
        return _chain_is_non_negative(node, body, depth)
    if node.op in _NON_NEGATIVE:
        return True
    count = len(node.inputs) - 1 if node.op == "ConcatV2" else 1
    return node.op in _KEEPS_SIGN and all(
        is_non_negative(body, source, depth - 1) for source in node.inputs[:count]
    )


_NON_NEGATIVE_STEPS = frozenset(
    {"relu", "relu6", "abs", "exp", "square", "sqrt", "logistic", "soft_relu", "hard_sigmoid"}
)


def _chain_is_non_negative(node, body: Body, depth: int) -> bool:
    steps = node.payload.steps
    if steps:
        scale = dict(steps[-1].params).get("scale", 1.0)
        low = dict(steps[-1].params).get("alpha", -1.0) if steps[-1].name == "clip" else -1.0
        return (steps[-1].name in _NON_NEGATIVE_STEPS and scale >= 0.0) or low >= 0.0
    if node.payload.keeps or isinstance(node.payload, Concat):
        return all(is_non_negative(body, source, depth - 1) for source in node.inputs)
    return False
