"""Pictures of a tensor in memory, as coloured text: on a terminal, or in an SVG file.

A table has the elements by their indices, and in each cell the place in memory, which the colour
shows, too. Above it stands the place as a formula.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterable, Sequence

import numpy as np
import rich.console
import rich.terminal_theme
from rich.color import Color
from rich.style import Style
from rich.text import Text

MIN_ROWS = 8
ACTIVATIONS, WEIGHTS, PLAIN = "ncdhw", "goidhw", "ijklmn"
TAIL = "░"
QUIET = Style(dim=True)
SHADES = 16  # of the colours in the legend
SVG_WIDTH = 120  # characters
SVG = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">
<style>text {{ font: {char_height}px monospace; white-space: pre }} {styles}</style>
<defs>{lines}</defs><rect width="100%" height="100%" fill="#fff"/>
<g transform="translate({terminal_x}, {char_height})" xml:space="preserve">{backgrounds}{matrix}</g>
</svg>
"""
# Dark blue, teal, green, yellow: the lightness grows all the way, so that a print without colours
# and eyes that see no red and green read the same order.
_STOPS = np.array([(38, 42, 110), (28, 98, 142), (24, 150, 138), (104, 194, 96), (250, 228, 60)])


def draw(
    desc, path: str | os.PathLike | None, *, max_rows: int, console: rich.console.Console | None
) -> None:
    """Prints where the elements of `desc` lie, or writes it as an SVG file.

    Args:
      desc: a TensorDesc. Its `offset` is asked for what is shown alone, so that a picture of a huge
        tensor costs no more than one of a small one.
      path: of the file; one that is there is replaced. None prints.
      max_rows: of the table, at least `MIN_ROWS`.
      console: where to print; stdout by default. Columns that are wider than it are left out.

    Raises:
      ValueError: max_rows is too small.
      OSError: the file cannot be written.
    """
    if max_rows < MIN_ROWS:
        raise ValueError(f"max_rows must be at least {MIN_ROWS}; got {max_rows}")
    if path is None:
        console = console or rich.console.Console()
        lines = Picture(desc, max_rows, console.width).lines()
    else:
        lines = Picture(desc, max_rows, SVG_WIDTH).lines()
        width = max(line.cell_len for line in lines)
        console = rich.console.Console(record=True, file=io.StringIO(), width=width)
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    if path is not None:
        theme = rich.terminal_theme.DEFAULT_TERMINAL_THEME
        with open(path, "w", encoding="utf-8") as file:
            file.write(console.export_svg(title="", theme=theme, code_format=SVG))


class Picture:
    """The lines of a picture, of at most so many rows and characters."""

    def __init__(self, desc, most_rows: int, width: int):
        self.desc, self.most_rows = desc, most_rows
        self.letters = letters_of(desc.layout, len(desc.dims))
        self.is_empty = 0 in desc.dims
        self.start = 0 if self.is_empty else desc.offset()
        self.width = width

    def lines(self) -> list[Text]:
        """The picture, line by line."""
        desc = self.desc
        sizes = " ".join(f"{x}={size}" for x, size in zip(self.letters, desc.dims, strict=True))
        head = [
            Text.assemble((desc.layout or "no layout", "bold"), f"  {sizes}  {desc.dtype.name}"),
            Text(self._formula()),
            Text(self._memory_size()),
        ]
        if self.is_empty:
            return [*head, Text("no elements")]
        return [*head, Text(), *self._elements(), Text(), _legend()]

    def _formula(self) -> str:
        """offset(n, c, h, w) as a sum, with terms in memory order."""
        desc, terms = self.desc, []  # (elements from one to the next, the term)
        for d, (letter, block) in enumerate(zip(self.letters, desc.blocks, strict=True)):
            terms.append((desc.strides[d], letter if block == 1 else f"{letter}/{block}"))
            if block > 1:
                second = [int(i == d) for i in range(len(self.letters))]
                inner = 0 if self.is_empty else desc.offset(*second) - self.start
                terms.append((inner, f"{letter}%{block}"))
        # Elements that share memory (stride 0) come again, so their dimension is outermost.
        terms.sort(key=lambda term: -term[0] or -math.inf)
        words = [text if stride == 1 else f"{text}*{stride}" for stride, text in terms]
        words = [str(self.start)] * bool(self.start) + words
        return f"offset({', '.join(self.letters)}) = {' + '.join(words)}"

    def _memory_size(self) -> str:
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

    def _elements(self) -> Iterable[Text]:
        """Elements by their indices, with their offsets."""
        down, across = self._grid()
        label = 1 + max(3, 1 + len(str(max(self.desc.padded_dims))))  # " c15"
        cell = max(label, 1 + len(str(self.desc.size)))
        sizes = [self.desc.padded_dims[d] for d in across]
        columns = _some(math.prod(sizes), (self.width - label) // cell)
        places = [None if c is None else np.unravel_index(c, sizes) for c in columns]
        fixed = [x + "0" for d, x in enumerate(self.letters) if d not in (down, *across)]
        yield Text(
            "Where each element lies" + (f", for {', '.join(fixed)}" if fixed else ""), "bold"
        )
        yield from _left_out(columns, math.prod(sizes), "columns")
        for level, d in enumerate(across):
            line, before = Text(" " * label), None
            for place in places:
                outer = place and place[: level + 1]
                is_new = outer is not None and outer != before
                line += _cell(f"{self.letters[d]}{outer[-1]}" if is_new else "", cell)
                before = outer
            yield line

        count, block = self.desc.padded_dims[down], self.desc.blocks[down]
        rows = _some(count, self.most_rows)
        for r in rows:
            if r is None:
                yield from _left_out(rows, count, "rows")
                continue
            if block > 1 and r and r % block == 0:
                yield Text()
            line = _cell(f"{self.letters[down]}{r}", label)
            for place in places:
                if place is None:
                    line += _cell("…", cell, QUIET)
                    continue
                at = {down: r} | dict(zip(across, place, strict=True))
                line += self._element([at.get(d, 0) for d in range(len(self.letters))], cell)
            yield line

    def _grid(self) -> tuple[int, list[int]]:
        """The dimension that goes down the table, and those across."""
        rank = len(self.letters)
        if "o" in self.letters:
            g, o, i = (self.letters.find(letter) for letter in "goi")
            if g >= 0 and self.desc.dims[o] == self.desc.dims[i] == 1:  # depthwise
                return g, list(range(i + 1, rank))
            return i, [o]
        down = 0 if rank < 3 else 1
        return down, list(range(down + 1, rank))

    def _element(self, index: Sequence[int], width: int) -> Text:
        if any(i >= size for i, size in zip(index, self.desc.dims, strict=True)):
            return _cell(TAIL * (width - 1), width, QUIET)
        offset = self.desc.offset(*index)
        shade = (offset - self.start) / max(1, self.desc.size - 1 - self.start)
        return _cell(str(offset), width, _style(shade))


def _cell(text: str, width: int, style: Style | str = "") -> Text:
    return Text(text.rjust(width), style)


def _left_out(picked: list, count: int, what: str) -> list[Text]:
    missing = count - sum(item is not None for item in picked)
    return [Text(f"  … {missing} of {count} {what} left out", QUIET)] if missing else []


def letters_of(layout: str | None, rank: int) -> str:
    """The dimensions' letters in logical order: "nchw" for nhwc and nChw16c alike."""
    if layout is None:
        by_rank = {3: "ncw", 4: "nchw", 5: "ncdhw"}
        return by_rank.get(rank, PLAIN[:rank])
    present = {letter.lower() for letter in layout if letter.isalpha()}
    order = next(o for o in (ACTIVATIONS, WEIGHTS, "x") if present <= set(o))
    return "".join(letter for letter in order if letter in present)


def _some(count: int, most: int) -> list[int | None]:
    """`range(count)` or, where that is longer than `most`, the ends with None between them."""
    if count <= most:
        return list(range(count))
    first, last = (most - 1) // 2, most // 2
    return [*range(first), None, *range(count - last, count)]


def _style(shade: float) -> Style:
    """The colour of a place in memory, from 0 to 1, under the ink that can be read on it."""
    places = np.linspace(0, 1, len(_STOPS))
    background = [round(float(np.interp(shade, places, stops))) for stops in _STOPS.T]
    ink = "black" if np.dot(background, (0.3, 0.59, 0.11)) > 135 else "white"
    return Style(color=ink, bgcolor=Color.from_rgb(*background))


def _legend() -> Text:
    line = Text("first ")
    for i in range(SHADES):
        line.append(" ", _style(i / (SHADES - 1)))
    return line.append(f" last in memory   {TAIL * 3} tail: stored, always zero")
