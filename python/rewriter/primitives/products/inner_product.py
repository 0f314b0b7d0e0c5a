"""Multiplication by a matrix of weights."""

from dataclasses import dataclass
from typing import ClassVar

from ....layout import NHWC
from ..primitive import Layout, Primitive


@dataclass(frozen=True, kw_only=True)
class InnerProduct(Primitive):
    """src [.., in_channels] @ weights, then the steps; inputs[1] is the weights themselves.

    They stay where they are, and follow their variable.

    Attributes:
        algorithm: "auto" packs the weights where few rows gain by it, "direct" does not.
    """

    op: ClassVar[str] = "BlockdnnInnerProduct"
    takes_steps: ClassVar[bool] = True
    takes_scratchpad: ClassVar[bool] = True
    own: ClassVar[tuple[str, ...]] = ("src", "weights")
    in_channels: int
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
