"""Resizing of planes."""

from ...native import library
from ..arguments import dst_part_args, pair, part_attr


def resize(
    src,
    kind: str,
    *,
    channels: int,
    scales=None,
    size=None,
    coordinates: str = "half_pixel",
    src_part=None,
    dst_part=None,
    into=None,
    name=None,
):
    """Resizes the planes of a blocked activation: nearest pixel or bilinear.

    Args:
      src: float32, [N, ceil(C / 16), H, W, 16].
      kind: "nearest" or "bilinear".
      channels: C.
      scales: whole factors, one integer or [height, width]; or `size`.
      size: [height, width] of the result in pixels.
      coordinates: where pixels lie: "half_pixel" as tf.image.resize has it, "align_corners", or
        "asymmetric", the default of TensorFlow 1.
      src_part, dst_part, into: parts of the channels of wider tensors, as in `conv`.
      name: of the op.

    Returns:
      [N, ceil(C / 16), out height, out width, 16].

    Raises:
      ValueError: an argument is malformed here or while a graph is built.
      InvalidArgumentError: the shape of src does not fit when it runs.

    Source: tf.image.resize; ResizeNearestNeighbor and ResizeBilinear.

    Example:
      >>> x = np.arange(4 * 16, dtype=np.float32).reshape(1, 1, 1, 4, 16)
      >>> bd.ops.resize(x, "bilinear", channels=16, scales=2)[0, 0, 0, :, 0].numpy()
      array([ 0.,  4., 12., 20., 28., 36., 44., 48.], dtype=float32)
    """
    return library().blockdnn_resize(
        src,
        kind=kind,
        coordinates=coordinates,
        channels=channels,
        scales=[] if scales is None else pair("scales", scales),
        size=[] if size is None else pair("size", size),
        src_part=part_attr("src_part", src_part),
        **dst_part_args(dst_part, into),
        name=name,
    )
