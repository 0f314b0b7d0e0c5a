"""Maxima, means and sums of pictures: of whole planes, or of each row, column or pixel.

A row or a column is a window of a pooling. The mean of a pixel's channels is a 1x1 convolution; of
the blocks [N, CB, H, W, 16] the maximum is that over the CB, columns of [N, 1, CB, H W, 16], and
then TensorFlow's over 16 channels. A last block that is not full is filled with channels that have
been there before.
"""

import numpy as np

from ....graph import Body, Node, Ref, Writer
from ....ops.records import (
    BLOCK,
    BLOCKED,
    NHWC,
    Concat,
    Conv,
    GlobalPool,
    PlaneSum,
    Pool,
    Reorder,
    Reshape,
)
from ...context import Context
from ...rules import Replacement

_KINDS = {"Max": "max", "Mean": "avg"}
_PLANE = (1, 2)
ROOTS = (*_KINDS, "Sum")
NAMED = ("keep_dims",)


def find(node: Node, body: Body, context: Context) -> Replacement | str | None:
    """The reduction of `node`."""
    axes, (src, _), root = reduced(node, body), node.inputs, node.name
    if axes is None:
        return "it reduces other axes than height and width, or sizes are not known"
    kind, keeps, sizes = _KINDS.get(node.op), node.attr["keep_dims"].b, body.shapes.shape(src)
    common = dict(origin=root, channels=sizes[3])
    if axes == _PLANE and not kind:
        return _sum_of_planes(src, root, keeps, sizes, common)
    if axes == _PLANE:
        kept = node if keeps else _with_dimensions(node, sizes, body)
        pool = GlobalPool(kind=kind, dst_layout=BLOCKED if kept else "nc", **common)
        return Replacement(pool, {"src": src}, (kept or node).name, frozenset({root}))
    if axes != (3,):
        window = (sizes[1], 1) if axes == (1,) else (1, sizes[2])
        pool = Pool(kind=kind, ksize=window, strides=(1, 1), padding="VALID", **common)
        return Replacement(pool, {"src": src}, root)
    if kind == "avg":
        weights = np.full((1, 1, sizes[3], 1), 1 / sizes[3], np.float32)
        mean = Conv(origin=root, channels=1, in_channels=sizes[3], weights=weights, dst_layout=NHWC)
        return Replacement(mean, {"src": src}, root)
    if not all(isinstance(size, int) for size in sizes[1:3]):
        return "the height and width are not known"
    return "it has few channels" if sizes[3] < BLOCK else _maximum_of_pixels(node, sizes, body)


def reduced(node: Node, body: Body) -> tuple[int, ...] | None:
    """The axes of a picture that the node reduces: rows and columns, or one of known size."""
    sizes, axes = body.shapes.shape(node.inputs[0]), body.shapes.numbers(node.inputs[1])
    if body.shapes.channels(node.inputs[0]) is None or axes is None:
        return None
    axes = tuple(sorted(axis % 4 for axis in axes))
    if axes == _PLANE:
        return axes
    keeps = node.attr["keep_dims"].b and node.op in _KINDS and not node.controls
    is_one = keeps and len(axes) == 1 and axes != (0,) and isinstance(sizes[axes[0]], int)
    return axes if is_one else None


def _with_dimensions(node: Node, sizes, body: Body) -> Node | None:
    """What makes [N, 1, 1, C] of the result, where it alone reads that: the op writes it itself."""
    reader, _ = body.view.only_reader(node.ref)
    if reader is None or reader.op not in ("Reshape", "ExpandDims") or reader.payload:
        return None
    return reader if body.shapes.shape(reader.ref) == (sizes[0], 1, 1, sizes[3]) else None


def _sum_of_planes(src: Ref, root: str, keeps: bool, sizes, common: dict) -> Replacement:
    def without_dimensions(write: Writer, sums: Ref) -> None:
        plain = Reorder(src_layout=BLOCKED, dst_layout=NHWC, **common)
        plain_sums = write.plan("plain", plain, {"src": sums}, shape=(sizes[0], 1, 1, sizes[3]))
        write.put("Squeeze", plain_sums, squeeze_dims=_PLANE)

    return Replacement(
        PlaneSum(**common),
        {"src": src},
        root,
        prepare=lambda write: {"src": src, "reduction_indices": write.constant("axes", (2, 3))},
        finish=None if keeps else without_dimensions,
    )


def _maximum_of_pixels(node: Node, sizes, body: Body) -> Replacement:
    _, h, w, channels = sizes
    src, axes = node.inputs
    blocks, common = -(-channels // BLOCK), dict(origin=node.name, channels=BLOCK)

    def maxima_of_blocks(write: Writer) -> dict:
        ref, parts = src, (channels, blocks * BLOCK - channels)
        if parts[1]:
            whole = dict(origin=node.name, channels=sum(parts), src_parts=((0, channels),) * 2)
            filled = Concat(parts=parts, **whole)
            ref = write.plan("filled", filled, filled.roles([src, src]))
        shape = write.constant("columns/shape", [-1, 1, blocks, h * w, BLOCK])
        ref = write.plan("columns", Reshape(**common), {"src": ref, "shape": shape})
        window = dict(kind="max", ksize=(blocks, 1), strides=(1, 1), padding="VALID")
        ref = write.plan("blocks", Pool(**window, **common), {"src": ref})
        return {"src": ref, "shape": write.constant("lanes/shape", [-1, h, w, BLOCK])}

    return Replacement(
        Reshape(dst_layout=NHWC, **common),
        {"src": src},
        node.name,
        prepare=maxima_of_blocks,
        finish=lambda write, lanes: body.view.set_inputs(node, [lanes, axes]),
    )
