"""Pictures of a tensor in memory, as coloured text: on a terminal, or in an SVG file.

Two tables of cells. The first has the elements by their indices, and in each cell its place in
memory; the second has the memory from its start, and in each cell which element lies there.
"""

from __future__ import annotations

import dataclasses
import io
import math
import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import rich.console
import rich.terminal_theme
from rich.color import Color
from rich.style import Style
from rich.text import Text

MIN_ROWS = 8  # some of the first, a gap, where the tail begins, a gap, the last
MIN_COLUMNS = 4
ACTIVATIONS, WEIGHTS, PLAIN = "ncdhw", "goidhw", "ijklmn"


class Axis(NamedTuple):
    """One level of memory: a dimension, its blocks, or the elements inside one of its blocks."""

    dim: int
    count: int
    stride: int  # elements of memory from one to the next
    unit: int  # elements of the dimension from one to the next
    term: str  # in the formula


class Cell(NamedTuple):
    """`kind` is one of these.

    "element"; "tail", stored but no element; "hole", so many places of memory that are not the
    tensor's; "gap", columns left out; "remark", in place of a row.
    """

    kind: str
    text: str
    shade: float = 0.0  # 0 where memory starts, 1 where it ends


class Row(NamedTuple):
    label: str
    cells: list[Cell]
    note: str = ""
    new_group: bool = False  # another block, or another value of an outer dimension, starts


@dataclasses.dataclass(frozen=True)
class Table:
    """Widths are in characters. `headings` are lines above the cells.

    `breaks` are the columns where a group starts. What is left out in `rows` has a row that says
    so; `left_out` says it of columns.
    """

    title: str
    label_width: int
    cell_width: int
    headings: list[list[str]]
    breaks: frozenset[int]
    rows: list[Row]
    left_out: str

    @property
    def columns(self) -> int:
        """Cells of the longest row; notes stand behind them."""
        return max(len(row.cells) for row in self.rows)

    @property
    def width(self) -> int:
        """Characters of the longest row."""
        notes = max(len(row.note) for row in self.rows)
        cells = self.columns * self.cell_width + len(self.breaks)
        return self.label_width + cells + (notes and notes + 2)


def shown(count: int, most: int, keep: int | None = None) -> list[int | None]:
    """`range(count)` or, where that is longer than `most`, a part of it.

    The first ones and the last ones, and on the way `keep` with its neighbours; None for each gap.
    """
    if count <= most:
        return list(range(count))
    first, last = (most - 1) // 2, most // 2
    if keep is None or keep > count - last:
        return [*range(first), None, *range(count - last, count)]
    if keep <= first:
        return [*range(most - 2), None, count - 1]
    near = range(keep - 1, keep + last - 3)
    return [*range(first), *([None] if near[0] > first else []), *near, None, count - 1]


def _left_out(picked: list[int | None], count: int, what: str) -> str:
    missing = count - sum(item is not None for item in picked)
    return f"{missing} of {count} {what} left out" if missing else ""


def _hole(count: int) -> Cell:
    """`count` elements of memory that are not the tensor's, to three digits."""
    thousands = (len(str(count)) - 1) // 3
    return Cell("hole", f"·{count // 1000**thousands}{'kMGTPE'[thousands - 1 : thousands]}")


def letters_of(layout: str | None, rank: int) -> str:
    """The dimensions' letters in logical order: "nchw" for nhwc and nChw16c alike."""
    if layout is None:
        by_rank = {3: "ncw", 4: "nchw", 5: "ncdhw"}
        return by_rank.get(rank, PLAIN[:rank])
    present = {letter.lower() for letter in layout if letter.isalpha()}
    order = next(o for o in (ACTIVATIONS, WEIGHTS, "x") if present <= set(o))
    return "".join(letter for letter in order if letter in present)


class Sheet:
    """The tables and lines of a `TensorDesc`.

    Args:
      desc: a TensorDesc. Its `offset` is asked for every cell that is shown, and for nothing else,
        so that a sheet of a huge tensor costs no more than one of a small one.
    """

    def __init__(self, desc):
        self.desc = desc
        self.letters = letters_of(desc.layout, len(desc.dims))
        self.empty = 0 in desc.dims
        self.first = 0 if self.empty else desc.offset()
        # Outermost first, as they lie in memory. Elements that share memory (stride 0) come again.
        self.axes = sorted(self._axes(), key=lambda axis: -axis.stride or -math.inf)
        # In characters: offsets with a space before them, and "c15".
        self.offset_width = max(3, len(str(desc.size))) + 1
        self.index_width = max(3, 1 + len(str(max(desc.padded_dims)))) + 1

    def _axes(self):
        """The levels of memory, in logical order, a dimension's blocks before their insides."""
        for d, (letter, block) in enumerate(zip(self.letters, self.desc.blocks, strict=True)):
            padded, stride = self.desc.padded_dims[d], self.desc.strides[d]
            if block == 1:
                yield Axis(d, padded, stride, 1, letter)
                continue
            yield Axis(d, padded // block, stride, block, f"{letter}/{block}")
            second = [0] * len(self.letters)
            second[d] = 1
            inner = 0 if self.empty else self.desc.offset(*second) - self.first
            yield Axis(d, block, inner, 1, f"{letter}%{block}")

    # Lines of text.

    @property
    def title(self) -> str:
        return self.desc.layout or "no layout"

    @property
    def sizes(self) -> str:
        pairs = zip(self.letters, self.desc.dims, strict=True)
        return " ".join(f"{letter}={size}" for letter, size in pairs)

    @property
    def formula(self) -> str:
        """offset(n, c, h, w) as a sum, its terms in memory order."""
        terms = [str(self.first)] if self.first else []
        for axis in self.axes:
            terms.append(axis.term if axis.stride == 1 else f"{axis.term}*{axis.stride}")
        return f"offset({', '.join(self.letters)}) = {' + '.join(terms)}"

    @property
    def memory_size(self) -> str:
        """The size, and how it differs from the product of the dimensions."""
        dims, item = math.prod(self.desc.dims), self.desc.dtype.size
        padded = math.prod(self.desc.padded_dims)
        parts = [f"size_bytes = {self.desc.size_bytes}"]
        parts.append(f"{'*'.join(self.letters)}*{item} = {dims * item}")
        if padded > dims:
            parts.append(f"tail, always zero: {(padded - dims) * item}")
        if self.desc.size > padded:
            parts.append(f"holes: {(self.desc.size - padded) * item}")
        elif self.desc.size < padded:
            parts.append("elements share memory")
        return ";  ".join(parts)

    # Tables.

    def elements(self, most_rows: int, most_columns: int) -> Table:
        """Elements by their indices, with their offsets."""
        down, across = self._grid()
        sizes = [self.desc.padded_dims[d] for d in across]
        picked = shown(math.prod(sizes), most_columns)
        places = [None if p is None else np.unravel_index(p, sizes) for p in picked]
        rows = 1 if down is None else self.desc.padded_dims[down]
        block = 1 if down is None else self.desc.blocks[down]

        def row(r: int) -> Row:
            cells = []
            for place in places:
                index = [0] * len(self.letters)
                if down is not None:
                    index[down] = r
                for d, i in zip(across, place or (), strict=False):
                    index[d] = i
                text = "" if place is None else str(self.desc.offset(*index))
                cells.append(Cell("gap", "…") if place is None else self._cell(index, text))
            label = "" if down is None else f"{self.letters[down]}{r}"
            return Row(label, cells, new_group=block > 1 and r > 0 and r % block == 0)

        tail = None if down is None else self.desc.dims[down]
        table = self._rows(rows, most_rows, tail if tail != rows else None, row)
        headings, breaks = self._headings(across, places)
        title = "Where each element lies" + self._fixed({down, *across})
        width = max(self.offset_width, self.index_width)
        left_out = _left_out(picked, math.prod(sizes), "columns")
        return Table(title, self.index_width, width, headings, breaks, table, left_out)

    def memory(self, most_rows: int, most_columns: int) -> Table:
        """Memory from its start, a row for each run of the innermost level."""
        *outer, run = [axis for axis in self.axes if axis.count > 1] or self.axes[-1:]
        counts = [axis.count for axis in outer]
        rows = math.prod(counts)
        picked = shown(run.count, most_columns - 1)  # a hole may follow
        groups: dict[
            int, list[int]
        ] = {}  # row -> where it is, but for the second level from inside

        def index(r: int) -> list[int]:
            place = [0] * len(self.letters)
            for axis, digit in zip(outer, np.unravel_index(r, counts), strict=True):
                place[axis.dim] += int(digit) * axis.unit
            return place

        def row(r: int) -> Row:
            start, cells = index(r), []
            for k in picked:
                if k is None:
                    cells.append(Cell("gap", "…"))
                    continue
                element = list(start)
                element[run.dim] += k * run.unit
                if k and run.stride > 1:
                    cells.append(_hole(run.stride - 1))
                cells.append(self._cell(element, f"{self.letters[run.dim]}{element[run.dim]}"))
            offset = self.desc.offset(*start)
            after = self.desc.offset(*index(r + 1)) if r + 1 < rows else 0
            if (hole := after - offset - (run.count - 1) * run.stride - 1) > 0:
                cells.append(_hole(hole))
            places = zip(self.letters, start, strict=True)
            note = " ".join(f"{x}{i}" for d, (x, i) in enumerate(places) if d != run.dim)
            groups[r] = [start[axis.dim] // axis.unit for axis in outer[:-1]]
            return Row(str(offset), cells, note, groups.get(r - 1, groups[r]) != groups[r])

        table = [Row("0", [_hole(self.first)])] if self.first else []
        table += self._rows(rows, most_rows, self._first_tail_row(outer), row)
        title = f"Memory in its order: {self._order(run, outer)}"
        holes = [len(cell.text) for row in table for cell in row.cells if cell.kind == "hole"]
        width = max(self.index_width, 1 + max(holes, default=0))
        left_out = _left_out(picked, run.count, "columns")
        return Table(title, self.offset_width, width, [], frozenset(), table, left_out)

    # Parts of the tables.

    @staticmethod
    def _rows(count: int, most: int, keep: int | None, row: Callable[[int], Row]) -> list[Row]:
        """row(0), row(1), ..., of which some may be left out, with a word on how many."""
        picked, rows = shown(count, most, keep), []
        for at, r in enumerate(picked):
            if r is None:
                missing = picked[at + 1] - picked[at - 1] - 1
                rows.append(Row("…", [Cell("remark", f"{missing} rows left out")]))
            else:
                rows.append(row(r))
        return rows

    def _cell(self, index: Sequence[int], text: str) -> Cell:
        shade = (self.desc.offset(*index) - self.first) / max(1, self.desc.size - 1 - self.first)
        tail = any(i >= size for i, size in zip(index, self.desc.dims, strict=True))
        return Cell("tail" if tail else "element", text, shade)

    def _grid(self) -> tuple[int | None, list[int]]:
        """The dimension that goes down the first table, and those across."""
        if "o" in self.letters:
            g, o, i = (self.letters.find(letter) for letter in "goi")
            if g >= 0 and self.desc.dims[o] == self.desc.dims[i] == 1:  # depthwise
                return g, list(range(i + 1, len(self.letters)))
            return i, [o]
        if len(self.letters) < 3:
            return (None, [0]) if len(self.letters) == 1 else (0, [1])
        return 1, list(range(2, len(self.letters)))

    def _headings(self, across, places):
        """A line for each dimension across, naming its index where that changes; and the columns
        before which a gap belongs: at a new block, or where an outer index moves on."""
        lines, breaks = [], set()
        for level, d in enumerate(across):
            texts, before = [], None
            for at, place in enumerate(places):
                outer = place and place[: level + 1]
                new = outer is not None and outer != before
                texts.append(f"{self.letters[d]}{outer[-1]}" if new else "")
                block = self.desc.blocks[d]
                starts = new and (level < len(across) - 1 or (block > 1 and outer[-1] % block == 0))
                if at and starts:
                    breaks.add(at)
                before = outer
            lines.append(texts)
        return lines, frozenset(breaks)

    def _fixed(self, free: set) -> str:
        """Which indices are 0 in the first table, and how far off the others are."""
        parts = []
        for d, letter in enumerate(self.letters):
            if d in free or self.desc.dims[d] < 2:
                continue
            stride = self.desc.strides[d]
            further = "" if self.desc.blocks[d] > 1 else f" (add {stride} for {letter}1)"
            parts.append(f"{letter}0{further}")
        return f", for {', '.join(parts)}" if parts else ""

    def _first_tail_row(self, outer: Sequence[Axis]) -> int | None:
        """The first row of memory that has an element of the tail, if there is one."""
        rows = []
        for d, size in enumerate(self.desc.dims):
            if size == self.desc.padded_dims[d]:
                continue
            row = 0
            for axis in outer:
                row *= axis.count
                row += size // axis.unit % axis.count if axis.dim == d else 0
            rows.append(row)
        return min(rows, default=None)

    def _order(self, run: Axis, outer: Sequence[Axis]) -> str:
        """The levels of memory in words, from inside."""
        words = []
        for axis in reversed(outer):
            block, letter = self.desc.blocks[axis.dim], self.letters[axis.dim]
            within = f"{letter} of the block" if block > 1 else letter
            words.append(within if axis.unit == 1 else f"the next {block} {letter}")
        then = f", then {', '.join(words)}" if words else ""
        return f"{run.count} {self.letters[run.dim]} a row{then}"


# Dark blue, teal, green, yellow: the lightness grows all the way, so that a print without colours
# and eyes that see no red and green read the same order.
_STOPS = ((38, 42, 110), (28, 98, 142), (24, 150, 138), (104, 194, 96), (250, 228, 60))


def ramp(shade: float) -> tuple[int, int, int]:
    """Red, green, blue of the place `shade` of the memory, 0 to 1."""
    place = min(max(shade, 0.0), 1.0) * (len(_STOPS) - 1)
    i = min(int(place), len(_STOPS) - 2)
    return tuple(
        round(a + (b - a) * (place - i)) for a, b in zip(_STOPS[i], _STOPS[i + 1], strict=True)
    )


def ink(background: tuple[int, int, int]) -> tuple[int, int, int]:
    """Black or white, whichever can be read on `background`."""
    red, green, blue = background
    return (0, 0, 0) if 0.3 * red + 0.59 * green + 0.11 * blue > 135 else (255, 255, 255)


STEPS = 16  # of the colours in the legend
TAIL = "░"
QUIET = Style(dim=True)
SVG_WIDTH = 120  # characters
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>text {{ font: {char_height}px monospace; white-space: pre }} {styles}</style>
<defs>{lines}</defs><rect width="100%" height="100%" fill="#fff"/>
<g transform="translate({terminal_x}, {char_height})" xml:space="preserve">{backgrounds}{matrix}</g>
</svg>
"""


def draw(
    desc, path: str | os.PathLike | None, *, max_rows: int, console: rich.console.Console | None
) -> None:
    """Prints the memory of `desc` as two tables, or writes them as an SVG file.

    Args:
      desc: a TensorDesc.
      path: of the file; one that is there is replaced. None prints.
      max_rows: of each table, at least `MIN_ROWS`.
      console: where to print; stdout by default. Columns that are wider than it are left out.

    Raises:
      ValueError: max_rows is too small.
      OSError: the file cannot be written.
    """
    if max_rows < MIN_ROWS:
        raise ValueError(f"max_rows must be at least {MIN_ROWS}; got {max_rows}")
    if path is None:
        console = console or rich.console.Console()
        _print(lines(Sheet(desc), max_rows=max_rows, width=console.width), console)
        return
    picture = lines(Sheet(desc), max_rows=max_rows, width=SVG_WIDTH)
    width = max(line.cell_len for line in picture)
    console = rich.console.Console(record=True, file=io.StringIO(), width=width)
    _print(picture, console)
    theme = rich.terminal_theme.DEFAULT_TERMINAL_THEME
    with open(path, "w", encoding="utf-8") as file:
        file.write(console.export_svg(title="", theme=theme, code_format=SVG))


def _print(picture: list[Text], console: rich.console.Console) -> None:
    for line in picture:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)


def lines(sheet: Sheet, *, max_rows: int, width: int) -> list[Text]:
    """The picture, line by line."""
    head = [
        Text.assemble((sheet.title, "bold"), f"  {sheet.sizes}  {sheet.desc.dtype.name}"),
        Text(sheet.formula),
        Text(sheet.memory_size),
    ]
    if sheet.empty:
        return [*head, Text("no elements")]
    result = list(head)
    for make in (sheet.elements, sheet.memory):
        columns = width // sheet.index_width
        while (table := make(max_rows, columns)).width > width and columns > MIN_COLUMNS:
            columns -= 1
        result += [Text(), *_table(table)]
    return [*result, Text(), _legend({cell.kind for row in table.rows for cell in row.cells})]


def _table(table: Table) -> list[Text]:
    result = [Text(table.title, "bold")]
    if table.left_out:
        result.append(Text(" " * table.label_width + f"  {table.left_out}", QUIET))
    for texts in table.headings:
        line = Text(" " * table.label_width)
        for at, text in enumerate(texts):
            line.append(" " * (at in table.breaks) + text.rjust(table.cell_width))
        result.append(line)
    for row in table.rows:
        if row.new_group:
            result.append(Text())
        line = Text(row.label.rjust(table.label_width))
        for at, cell in enumerate(row.cells):
            line.append(" " * (at in table.breaks))
            line.append_text(_cell(cell, table.cell_width))
        if row.note:
            missing = table.columns - len(row.cells)
            line.append(" " * missing * table.cell_width + f"  {row.note}", QUIET)
        result.append(line)
    return result


def _cell(cell: Cell, width: int) -> Text:
    if cell.kind == "tail":
        return Text((TAIL * (width - 1)).rjust(width), QUIET)
    if cell.kind == "remark":
        return Text(f"  {cell.text}", QUIET)
    if cell.kind != "element":
        return Text(cell.text.rjust(width), QUIET)
    background = ramp(cell.shade)
    style = Style(color=Color.from_rgb(*ink(background)), bgcolor=Color.from_rgb(*background))
    return Text(cell.text.rjust(width), style)


def _legend(kinds: set[str]) -> Text:
    line = Text("first ")
    for i in range(STEPS):
        line.append(" ", Style(bgcolor=Color.from_rgb(*ramp(i / (STEPS - 1)))))
    line.append(" last in memory")
    line.append(f"   {TAIL * 3} tail: stored, always zero" if "tail" in kinds else "")
    line.append("   ·3 that many elements of something else" if "hole" in kinds else "")
    return line
