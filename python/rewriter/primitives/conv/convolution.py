"""What ordinary and transposed convolutions have in common."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ....layout import NCHW16C as BLOCKED
from ..bundle import Bundle
from ..primitive import Layout, Primitive
from ..steps import Step, binary, compose_affine


@dataclass(frozen=True, kw_only=True)
class Convolution(Primitive):
    """scale * convolution(src, weights) + shift per output channel, then the steps.

    Attributes:
        weights: as stored in the variable; axis `output_axis` are the output channels.
        scale, shift: what batch normalisation and bias add up to, float64 [channels].
    """

    takes_steps: ClassVar[bool] = True
    takes_scratchpad: ClassVar[bool] = True
    output_axis: ClassVar[int] = 3
    groups: ClassVar[int] = 1
    may_read_plain: ClassVar[bool] = False  # a plain source of few channels
    weights: np.ndarray = field(repr=False)
    in_channels: int
    strides: tuple[int, ...] = (1, 1)
    scale: np.ndarray | None = field(default=None, repr=False)
    shift: np.ndarray | None = field(default=None, repr=False)
    reads: Layout = BLOCKED
    writes: Layout = BLOCKED
    algorithm: str = "auto"

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

    @property
    def depthwise(self) -> bool:
        return False

    @property
    def taps(self) -> float:
        """Multiply-adds for one element of the result."""
        raise NotImplementedError

    def then_affine(self, scale: np.ndarray | None, shift: np.ndarray | None) -> "Convolution":
        """This convolution followed by scale * x + shift, folded (float64)."""
        scale, shift = compose_affine((self.scale, self.shift), (scale, shift))
        return replace(self, scale=scale, shift=shift)

    def write_weights(self, out: np.ndarray) -> None:
        """Writes the weights, scale multiplied in and rounded once, to a float32 vector."""
        out = out.reshape(self.weights.shape)
        if self.scale is None:
            out[...] = self.weights
        else:
            after = (1,) * (3 - self.output_axis)
            scale = np.broadcast_to(self.scale, [self.channels]).reshape(-1, *after)
            np.multiply(self.weights, scale, out=out, dtype=np.float64, casting="same_kind")

    def add_weights(self, bundle: Bundle) -> int:
        """The offset of its weights."""
        key = self.weights if self.scale is None else self
        return bundle.add(key, self.weights.size, self.write_weights)
