"""The Python examples of each page in docs/ run as they stand, top to bottom.

They run in a folder of their own, which has a SavedModel named "model".
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


PAGES = [page.name for page in sorted(DOCS.glob("*.md")) if python_blocks(page)]


@pytest.mark.parametrize("name", PAGES)
def test_examples_run(name, tmp_path):
    save_tiny(tmp_path / "model")
    result = subprocess.run(
        [sys.executable, "-c", "\n".join(python_blocks(DOCS / name))],
        cwd=tmp_path,
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-4000:]
