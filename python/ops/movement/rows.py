"""TensorFlow's ops that move rows and columns: on blocks [N, CB, H, W, 16] they are the same.

Their other inputs are constants that speak of the axes of blocks.
"""

from ...graph import FLOAT32, INT32
from ..record import Record


class MirrorPad(Record, op="MirrorPad", title="mirrored padding"):
    """Rows and columns around a plane that mirror those in it: "REFLECT" or "SYMMETRIC"."""

    operands = ("src", "paddings")
    other_types = {"paddings": INT32}
    mode: str


class ValuePad(Record, op="PadV2", title="padding with a value", titles="paddings with a value"):
    """Rows and columns of any value around a plane; in the tail, too."""

    operands = ("src", "paddings", "constant_values")
    other_types = {"paddings": INT32, "constant_values": FLOAT32}


class Roll(Record, op="Roll", title="roll"):
    """Rows and columns that leave a plane on one side come back on the other."""

    operands = ("src", "shift", "axis")
    other_types = {"shift": INT32, "axis": INT32}
    Tshift = Taxis = INT32


class Tile(Record, op="Tile", title="repetition of planes", titles="repetitions of planes"):
    """Planes side by side, or of more pictures."""

    operands = ("src", "multiples")
    other_types = {"multiples": INT32}


class Reverse(Record, op="ReverseV2", title="reversal"):
    """Rows or columns from the last to the first."""

    operands = ("src", "axis")
    other_types = {"axis": INT32}


class Sampling(Record, op="StridedSlice", title="sampling of planes", titles="samplings of planes"):
    """Every so many rows and columns; bits of the masks stand for axes without a bound."""

    operands = ("src", "begin", "end", "strides")
    other_types = dict.fromkeys(("begin", "end", "strides"), INT32)
    Index = INT32
    begin_mask: int
    end_mask: int


ROW_MOVES = (MirrorPad, ValuePad, Roll, Tile, Reverse, Sampling)
