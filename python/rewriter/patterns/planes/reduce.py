"""Means and maxima of each row, column or pixel of a picture, dimensions kept.

A row or a column is a window of a pooling. The mean of a pixel's channels is a 1x1 convolution; of
the blocks [N, CB, H, W, 16] the maximum is that over the CB, columns of [N, 1, CB, H W, 16], and
then TensorFlow's over 16 channels. A last block that is not full is filled with channels that have
been there before.
"""

from dataclasses import dataclass

import numpy as np

from ....graph import Body, Node, Ref, Writer
from ....ops.records import BLOCK, NHWC, Concat, Conv, Pool, Reshape
from ...context import Context
from ...rules import Found

_KINDS = {"Max": "max", "Mean": "avg"}
ROOTS = tuple(_KINDS)
NAMED = ("keep_dims",)


@dataclass(frozen=True, kw_only=True)
class _FoundMaximum(Found):
    """The maximum of each pixel: what it reads becomes a picture of 16 channels."""

    channels: int
    pixels: tuple[int, int]

    def put(self, body: Body) -> Node:
        view, name, (h, w) = body.view, self.root, self.pixels
        blocks, src, write = -(-self.channels // BLOCK), self.inputs["src"], body.writer(name)
        if blocks * BLOCK > self.channels:
            parts = (self.channels, blocks * BLOCK - self.channels)
            filled = Concat(
                origin=name,
                channels=blocks * BLOCK,
                parts=parts,
                src_parts=((0, self.channels),) * 2,
            )
            src = write.plan("filled", filled, filled.roles([src, src]))
        src = self._reshaped(write, "columns", src, [-1, 1, blocks, h * w, BLOCK])
        window = dict(kind="max", ksize=(blocks, 1), strides=(1, 1), padding="VALID")
        src = write.plan("blocks", Pool(origin=name, channels=BLOCK, **window), {"src": src})
        src = self._reshaped(write, "lanes", src, [-1, h, w, BLOCK], dst_layout=NHWC)
        node = view.node(name)
        view.set_inputs(node, [src, *node.inputs[1:]])
        return view.producer(src)

    def _reshaped(self, write: Writer, name: str, src: Ref, shape: list[int], **layouts) -> Ref:
        reshape = Reshape(origin=self.root, channels=BLOCK, **layouts)
        inputs = {"src": src, "shape": write.constant(f"{name}/shape", shape)}
        return write.plan(name, reshape, inputs)


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The reduction of one axis at `node`."""
    axis = reduced(node, body)
    if axis is None:
        return None
    src = node.inputs[0]
    sizes, kind = body.shapes.shape(src), _KINDS[node.op]
    common = dict(origin=node.name, channels=sizes[3])
    if axis < 3:
        window = (sizes[1], 1) if axis == 1 else (1, sizes[2])
        pool = Pool(kind=kind, ksize=window, strides=(1, 1), padding="VALID", **common)
        return Found(pool, {"src": src}, node.name)
    if kind == "avg":
        weights = np.full((1, 1, sizes[3], 1), 1 / sizes[3], np.float32)
        mean = Conv(
            origin=node.name, channels=1, in_channels=sizes[3], weights=weights, dst_layout=NHWC
        )
        return Found(mean, {"src": src}, node.name)
    if not all(isinstance(size, int) for size in sizes[1:3]):
        return "the height and width are not known"
    if sizes[3] < BLOCK:
        return "it has few channels"
    payload = Reshape(dst_layout=NHWC, **common)
    return _FoundMaximum(
        payload, {"src": src}, node.name, channels=sizes[3], pixels=tuple(sizes[1:3])
    )


def reduced(node: Node, body: Body) -> int | None:
    """The one axis of a picture, 1 to 3, that the node reduces and keeps, of a known size."""
    if node.op not in ROOTS or node.payload is not None or not node.attr["keep_dims"].b:
        return None
    sizes, axes = body.shapes.shape(node.inputs[0]), body.shapes.numbers(node.inputs[1])
    if sizes is None or len(sizes) != 4 or axes is None or len(axes) != 1 or node.controls:
        return None
    axis = axes[0] % 4
    return axis if axis and isinstance(sizes[axis], int) and isinstance(sizes[3], int) else None
