"""Gradient of reorders: the reorder back, with the same scales."""

import numpy as np
import tensorflow as tf

from ...ops.movement.reorder import reorder
from ...ops.tensor_desc import TensorDesc
from ..node import text


@tf.RegisterGradient("BlockdnnReorder")
def _gradient(op, dy):
    """What rounding and saturation do to a value is ignored, as in tf.cast; integers have none."""
    src, into = op.inputs[0], list(op.inputs[1:])
    if not dy.dtype.is_floating:
        return [None] * len(op.inputs)
    scales = op.get_attr("scales")
    scales = np.reshape(scales, op.get_attr("scale_shape") or ()) if scales else None
    sides = _descriptions(op) if op.get_attr("dims") else None
    grads = [None]
    if src.dtype.is_floating:
        if sides is None:
            grads = [_back_by_name(op, src, dy, scales)]
        else:
            memory = None if sides[0].is_whole else tf.zeros_like(src)
            grads = [reorder(dy, sides[1], sides[0], scales=scales, into=memory)]
    if into:
        grads.append(_into_gradient(op, src, dy, sides))
    return grads


def _back_by_name(op, src, dy, scales):
    names = text(op, "dst_layout"), text(op, "src_layout")
    return reorder(dy, *names, channels=_channels(op, src), dtype=src.dtype, scales=scales)


def _channels(op, src) -> int | None:
    """C, which a blocked tensor does not tell."""
    channels = op.get_attr("channels")
    if channels >= 0:
        return channels
    layout = text(op, "src_layout")
    return src.shape[layout.index("c")] if "c" in layout else None


def _descriptions(op) -> tuple[TensorDesc, TensorDesc]:
    def side(name: str, dtype) -> TensorDesc:
        return TensorDesc(
            op.get_attr("dims"),
            dtype,
            text(op, f"{name}_layout") or None,
            strides=op.get_attr(f"{name}_strides") or None,
            offset=op.get_attr(f"{name}_offset"),
        )

    return side("src", op.inputs[0].dtype), side("dst", op.outputs[0].dtype)


def _into_gradient(op, src, dy, sides):
    """dy, times beta where elements are placed."""
    beta = op.get_attr("beta")
    if sides is None:
        layout = text(op, "dst_layout")
        return reorder(dy, layout, layout, channels=_channels(op, src), scales=beta)
    return reorder(dy, sides[1], sides[1], scales=beta, into=dy)
