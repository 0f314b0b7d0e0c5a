"""The page of accuracy says what the zoo's files hold."""

import json
import pathlib
import re
import statistics

DOCS = pathlib.Path(__file__).resolve().parents[3] / "docs"
SOURCES = {
    "convolutional (the zoo)": ("zoo.json", "networks", ""),
    "convolutional (KerasHub)": ("backbones.json", "networks", "cnn/"),
    "vision transformers (KerasHub)": ("backbones.json", "networks", "vision/"),
    "text (KerasHub)": ("backbones.json", "networks", "text/"),
    "speech (KerasHub)": ("backbones.json", "networks", "sound/"),
    "transformers (Hugging Face)": ("huggingface.json", "models", ""),
}


def _row(name: str) -> str:
    file, key, prefix = SOURCES[name]
    rows = json.loads((DOCS / file).read_text())[key]
    differences = {n: row["difference"] for n, row in rows.items() if n.startswith(prefix)}
    worst = max(differences, key=differences.get)
    of_middle, most = statistics.median(differences.values()), differences[worst]
    name_of = {"inceptionv3": "InceptionV3"}.get(worst, worst.removeprefix(prefix))
    return f"| {name} | {len(differences)} | {of_middle:.0e} | {most:.0e} | {name_of} |"


def test_its_table_is_of_all_networks():
    page = (DOCS / "accuracy.md").read_text()
    table = re.findall(r"^\| .* \| \d+ \| .*$", page, re.MULTILINE)
    assert table == [_row(name) for name in SOURCES]


def test_the_tolerance_is_that_of_the_options():
    from tf_blockdnn.python.options import TOLERANCE

    assert (
        f"## Why `verify` allows {TOLERANCE:.0e}".replace("e-04", "e-4")
        in (DOCS / "accuracy.md").read_text()
    )
