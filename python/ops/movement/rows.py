"""TensorFlow's ops that move rows and columns: on blocks [N, CB, H, W, 16] they are the same.

Their other inputs are constants that speak of the axes of blocks.
"""

from dataclasses import dataclass

from ...graph import INT32
from ...layout import NHWC
from ..record import Layout, Record


@dataclass(frozen=True, kw_only=True)
class RowMove(Record):
    """Reads "src" and constants of its own."""

    def layout_of(self, role: str) -> Layout:
        return self.src_layout if role == "src" else NHWC


@dataclass(frozen=True, kw_only=True)
class MirrorPad(RowMove, op="MirrorPad", title="mirrored padding"):
    """Rows and columns around a plane that mirror those in it: "REFLECT" or "SYMMETRIC"."""

    operands = ("src", "paddings")
    other_types = {"paddings": INT32}
    mode: str


@dataclass(frozen=True, kw_only=True)
class ValuePad(RowMove, op="PadV2", title="padding with a value", titles="paddings with a value"):
    """Rows and columns of any value around a plane; in the tail, too."""

    operands = ("src", "paddings", "constant_values")
    other_types = {"paddings": INT32}


@dataclass(frozen=True, kw_only=True)
class Roll(RowMove, op="Roll", title="roll"):
    """Rows and columns that leave a plane on one side come back on the other."""

    operands = ("src", "shift", "axis")
    other_types = {"shift": INT32, "axis": INT32}
    Tshift = Taxis = INT32


@dataclass(frozen=True, kw_only=True)
class Tile(RowMove, op="Tile", title="repetition of planes", titles="repetitions of planes"):
    """Planes side by side, or of more pictures."""

    operands = ("src", "multiples")
    other_types = {"multiples": INT32}


@dataclass(frozen=True, kw_only=True)
class Reverse(RowMove, op="ReverseV2", title="reversal"):
    """Rows or columns from the last to the first."""

    operands = ("src", "axis")
    other_types = {"axis": INT32}


@dataclass(frozen=True, kw_only=True)
class Sampling(
    RowMove, op="StridedSlice", title="sampling of planes", titles="samplings of planes"
):
    """Every so many rows and columns; bits of the masks stand for axes without a bound."""

    operands = ("src", "begin", "end", "strides")
    other_types = dict.fromkeys(("begin", "end", "strides"), INT32)
    Index = INT32
    begin_mask: int
    end_mask: int


ROW_MOVES = (MirrorPad, ValuePad, Roll, Tile, Reverse, Sampling)
