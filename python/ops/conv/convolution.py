"""What all convolutions have in common."""

from dataclasses import field, replace
from typing import ClassVar

import numpy as np

from ...layout import NCHW16C as BLOCKED
from ..bundle import Bundle
from ..record import Layout, Record
from ..steps import Step, binary, compose_affine

_FLOAT32 = np.finfo(np.float32)


class Convolution(Record):
    """scale * convolution(src, weights) + shift per output channel, then the steps.

    Attributes:
        weights: as stored in the variable; axis `output_axis` are the output channels.
        scale, shift: what batch normalisation and bias add up to, float64 [channels].
    """

    takes_steps = True
    constant_weights = True
    output_axis: ClassVar[int] = 3
    groups: ClassVar[int] = 1
    may_read_plain: ClassVar[bool] = False  # a plain source of few channels
    depthwise: ClassVar[bool] = False
    weights: np.ndarray = field(repr=False)
    in_channels: int
    strides: tuple[int, ...] = (1, 1)
    scale: np.ndarray | None = field(default=None, repr=False)
    shift: np.ndarray | None = field(default=None, repr=False)
    src_layout: Layout = BLOCKED
    dst_layout: Layout = BLOCKED
    algorithm: str = "auto"

    @property
    def chain(self) -> tuple[Step, ...]:
        """The steps with the shift before them."""
        shift = () if self.shift is None else (binary("add", "channel", self.shift),)
        return (*shift, *self.steps)

    def layout_of(self, role: str) -> Layout:
        return self.src_layout if role == "src" else self.dst_layout

    @property
    def weights_shape(self) -> tuple[int, ...]:
        return self.weights.shape

    @property
    def src_channels(self) -> int:
        return self.in_channels

    def fault(self) -> str | None:
        *_, first, second = self.weights.shape
        ic, oc = (first, second) if self.output_axis == self.weights.ndim - 1 else (second, first)
        if (ic * self.groups, oc) != (self.in_channels, self.channels):
            return f"weights {list(self.weights.shape)}, not {self.in_channels}->{self.channels}"
        return super().fault()

    @property
    def taps(self) -> float:
        """Multiply-adds for one element of the result."""
        return float(np.prod(self.weights.shape[:-1]))

    def _channels(self) -> str:
        return f"{self.in_channels}->{self.channels}"

    def _layouts(self) -> str:
        return f"{self.src_layout}->{self.dst_layout}"

    def then_affine(
        self, scale: np.ndarray | None, shift: np.ndarray | None
    ) -> "Convolution | None":
        """This convolution followed by scale * x + shift, folded (float64).

        None where float32 does not hold what that makes of weights and shift, while it may hold
        each result: a channel of weights would become infinite, or zero.
        """
        scale, shift = compose_affine((self.scale, self.shift), (scale, shift))
        folded = replace(self, scale=scale, shift=shift)
        return folded if folded._is_in_range() else None

    def _is_in_range(self) -> bool:
        shift_fits = self.shift is None or (np.abs(self.shift) <= _FLOAT32.max).all()
        if not shift_fits or (self.scale is None and self.weights.dtype == np.float32):
            return shift_fits
        axes = tuple(axis for axis in range(self.weights.ndim) if axis != self.output_axis)
        largest = np.maximum(self.weights.max(axes), -self.weights.min(axes)).astype(np.float64)
        scaled = largest if self.scale is None else largest * np.abs(self.scale)
        vanish = (scaled < _FLOAT32.tiny) & (largest >= _FLOAT32.tiny) & (scaled > 0)
        return bool((scaled <= _FLOAT32.max).all()) and not vanish.any()

    def folded_weights(self) -> np.ndarray:
        """The weights, scale multiplied in and rounded once."""
        if self.scale is None:
            return self.weights.astype(np.float32, copy=False)
        after = (1,) * (3 - self.output_axis)
        scale = np.broadcast_to(self.scale, [self.channels]).reshape(-1, *after)
        out = np.empty(self.weights.shape, np.float32)
        return np.multiply(self.weights, scale, out=out, dtype=np.float64, casting="same_kind")

    def add_weights(self, bundle: Bundle) -> int:
        """The offset of the weights."""
        key = self.weights if self.scale is None else self
        return bundle.add(key, self.weights.size, self.folded_weights)

    def attributes(self) -> dict:
        return super().attributes() | {"channels": self.in_channels}

    def write(self, inputs, bundle) -> tuple[dict, list]:
        offset = self.add_weights(bundle)
        attributes, (src, args) = super().write(inputs, bundle)
        return attributes | {"weights_offset": offset}, [src, bundle.tensor, args]
