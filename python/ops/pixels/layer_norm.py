"""Normalisation over the channels of each pixel."""

from dataclasses import field

import numpy as np
import tensorflow as tf

from ...layout import NCHW16C as BLOCKED
from ...layout import NHWC
from ..arguments import as_before, as_images, static_channels
from ..call import OpCall, function_of
from ..record import InPlace, Layout


class LayerNorm(InPlace, title="layer normalisation"):
    """
    Attributes:
        gamma, beta: [channels].
        centered: whether the mean is subtracted; else it is the normalisation by the root of the
            mean square.
        of_pixels: the source is [N, H, W, C], which has a blocked form.
    """

    epsilon: float
    gamma: np.ndarray = field(repr=False)
    beta: np.ndarray = field(repr=False)
    centered: bool = True
    layout: Layout = BLOCKED
    of_pixels: bool = True

    def _kind(self) -> str:
        mean = "" if self.centered else ", by the root of the mean square"
        return f"{self.channels} channels {self.layout}{mean}"

    def write(self, inputs, bundle) -> tuple[dict, list]:
        attributes, tensors = super().write(inputs, bundle)
        attributes["offsets"] = [bundle.add_array(self.gamma), bundle.add_array(self.beta)]
        return attributes, tensors + [bundle.tensor] * 2


@function_of(LayerNorm, "centered")
def layer_norm(
    src,
    gamma,
    beta,
    *,
    epsilon: float = 1e-3,
    layout: str = "nChw16c",
    channels: int | None = None,
):
    """Computes (src - mean) / sqrt(variance + epsilon) * gamma + beta for each pixel.

    Mean and variance are those of the C channels of the pixel. Without `centered` the mean counts
    as 0: src / sqrt(mean of src^2 + epsilon) * gamma + beta, which is RMS normalisation.

    Args:
      src: float32 activation, [N, .., C] ("nhwc") or [N, ceil(C / 16), H, W, 16]
        ("nChw16c").
      gamma, beta: float32 [C].
      epsilon: what is added to the variance.
      centered: whether the mean is subtracted.
      channels: C; needed for blocked tensors.

    Returns:
      float32, of the shape of src. The result may take the memory of src if nobody else holds
      it. Lanes of a blocked result beyond C are zero.

    Source: layer normalisation of oneDNN; keras.layers.LayerNormalization; B. Zhang, R. Sennrich,
    "Root Mean Square Layer Normalization", 2019.

    Example:
      >>> x = np.array([[[[1.0, 2.0, 3.0]]]], np.float32)
      >>> y = bd.ops.layer_norm(x, np.ones(3, "f"), np.zeros(3, "f"), epsilon=0.0, layout="nhwc")
      >>> y.numpy().round(3)
      array([[[[-1.225,  0.   ,  1.225]]]], dtype=float32)
    """
    src = tf.convert_to_tensor(src)
    attributes = {"channels": static_channels(src, layout, channels)}
    if layout != NHWC or src.shape.rank in (4, None):
        return OpCall((src, gamma, beta), attributes)
    return OpCall((as_images(src), gamma, beta), attributes, lambda y: as_before(y, src))
