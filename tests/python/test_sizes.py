"""Files and folders stay small enough to be read as a whole."""

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_SOURCES = 18  # of a folder
MOST_LINES = 400
MOST_KERNEL_LINES = 600

SOURCES = [
    path
    for folder in ("cc", "python", "tf_blockdnn", "build_tools", "benchmarks", "tests")
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in (".h", ".cc", ".py", ".bzl") and "__pycache__" not in path.parts
]
FOLDERS = Counter(path.parent for path in SOURCES)


def test_sources_are_found():
    assert len(SOURCES) > 400


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_folder_has_few_sources(folder):
    assert FOLDERS[folder] <= MOST_SOURCES


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_file_is_short(path):
    most = MOST_KERNEL_LINES if path.stem.endswith("_kernel") else MOST_LINES
    assert len(path.read_text().splitlines()) <= most
