"""Where the elements of a tensor lie in memory."""

import ctypes
import functools
import operator
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from ..native import CList, CTensorDesc, c_call, c_library


class TensorDesc:
    """Describes the memory of a tensor: dimensions, data type, layout or strides, and offset.

    Args:
      dims: sizes of the 1 to 6 logical dimensions: (n, c, d, h, w) for
        activations and (g, o, i, d, h, w) for weights, without those the layout
        lacks, in this order whatever the layout. Zero is legal.
      dtype: "float32", "bfloat16", "float16", "int32", "int8" or "uint8"; a name,
        a tf.DType, or a NumPy dtype.
      layout: a name of `layouts()`. Its letters give the order in memory,
        outermost first; a capital letter is a dimension cut into blocks, whose
        contents stand at the end: "nhwc", "nChw16c", "OIhw8i8o".
      strides: elements between neighbours, one number a dimension; for a
        dimension in blocks, between its blocks. By default those of a dense
        tensor in `layout`. Without a layout, nothing is in blocks.
      offset: elements from the start of the memory to the first element.

    A description is immutable, comparable and hashable. The library computes
    everything in it, by the formulas of cc/layout/tensor_desc.h.

    Raises:
      ValueError: a bad argument, in one line.

    Source: memory formats of oneDNN.

    Example:
      >>> memory = bd.TensorDesc((2, 17, 5, 4), "float32", "nChw16c")
      >>> memory.shape, memory.size_bytes
      ((2, 2, 5, 4, 16), 5120)
      >>> memory.offset(0, 16, 0, 0)  # the first element of the second block
      320
    """

    __slots__ = ("_c",)

    def __init__(self, dims, dtype="float32", layout: str | None = None, *, strides=None, offset=0):
        try:
            dtype = tf.dtypes.as_dtype(dtype).name
        except TypeError:
            dtype = str(dtype)  # for the library to refuse
        self._c = CTensorDesc()
        c_call(
            "BlockdnnMakeTensorDesc",
            dtype.encode(),
            None if layout is None else str(layout).encode(),
            CList.of(_integers("dims", dims)),
            CList.of(() if strides is None else _integers("strides", strides)),
            *_integers("offset", [offset]),
            ctypes.byref(self._c),
        )

    @staticmethod
    @functools.cache
    def layouts() -> tuple[str, ...]:
        """The names of all layouts."""
        names, name = [], c_library().BlockdnnLayoutName
        while (layout := name(len(names))) is not None:
            names.append(layout.decode())
        return tuple(names)

    @property
    def dims(self) -> tuple[int, ...]:
        """Sizes of the logical dimensions."""
        return self._list("dims")

    @property
    def dtype(self) -> tf.DType:
        """The data type."""
        return tf.dtypes.as_dtype(c_library().BlockdnnDataTypeName(self._c.dtype).decode())

    @property
    def layout(self) -> str | None:
        """Name of the layout; None if the tensor was described by strides alone."""
        return None if self._c.layout < 0 else self.layouts()[self._c.layout]

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements between neighbours; for a dimension in blocks, between its blocks."""
        return self._list("strides")

    @property
    def blocks(self) -> tuple[int, ...]:
        """Elements of each dimension that one block holds; 1 if it is not in blocks."""
        return self._list("blocks")

    @property
    def padded_dims(self) -> tuple[int, ...]:
        """`dims` rounded up to whole blocks."""
        return self._list("padded_dims")

    @property
    def size(self) -> int:
        """Elements that a buffer must hold, from its start to the last element and its tail."""
        return self._c.size

    @property
    def size_bytes(self) -> int:
        """Bytes of a buffer of `size` elements."""
        return self._c.size_bytes

    @property
    def is_dense(self) -> bool:
        """True if there are no holes between the elements; the tail counts as elements."""
        return bool(self._c.is_dense)

    @property
    def is_whole(self) -> bool:
        """True if strides and offset are those that the layout alone gives."""
        return bool(self._c.is_whole)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the TensorFlow tensor that has this memory.

        Plain layouts: the dimensions in the order of the letters, "chwn" is
        [C, H, W, N]. Blocked: the numbers of blocks in that order, then the sizes of
        the blocks: "nChw16c" is [N, ceil(C / 16), H, W, 16]. With strides or an offset
        of its own: [size], a flat buffer.
        """
        return tuple(self._c.shape[: self._c.shape_rank])

    def offset(self, *index: int) -> int:
        """Returns the number of elements from the start of the memory to the element `index`.

        Args:
          *index: one number a dimension; none at all stands for the first element.
            It may lie in the tail, up to `padded_dims`.

        Raises:
          ValueError: another number of indices.
          IndexError: an index outside.
        """
        if not index:
            return self._c.offset
        index = _integers("index", index)
        if len(index) != len(self.dims):
            raise ValueError(
                f"offset takes {len(self.dims)} indices, one a dimension; got {len(index)}"
            )
        if any(not 0 <= i < size for i, size in zip(index, self.padded_dims, strict=True)):
            raise IndexError(f"index {index} is outside the padded dims {self.padded_dims}")
        return c_library().BlockdnnOffset(ctypes.byref(self._c), CList.of(index).values)

    def offsets(self, padded: bool = False) -> np.ndarray:
        """Returns the offset of every element.

        Args:
          padded: also those of the tail.

        Returns:
          int64 of shape `dims`, or `padded_dims`: the offset of each element.
        """
        offsets = np.empty(self.padded_dims if padded else self.dims, np.int64)
        pointer = offsets.ctypes.data_as(ctypes.POINTER(ctypes.c_int64))
        c_library().BlockdnnOffsets(ctypes.byref(self._c), padded, pointer)
        return offsets

    def submemory(self, dims, offsets) -> "TensorDesc":
        """Describes the part of `dims` elements that starts at the element `offsets`.

        A dimension in blocks is cut between blocks: the part starts at a whole
        block and ends at one, or with the dimension.

        Raises:
          ValueError: the part is not inside, or cuts a block.
        """
        part = object.__new__(TensorDesc)
        part._c = CTensorDesc()
        c_call(
            "BlockdnnSubmemory",
            ctypes.byref(self._c),
            CList.of(_integers("dims", dims)),
            CList.of(_integers("offsets", offsets)),
            ctypes.byref(part._c),
        )
        return part

    def draw(self, svg=None, *, max_rows: int = 32, console=None) -> None:
        """Draws which element lies where, coloured by its place in memory.

        A table has the elements by their indices, each cell with its offset, below a formula of
        it. The tail is marked. What does not fit is left out, and the picture says so; a tensor of
        any size can be drawn.

        Args:
          svg: path of an SVG file to write; by default the drawing is printed.
          max_rows: rows of the table, at least 8.
          console: a `rich.console.Console` to print to instead of stdout.

        Raises:
          ValueError: max_rows is too small.
          OSError: the file cannot be written.
        """
        from ..showing import memory

        memory.draw(self, svg, max_rows=max_rows, console=console)

    def _list(self, name: str) -> tuple[int, ...]:
        return tuple(getattr(self._c, name)[: self._c.rank])

    def __eq__(self, other) -> bool:
        return (
            bytes(self._c) == bytes(other._c) if isinstance(other, TensorDesc) else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(bytes(self._c))

    def __repr__(self) -> str:
        arguments = [str(self.dims), repr(self.dtype.name)]
        if self.layout is not None:
            arguments.append(repr(self.layout))
        if not self.is_whole:
            arguments.append(f"strides={self.strides}")
        if self.offset():
            arguments.append(f"offset={self.offset()}")
        return f"TensorDesc({', '.join(arguments)})"

    def __reduce__(self):
        strides = None if self.is_whole else self.strides
        make = functools.partial(TensorDesc, strides=strides, offset=self.offset())
        return make, (self.dims, self.dtype.name, self.layout)


def _integers(name: str, values) -> tuple[int, ...]:
    """`values` as a tuple of int that fit into 64 bits.

    Raises:
      ValueError: they are anything else.
    """
    if not isinstance(values, (Sequence, np.ndarray, tf.TensorShape)) or isinstance(values, str):
        raise ValueError(f"{name} must be a list of integers; got {values!r}")
    try:
        numbers = tuple(operator.index(value) for value in values)
    except TypeError:
        raise ValueError(f"{name} must be integers; got {list(values)!r}") from None
    if any(not -(2**63) <= value < 2**63 for value in numbers):
        raise ValueError(f"{name} must fit into 64 bits; got {list(numbers)}")
    return numbers
