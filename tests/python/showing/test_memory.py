"""Drawings of memory: complete, right, and clear about what they leave out."""

import html
import io
import itertools
import math
import re
import xml.etree.ElementTree as xml

import numpy as np
import pytest
import rich.console
from hypothesis import given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd
from tf_blockdnn.python.showing.memory import Sheet, letters_of, ramp, shown

ALL = 10**6
SMALL = """\
nChw8c  n=1 c=9 h=2 w=2  float32
offset(n, c, h, w) = n*64 + c/8*32 + h*16 + w*8 + c%8
size_bytes = 256;  n*c*h*w*4 = 144;  tail, always zero: 112

Where each element lies
      h0       h1
      w0  w1   w0  w1
  c0   0   8   16  24
  c1   1   9   17  25
  c2   2  10   18  26
  c3   3  11   19  27
  c4   4  12   20  28
  c5   5  13   21  29
  c6   6  14   22  30
  c7   7  15   23  31

  c8  32  40   48  56
  c9 ░░░ ░░░  ░░░ ░░░
 c10 ░░░ ░░░  ░░░ ░░░
 c11 ░░░ ░░░  ░░░ ░░░
 c12 ░░░ ░░░  ░░░ ░░░
 c13 ░░░ ░░░  ░░░ ░░░
 c14 ░░░ ░░░  ░░░ ░░░
 c15 ░░░ ░░░  ░░░ ░░░

Memory in its order: 8 c a row, then w, h, the next 8 c
   0  c0  c1  c2  c3  c4  c5  c6  c7  n0 h0 w0
   8  c0  c1  c2  c3  c4  c5  c6  c7  n0 h0 w1

  16  c0  c1  c2  c3  c4  c5  c6  c7  n0 h1 w0
  24  c0  c1  c2  c3  c4  c5  c6  c7  n0 h1 w1

  32  c8 ░░░ ░░░ ░░░ ░░░ ░░░ ░░░ ░░░  n0 h0 w0
  40  c8 ░░░ ░░░ ░░░ ░░░ ░░░ ░░░ ░░░  n0 h0 w1

  48  c8 ░░░ ░░░ ░░░ ░░░ ░░░ ░░░ ░░░  n0 h1 w0
  56  c8 ░░░ ░░░ ░░░ ░░░ ░░░ ░░░ ░░░  n0 h1 w1

first                  last in memory   ░░░ tail: stored, always zero
"""
STRIDED = """\
no layout  i=3 j=4  int8
offset(i, j) = 5 + i*6 + j
size_bytes = 21;  i*j*1 = 12;  holes: 9

Where each element lies
      j0  j1  j2  j3
  i0   5   6   7   8
  i1  11  12  13  14
  i2  17  18  19  20

Memory in its order: 4 j a row, then i
   0  ·5
   5  j0  j1  j2  j3  ·2  i0
  11  j0  j1  j2  j3  ·2  i1
  17  j0  j1  j2  j3      i2

first                  last in memory   ·3 that many elements of something else
"""


def text_of(desc, *, width=100, max_rows=32):
    file = io.StringIO()
    desc.draw(max_rows=max_rows, console=rich.console.Console(file=file, width=width))
    return "".join(line.rstrip() + "\n" for line in file.getvalue().splitlines())


def small(layout):
    """A tensor in `layout` with tails wherever it has blocks."""
    sizes = dict(n=2, c=9, d=2, h=3, w=2, g=2, o=3, i=9, x=5)
    if layout.startswith("G"):
        sizes |= dict(g=9, o=1, i=1)
    return bd.TensorDesc([sizes[letter] for letter in letters_of(layout, 0)], "float32", layout)


each_layout = pytest.mark.parametrize("layout", bd.TensorDesc.layouts())


def indices(desc):
    return itertools.product(*map(range, desc.padded_dims))


def is_tail(desc, index):
    return any(i >= size for i, size in zip(index, desc.dims, strict=True))


def test_the_whole_picture():
    assert text_of(bd.TensorDesc((1, 9, 2, 2), "float32", "nChw8c"), width=80) == SMALL


def test_strides_and_offset():
    desc = bd.TensorDesc((3, 4), "int8", strides=(6, 1), offset=5)
    assert text_of(desc, width=80) == STRIDED


@each_layout
def test_memory_has_every_element_once_and_where_it_is(layout):
    desc = small(layout)
    sheet = Sheet(desc)
    seen = {}
    for row in sheet.memory(ALL, ALL).rows:
        fixed = re.findall(r"([a-z])(\d+)", row.note)
        shown_cells = [cell for cell in row.cells if cell.kind != "tail"]
        for cell in shown_cells:
            named = dict(fixed) | {cell.text[0]: cell.text[1:]}
            index = tuple(int(named[letter]) for letter in sheet.letters)
            assert cell.kind == "element" and not is_tail(desc, index)
            assert index not in seen
            seen[index] = int(row.label) + row.cells.index(cell)
    assert seen == {i: desc.offset(*i) for i in indices(desc) if not is_tail(desc, i)}
    kinds = [cell.kind for row in sheet.memory(ALL, ALL).rows for cell in row.cells]
    assert kinds.count("tail") == math.prod(desc.padded_dims) - math.prod(desc.dims)


@each_layout
def test_elements_have_their_offsets(layout):
    """Of the dimensions that the table does not fix at 0, the last one turning fastest."""
    desc = small(layout)
    sheet = Sheet(desc)
    table = sheet.elements(ALL, ALL)
    fixed = re.findall(r"([a-z])0", table.title)
    free = [
        1 if letter in fixed else n
        for letter, n in zip(sheet.letters, desc.padded_dims, strict=True)
    ]
    expected = {
        str(desc.offset(*i)): "tail" if is_tail(desc, i) else "element"
        for i in itertools.product(*map(range, free))
    }
    cells = [cell for row in table.rows for cell in row.cells]
    assert len(cells) == len(expected)
    assert {cell.text: cell.kind for cell in cells} == expected
    for row in table.rows:
        for cell in row.cells:
            assert cell.shade == pytest.approx(int(cell.text) / (desc.size - 1))


@each_layout
def test_the_formula(layout):
    desc = small(layout)
    arguments, terms = re.fullmatch(r"offset\((.*)\) = (.*)", Sheet(desc).formula).groups()
    formula = eval(f"lambda {arguments}: {terms.replace('/', '//')}")
    for index in indices(desc):
        assert formula(*index) == desc.offset(*index)


def test_elements_that_share_memory():
    text = text_of(bd.TensorDesc((2, 3), "float32", strides=(0, 1)))
    assert "elements share memory" in text
    assert "   0  j0  j1  j2  i0\n   0  j0  j1  j2  i1\n" in text


def test_no_elements():
    text = text_of(bd.TensorDesc((1, 0, 5, 4), "float32", "nChw16c"))
    assert text.splitlines()[-2:] == ["size_bytes = 0;  n*c*h*w*4 = 0", "no elements"]


@given(st.integers(1, 60), st.integers(8, 40), st.none() | st.integers(0, 59))
@settings(deadline=None)
def test_shown(count, most, keep):
    picked = shown(count, most, keep if keep is not None and keep < count else None)
    items = [item for item in picked if item is not None]
    assert len(picked) <= most and items == sorted(set(items)) and items[-1] == count - 1
    assert items[0] == 0 and (keep is None or keep >= count or keep in items)
    if count <= most:
        assert picked == list(range(count))
    for before, gap, after in zip(picked, picked[1:], picked[2:], strict=False):
        assert gap is not None or after - before > 1


@pytest.mark.parametrize("width", [60, 80, 133])
def test_what_does_not_fit_is_left_out_and_said(width):
    desc = bd.TensorDesc((3, 1001, 70, 80), "bfloat16", "nChw16c")
    text = text_of(desc, width=width, max_rows=10)
    assert max(len(line) for line in text.splitlines()[4:-1]) <= width  # without the legend
    tables = text.split("\n\n", 1)[1]
    columns = re.search(r"(\d+) of 5600 columns left out", tables)
    header = next(line for line in tables.splitlines() if "w0" in line)
    assert int(columns[1]) == 5600 - len(re.findall(r"w\d+", header))
    left_out = [int(n) for n in re.findall(r"(\d+) rows left out", tables)]
    elements, memory = tables.split("Memory in its order")
    rows = len(re.findall(r"^ *c\d+ ", elements, re.MULTILINE))
    assert rows + sum(left_out[:2]) == 1008 and rows == 8
    rows = len(re.findall(r"n\d+ h\d+ w\d+$", memory, re.MULTILINE))
    assert rows + sum(left_out[2:]) == 3 * 63 * 5600 and rows == 8
    assert re.search(r"^ *c1000 +\d", elements, re.MULTILINE)
    assert re.search(r"^ *c1001 +░", elements, re.MULTILINE)
    assert re.search(r" c992 .*n0 h0 w0", memory) and "░" in memory


class Counting:
    """A description that counts how often it is asked for an offset."""

    def __init__(self, desc):
        self.desc, self.calls = desc, 0

    def __getattr__(self, name):
        return getattr(self.desc, name)

    def offset(self, *index):
        self.calls += 1
        return self.desc.offset(*index)


def test_a_huge_tensor_costs_no_more_than_what_is_shown():
    desc = Counting(bd.TensorDesc((1000, 10**4, 1000, 1000), "float32", "nhwc"))
    sheet = Sheet(desc)
    for table in (sheet.elements(32, 20), sheet.memory(32, 20)):
        assert len(table.rows) == 32 and table.columns in (19, 20)
    assert desc.calls < 3 * 2 * 32 * 20


def test_colours_grow_lighter_with_the_offset():
    steps = np.array([ramp(i / 50) for i in range(51)])
    assert (np.diff(steps @ (0.3, 0.59, 0.11)) > 0).all()


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("layout", ["nChw8c", "nhwc", "ncw", "nCdhw8c", "OIhw8i8o", "Goihw8g"])
def test_the_file_has_what_the_terminal_has(layout, tmp_path):
    """Each text where the terminal has it, and each element on the colour of its place."""
    desc = small(layout)
    desc.draw(tmp_path / "x.svg", max_rows=64)
    root = xml.parse(tmp_path / "x.svg").getroot()
    width, height = map(float, root.get("viewBox").split()[2:])
    texts = root.findall(f".//{SVG}text")
    rows = {}
    for text in texts:
        at = round(float(text.get("x")) / 12.2)
        line = rows.setdefault(float(text.get("y")), {})
        line[at] = html.unescape(text.text).replace("\xa0", " ")
        assert at * 12.2 + float(text.get("textLength")) < width and float(text.get("y")) < height
    drawn = ["".join(line[at] for at in sorted(line)) for _, line in sorted(rows.items())]
    printed = [line for line in text_of(desc, width=120, max_rows=64).splitlines() if line]
    assert [line.split() for line in drawn if line.split()] == [line.split() for line in printed]
    colors = {rect.get("fill") for rect in root.findall(f".//{SVG}rect")}
    cells = [cell for row in Sheet(desc).memory(64, 120).rows for cell in row.cells]
    shades = {"#{:02x}{:02x}{:02x}".format(*ramp(c.shade)) for c in cells if c.kind == "element"}
    assert len(shades) > 10 and shades <= colors


def test_files_of_nothing_and_of_much(tmp_path):
    for dims in ((1, 0, 2, 2), (64, 1000, 1000, 1000)):
        bd.TensorDesc(dims, "float32", "nChw16c").draw(tmp_path / "x.svg")
        box = xml.parse(tmp_path / "x.svg").getroot().get("viewBox")
        width, height = map(float, box.split()[2:])
        assert 200 < width < 4000 and 80 < height < 2000


def test_bad_arguments(tmp_path):
    desc = small("nchw")
    with pytest.raises(ValueError, match="max_rows must be at least 8; got 7"):
        desc.draw(max_rows=7)
    with pytest.raises(OSError, match="No such file"):
        desc.draw(tmp_path / "nowhere" / "x.svg")
