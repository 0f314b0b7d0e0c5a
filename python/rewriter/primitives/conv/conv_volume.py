"""3-D convolution of volumes that lie as slices."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....graph import Ref
from ..bundle import Bundle
from .convolution import Convolution


@dataclass(frozen=True, kw_only=True)
class ConvVolume(Convolution):
    """A 3-D convolution; weights are [kd, kh, kw, in_channels, channels].

    Attributes:
        strides: [depth, height, width].
        depth: slices of a volume of the source.
        sizes: the logical shape of the slices of the result.
    """

    op: ClassVar[str] = "BlockdnnConvVolume"
    output_axis: ClassVar[int] = 4
    may_read_plain: ClassVar[bool] = True
    strides: tuple[int, ...] = (1, 1, 1)
    padding: str = "VALID"
    depth: int
    sizes: tuple

    def _kind(self) -> str:
        window = "x".join(map(str, self.weights.shape[:3]))
        return (
            f"{window} strides {list(self.strides)} {self.padding.lower()} depth {self.depth} "
            f"{self.in_channels}->{self.channels} {self.reads}->{self.writes}"
        )

    @property
    def taps(self) -> float:
        return float(np.prod(self.weights.shape[:4]))

    def shape(self, node, shapes):
        return self.sizes

    def attributes(self) -> dict:
        return {
            "src_layout": self.reads,
            "dst_layout": self.writes,
            "channels": self.in_channels,
            "depth": self.depth,
            "weights_shape": list(self.weights.shape),
            "strides": list(self.strides),
            "padding": self.padding,
            "algorithm": self.algorithm,
            "constant_weights": True,
        }

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        offset = self.add_weights(bundle)
        attributes, (src, *args) = super().write(inputs, bundle)
        return attributes | {"weights_offset": offset}, [src, bundle.tensor, *args]
