"""A call of an op as plain data, which can be drawn, spoiled, printed and made."""

from dataclasses import dataclass, field

import numpy as np

BLOCK = 16


def blocks(channels):
    return -(-channels // BLOCK)


@dataclass
class Array:
    """A tensor to be drawn: its values follow from `seed`, so that a case is a few numbers.

    Attributes:
        channels: of a blocked tensor [N, blocks, .., 16], whose tail is then zero.
        values: these, whatever the seed.
    """

    shape: tuple
    seed: int = 0
    dtype: str = "float32"
    channels: int | None = None
    values: tuple | None = None

    def draw(self):
        if self.values is not None:
            return np.array(self.values, self.dtype).reshape(self.shape)
        rng = np.random.default_rng(self.seed)
        array = rng.standard_normal(self.shape) if np.prod(self.shape) else np.zeros(self.shape)
        if self.dtype == "bool":
            return array > -0.5
        if "int" in self.dtype:
            array = np.abs(np.round(3 * array)) if self.dtype[0] == "u" else np.round(3 * array)
        blocked = self.channels is not None and len(self.shape) > 2 and self.shape[-1] == BLOCK
        if blocked and array.size:
            lanes = np.arange(self.shape[1])[:, None] * BLOCK + np.arange(BLOCK)
            lanes = lanes.reshape(self.shape[1], *[1] * (len(self.shape) - 3), BLOCK)
            array = np.where(lanes < self.channels, array, 0)
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
