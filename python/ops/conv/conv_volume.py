"""3-D convolution with post-ops."""

from ...layout import NHWC
from ..arguments import filter_shape, integers
from ..bind_post_ops import Destination, bind_post_ops
from ..call import OpCall, function_of
from .convolution import Convolution


def _of_volumes(name: str, value) -> list[int]:
    return integers(name, value, "depth", "height", "width")


class ConvVolume(Convolution, title="3-D convolution"):
    """A 3-D convolution of volumes that lie as slices; weights are [kd, kh, kw, in_channels,
    channels].

    Attributes:
        strides: [depth, height, width].
        depth: slices of a volume of the source; 0: as many as the input "volumes" leaves, a tensor
            whose batch is the volumes.
        sizes: the logical shape of the slices of the result.
    """

    readers = {"strides": _of_volumes}
    output_axis = 4
    may_read_plain = True
    strides: tuple[int, ...] = (1, 1, 1)
    padding: str = "VALID"
    depth: int
    sizes: tuple

    def _kind(self) -> str:
        window = "x".join(map(str, self.weights.shape[:3]))
        window += (
            f" strides {list(self.strides)} {self.padding.lower()} depth {self.depth or 'open'}"
        )
        return f"{window} {self._channels()} {self._layouts()}"

    def layout_of(self, role):
        return NHWC if role == "volumes" else super().layout_of(role)

    def shape(self, node, shapes):
        return self.sizes

    def write(self, inputs, bundle):
        attributes, tensors = super().write(inputs, bundle)
        return attributes, [*tensors, [inputs["volumes"]] if "volumes" in inputs else []]


@function_of(ConvVolume, "depth strides weights_offset")
def conv_volume(
    src,
    weights,
    *,
    padding: str,
    post_ops="",
    args=(),
    dst=None,
    src_layout: str = "nChw16c",
    dst_layout: str = "nChw16c",
    channels: int | None = None,
    weights_shape=None,
    volumes=None,
):
    """Computes a 3-D convolution of volumes whose slices are images, then a chain of post-ops.

    Args:
      src: float32, the slices of all volumes: [volumes * depth, H, W, C] ("nhwc") or
        [volumes * depth, ceil(C / 16), H, W, 16] ("nChw16c").
      weights: float32 filter as tf.nn.conv3d has it: [kd, kh, kw, C, out channels].
      depth: slices of a volume; 0: what `volumes` leaves.
      strides: slices and pixels, one integer or [depth, height, width].
      padding: "SAME" or "VALID", TensorFlow's rules.
      channels: C; default weights_shape[3].
      volumes: float32 of any shape with a batch, where depth is 0: src has as many volumes. Nothing
        else of it is read.

    Returns:
      The slices of the results, [volumes * out depth, ...], in dst_layout.

    Source: tf.nn.conv3d.

    Example:
      >>> x = np.ones((2 * 4, 1, 6, 6, 16), np.float32)  # 2 volumes of 4 slices
      >>> filters = np.ones((3, 3, 3, 16, 32), np.float32)
      >>> y = bd.ops.conv_volume(x, filters, depth=4, padding="VALID")
      >>> y.shape
      TensorShape([4, 2, 4, 4, 16])
      >>> float(y[0, 0, 0, 0, 0])  # 3 * 3 * 3 pixels of 16 channels
      432.0
    """
    weights_shape = filter_shape("weights", weights, weights_shape, "kd", "kh", "kw", "ic", "oc")
    if channels is None:
        channels = weights_shape[3] if len(weights_shape) == 5 else 1
    to = Destination(weights_shape[-1], layout=dst_layout)
    if not isinstance(padding, str) or padding.upper() not in ("SAME", "VALID"):
        raise ValueError(f'padding must be "SAME" or "VALID", got {padding!r}: use tf.pad for it')
    post_ops, args = bind_post_ops(post_ops, args, dst, to)
    attributes = {"channels": channels, "weights_shape": weights_shape, "post_ops": post_ops}
    return OpCall((src, weights, args, [] if volumes is None else [volumes]), attributes)
