"""Copies between memory layouts and data types."""

import numpy as np
import tensorflow as tf

from ...graph import INT32
from ...layout import NCHW16C as BLOCKED
from ..arguments import static_channels
from ..call import OpCall, function_of
from ..record import Layout, Record
from ..tensor_desc import TensorDesc


class Reorder(Record, title="reorder"):
    src_layout: Layout
    dst_layout: Layout

    def shape(self, node, shapes):
        return shapes.shape(node.inputs[0])


class Reshape(Record, op="Reshape", title="reshape"):
    """TensorFlow's Reshape between layouts that are one in memory; `shape` is its input."""

    operands = ("src", "shape")
    other_types = {"shape": INT32}
    src_layout: Layout = BLOCKED
    dst_layout: Layout = BLOCKED

    def channels_of(self, role: str) -> int | None:
        return None  # Blocks may become another dimension, and rows blocks.


@function_of(Reorder, "src_quantization dst_quantization")
def reorder(
    x,
    src: "str | TensorDesc",
    dst: "str | TensorDesc",
    *,
    channels: int | None = None,
    dtype=None,
    scales=None,
    into=None,
    beta: float = 0.0,
):
    """Copies the tensor `x` from one place in memory to another.

    Every element becomes `scales * x + beta * into`, computed in float32, then rounded
    to nearest, ties to even, and saturated to the type of the result: integers stop
    at their smallest and largest numbers and have 0 for NaN, bfloat16 and float16
    overflow to infinity. Where types are equal and nothing is scaled or added, the
    bits are copied. The tail of a blocked result is zero, and that of a blocked `x`
    does not matter.

    Args:
      x: float32, bfloat16, float16, int32, int8 or uint8. Its shape is that of the
        layout (see `TensorDesc.shape`); if `src` has strides or an offset, any
        shape of at least `src.size` elements: the memory `src` describes.
      src: where the elements lie in `x`: a TensorDesc, or the name of a layout,
        whose dimensions x tells.
      dst: where they lie in the result: a TensorDesc of the same dims, or the name of
        a layout.
      channels: C, with names: how many lanes of a blocked `x` are channels. May be
        left out when `src` is plain.
      dtype: of the result, if `dst` is a name. By default that of `src`.
      scales: a number, or an array whose shape has dims[d] for each dimension with
        scales of its own and 1 for the others: with dims (n, c, h, w) one of shape
        [1, C, 1, 1] scales each channel.
      into: a tensor of the result's type: the memory in which the elements are
        placed; what lies between them stays. Without it that is zero.
      beta: the factor of what `into` holds.
      src_quantization: (scale, zero_point) of a uint8 `x`, which then stands for
        scale * (x - zero_point).
      dst_quantization: the same of a uint8 result: it quantizes, and the tail of a blocked result
        is the zero point.

    Returns:
      A tensor of shape `dst.shape`, or of the shape of `into`.

    Raises:
      ValueError: an argument that does not fit the others.
      InvalidArgumentError: a shape, layout or number of scales that does not fit, or
        elements of the result that overlap (a ValueError while a graph is built).

    Source: memory formats and reorder of oneDNN.

    Example:
      >>> image = np.random.rand(1, 8, 8, 3).astype("float32")
      >>> blocked = bd.ops.reorder(image, "nhwc", "nChw16c")
      >>> blocked.shape
      TensorShape([1, 1, 8, 8, 16])
      >>> back = bd.ops.reorder(blocked, "nChw16c", "nhwc", channels=3)
      >>> np.array_equal(back, image)
      True
    """
    x = tf.convert_to_tensor(x)
    src_desc, dst_desc = _descriptions(src, dst, dtype)
    if src_desc is not None and x.dtype != src_desc.dtype:
        raise ValueError(f"x is {x.dtype.name}, but src describes {src_desc.dtype.name}")
    if src_desc is None:
        dst_dtype = x.dtype if dtype is None else tf.dtypes.as_dtype(dtype)
        attrs = {"src_layout": src, "dst_layout": dst, "channels": _channels(x, src, channels)}
    else:
        if channels is not None:
            raise ValueError("channels are for layouts given by name; a TensorDesc has its dims")
        dst_dtype = dst_desc.dtype
        attrs = {"dims": list(src_desc.dims)}
        attrs |= _memory_attrs("src", src_desc) | _memory_attrs("dst", dst_desc)
    if into is None and beta != 0:
        raise ValueError(f"beta = {beta} is the factor of into, which is not given")
    if into is not None and (placed := tf.convert_to_tensor(into).dtype) != dst_dtype:
        raise ValueError(f"into is {placed.name}, but the result {dst_dtype.name}")
    return OpCall((x,), attrs | _scale_attrs(scales) | {"dst_type": dst_dtype})


def _descriptions(src, dst, dtype) -> "tuple[TensorDesc, TensorDesc] | tuple[None, None]":
    """Both sides as descriptions, or None if both are names."""
    if isinstance(dst, TensorDesc) and dtype is not None:
        raise ValueError("dtype is for a dst given by name; a TensorDesc has its own")
    if isinstance(src, TensorDesc):
        if not isinstance(dst, TensorDesc):
            dst = TensorDesc(src.dims, src.dtype if dtype is None else dtype, dst)
        if src.dims != dst.dims:
            raise ValueError(f"reorder needs equal dims; src has {src.dims}, dst {dst.dims}")
        return src, dst
    if isinstance(dst, TensorDesc):
        raise ValueError(f"src must be a TensorDesc as dst is one; got {src!r}")
    return None, None


def _memory_attrs(side: str, desc: TensorDesc) -> dict:
    attrs = {f"{side}_layout": desc.layout or "", f"{side}_offset": desc.offset()}
    return attrs if desc.is_whole else attrs | {f"{side}_strides": list(desc.strides)}


def _channels(x, layout: str, channels: int | None) -> int:
    """`channels`, or -1 where a plain layout tells them."""
    if channels is not None:
        return channels
    if "C" in layout:
        return static_channels(x, layout, None)
    if not layout.islower():
        raise ValueError(
            f"src must be a TensorDesc: a tensor of layout {layout} does not tell its dims"
        )
    return -1


def _scale_attrs(scales) -> dict:
    if scales is None:
        return {}
    scales = np.asarray(scales, np.float32)
    return {"scales": scales.ravel().tolist(), "scale_shape": list(scales.shape)}
