"""Convolution, dense, grouped or depthwise."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ....graph import Ref
from ..bundle import Bundle
from ..primitive import padding_attributes, padding_text, pair_text
from .convolution import Convolution


@dataclass(frozen=True, kw_only=True)
class Conv(Convolution):
    """An ordinary convolution; weights are HWIO, [kh, kw, in_channels / groups, channels].

    Attributes:
        src_blocks: with src_part = (0, channels in all), the blocks of 16 channels of the wider
            tensor that are its source; empty: one after the other.
        pool: [height, width] of the max pooling behind the steps, in windows that touch.
    """

    op: ClassVar[str] = "BlockdnnConv"
    groups: int = 1
    dilations: tuple[int, int] = (1, 1)
    padding: str = "VALID"
    explicit_paddings: tuple[int, int, int, int] = (0, 0, 0, 0)
    src_blocks: tuple[int, ...] = ()
    pool: tuple[int, ...] = ()

    def details(self) -> str:
        blocks = f"; blocks {list(self.src_blocks)}" if self.src_blocks else ""
        pool = f"; max {list(self.pool)}" if self.pool else ""
        return super().details() + blocks + pool

    def _kind(self) -> str:
        kh, kw = self.weights.shape[:2]
        groups = f" groups {self.groups}" if self.groups > 1 else ""
        stride = f" stride {pair_text(self.strides)}" if self.strides != (1, 1) else ""
        dilation = f" dilation {pair_text(self.dilations)}" if self.dilations != (1, 1) else ""
        return (
            f"{kh}x{kw}{stride}{dilation} {padding_text(self)} {self.in_channels}->{self.channels}"
            f"{groups} {self.reads}->{self.writes}"
        )

    @property
    def may_read_plain(self) -> bool:
        return self.groups == 1

    @property
    def depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.in_channels

    @property
    def taps(self) -> float:
        return float(np.prod(self.weights.shape[:3]))

    def attributes(self) -> dict:
        return {
            "src_layout": self.reads,
            "dst_layout": self.writes,
            "channels": self.in_channels,
            "weights_shape": list(self.weights.shape),
            "groups": self.groups,
            "strides": list(self.strides),
            "dilations": list(self.dilations),
            "algorithm": self.algorithm,
            "pool": list(self.pool),
            "src_blocks": list(self.src_blocks),
            "constant_weights": True,
        } | padding_attributes(self)

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        offset = self.add_weights(bundle)
        attributes, (src, *args) = super().write(inputs, bundle)
        return attributes | {"weights_offset": offset}, [src, bundle.tensor, *args]
