"""Max and average pooling."""

import tensorflow as tf

from ...graph import INT32
from ..arguments import padding_text, pair_text, types_of
from ..call import OpCall, function_of
from ..record import Layout, Record


class Pool(Record, title="pooling"):
    keeps = True
    kind: str
    ksize: tuple[int, int]
    strides: tuple[int, int]
    padding: str
    explicit_paddings: tuple[int, int, int, int] = (0, 0, 0, 0)

    @property
    def makes_numbers(self) -> bool:
        return self.kind == "avg"

    def _kind(self) -> str:
        size = f"{self.ksize[0]}x{self.ksize[1]}"
        return f"{self.kind} {size} stride {pair_text(self.strides)} {padding_text(self)}"


class GlobalPool(Record, title="global pooling"):
    kind: str
    dst_layout: Layout = "nc"

    def _kind(self) -> str:
        return f"{self.kind} of {self.channels} channels, writes {self.dst_layout}"


class PlaneSum(Record, op="Sum", title="sum of planes", titles="sums of planes"):
    """TensorFlow's Sum over the rows and columns of blocks, dimensions kept: a mean times the
    number of pixels would not be exact, and sums of masks are counts."""

    operands = ("src", "reduction_indices")
    other_types = {"reduction_indices": INT32}
    keep_dims = True


@function_of(Pool, "channels strides padding src_part dst_part into")
def pool(src, kind: str, ksize, *, dtype=None, src_quantization=None, dst_quantization=None):
    """Computes max or average pooling of a blocked activation.

    Padding never wins a maximum and never counts in an average, as in TensorFlow.

    Args:
      src: float32, bfloat16 or uint8, [N, ceil(C / 16), H, W, 16].
      kind: "max" or "avg".
      ksize: pixels, one integer or [height, width].
      padding: "SAME", "VALID" or [[top, bottom], [left, right]], each smaller than
        ksize.

    Returns:
      [N, ceil(C / 16), out height, out width, 16].

    Source: tf.nn.max_pool2d, tf.nn.avg_pool2d.

    Example:
      >>> x = np.arange(4 * 4 * 16, dtype=np.float32).reshape(1, 1, 4, 4, 16)
      >>> bd.ops.pool(x, "max", 2, channels=16, strides=2, padding="VALID")[0, 0, ..., 0].numpy()
      array([[ 80., 112.],
             [208., 240.]], dtype=float32)
    """
    src = tf.convert_to_tensor(src)
    return OpCall((src,), types_of(src, dtype, src_quantization, dst_quantization))


@function_of(GlobalPool, "channels")
def global_pool(
    src,
    kind: str,
    *,
    dst_layout: str = "nc",
    dtype=None,
    src_quantization=None,
    dst_quantization=None,
):
    """Computes the maximum or the mean over the whole plane of a blocked activation.

    Args:
      src: float32, bfloat16 or uint8, [N, ceil(C / 16), H, W, 16].
      kind: "max" or "avg".
      dst_layout: "nc", "nhwc" or "nChw16c".

    Returns:
      [N, C], [N, 1, 1, C] or [N, ceil(C / 16), 1, 1, 16].

    Source: tf.reduce_max and tf.reduce_mean over height and width.

    Example:
      >>> x = np.arange(4 * 4 * 16, dtype=np.float32).reshape(1, 1, 4, 4, 16)
      >>> bd.ops.global_pool(x, "avg", channels=2).numpy()
      array([[120., 121.]], dtype=float32)
    """
    src = tf.convert_to_tensor(src)
    return OpCall((src,), types_of(src, dtype, src_quantization, dst_quantization))
