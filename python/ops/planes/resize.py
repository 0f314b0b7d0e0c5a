"""Resizing of planes."""

import tensorflow as tf

from ..arguments import pair, pair_text, types_of
from ..call import OpCall, function_of
from ..record import Record


class Resize(Record, title="resize"):
    """Attributes: scales or size, [height, width]; the other one is empty."""

    keeps = True
    readers = {"scales": pair, "size": pair}
    kind: str
    coordinates: str = "half_pixel"
    scales: tuple[int, ...] = ()
    size: tuple[int, ...] = ()

    @property
    def makes_numbers(self) -> bool:
        return self.kind == "bilinear"

    def _kind(self) -> str:
        to = f"by {pair_text(self.scales)}" if self.scales else f"to {list(self.size)}"
        return f"{self.kind} {to} {self.coordinates}"


@function_of(Resize, "channels scales size coordinates src_part dst_part into")
def resize(src, kind: str, *, dtype=None, src_quantization=None, dst_quantization=None):
    """Resizes the planes of a blocked activation: nearest pixel or bilinear.

    Args:
      src: float32, bfloat16 or uint8, [N, ceil(C / 16), H, W, 16].
      kind: "nearest" or "bilinear".
      scales: whole factors, one integer or [height, width]; or `size`.
      size: [height, width] of the result in pixels.
      coordinates: where pixels lie: "half_pixel" as tf.image.resize has it, "align_corners", or
        "asymmetric", the default of TensorFlow 1.

    Returns:
      [N, ceil(C / 16), out height, out width, 16].

    Source: tf.image.resize; ResizeNearestNeighbor and ResizeBilinear.

    Example:
      >>> x = np.arange(4 * 16, dtype=np.float32).reshape(1, 1, 1, 4, 16)
      >>> bd.ops.resize(x, "bilinear", channels=16, scales=2)[0, 0, 0, :, 0].numpy()
      array([ 0.,  4., 12., 20., 28., 36., 44., 48.], dtype=float32)
    """
    src = tf.convert_to_tensor(src)
    return OpCall((src,), types_of(src, dtype, src_quantization, dst_quantization))
