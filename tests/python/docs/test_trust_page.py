"""The page of promises names tests that are there."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[3]


def test_its_tests_are_there():
    names = re.findall(r"`([\w/]+\.(?:py|cc))::([\w.]+)`", (ROOT / "docs" / "trust.md").read_text())
    missing = []
    for path, name in names:
        suite, _, test = name.rpartition(".")
        word = rf"TEST(?:_P|_F)?\({suite}, {test}\)" if suite else rf"def {test}\("
        if not re.search(word, (ROOT / path).read_text()):
            missing.append(f"{path}::{name}")
    assert len(names) > 80 and not missing, missing
