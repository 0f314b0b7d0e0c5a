"""Drawings of memory: complete, right, and clear about what they leave out."""

import html
import io
import itertools
import re
import xml.etree.ElementTree as xml

import numpy as np
import pytest
import rich.console

import tf_blockdnn as bd
from tf_blockdnn.python.showing.memory import letters_of

SMALL = """\
nChw8c  n=1 c=9 h=2 w=2  float32
offset(n, c, h, w) = n*64 + c/8*32 + h*16 + w*8 + c%8
size_bytes = 256;  n*c*h*w*4 = 144;  tail, always zero: 112

Where each element lies, for n0
      h0      h1
      w0  w1  w0  w1
  c0   0   8  16  24
  c1   1   9  17  25
  c2   2  10  18  26
  c3   3  11  19  27
  c4   4  12  20  28
  c5   5  13  21  29
  c6   6  14  22  30
  c7   7  15  23  31

  c8  32  40  48  56
  c9 ░░░ ░░░ ░░░ ░░░
 c10 ░░░ ░░░ ░░░ ░░░
 c11 ░░░ ░░░ ░░░ ░░░
 c12 ░░░ ░░░ ░░░ ░░░
 c13 ░░░ ░░░ ░░░ ░░░
 c14 ░░░ ░░░ ░░░ ░░░
 c15 ░░░ ░░░ ░░░ ░░░

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

first                  last in memory   ░░░ tail: stored, always zero
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


def test_the_whole_picture():
    assert text_of(bd.TensorDesc((1, 9, 2, 2), "float32", "nChw8c"), width=80) == SMALL


def test_strides_and_offset():
    desc = bd.TensorDesc((3, 4), "int8", strides=(6, 1), offset=5)
    assert text_of(desc, width=80) == STRIDED


@pytest.mark.parametrize("layout", bd.TensorDesc.layouts())
def test_each_element_is_where_it_lies(layout):
    """The formula gives each offset, and a cell has that of the element in its row and column."""
    desc, letters = small(layout), letters_of(layout, 0)
    text = text_of(desc, width=10**4, max_rows=10**4)
    arguments, terms = re.search(r"offset\((.*)\) = (.*)", text).groups()
    formula = eval(f"lambda {arguments}: {terms.replace('/', '//')}")
    indices = list(itertools.product(*map(range, desc.padded_dims)))
    assert all(formula(*index) == desc.offset(*index) for index in indices)

    title, *lines = text.split("\n\n", 1)[1].splitlines()[:-1]
    fixed = {word[0]: 0 for word in re.findall(r"([a-z]0)\b", title)}
    across, rows = {}, 0
    for line in lines:
        if not line:
            continue
        words = [(m.end(), m[0]) for m in re.finditer(r"\S+", line)]
        if all(re.fullmatch(r"[a-z]\d+", word) for _, word in words):
            across |= {(end, word[0]): int(word[1:]) for end, word in words}
            continue
        rows += 1
        (_, down), *cells = words
        for end, cell in cells:
            named = fixed | {down[0]: int(down[1:])}
            for (place, letter), value in sorted(across.items()):
                named |= {letter: value} if place <= end else {}
            index = [named[letter] for letter in letters]
            is_tail = any(i >= size for i, size in zip(index, desc.dims, strict=True))
            assert "░" in cell if is_tail else int(cell) == desc.offset(*index)
    assert rows in desc.padded_dims


def test_elements_that_share_memory():
    text = text_of(bd.TensorDesc((2, 3), "float32", strides=(0, 1)))
    assert "elements share memory" in text
    assert "  i0   0   1   2\n  i1   0   1   2\n" in text


def test_no_elements():
    text = text_of(bd.TensorDesc((1, 0, 5, 4), "float32", "nChw16c"))
    assert text.splitlines()[-2:] == ["size_bytes = 0;  n*c*h*w*4 = 0", "no elements"]


@pytest.mark.parametrize("width", [60, 80, 133])
def test_what_does_not_fit_is_left_out_and_said(width):
    text = text_of(
        bd.TensorDesc((3, 1001, 70, 80), "bfloat16", "nChw16c"), width=width, max_rows=10
    )
    assert max(map(len, text.splitlines()[4:-1])) <= width
    header = next(line for line in text.splitlines() if " w0" in line)
    left_out = re.search(r"(\d+) of 5600 columns left out", text)
    assert int(left_out[1]) == 5600 - len(re.findall(r"w\d+", header))
    rows = len(re.findall(r"^ *c\d+ ", text, re.MULTILINE))
    assert rows == 9 and f" {1008 - rows} of 1008 rows left out" in text
    assert re.search(r"^ *c1007 +░", text, re.MULTILINE)


SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("layout", ["nChw8c", "nCdhw8c", "Goihw8g"])
def test_the_file_has_what_the_terminal_has(layout, tmp_path):
    """Each text where the terminal has it, on colours that grow lighter with the offset."""
    desc = small(layout)
    desc.draw(tmp_path / "x.svg", max_rows=64)
    root = xml.parse(tmp_path / "x.svg").getroot()
    width, height = map(float, root.get("viewBox").split()[2:])
    rows = {}
    for text in root.findall(f".//{SVG}text"):
        at = round(float(text.get("x")) / 12.2)
        line = rows.setdefault(float(text.get("y")), {})
        line[at] = html.unescape(text.text).replace("\xa0", " ")
        assert at * 12.2 + float(text.get("textLength")) < width and float(text.get("y")) < height
    drawn = ["".join(line[at] for at in sorted(line)) for _, line in sorted(rows.items())]
    printed = [line for line in text_of(desc, width=120, max_rows=64).splitlines() if line]
    assert [line.split() for line in drawn if line.split()] == [line.split() for line in printed]
    legend = max(float(rect.get("y")) for rect in root.findall(f".//{SVG}rect[@y]"))
    shades = [
        sum(np.multiply(list(bytes.fromhex(rect.get("fill")[1:])), (0.3, 0.59, 0.11)))
        for rect in root.findall(f".//{SVG}rect[@y='{legend:g}']")
    ]
    assert len(shades) == 16 and (np.diff(shades) > 0).all()


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
