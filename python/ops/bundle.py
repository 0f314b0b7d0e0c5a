"""The weights and constant operands of a function, in one vector.

One capture, one read, saved and loaded as one tensor; ops name their part by its offset. Weights of
other types lie in the same memory, which a Bitcast reads as elements of theirs.
"""

from collections.abc import Callable

import numpy as np

from ..graph import FLOAT32, INT32, GraphView, Node, Ref, constant_node, make_node
from ..tensorflow_private import dtypes

_ALIGN = 16  # floats: every part starts on a cache line
# In a vector of _LARGE floats, parts of up to _SMALL lie together in pieces of _PIECE. Kernels read
# biases where they are, and with each of them 64 KiB around it become resident, or a huge page.
_LARGE, _SMALL, _PIECE = 1 << 16, 1 << 12, 1 << 14


class Bundle:
    """Lays arrays out in one float32 vector; the same array is stored once.

    Attributes:
        tensor: the vector in the body that is being written.
        size: floats so far.
        view: the graph of that body.
    """

    def __init__(self):
        self.tensor: Ref | None = None
        self.view: GraphView | None = None
        self._typed: dict[tuple[int, int], Ref] = {}
        self._parts: dict[int, tuple[object, int, int, Callable]] = {}
        self._small = self._room = 0  # where the next small part goes, and how many floats fit
        self.size = 0

    def add(self, key: object, size: int, write: Callable[[np.ndarray], None]) -> int:
        """The offset of what `write` will write for the object `key`."""
        if id(key) not in self._parts:
            self._parts[id(key)] = (key, self._place(-(-size // _ALIGN) * _ALIGN), size, write)
        return self._parts[id(key)][1]

    def _place(self, size: int) -> int:
        """The offset of the next part, of so many floats."""
        if size > _SMALL or self.size < _LARGE:
            self.size += size
            return self.size - size
        if size > self._room:
            self._small, self._room = self.size, _PIECE
            self.size += _PIECE
        self._small, self._room = self._small + size, self._room - size
        return self._small - size

    def add_array(self, values: np.ndarray) -> int:
        def write(out):
            out[...] = values.reshape(-1)

        return self.add(values, values.size, write)

    def add_typed(self, key: object, values: np.ndarray) -> tuple[Ref, int]:
        """The bundle as elements of the type of `values`, and the offset of these among them."""
        dtype = dtypes.as_dtype(values.dtype)
        per_float = 4 // dtype.size

        def write(out):
            out.view(values.dtype)[: values.size] = values.reshape(-1)

        offset = per_float * self.add(key, -(-values.size // per_float), write)
        read = id(self.view), dtype.as_datatype_enum  # Bodies may call it by one name.
        if read not in self._typed:
            name, types = f"{self.tensor.node}/{dtype.name}", {"T": FLOAT32, "type": dtype}
            node = make_node(name, "Bitcast", [self.tensor], **types)
            self._typed[read] = self.view.add(node).ref
        return self._typed[read], offset

    def add_constant(self, name: str, values: np.ndarray) -> Ref:
        """A float32 tensor of its own."""
        return self.view.add(constant_node(name, values, FLOAT32)).ref

    def add_tensor(self, name: str, values: np.ndarray) -> Node:
        """A node of that name that makes a part of the bundle a tensor of its own."""
        offset = self.add_array(values)
        begin = self.view.add(constant_node(f"{name}/begin", [offset])).ref
        size = self.view.add(constant_node(f"{name}/size", [values.size])).ref
        part = make_node(
            f"{name}/part", "Slice", [self.tensor, begin, size], T=FLOAT32, Index=INT32
        )
        shape = self.view.add(constant_node(f"{name}/shape", values.shape)).ref
        return make_node(name, "Reshape", [self.view.add(part).ref, shape], T=FLOAT32, Tshape=INT32)

    @property
    def length(self) -> int:
        """The floats of the vector, which ends with its last part."""
        end = max((offset + size for _, offset, size, _ in self._parts.values()), default=0)
        return -(-end // _ALIGN) * _ALIGN

    def write(self, vector: np.ndarray) -> None:
        """Writes all parts to a vector of zeros of that length."""
        for _, offset, size, write in self._parts.values():
            write(vector[offset : offset + size])
