"""A sheet as a picture."""

from __future__ import annotations

import os
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from .colors import ink, ramp
from .sheet import MEANINGS, MIN_COLUMNS, Cell, Sheet, Table

MOST_PIXELS = 1200  # across the cells of a table
MARGIN, GAP = 24, 12  # pixels; GAP lies between groups of cells and under headings
ROW = 22  # height of a cell
CHARACTER = 9  # width of a digit, roughly
TEXT, TITLE = 14, 22  # sizes of the letters
PAPER, BLACK, GREY = (255, 255, 255), (0, 0, 0), (120, 120, 120)
TAIL_PAPER, TAIL_LINE, HATCH = (232, 232, 232), (150, 150, 150), 6
STEPS = 64  # of the colours in the legend


class Box(NamedTuple):
    """A cell on the page: its corners in pixels, the last ones outside."""

    cell: Cell
    left: int
    top: int
    right: int
    bottom: int


class Label(NamedTuple):
    """Text on the page; `anchor` as Pillow has it: "lm" starts at x, with its middle at y."""

    text: str
    x: int
    y: int
    anchor: str = "lm"
    size: int = TEXT
    color: tuple[int, int, int] = BLACK


class Page:
    """Where everything lies; `image` paints it.

    Args:
      sheet: what to draw.
      max_rows: of each table.
    """

    def __init__(self, sheet: Sheet, *, max_rows: int):
        self.boxes: list[Box] = []
        self.labels: list[Label] = []
        heading = f"{sheet.title}   {sheet.sizes}   {sheet.desc.dtype.name}"
        self._line(heading, MARGIN + TITLE // 2, size=TITLE)
        for i, text in enumerate([sheet.formula, sheet.memory_size]):
            self._line(text, MARGIN + TITLE + GAP + i * ROW + ROW // 2)
        top = MARGIN + TITLE + 2 * ROW + 3 * GAP
        if sheet.empty:
            self._line("no elements", top)
            right = bottom = top
        else:
            tables = [self._fit(make, max_rows) for make in (sheet.elements, sheet.memory)]
            # The cells of both begin at one height.
            headings = max(len(table.headings) for table in tables)
            right, bottoms = MARGIN, []
            for table in tables:
                right, bottom = self._table(table, right, top, headings)
                right += 2 * MARGIN
                bottoms.append(bottom)
            bottom = self._legend({box.cell.kind for box in self.boxes}, max(bottoms) + 2 * GAP)
        self.size = (self._right() + MARGIN, bottom + MARGIN)

    def image(self) -> Image.Image:
        """The page, painted."""
        image = Image.new("RGB", self.size, PAPER)
        draw = ImageDraw.Draw(image)
        for box in self.boxes:
            _paint(image, draw, box)
        for label in self.labels:
            place = (label.x, label.y)
            draw.text(place, label.text, label.color, _font(label.size), anchor=label.anchor)
        return image

    @staticmethod
    def _fit(make, max_rows: int) -> Table:
        """The table with as many columns as there is room for."""
        columns = MOST_PIXELS // CHARACTER // make(max_rows, MIN_COLUMNS).cell_width
        return make(max_rows, max(MIN_COLUMNS, columns))

    def _line(self, text: str, y: int, **style) -> None:
        self.labels.append(Label(text, MARGIN, y, **style))

    def _right(self) -> int:
        """Where the rightmost thing ends."""
        texts = [
            label.x + int(_font(label.size).getlength(label.text)) + 1
            for label in self.labels
            if label.anchor == "lm"
        ]
        return max(texts + [box.right for box in self.boxes])

    def _table(self, table: Table, left: int, top: int, headings: int) -> tuple[int, int]:
        """Places a table; its right and bottom end."""
        cell = table.cell_width * CHARACTER
        first = left + table.label_width * CHARACTER + GAP
        columns, x = [], first
        for at in range(table.columns):
            x += GAP * (at in table.breaks)
            columns.append(x)
            x += cell
        right, notes = x, x + GAP
        title = f"{table.title}   ({table.left_out})" if table.left_out else table.title
        self.labels.append(Label(title, left, top + ROW // 2))
        y = top + ROW + (headings - len(table.headings)) * ROW
        for texts in table.headings:
            for x, text in zip(columns, texts, strict=True):
                self.labels.append(Label(text, x + cell // 2, y + ROW // 2, "mm", color=GREY))
            y += ROW
        for row in table.rows:
            y += GAP * row.new_group
            middle = y + ROW // 2
            self.labels.append(Label(row.label, first - GAP, middle, "rm", color=GREY))
            for x, one in zip(columns, row.cells, strict=False):
                if one.kind == "remark":
                    self.labels.append(Label(one.text, x, middle, color=GREY))
                else:
                    self.boxes.append(Box(one, x, y, x + cell - 1, y + ROW - 1))
            if row.note:
                self.labels.append(Label(row.note, notes, middle, color=GREY))
                right = max(right, notes + int(_font(TEXT).getlength(row.note)))
            y += ROW
        return max(right, left + int(_font(TEXT).getlength(title))), y

    def _legend(self, kinds: set[str], top: int) -> int:
        """What the colours and patterns mean; where it ends."""
        y, x = top + ROW // 2, MARGIN

        def text(words: str) -> None:
            nonlocal x
            self.labels.append(Label(words, x, y))
            x += int(_font(TEXT).getlength(words)) + GAP

        text("first")
        for i in range(STEPS):
            cell = Cell("element", "", i / (STEPS - 1))
            self.boxes.append(Box(cell, x, top, x + 3, top + ROW))
            x += 3
        x += GAP
        text("last in memory")
        for kind, sign in (("tail", ""), ("hole", "·3")):
            if kind in kinds:
                x += GAP
                self.boxes.append(Box(Cell(kind, sign), x, top, x + 2 * ROW, top + ROW))
                x += 2 * ROW + GAP
                text(MEANINGS[kind])
        return top + ROW


def save(desc, path: str | os.PathLike, *, max_rows: int) -> None:
    """Writes the memory of `desc` as a PNG.

    Args:
      desc: a TensorDesc.
      path: of the file; one that is there is replaced.
      max_rows: of each table, at least `sheet.MIN_ROWS`.

    Raises:
      OSError: the file cannot be written.
    """
    image = Page(Sheet(desc), max_rows=max_rows).image()
    # A palette makes the file a quarter of the size and changes no colour by more than 10 of 255.
    image = image.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    image.save(path, "PNG", optimize=True)


_fonts: dict[int, ImageFont.ImageFont] = {}


def _font(size: int):
    if size not in _fonts:
        _fonts[size] = ImageFont.load_default(size)
    return _fonts[size]


def _paint(image: Image.Image, draw: ImageDraw.ImageDraw, box: Box) -> None:
    corners = (box.left, box.top, box.right - 1, box.bottom - 1)
    color = GREY
    if box.cell.kind == "element":
        background = ramp(box.cell.shade)
        color = ink(background)
        draw.rectangle(corners, background)
    elif box.cell.kind == "tail":
        image.paste(_hatched(box.right - box.left, box.bottom - box.top), corners[:2])
        return
    middle = ((box.left + box.right) // 2, (box.top + box.bottom) // 2)
    draw.text(middle, box.cell.text, color, _font(TEXT), anchor="mm")


def _hatched(width: int, height: int) -> Image.Image:
    tile = Image.new("RGB", (width, height), TAIL_PAPER)
    draw = ImageDraw.Draw(tile)
    for x in range(-height, width, HATCH):
        draw.line((x, height, x + height, 0), TAIL_LINE)
    return tile
