"""Checks and measures every network of models.ZOO against TensorFlow with oneDNN on and off.

    python benchmarks/zoo.py [--models unet,ssd] [--runs 20] [--batch 1]
    python benchmarks/zoo.py --page      # writes docs/zoo.md anew

Outputs must lie within 1e-4 of TensorFlow's, as a share of the largest magnitude; a network that
takes more than 1.03 of the better TensorFlow's time is named, and the exit code is then 1. Results
go to docs/zoo.json, network by network, so that it may run in pieces; a network that is measured
again has its row replaced. Times are medians; processes take turns as in run_models.py.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import sys

import backbones
import huggingface
import run_models
from measuring import machine, turns
from measuring.prepare import HERE, Workshop
from models import TRANSFORMERS, ZOO
from rich.console import Console
from rich.progress import Progress

DOCS = HERE.parent / "docs"
OURS, ON, OFF = "tf_blockdnn", "tensorflow", "tensorflow-plain"
TOLERANCE = 1e-4
MOST = 1.03  # of TensorFlow's time

INTRODUCTION = """# The zoo

Networks of many kinds in float32 at batch {batch}, optimised by `bd.optimize` with its default
options. All weights are random, and the statistics of batch normalisation fit them. *Converted*
is the number of convolutions (transposed ones, too) that run in our ops, of all in the network;
*reorders* is how many are left; *difference* is the largest difference from TensorFlow's outputs,
as a share of their largest magnitude. Times are medians in milliseconds of runs in turns, with the
fastest run in parentheses; a speed-up of 2.0x means that the median of the faster TensorFlow is
twice ours. Other batches, numbers of threads and machines were not measured
([the method](method.md)).

{machine}; {threads} threads; {date}; runs of each: {runs}; TensorFlow {version}, whose default
here is oneDNN {default}; commit {commit}. `make zoo` measures all of them again.
"""


def main() -> None:
    """Parses the arguments, measures, writes; or writes the page."""
    options = _parse()
    if options.page:
        document = json.loads(options.output.read_text())
        hub = json.loads((DOCS / "backbones.json").read_text())
        face = json.loads((DOCS / "huggingface.json").read_text())
        parts = page(document), backbones.section(hub), huggingface.section(face)
        (DOCS / "zoo.md").write_text("".join(parts))
        return
    notes = Console(stderr=True)
    slow, facts = [], machine.facts()
    with Progress(console=notes, auto_refresh=False) as progress:
        task = progress.add_task("", total=len(options.models))

        def hint(text: str) -> None:
            progress.update(task, description=text[:60], refresh=True)

        workshop = Workshop(lambda line: notes.print(f"==> {line}", highlight=False), hint)
        for name in options.models:
            row = measure(name, options, workshop, hint)
            _keep(name, row, facts, options)
            print(" | ".join([ZOO[name].title, *cells(row)]), flush=True)
            if row.get("error") or speedup(row) < 1 / MOST:
                slow.append(name)
            progress.advance(task)
    if slow:
        sys.exit(f"wrong, failed or slower than TensorFlow: {', '.join(slow)}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [name for name, network in ZOO.items() if network.builder != TRANSFORMERS]
    parser.add_argument("--models", type=turns.among(ZOO), default=names)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=20, help="counted runs of each")
    parser.add_argument("--burst", type=int, default=5, help="counted runs a turn")
    parser.add_argument("--output", type=pathlib.Path, default=DOCS / "zoo.json")
    parser.add_argument("--page", action="store_true", help="only write docs/zoo.md")
    options = parser.parse_args()
    options.peers, options.tolerance, options.with_load = [OURS, ON, OFF], TOLERANCE, False
    return options


def measure(name: str, options, workshop: Workshop, hint) -> dict:
    """The row of one network: counts, difference, milliseconds; or what went wrong."""
    peers = run_models.measure(name, options.batch, options.threads, options, workshop, hint)[
        "peers"
    ]
    ours = peers[OURS]
    errors = [
        f"{peer}: {numbers['error']}" for peer, numbers in peers.items() if "error" in numbers
    ]
    if errors:
        return {"error": "; ".join(errors)}
    return {
        "convolutions": ours["convolutions"],
        "converted": ours["converted"],
        "reorders": ours["reorders"],
        "difference": ours["relative_difference"],
        **{peer: {key: peers[peer][key] for key in ("min_ms", "median_ms")} for peer in peers},
        "version": peers[ON]["versions"]["tensorflow"],
    }


def speedup(row: dict) -> float:
    """The faster TensorFlow's time divided by ours."""
    return min(row[ON]["median_ms"], row[OFF]["median_ms"]) / row[OURS]["median_ms"]


def cells(row: dict) -> list[str]:
    """The columns of the page behind the network's name."""
    if "error" in row:
        return [row["error"]]
    return [
        f"{row['converted']} / {row['convolutions']}",
        str(row["reorders"]),
        f"{row['difference']:.0e}",
        *(f"{row[p]['median_ms']:.2f} ({row[p]['min_ms']:.2f})" for p in (OURS, ON, OFF)),
        f"{speedup(row):.1f}x",
    ]


def page(document: dict) -> str:
    """docs/zoo.md of docs/zoo.json, but for KerasHub's part."""
    rows = document["networks"]
    default = "on" if document["tensorflow_default"] == ON else "off"
    about = document | {"default": default} | _of_all(rows, "version", "date", "commit", "runs")
    heads = ["network", "converted", "reorders", "difference", "tf_blockdnn", "oneDNN on"]
    lines = [
        INTRODUCTION.format(**about),
        f"| {' | '.join([*heads, 'oneDNN off', 'speed-up'])} |",
        f"|---{'|---:' * 7}|",
    ]
    lines += [
        f"| {' | '.join([ZOO[name].title, *cells(rows[name])])} |" for name in ZOO if name in rows
    ]
    return "\n".join(lines) + "\n"


def _of_all(rows: dict, *keys: str) -> dict[str, str]:
    """What the rows say of themselves, each value once."""
    said = {key: sorted({str(row.get(key, "not noted")) for row in rows.values()}) for key in keys}
    return {key: " or ".join(values) for key, values in said.items()}


def _keep(name: str, row: dict, facts: dict, options) -> None:
    """Puts the row into the file; one that failed leaves what was measured before."""
    if "error" in row:
        return
    document = turns.kept(options.output, "networks") | {
        "machine": facts["machine"]["cpu"],
        "tensorflow_default": facts["tensorflow_default"],
        "batch": options.batch,
        "threads": options.threads,
    }
    noted = {"date": turns.today(), "commit": facts["commit"], "runs": options.runs}
    document["networks"][name] = row | noted
    turns.keep(options.output, document)


if __name__ == "__main__":
    main()
