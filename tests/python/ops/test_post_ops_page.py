"""docs/post-ops.md states the errors that the C++ test holds every instruction set to."""

import re
from pathlib import Path

from tf_blockdnn.python.ops.post_op_entry import ALIASES, ELTWISE

ROOT = Path(__file__).resolve().parents[3]
BOUND = re.compile(r'\{"(eltwise\([^"]*\))", ([0-9.]+), k(Result|Terms)\}')
ROW = re.compile(r"^\| `(eltwise\([^`]*\))`(?:, also `(\w+)`)? \|.*\| ([0-9.]+)( of the .*)? \|$")


def test_the_table_has_the_tested_bounds():
    page = (ROOT / "docs" / "post-ops.md").read_text()
    header = ROOT / "tests" / "cc" / "core" / "post_ops" / "eltwise_bounds.h"
    tested = {
        entry: (float(ulp), unit == "Terms")
        for entry, ulp, unit in BOUND.findall(header.read_text())
    }
    rows = [row for row in map(ROW.match, page.splitlines()) if row]
    assert {row[1]: (float(row[3]), row[4] is not None) for row in rows} == tested
    assert {row[2]: re.match(r"eltwise\((\w+)", row[1])[1] for row in rows if row[2]} == ALIASES
    algorithms = [re.match(r"eltwise\((\w+)", entry)[1] for entry in tested]
    assert list(dict.fromkeys(algorithms)) == list(ELTWISE)
