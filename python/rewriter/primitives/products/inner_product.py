"""Multiplication by a matrix of weights."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ....graph import Ref
from ....layout import NHWC
from ..bundle import Bundle
from ..primitive import Layout, Primitive


@dataclass(frozen=True, kw_only=True)
class InnerProduct(Primitive):
    """src [.., in_channels] @ weights, then the steps; inputs[1] is the weights themselves.

    They stay where they are, and follow their variable, unless they are computed from it.

    Attributes:
        weights: [in_channels, channels], where they are no tensor that is there anyway.
        algorithm: "auto" packs the weights where few rows gain by it, "direct" does not.
    """

    op: ClassVar[str] = "BlockdnnInnerProduct"
    takes_steps: ClassVar[bool] = True
    takes_scratchpad: ClassVar[bool] = True
    own: ClassVar[tuple[str, ...]] = ("src", "weights")
    in_channels: int
    weights: np.ndarray | None = field(default=None, repr=False)
    algorithm: str = "auto"

    @property
    def dst_layout(self) -> Layout:
        return NHWC

    def layout_of(self, role: str) -> Layout:
        return NHWC

    def _kind(self) -> str:
        return f"{self.in_channels}->{self.channels}"

    def attributes(self) -> dict:
        return {
            "weights_shape": [self.in_channels, self.channels],
            "algorithm": self.algorithm,
            "constant_weights": True,
        }

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        if self.weights is None:
            return super().write(inputs, bundle)
        attributes, given = super().write(inputs | {"weights": bundle.tensor}, bundle)
        attributes["weights_offset"] = bundle.add_array(self.weights)
        return attributes, given
