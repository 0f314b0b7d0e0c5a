"""Convolution, dense, grouped or depthwise."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ...graph import Ref
from ...layout import NCHW16C as BLOCKED
from .bundle import Bundle
from .primitive import Layout, Primitive, padding_attributes, padding_text, pair_text
from .steps import Step, binary, compose_affine


@dataclass(frozen=True, kw_only=True)
class Conv(Primitive):
    """A convolution: scale * conv(src, weights) + shift per output channel, then the steps.

    Attributes:
        weights: HWIO, [kh, kw, in_channels / groups, channels]; as stored in the variable.
        scale, shift: what batch normalisation and bias add up to, float64 [channels].
        src_blocks: with src_part = (0, channels in all), the blocks of 16 channels of the wider
            tensor that are its source; empty: one after the other.
        pool: [height, width] of the max pooling behind the steps, in windows that touch.
    """

    op: ClassVar[str] = "BlockdnnConv"
    takes_steps: ClassVar[bool] = True
    takes_scratchpad: ClassVar[bool] = True
    weights: np.ndarray = field(repr=False)
    in_channels: int
    groups: int = 1
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)
    padding: str = "VALID"
    explicit_paddings: tuple[int, int, int, int] = (0, 0, 0, 0)
    scale: np.ndarray | None = field(default=None, repr=False)
    shift: np.ndarray | None = field(default=None, repr=False)
    reads: Layout = BLOCKED
    writes: Layout = BLOCKED
    algorithm: str = "auto"
    src_blocks: tuple[int, ...] = ()
    pool: tuple[int, ...] = ()

    @property
    def chain(self) -> tuple[Step, ...]:
        """The steps with the shift before them."""
        shift = () if self.shift is None else (binary("add", "channel", self.shift),)
        return (*shift, *self.steps)

    @property
    def dst_layout(self) -> Layout:
        return self.writes

    def layout_of(self, role: str) -> Layout:
        return self.reads if role == "src" else self.writes

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
    def depthwise(self) -> bool:
        return self.groups > 1 and self.groups == self.in_channels

    def then_affine(self, scale: np.ndarray | None, shift: np.ndarray | None) -> "Conv":
        """This convolution followed by scale * x + shift, folded (float64)."""
        scale, shift = compose_affine((self.scale, self.shift), (scale, shift))
        return replace(self, scale=scale, shift=shift)

    def write_weights(self, out: np.ndarray) -> None:
        """Writes the weights, scale multiplied in and rounded once, to a float32 vector."""
        out = out.reshape(self.weights.shape)
        if self.scale is None:
            out[...] = self.weights
        else:
            np.multiply(self.weights, self.scale, out=out, dtype=np.float64, casting="same_kind")

    def add_weights(self, bundle: Bundle) -> int:
        """The offset of its weights."""
        key = self.weights if self.scale is None else self
        return bundle.add(key, self.weights.size, self.write_weights)

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
