"""A sheet as coloured text."""

from __future__ import annotations

import rich.console
from rich.color import Color
from rich.style import Style
from rich.text import Text

from .colors import ink, ramp
from .sheet import MEANINGS, MIN_COLUMNS, Cell, Sheet, Table

STEPS = 16  # of the colours in the legend
TAIL = "░"
QUIET = Style(dim=True)


def show(desc, *, max_rows: int, console: rich.console.Console | None = None) -> None:
    """Prints the memory of `desc` as two tables of at most `max_rows` rows each.

    Args:
      desc: a TensorDesc.
      max_rows: at least `sheet.MIN_ROWS`.
      console: where to; stdout by default. Columns that are wider than it are left out.
    """
    console = console or rich.console.Console()
    for line in lines(Sheet(desc), max_rows=max_rows, width=console.width):
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
