"""The weights and constant operands of a function, in one vector.

One capture, one read, saved and loaded as one tensor; ops name their part by the offset. Weights of
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
        length: the floats of the vector, which ends with its last part.
        view: the graph of that body.
    """

    def __init__(self):
        self.tensor: Ref | None = None
        self.view: GraphView | None = None
        self._typed: dict[tuple[int, int], Ref] = {}
        self._parts: dict[int, tuple[object, int, Callable[[], np.ndarray]]] = {}
        self._small = self._room = 0  # where the next small part goes, and how many floats fit
        self.size = self.length = 0

    def add(self, key: object, size: int, values: Callable[[], np.ndarray]) -> int:
        """The offset of the `size` floats that `values` will return for the object `key`."""
        if id(key) not in self._parts:
            size = -(-size // _ALIGN) * _ALIGN
            self._parts[id(key)] = (key, offset := self._place(size), values)
            self.length = max(self.length, offset + size)
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
        return self.add(values, values.size, lambda: values.astype(np.float32, copy=False))

    def add_typed(self, key: object, values: np.ndarray) -> tuple[Ref, int]:
        """The bundle as elements of the type of `values`, and the offset of these among them."""
        dtype = dtypes.as_dtype(values.dtype)
        per_float = 4 // dtype.size
        offset = per_float * self.add(key, -(-values.size // per_float), lambda: values)
        read = id(self.view), dtype.as_datatype_enum  # Bodies may call it by one name.
        if read not in self._typed:
            name, types = f"{self.tensor.node}/{dtype.name}", {"T": FLOAT32, "type": dtype}
            node = make_node(name, "Bitcast", [self.tensor], **types)
            self._typed[read] = self.view.add(node).ref
        return self._typed[read], offset

    def add_constant(self, name: str, values: np.ndarray) -> Ref:
        """A separate float32 tensor."""
        return self.view.add(constant_node(name, values, FLOAT32)).ref

    def add_tensor(self, name: str, values: np.ndarray) -> Node:
        """A node of that name whose result is a part of the bundle as a separate tensor."""
        offset = self.add_array(values)
        begin = self.view.add(constant_node(f"{name}/begin", [offset])).ref
        size = self.view.add(constant_node(f"{name}/size", [values.size])).ref
        part = make_node(
            f"{name}/part", "Slice", [self.tensor, begin, size], T=FLOAT32, Index=INT32
        )
        shape = self.view.add(constant_node(f"{name}/shape", values.shape)).ref
        return make_node(name, "Reshape", [self.view.add(part).ref, shape], T=FLOAT32, Tshape=INT32)

    @property
    def parts(self) -> list[tuple[int, Callable[[], np.ndarray]]]:
        """Of each part the offset, and what returns its values, as they lie in memory."""
        return [part for _, *part in self._parts.values()]
