"""A 1x1 convolution and the depthwise one after it, in one pass."""

import tensorflow as tf

from ...layout import NCHW16C
from ..arguments import filter_shape
from ..bind_post_ops import Destination, bind_post_ops
from ..call import OpCall, function_of
from ..record import Record
from ..steps import write_chain
from .conv import Conv

_DIMS = ("kh", "kw", "ic / groups", "oc")


class ConvDepthwise(
    Record,
    title="depthwise convolution after a 1x1",
    titles="depthwise convolutions after a 1x1",
):
    """A 1x1 convolution and the depthwise one that alone reads it, in blocks.

    Attributes:
        first, depthwise: the two; the steps of the first read no tensors. `steps` are those
            of the second.
    """

    takes_steps = True
    first: Conv
    depthwise: Conv
    algorithm: str = "auto"

    @property
    def src_channels(self) -> int:
        return self.first.in_channels

    def fault(self) -> str | None:
        if self.first.channels != self.depthwise.in_channels:
            return f"{self.depthwise.in_channels} channels of {self.first.channels}"
        return self.first.fault() or self.depthwise.fault() or super().fault()

    def details(self) -> str:
        return f"{self.first.details()}; then {self.depthwise.details()}"

    def attributes(self) -> dict:
        first, second = self.first.attributes(), self.depthwise.attributes()
        window = ("strides", "padding", "explicit_paddings", "dilations")
        return (
            super().attributes()
            | {key: first[key] for key in ("channels", "weights_shape", "src_blocks")}
            | {key: second[key] for key in window if key in second}
            | {"depthwise_weights_shape": second["weights_shape"], "constant_weights": True}
        )

    def write(self, inputs, bundle) -> tuple[dict, list]:
        attributes, chains = self.attributes(), []
        for prefix, conv in {"": self.first, "depthwise_": self.depthwise}.items():
            attributes[f"{prefix}weights_offset"] = conv.add_weights(bundle)
            attributes[f"{prefix}post_ops"], args = write_chain(conv.chain, inputs, bundle)
            chains.append(args)
        return attributes, [inputs["src"], bundle.tensor, bundle.tensor, *chains]


@function_of(
    ConvDepthwise,
    "strides padding dilations weights_offset depthwise_weights_offset src_part src_blocks",
)
def conv_depthwise(
    src,
    weights,
    depthwise_weights,
    *,
    post_ops="",
    args=(),
    depthwise_post_ops="",
    depthwise_args=(),
    dst=None,
    weights_shape=None,
    depthwise_weights_shape=None,
):
    """Computes a 1x1 convolution of stride 1 and then a depthwise convolution of its result.

    The tensor between them, which in MobileNets is six times as large as src, stays in the cache:
    the op makes a few of its rows, uses them and overwrites them. The result has the bits of
    `conv` called twice, except if the 1x1 is "paired" (docs/algorithms.md).

    Args:
      src: float32 activation in blocks, [N, ceil(C / 16), H, W, 16].
      weights: float32 filter of the 1x1, HWIO: [1, 1, C, out channels].
      depthwise_weights: float32 filter of the depthwise convolution, [kh, kw, out channels, 1] as
        TensorFlow has it, or [kh, kw, 1, out channels]; the same memory.
      strides, padding, dilations: of the depthwise convolution, as in `conv`. The padding around
        the image is zero, whatever post_ops make of zero.
      post_ops, args: the chain after the 1x1 and its operands, as in `conv`; sums need an
        operand. If operands have the shape of its result, the two convolutions run one after the
        other.
      depthwise_post_ops, depthwise_args: the chain after the depthwise convolution and its
        operands.
      dst: the tensor that sums of depthwise_post_ops without an operand add; see `conv`.
      depthwise_weights_shape, depthwise_weights_offset: the same of depthwise_weights.
      how: words in any order: of the 1x1 "auto", "direct" or "paired" as in `conv`.

    Returns:
      The activation in blocks. Lanes beyond the output channels are zero.

    Source: the depthwise post-op of oneDNN (append_dw).

    Example:
      >>> x = np.ones((1, 1, 8, 8, 16), np.float32)
      >>> expand = np.ones((1, 1, 16, 96), np.float32)
      >>> filters = np.ones((3, 3, 96, 1), np.float32)
      >>> options = {"strides": 2, "padding": "SAME", "post_ops": "eltwise(relu6)"}
      >>> y = bd.ops.conv_depthwise(x, expand, filters, **options)
      >>> y.shape
      TensorShape([1, 6, 4, 4, 16])
      >>> float(y[0, 0, 0, 0, 0])  # 3 * 3 pixels of min(16, 6)
      54.0
    """
    weights_shape = filter_shape("weights", weights, weights_shape, *_DIMS)
    channels = weights_shape[-1]
    shape = filter_shape("depthwise_weights", depthwise_weights, depthwise_weights_shape, *_DIMS)
    if len(shape) == 4 and shape[2:] == [channels, 1]:
        shape = [*shape[:2], 1, channels]
    src = tf.convert_to_tensor(src)
    to = Destination(channels, layout=NCHW16C, like=src)
    post_ops, args = bind_post_ops(post_ops, args, None, to)
    depthwise_post_ops, depthwise_args = bind_post_ops(depthwise_post_ops, depthwise_args, dst, to)
    attributes = {
        "channels": weights_shape[2] if len(weights_shape) == 4 else 1,
        "weights_shape": weights_shape,
        "depthwise_weights_shape": shape,
        "post_ops": post_ops,
        "depthwise_post_ops": depthwise_post_ops,
    }
    return OpCall((src, weights, depthwise_weights, args, depthwise_args), attributes)
