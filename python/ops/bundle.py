"""The weights and constant operands of a function, in one vector.

One capture, one read, saved and loaded as one tensor; ops name their part by its offset.
"""

from collections.abc import Callable

import numpy as np

from ..graph import Ref

_ALIGN = 16  # floats: every part starts on a cache line


class Bundle:
    """Lays arrays out in one float32 vector; the same array is stored once.

    Attributes:
        tensor: the vector in the body that is being written.
        size: floats so far.
    """

    def __init__(self):
        self.tensor: Ref | None = None
        self._parts: dict[int, tuple[object, int, int, Callable]] = {}
        self.size = 0

    def add(self, key: object, size: int, write: Callable[[np.ndarray], None]) -> int:
        """The offset of what `write` will write for the object `key`."""
        if id(key) not in self._parts:
            self._parts[id(key)] = (key, self.size, size, write)
            self.size += -(-size // _ALIGN) * _ALIGN
        return self._parts[id(key)][1]

    def add_array(self, values: np.ndarray) -> int:
        def write(out):
            out[...] = values.reshape(-1)

        return self.add(values, values.size, write)

    def vector(self) -> np.ndarray:
        result = np.zeros(self.size, np.float32)
        for _, offset, size, write in self._parts.values():
            write(result[offset : offset + size])
        return result
