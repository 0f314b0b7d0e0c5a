"""Squeeze-and-excitation."""

import numpy as np

from ..bundle import Bundle
from ..call import OpCall, function_of
from ..conv.conv import Conv
from ..record import Layout, Record


class SqueezeExcite(Record, title="squeeze-excite"):
    """The plane's mean through two 1x1 convolutions, which have weights, scale, shift and
    element-wise steps."""

    reduce: Conv
    expand: Conv
    dst_layout: Layout
    scale_src: bool = False

    @property
    def products(self) -> tuple[Conv, Conv]:
        return self.reduce, self.expand

    def _kind(self) -> str:
        chains = (step.text() for conv in self.products for step in conv.steps)
        widths = f"{self.channels}->{self.reduce.channels}->{self.channels}"
        times = " times src" if self.scale_src else ""
        return "; ".join([f"{widths}{times}, writes {self.dst_layout}", *chains])

    def write(self, inputs, bundle) -> tuple[dict, list]:
        attributes, tensors = super().write(inputs, bundle)
        reduce, expand = (";".join(step.text() for step in conv.steps) for conv in self.products)
        attributes |= {
            "squeezed": self.reduce.channels,
            "reduce_post_ops": reduce,
            "expand_post_ops": expand,
            "offsets": [at for conv in self.products for at in _product(conv, bundle)],
        }
        return attributes, tensors + [bundle.tensor] * 4


def _product(conv: Conv, bundle: Bundle) -> tuple[int, int]:
    """Where the weights and the bias of a product lie."""
    bias = np.zeros(conv.channels) if conv.shift is None else conv.shift
    return conv.add_weights(bundle), bundle.add_array(bias)


@function_of(SqueezeExcite, "channels squeezed scale_src")
def squeeze_excite(
    src,
    reduce_weights,
    reduce_bias,
    expand_weights,
    expand_bias,
    *,
    reduce_post_ops="eltwise(relu)",
    expand_post_ops="eltwise(logistic)",
    dst_layout: str = "nc",
    offsets=(0, 0, 0, 0),
):
    """Computes a scale for each sample and channel of a blocked activation, from all means.

    The scale is g(f(mean(src) @ reduce_weights + reduce_bias) @ expand_weights + expand_bias),
    where the mean is taken over the plane. With scale_src the result is src times that scale.
    Without it, another op reads the scales, such as an element-wise product.

    Args:
      src: float32, [N, ceil(C / 16), H, W, 16].
      reduce_weights: float32, [C, squeezed], or any tensor that holds these elements from
        offsets[0] on, in memory order. The same holds for the next three arguments.
      reduce_bias: float32, [squeezed].
      expand_weights: float32, [squeezed, C].
      expand_bias: float32, [C].
      squeezed: the number of values between the two products.
      reduce_post_ops: f, `PostOps` or its text: eltwise entries joined by ";", possibly none.
      expand_post_ops: g, the same.
      dst_layout: "nc", "nhwc" or "nChw16c".
      scale_src: whether to return src times its scales; dst_layout must then be "nChw16c".
      offsets: the number of elements before each of the four in its tensor.

    Returns:
      float32, [N, C], [N, 1, 1, C] or [N, ceil(C / 16), 1, 1, 16]; with scale_src the shape
      of src.

    Source: J. Hu, L. Shen, S. Albanie, G. Sun, E. Wu, "Squeeze-and-Excitation Networks", 2017.

    Example:
      >>> x = np.ones((1, 2, 7, 7, 16), np.float32)  # 32 channels
      >>> reduce, expand = np.zeros((32, 8), np.float32), np.zeros((8, 32), np.float32)
      >>> scales = bd.ops.squeeze_excite(
      ...     x, reduce, np.zeros(8, np.float32), expand, np.zeros(32, np.float32),
      ...     channels=32, squeezed=8,
      ... )
      >>> scales.shape, float(scales[0, 0])  # logistic(0)
      (TensorShape([1, 32]), 0.5)
    """
    attributes = {
        "reduce_post_ops": str(reduce_post_ops),
        "expand_post_ops": str(expand_post_ops),
        "offsets": list(offsets),
    }
    return OpCall((src, reduce_weights, reduce_bias, expand_weights, expand_bias), attributes)
