"""Pages state what the measured files, the registrations and the tests say."""

import importlib.util
import json
import pathlib
import re
import statistics

import pytest

from tf_blockdnn.python.options import TOLERANCE

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
spec = importlib.util.spec_from_file_location("make_support", DOCS / "make_support.py")
make_support = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_support)

# A row of the page of accuracy: (file, its key, how the names of the networks begin).
_MEASURED = {
    "convolutional (the zoo)": ("zoo.json", "networks", ""),
    "convolutional (KerasHub)": ("backbones.json", "networks", "cnn/"),
    "vision transformers (KerasHub)": ("backbones.json", "networks", "vision/"),
    "text (KerasHub)": ("backbones.json", "networks", "text/"),
    "speech (KerasHub)": ("backbones.json", "networks", "sound/"),
    "transformers (Hugging Face)": ("huggingface.json", "models", ""),
}


def _accuracy(name: str) -> str:
    file, key, prefix = _MEASURED[name]
    rows = json.loads((DOCS / file).read_text())[key]
    differences = {n: row["difference"] for n, row in rows.items() if n.startswith(prefix)}
    worst = max(differences, key=differences.get)
    of_middle, most = statistics.median(differences.values()), differences[worst]
    name_of = {"inceptionv3": "InceptionV3"}.get(worst, worst.removeprefix(prefix))
    return f"| {name} | {len(differences)} | {of_middle:.0e} | {most:.0e} | {name_of} |"


def test_accuracy():
    page = (DOCS / "accuracy.md").read_text()
    table = re.findall(r"^\| .* \| \d+ \| .*$", page, re.MULTILINE)
    assert table == [_accuracy(name) for name in _MEASURED]
    assert f"## Why `verify` allows {TOLERANCE:.0e}".replace("e-04", "e-4") in page


def test_support():
    assert make_support.PAGE.read_text() == make_support.page(), "docs/support.md: `make docs`"


@pytest.mark.parametrize(
    "name, facts",
    [
        ("BlockdnnConv", "| nhwc 4, nChw16c 5 | float32, bfloat16, uint8 |"),
        ("BlockdnnRnn", "| 3 | float32 |"),
        ("BlockdnnSoftmax", "| 1 to 6 | float32 |"),
        ("BlockdnnThreads", "| no |\n"),  # An op without a gradient does not train.
    ],
)
def test_a_row_of_support(name, facts):
    assert facts in make_support.row(name)


def test_promises():
    names = re.findall(r"`([\w/]+\.(?:py|cc))::([\w.]+)`", (DOCS / "trust.md").read_text())
    missing = []
    for path, name in names:
        suite, _, test = name.rpartition(".")
        word = rf"TEST(?:_P|_F)?\({suite}, {test}\)" if suite else rf"def {test}\("
        if not re.search(word, (ROOT / path).read_text()):
            missing.append(f"{path}::{name}")
    assert len(names) > 80 and not missing, missing
