"""Padding and cutting of planes, by itself or folded into the convolution that reads it."""

import math
from dataclasses import replace

from ....graph import Body, Node, slices
from ....ops.records import Concat, Conv, Pad
from ...context import Context
from ...rules import Replacement
from ..movement import cut

ROOTS = ("Pad", "PadV2", "Slice", "StridedSlice")
NAMED = cut.NAMED

# The last steps of chains whose results are not negative.
_NON_NEGATIVE = frozenset(
    {"relu", "relu6", "abs", "exp", "square", "sqrt", "logistic", "soft_relu", "hard_sigmoid"}
)


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


def find(node: Node, body: Body, context: Context) -> Replacement | str | None:
    """Rows and columns of zeros, or fewer rows and columns."""
    channels = body.shapes.channels(node.inputs[0])
    if channels is None:
        return "the rank is not known to be 4, or the channels are not known"
    if not isinstance(constant_pad(body, node.ref, -math.inf), str):
        return None  # maxima pad by themselves
    sides = _crop(node, body) if "Slice" in node.op else zero_pad(body, node.ref)
    if isinstance(sides, str):
        return sides
    payload = Pad(origin=node.name, channels=channels, paddings=tuple(map(int, sides)))
    return Replacement(payload, {"src": node.inputs[0]}, node.name)


def fold_before(replacement: Replacement, body: Body) -> Replacement:
    """The convolution with the zero Pad before it, or with a note why it reads the Pad's result."""
    src, conv = replacement.inputs["src"], replacement.payload
    if body.view.producer(src).op not in ("Pad", "PadV2", "MirrorPad"):
        return replacement
    pads = zero_pad(body, src)
    if isinstance(pads, str):
        return replace(replacement, notes=((src.node, f"not folded into the convolution: {pads}"),))
    padded = _into_convolution(conv, pads, body.shapes.shape(src)[1:3])
    if padded is None:
        reason = "not folded: SAME padding of an unknown size with a stride"
        return replace(replacement, notes=((src.node, reason),))
    return replace(replacement, payload=padded, inputs={"src": body.view.producer(src).inputs[0]})


def _crop(node: Node, body: Body) -> tuple[int, int, int, int] | str:
    """(-top, -bottom, -left, -right) that a slice cuts off planes, or the reason why not."""
    shape = body.shapes.shape(node.inputs[0])
    index = slices(node, body.known, 4) if shape and len(shape) == 4 else None
    if index is None or not index[0] == index[3] == slice(None):
        return "it does not cut rows and columns of known numbers"
    sides: list[int] = []
    for side, size in zip(index[1:3], shape[1:3], strict=True):
        first, stop = side.start or 0, side.stop or 0
        if stop > 0:
            stop = stop - size if isinstance(size, int) else 1
        if first < 0 or stop > 0 or side.step not in (None, 1) or side.stop == 0:
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
    sides = [conv.sides(axis, size) for axis, size in enumerate(sizes)]
    if None in sides:
        return None
    total = tuple(a + b for a, b in zip((*sides[0], *sides[1]), pads, strict=True))
    return replace(conv, padding="EXPLICIT", explicit_paddings=total)


def is_non_negative(body: Body, ref, depth: int = 16) -> bool:
    """Whether what is planned makes nothing < 0, so that 0 is as good as -inf to a maximum."""
    node = body.view.producer(ref)
    payload = node.payload
    if payload is None or depth == 0:
        return False
    if payload.steps:
        last, params = payload.steps[-1], dict(payload.steps[-1].params)
        is_function = last.name in _NON_NEGATIVE and params.get("scale", 1.0) >= 0.0
        return is_function or (last.name == "clip" and params["alpha"] >= 0.0)
    keeps = payload.keeps or isinstance(payload, Concat)
    return keeps and all(is_non_negative(body, source, depth - 1) for source in node.inputs)
