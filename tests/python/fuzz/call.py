"""A call of an op as plain data, which can be drawn, spoiled, printed and made, and its result."""

from dataclasses import dataclass, field

import numpy as np
from quantized_numpy import real

BLOCK = 16


def blocks(channels):
    return -(-channels // BLOCK)


@dataclass
class Array:
    """A tensor to be drawn: its values follow from `seed`, so that a case is a few numbers.

    Attributes:
        channels: of a blocked tensor [N, blocks, .., 16], whose tail then stands for zero.
        values: these, whatever the seed.
        quantization: (scale, zero_point) of one of uint8, or nothing.
    """

    shape: tuple
    seed: int = 0
    dtype: str = "float32"
    channels: int | None = None
    values: tuple | None = None
    quantization: tuple = ()

    def draw(self):
        if self.values is not None:
            return np.array(self.values, self.dtype).reshape(self.shape)
        rng = np.random.default_rng(self.seed)
        array = rng.standard_normal(self.shape) if np.prod(self.shape) else np.zeros(self.shape)
        if self.dtype == "bool":
            return array > -0.5
        zero = 0
        if self.dtype == "uint8" and self.quantization:
            array, zero = rng.integers(0, 256, self.shape), int(self.quantization[1])
        elif self.dtype == "int8":
            array = np.clip(np.round(40 * array), -127, 127)
        elif "int" in self.dtype:
            array = np.abs(np.round(3 * array)) if self.dtype[0] == "u" else np.round(3 * array)
        blocked = self.channels is not None and len(self.shape) > 2 and self.shape[-1] == BLOCK
        if blocked and array.size:
            lanes = np.arange(self.shape[1])[:, None] * BLOCK + np.arange(BLOCK)
            lanes = lanes.reshape(self.shape[1], *[1] * (len(self.shape) - 3), BLOCK)
            array = np.where(lanes < self.channels, array, zero)
        return array.astype(self.dtype)


@dataclass
class Call:
    """One node. `inputs` has a list for each argument of the op's definition, in its order."""

    op: str
    inputs: list[list[Array]]
    attrs: dict = field(default_factory=dict)

    def arrays(self):
        return [array for group in self.inputs for array in group]


class Draw:
    """Random choices of one seed."""

    def __init__(self, *seed):
        self._rng = np.random.default_rng(seed)

    def of(self, *items):
        return items[self._rng.integers(len(items))]

    def to(self, low, high):
        """An integer, low <= i <= high; small ones more often."""
        return min(int(self._rng.integers(low, high + 1)), int(self._rng.integers(low, high + 1)))

    def chance(self, probability=0.5):
        return bool(self._rng.random() < probability)

    def seed(self):
        return int(self._rng.integers(1 << 30))

    def array(self, *shape, **options):
        return Array(tuple(shape), self.seed(), **options)

    def blocked(self, n, channels, *space):
        return self.array(n, blocks(channels), *space, BLOCK, channels=channels)

    def activation(self, layout, n, channels, *space):
        if layout == "nhwc":
            return self.array(n, *space, channels)
        return self.blocked(n, channels, *space)


@dataclass
class Expected:
    """A result in `layout`, of whose tensor the channels may be a part [first, total], and what
    its elements stand for."""

    values: np.ndarray  # plain
    tolerance: np.ndarray
    layout: str | None
    channels: int
    part: tuple = ()
    quantization: tuple = (1.0, 0)

    def read(self, result):
        return real(
            plain_channels(result, self.layout, self.channels, self.part), self.quantization
        )

    def tail_is_zero(self, result):
        total = self.part[1] if self.part else self.channels
        if self.layout != "nChw16c":
            return True
        tail = plain_channels(result, self.layout, -(-total // BLOCK) * BLOCK)[..., total:]
        return bool((tail == self.quantization[1]).all())


def plain_channels(x, layout, channels, part=()):
    """The channels of a tensor in `layout`, of any number of dimensions."""
    if layout != "nChw16c":
        return x
    x = np.moveaxis(x, 1, -2)
    x = x.reshape(*x.shape[:-2], x.shape[-2] * BLOCK)
    first = part[0] if part else 0
    return x[..., first : first + channels]
