"""The Python examples of each page in docs/ run as they stand, top to bottom.

They run in a folder of their own, which has a SavedModel named "model". A page that says with
`# -> ...` what its examples print says so for all of it, in order; a comment of that form alone on
its line goes on with the one above.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest
from saved_models import save_tiny

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"


def python_blocks(page: pathlib.Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def promised(code: str) -> str:
    """What the comments say is printed, without white space."""
    return re.sub(r"\s", "", "".join(re.findall(r"# ->(.*)", code)))


PAGES = [page.name for page in sorted(DOCS.glob("*.md")) if python_blocks(page)]


@pytest.mark.parametrize("name", PAGES)
def test_examples_run(name, tmp_path):
    save_tiny(tmp_path / "model")
    code = "\n".join(python_blocks(DOCS / name))
    result = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    if promised(code):
        assert re.sub(r"\s", "", result.stdout) == promised(code), result.stdout


def test_what_a_page_promises():
    assert promised("print(1)  # -> 1\nprint((2, 3))\n# -> (2,\n# -> 3)\n") == "1(2,3)"
