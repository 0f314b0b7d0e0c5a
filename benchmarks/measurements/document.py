"""The files of docs/measurements: one a machine, with lists of rows, and how to read them.

A file is {"machine", "tensorflow_default", "commit", and a list of rows for each of KINDS}. Each
row has its own commit, date and number of runs, so that rows of another build show that they are.
The README and the chart show the file that was measured last.
"""

from __future__ import annotations

import json
import pathlib
import re
from typing import NamedTuple

from measuring.results import OURS, fastest, is_ours
from models import CLASSES, RECURRENT, ZOO
from peers.networks import PEERS
from peers.rnn import PEERS as RECURRENT_PEERS

from .plan import SHOWN, Row

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "measurements"
KINDS = ("networks", "low_precision", "recurrent", "loading", "serving", "training")


class Result(NamedTuple):
    """One row of a file, with the file."""

    document: dict
    row: dict


def file_name(machine: dict) -> str:
    """That of the machine's file."""
    words = re.sub(r"[^a-z0-9]+", "-", heading({"machine": machine}).lower()).strip("-")
    return f"{words}-{machine['cores']}-cores.json"


def of_commit(path: pathlib.Path, about: dict) -> dict:
    """What the file holds of this commit; an empty document where it holds none."""
    found = json.loads(path.read_text()) if path.exists() else {}
    if found.get("commit") != about["commit"]:
        found = {}
    return {kind: [] for kind in KINDS} | found | about


def has(document: dict, row: Row) -> bool:
    """Whether the row is there."""
    key = row.name, row.batch, row.threads
    return any((r["model"], r["batch"], r["threads"]) == key for r in document[row.kind])


def documents() -> list[dict]:
    """All files, the one that was measured last first."""
    found = (json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json")))
    return sorted(found, key=lambda document: dates(rows(document))[-1], reverse=True)


def rows(document: dict) -> list[dict]:
    return [row for kind in KINDS for row in document[kind]]


def dates(rows: list[dict]) -> list[str]:
    return sorted({row["date"] for row in rows})


def heading(document: dict) -> str:
    """The machine, as titles name it."""
    machine = document["machine"]
    return f"{machine['cpu']} ({machine['isa']})"


def timed(row: dict, peer: str) -> bool:
    return "median_ms" in row["peers"].get(peer, {})


def is_tensorflow(peer: str) -> bool:
    """TensorFlow itself in any setting; plug-ins such as zentf are peers of their own."""
    return peer.startswith("tensorflow")


def is_peer(peer: str) -> bool:
    """Another library that computes in float32."""
    return not is_ours(peer) and not is_tensorflow(peer) and precision(peer) == "float32"


def precision(peer: str) -> str:
    return (PEERS.get(peer) or RECURRENT_PEERS[peer]).precision


def tensorflow_of(result: Result) -> str | None:
    """TensorFlow's default where it was timed, or else what was timed of it."""
    default = result.document["tensorflow_default"]
    return default if timed(result.row, default) else fastest(result.row, is_tensorflow)


def speedup(row: dict, peer: str, ours: str = OURS) -> float:
    """Their time divided by ours, by medians."""
    return row["peers"][peer]["median_ms"] / row["peers"][ours]["median_ms"]


def title(peer: str, document: dict | None = None) -> str:
    """The name of a library; TensorFlow's default on the document's machine is marked as that."""
    name = (PEERS.get(peer) or RECURRENT_PEERS[peer]).title
    marked = document is not None and peer == document["tensorflow_default"]
    return f"{name} (its default)" if marked else name


def network(model: str) -> str:
    """The title of a network or a layer."""
    if model in ZOO:
        row = ZOO[model]
        return row.title if row.size[0] < 400 else f"{row.title}, {row.size[0]}x{row.size[1]}"
    cell, batch, steps, _, units = model.split("/")
    name = "simple RNN" if cell == "vanilla" else cell.upper()
    return f"{name}, {units} units, {steps} steps, batch {batch}"


def class_of(model: str) -> str:
    return ZOO[model].class_name if model in ZOO else RECURRENT


def by_class(document: dict) -> dict[str, list[Result]]:
    """Class of networks -> what the README shows of it: with two threads, networks at batch 1."""
    rows = [row for row in document["networks"] if row["batch"] == 1] + document["recurrent"]
    results = [
        Result(document, row)
        for row in rows
        if row["model"] in SHOWN and row["threads"] == 2 and timed(row, OURS)
    ]
    classes = {name: [r for r in results if class_of(r.row["model"]) == name] for name in CLASSES}
    return {name: found for name, found in classes.items() if found}


def milliseconds(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:#.3g}"


def times(numbers: dict) -> str:
    """Median and, in parentheses, minimum."""
    return f"{milliseconds(numbers['median_ms'])} ({milliseconds(numbers['min_ms'])})"


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    numbers = "".join("---:|" for _ in header[1:])
    lines = ["| " + " | ".join(header) + " |", f"|---|{numbers}"]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
