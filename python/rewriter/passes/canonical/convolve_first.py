"""Lets 1x1 convolutions read what a resize reads, and resizes their results.

One mixes the channels of a pixel and the other the pixels of a channel, so that

    conv(resize(x)) = resize(conv(x))
    conv(concat(x, resize(y), ..)) = conv_x(x) + resize(conv_y(y)) + ..

where each part has some rows of the filter. The heads of SegFormer and of other pyramids join
planes that were enlarged, and most of their multiply-adds are those of interpolated pixels. Sums
are rounded in another order, and where a weight of the resize is zero, infinities are met by other
zeros; so algorithm "direct" leaves it.
"""

import itertools
from collections.abc import Iterator

from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, Ref
from ...context import Context

_RESIZES = frozenset({"ResizeBicubic", "ResizeBilinear", "ResizeNearestNeighbor"})
_ENLARGED = 2  # A resize makes at least so many times as many pixels.
_WIDENED = 4  # And is not to make more than so many times as many channels as before.
_FEW = 16  # Fewer channels save less than another op costs (the side outputs of HED).


def convolve_before_resizing(body: Body, context: Context) -> None:
    """Moves 1x1 convolutions before what enlarges their source, or parts of it."""
    if context.options.algorithm != "auto" or context.options.deterministic:
        return
    for node in body.view.topological():
        if node.name in body.view and not context.reason_to_leave(body, node):
            filters = _pointwise(node, body)
            parts = filters and _parts(node, filters[3], body)
            if parts:
                _replace(node, parts, filters[3], body)


def _pointwise(node: Node, body: Body) -> tuple | None:
    """The shape of the filter of a dense 1x1 convolution of stride 1."""
    if node.op != "Conv2D" or node.payload is not None or body.view.has_control_edges(node.name):
        return None
    src, filters = body.shapes.shape(node.inputs[0]), body.shapes.shape(node.inputs[1])
    attr, known = node.attr, body.constants.is_constant(node.inputs[1])
    if not known or src is None or filters is None or len(src) != 4 or filters[:2] != (1, 1):
        return None
    if attr["T"].type != types_pb2.DT_FLOAT or attr["data_format"].s == b"NCHW":
        return None
    if {*attr["strides"].list.i} != {1}:
        return None
    explicit = attr["padding"].s not in (b"SAME", b"VALID")
    dense = isinstance(filters[2], int) and filters[2] == src[3] and isinstance(filters[3], int)
    return filters if dense and not explicit else None


def _parts(node: Node, channels: int, body: Body) -> list[tuple[Ref, int]] | None:
    """What the source is joined of, with the channels of each, if parts of it are better small."""
    joined = body.view.producer(node.inputs[0])
    if joined.op == "ConcatV2" and joined.payload is None:
        *refs, axis = joined.inputs
        number = body.shapes.number(axis)
        if number is None or number % 4 != 3 or not _is_only_for(joined.ref, node, body):
            return None
        parts = [(ref, body.shapes.channels(ref)) for ref in refs]
    else:
        joined, parts = node, [(node.inputs[0], body.shapes.channels(node.inputs[0]))]
    if any(count is None for _, count in parts):
        return None
    return parts if any(_is_enlarged(*part, joined, channels, body) for part in parts) else None


def _is_enlarged(ref: Ref, count: int, reader: Node, channels: int, body: Body) -> bool:
    """Whether a part should be enlarged after the convolution to that many channels."""
    resize = body.view.producer(ref)
    if resize.op not in _RESIZES or resize.payload is not None:
        return False
    if resize.attr["T"].type != types_pb2.DT_FLOAT:  # the result is float32 whatever it reads
        return False
    if count < _FEW or channels > _WIDENED * count or not _is_only_for(ref, reader, body):
        return False
    before, after = body.shapes.elements(resize.inputs[0]), body.shapes.elements(ref)
    return after >= _ENLARGED * before > 0  # of the same channels


def _is_only_for(ref: Ref, reader: Node, body: Body) -> bool:
    """Whether nothing else needs it."""
    return body.view.only_reader(ref)[0] is reader and not ref.port


def _replace(node: Node, parts: list[tuple[Ref, int]], channels: int, body: Body) -> None:
    """The sum of the convolutions of all parts, in the node's place."""
    joined = node.inputs[0]
    reader = node if len(parts) == 1 else body.view.producer(joined)
    results, first = [], 0
    for small, run in _runs(parts, reader, channels, body):
        count = sum(part_channels for _, part_channels in run)
        filters = _rows(node, first, count, channels, body)
        results.append(_convolve(node, small, [ref for ref, _ in run], filters, body))
        first += count
    total, *others = sorted(results, key=lambda ref: body.view.producer(ref).op in _RESIZES)
    for other in others:
        total = body.writer(node.name).add("sum", "AddV2", total, other)
    body.view.bypass(node, total)


def _runs(parts, reader: Node, channels: int, body: Body) -> Iterator[tuple[Node | None, list]]:
    """Each part that is enlarged, with the resize, and neighbours that are not."""

    def is_enlarged(part) -> bool:
        return _is_enlarged(*part, reader, channels, body)

    for enlarged, run in itertools.groupby(parts, is_enlarged):
        if enlarged:
            yield from ((body.view.producer(ref), [(ref, count)]) for ref, count in run)
        else:
            yield None, list(run)


def _rows(node: Node, first: int, count: int, channels: int, body: Body) -> Ref:
    """The rows of the filter for some channels."""
    filters = node.inputs[1]
    if (first, count) == (0, body.shapes.shape(filters)[2]):
        return filters
    begin, size = [0, 0, first, 0], [1, 1, count, channels]
    return body.writer(node.name).add("rows", "Slice", filters, begin, size)


def _convolve(node: Node, resize: Node | None, refs: list[Ref], filters: Ref, body: Body) -> Ref:
    """The convolution of the parts together; that of what the resize enlarges, enlarged."""
    view, src = body.view, refs[0]
    if resize is not None:
        src = resize.inputs[0]
    elif len(refs) > 1:
        src = body.writer(node.name).add("parts", "ConcatV2", refs, 3)
    result = view.add(Node(f"{node.name}/part", node.op, [src, filters], proto=node.proto)).ref
    if resize is None:
        return result
    inputs = [result, *resize.inputs[1:]]
    return view.add(Node(resize.name, resize.op, inputs, proto=resize.proto)).ref
