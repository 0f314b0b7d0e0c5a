"""Normalisation of each pixel over its channels."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ....graph import Ref
from ....layout import NCHW16C as BLOCKED
from ..bundle import Bundle
from ..primitive import Layout, Primitive


@dataclass(frozen=True, kw_only=True)
class LayerNorm(Primitive):
    """(src - mean) / sqrt(variance + epsilon) * gamma + beta, in the layout of its source.

    Attributes:
        gamma, beta: [channels].
        of_pixels: the source is [N, H, W, C], which has a blocked form.
    """

    op: ClassVar[str] = "BlockdnnLayerNorm"
    epsilon: float
    gamma: np.ndarray = field(repr=False)
    beta: np.ndarray = field(repr=False)
    layout: Layout = BLOCKED
    of_pixels: bool = True

    @property
    def dst_layout(self) -> Layout:
        return self.layout

    def layout_of(self, role: str) -> Layout:
        return self.layout

    def _kind(self) -> str:
        return f"{self.channels} channels {self.layout}"

    def attributes(self) -> dict:
        return {"channels": self.channels, "epsilon": self.epsilon, "layout": self.layout}

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        attributes, given = super().write(inputs, bundle)
        attributes["offsets"] = [bundle.add_array(self.gamma), bundle.add_array(self.beta)]
        return attributes, given + [bundle.tensor] * 2
