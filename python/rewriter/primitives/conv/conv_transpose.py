"""Transposed convolution."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....graph import Ref
from ..bundle import Bundle
from ..primitive import pair_text
from .convolution import Convolution


@dataclass(frozen=True, kw_only=True)
class ConvTranspose(Convolution):
    """A transposed convolution; weights are [kh, kw, channels, in_channels].

    Attributes:
        crops: top, bottom, left and right pixels cut off; what comes after may be negative.
    """

    op: ClassVar[str] = "BlockdnnConvTranspose"
    output_axis: ClassVar[int] = 2
    crops: tuple[int, int, int, int] = (0, 0, 0, 0)

    def _kind(self) -> str:
        kh, kw = self.weights.shape[:2]
        return (
            f"{kh}x{kw} stride {pair_text(self.strides)} crops {list(self.crops)} "
            f"{self.in_channels}->{self.channels} {self.reads}->{self.writes}"
        )

    @property
    def taps(self) -> float:
        kh, kw, _, ic = self.weights.shape
        return kh * kw * ic / float(np.prod(self.strides))

    def attributes(self) -> dict:
        return {
            "dst_layout": self.writes,
            "channels": self.in_channels,
            "weights_shape": list(self.weights.shape),
            "strides": list(self.strides),
            "crops": list(self.crops),
            "algorithm": self.algorithm,
            "constant_weights": True,
        }

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        offset = self.add_weights(bundle)
        attributes, (src, *args) = super().write(inputs, bundle)
        return attributes | {"weights_offset": offset}, [src, bundle.tensor, *args]
