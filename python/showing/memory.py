"""Pictures of a tensor in memory, as coloured text: on a terminal, or in an SVG file.

Two tables of cells. The first has the elements by their indices, and in each cell its place in
memory; the second has the memory from its start, and in each cell which element lies there.
"""

from __future__ import annotations

import dataclasses
import io
import math
import os
from collections.abc import Sequence
from typing import NamedTuple

import rich.console
import rich.terminal_theme
from rich.color import Color
from rich.style import Style
from rich.text import Text

MIN_ROWS = 8  # some of the first, a gap, where the tail begins, a gap, the last

MIN_COLUMNS = 4
MEANINGS = {"tail": "tail: stored, always zero", "hole": "that many elements of something else"}

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
    def kinds(self) -> set[str]:
        """Kinds of the cells."""
        return {cell.kind for row in self.rows for cell in row.cells}


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


def with_gaps(picked: list[int | None]):
    """(item, 0) for each of `picked`; (None, how many were left out) for a gap."""
    for at, item in enumerate(picked):
        yield item, 0 if item is not None else picked[at + 1] - picked[at - 1] - 1


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
        columns = [(d, self.desc.padded_dims[d]) for d in across]
        total = math.prod(count for _, count in columns)
        picked = shown(total, most_columns)
        places = [None if p is None else self._digits(p, [c for _, c in columns]) for p in picked]
        rows = self.desc.padded_dims[down] if down is not None else 1
        block = self.desc.blocks[down] if down is not None else 1
        table = []
        tail = self.desc.dims[down] if down is not None else rows
        for r, left_out in with_gaps(shown(rows, most_rows, tail if tail < rows else None)):
            if r is None:
                table.append(self._gap(left_out))
                continue
            cells = []
            for place in places:
                if place is None:
                    cells.append(Cell("gap", "…"))
                    continue
                index = [0] * len(self.letters)
                if down is not None:
                    index[down] = r
                for (d, _), i in zip(columns, place, strict=True):
                    index[d] = i
                cells.append(self._cell(index, str(self.desc.offset(*index))))
            label = "" if down is None else f"{self.letters[down]}{r}"
            table.append(Row(label, cells, new_group=block > 1 and r > 0 and r % block == 0))
        headings, breaks = self._headings(columns, places)
        title = "Where each element lies" + self._fixed({down, *across})
        width = max(self.offset_width, self.index_width)
        left_out = self._left_out(picked, total)
        return Table(title, self.index_width, width, headings, breaks, table, left_out)

    def memory(self, most_rows: int, most_columns: int) -> Table:
        """Memory from its start, a row for each run of the innermost level."""
        axes = [axis for axis in self.axes if axis.count > 1] or self.axes[-1:]
        run, outer = axes[-1], axes[:-1]
        counts = [axis.count for axis in outer]
        rows = math.prod(counts)
        picked = shown(run.count, most_columns - 1)  # a hole may follow
        table = []
        if self.first:
            table.append(Row("0", [_hole(self.first)]))
        before = None
        for r, left_out in with_gaps(shown(rows, most_rows, self._first_tail_row(outer))):
            if r is None:
                table.append(self._gap(left_out))
                before = None
                continue
            index = self._index(outer, self._digits(r, counts))
            start = self.desc.offset(*index)
            cells = []
            for k in picked:
                if k is None:
                    cells.append(Cell("gap", "…"))
                    continue
                element = list(index)
                element[run.dim] += k * run.unit
                if k and run.stride > 1:
                    cells.append(_hole(run.stride - 1))
                text = f"{self.letters[run.dim]}{element[run.dim]}"
                cells.append(self._cell(element, text))
            if r + 1 < rows:
                following = self.desc.offset(*self._index(outer, self._digits(r + 1, counts)))
                hole = following - start - (run.count - 1) * run.stride - 1
                if hole > 0:
                    cells.append(_hole(hole))
            others = [d for d in range(len(self.letters)) if d != run.dim]
            note = " ".join(f"{self.letters[d]}{index[d]}" for d in others)
            # A row starts a group where more than the second level from inside moved on.
            group = [index[axis.dim] // axis.unit for axis in outer[:-1]]
            table.append(Row(str(start), cells, note, before is not None and group != before))
            before = group
        title = f"Memory in its order: {self._order(run, outer)}"
        holes = [cell.text for row in table for cell in row.cells if cell.kind == "hole"]
        width = max(self.index_width, *(1 + len(text) for text in holes), 0)
        left_out = self._left_out(picked, run.count)
        return Table(title, self.offset_width, width, [], frozenset(), table, left_out)

    # Parts of the tables.

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

    def _headings(self, columns, places):
        """A line for each dimension across, naming its index where that changes."""
        lines, breaks = [], set()
        for level, (d, _) in enumerate(columns):
            texts, before = [], None
            for at, place in enumerate(places):
                outer = None if place is None else place[: level + 1]
                new = outer is not None and outer != before
                texts.append(f"{self.letters[d]}{outer[-1]}" if new else "")
                if new and at and self._starts_group(d, outer, level, len(columns)):
                    breaks.add(at)
                before = outer
            lines.append(texts)
        return lines, frozenset(breaks)

    def _starts_group(self, d: int, place, level: int, levels: int) -> bool:
        """Whether a gap belongs before a column: a new block, or an outer index that moves on."""
        block = self.desc.blocks[d]
        return level < levels - 1 or (block > 1 and place[-1] % block == 0)

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

    @staticmethod
    def _digits(number: int, counts: Sequence[int]) -> list[int]:
        """`number` in mixed radix, the last count turning fastest."""
        digits = []
        for count in reversed(counts):
            number, digit = divmod(number, count)
            digits.append(digit)
        return digits[::-1]

    def _index(self, axes: Sequence[Axis], digits: Sequence[int]) -> list[int]:
        index = [0] * len(self.letters)
        for axis, digit in zip(axes, digits, strict=True):
            index[axis.dim] += digit * axis.unit
        return index

    def _first_tail_row(self, outer: Sequence[Axis]) -> int | None:
        """The first row of memory that has an element of the tail, if there is one."""
        found = []
        for d, size in enumerate(self.desc.dims):
            if size == self.desc.padded_dims[d]:
                continue
            row = 0
            for axis in outer:
                row *= axis.count
                row += size // axis.unit % axis.count if axis.dim == d else 0
            found.append(row)
        return min(found, default=None)

    def _order(self, run: Axis, outer: Sequence[Axis]) -> str:
        """The levels of memory in words, from inside."""
        words = []
        for axis in reversed(outer):
            block, letter = self.desc.blocks[axis.dim], self.letters[axis.dim]
            within = f"{letter} of the block" if block > 1 else letter
            words.append(within if axis.unit == 1 else f"the next {block} {letter}")
        then = f", then {', '.join(words)}" if words else ""
        return f"{run.count} {self.letters[run.dim]} a row{then}"

    @staticmethod
    def _gap(count: int) -> Row:
        return Row("…", [Cell("remark", f"{count} rows left out")])

    @staticmethod
    def _left_out(picked: list[int | None], count: int) -> str:
        missing = count - sum(item is not None for item in picked)
        return f"{missing} of {count} columns left out" if missing else ""


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
        while _width(table := make(max_rows, columns)) > width and columns > MIN_COLUMNS:
            columns -= 1
        result += [Text(), *_table(table)]
    return [*result, Text(), _legend(table.kinds)]


def _width(table: Table) -> int:
    """Characters of the longest row."""
    notes = max(len(row.note) for row in table.rows)
    cells = table.columns * table.cell_width
    return table.label_width + cells + len(table.breaks) + (notes and notes + 2)


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
    for kind, sign in (("tail", TAIL * 3), ("hole", "·3")):
        line.append(f"   {sign} {MEANINGS[kind]}" if kind in kinds else "")
    return line
