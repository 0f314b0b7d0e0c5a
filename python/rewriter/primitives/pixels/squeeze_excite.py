"""Squeeze-and-excitation as one op."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....graph import Ref
from ..bundle import Bundle
from ..conv.conv import Conv
from ..primitive import Layout, Primitive


@dataclass(frozen=True, kw_only=True)
class SqueezeExcite(Primitive):
    """Scales of a sample and channel: the plane's mean through two 1x1 convolutions.

    Their steps are element-wise; weights, scale and shift are as of any convolution.

    Attributes:
        scales_src: the result is the source times the scales.
    """

    op: ClassVar[str] = "BlockdnnSqueezeExcite"
    takes_scratchpad: ClassVar[bool] = True
    reduce: Conv
    expand: Conv
    writes: Layout
    scales_src: bool = False

    @property
    def dst_layout(self) -> Layout:
        return self.writes

    @property
    def products(self) -> tuple[Conv, Conv]:
        return self.reduce, self.expand

    def _kind(self) -> str:
        chains = (step.text() for conv in self.products for step in conv.steps)
        widths = f"{self.channels}->{self.reduce.channels}->{self.channels}"
        times = " times src" if self.scales_src else ""
        return "; ".join([f"{widths}{times}, writes {self.writes}", *chains])

    def attributes(self) -> dict:
        reduce, expand = (";".join(step.text() for step in conv.steps) for conv in self.products)
        return {
            "channels": self.channels,
            "squeezed": self.reduce.channels,
            "reduce_post_ops": reduce,
            "expand_post_ops": expand,
            "dst_layout": self.writes,
            "scale_src": self.scales_src,
        }

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        attributes, given = super().write(inputs, bundle)
        attributes["offsets"] = [at for conv in self.products for at in _product(conv, bundle)]
        return attributes, given + [bundle.tensor] * 4


def _product(conv: Conv, bundle: Bundle) -> tuple[int, int]:
    """Where the weights and the bias of a product lie."""
    bias = np.zeros(conv.channels) if conv.shift is None else conv.shift
    return conv.add_weights(bundle), bundle.add_array(bias)
