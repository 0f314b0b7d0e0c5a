"""Measures whole networks against the other ways of running them, turn by turn.

    python benchmarks/run_models.py [--models resnet50,hed] [--peers …] [--batch 1,8] [--runs 30]

Every peer has a process of its own (TensorFlow reads its oneDNN switch at start) and they take
turns, so drift and disturbance hit all alike. Prints a table and writes a JSON file.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import numpy as np
from models import ZOO
from peers import PEERS
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from worker import Worker, WorkerError

HERE = pathlib.Path(__file__).resolve().parent
BUILD = HERE.parent / "build" / "benchmarks"
OURS, REFERENCE = list(PEERS)[:2]

# The module alone: importing the package would load TensorFlow into the measuring process.
sys.path.insert(0, str(HERE.parent / "python"))
from benchmark import interleave, largest_difference  # noqa: E402


def main() -> None:
    """Parses the arguments, measures, prints and writes."""
    options = _parse()
    console = Console()
    results = []
    with Progress(console=Console(stderr=True)) as progress:
        total = len(options.models) * len(options.batch)
        task = progress.add_task("networks", total=total)
        for name in options.models:
            model = _saved_model(name)
            for batch in options.batch:
                progress.update(task, description=f"{ZOO[name].title}, batch {batch}")
                try:
                    results.append(_measure(name, model, batch, options))
                except WorkerError as error:
                    sys.exit(f"{name}, batch {batch}: {error}")
                progress.advance(task)
    console.print(_table(results, options.peers))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(_document(results, options), indent=2) + "\n")
    console.print(f"written: {options.output}")


def _parse() -> argparse.Namespace:
    def names_of(table):
        def parse(text: str) -> list[str]:
            names = text.split(",")
            if unknown := [name for name in names if name not in table]:
                raise argparse.ArgumentTypeError(
                    f"{', '.join(unknown)}: not among {', '.join(table)}"
                )
            return names

        return parse

    def counts(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=names_of(ZOO), default=list(ZOO), help="comma separated")
    parser.add_argument(
        "--peers", type=names_of(PEERS), default=list(PEERS), help="comma separated"
    )
    parser.add_argument("--batch", type=counts, default=[1], help="comma separated")
    parser.add_argument("--runs", type=int, default=30, help="counted runs of each")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--output", type=pathlib.Path, default=BUILD / "models.json")
    return parser.parse_args()


def _saved_model(name: str) -> pathlib.Path:
    """The network's SavedModel, written unless it is there and newer than the zoo's sources."""
    folder = BUILD / "models" / name
    written = folder / "saved_model.pb"
    changed = max(path.stat().st_mtime for path in (HERE / "models").glob("*.py"))
    if not written.exists() or written.stat().st_mtime < changed:
        shutil.rmtree(folder, ignore_errors=True)
        result = subprocess.run(
            [sys.executable, "-m", "models", name, str(folder)],
            cwd=HERE,
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            sys.exit(f"{name}: {result.stderr.strip().splitlines()[-1]}")
    return folder


def _measure(name: str, model: pathlib.Path, batch: int, options) -> dict:
    """One network at one batch: {"model", "batch", "peers": {name: numbers or {"error"}}}."""
    peers: dict[str, dict] = {}
    with contextlib.ExitStack() as stack:
        place = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        np.savez(place / "inputs.npz", **ZOO[name].example(batch))
        workers: dict[str, Worker] = {}
        for peer in options.peers:
            try:
                workers[peer] = Worker(peer, model, place / "inputs.npz", place, options.threads)
            except WorkerError as error:
                peers[peer] = {"error": str(error)}
            else:
                stack.callback(workers[peer].close)
        times = interleave(workers, runs=options.runs) if workers else {}
        for peer, worker in workers.items():
            peers[peer] = {**times[peer].to_json(), **worker.about, "peak_bytes": worker.memory()}
            if REFERENCE in workers:
                peers[peer].update(
                    largest_difference(workers[REFERENCE].outputs(), worker.outputs()).to_json()
                )
    return {"model": name, "batch": batch, "peers": peers}


def _table(results: list[dict], peers: list[str]) -> Table:
    table = Table(title=f"milliseconds, min (median); ×: times as long as {PEERS[OURS].title}")
    table.add_column("network")
    table.add_column("batch", justify="right")
    for peer in peers:
        table.add_column(PEERS[peer].title, justify="right")
    table.add_column("difference", justify="right")
    for result in results:
        ours = result["peers"].get(OURS, {})
        cells = [_cell(result["peers"][peer], ours, mark=peer != OURS) for peer in peers]
        relative = ours.get("relative_difference")
        table.add_row(
            ZOO[result["model"]].title,
            str(result["batch"]),
            *cells,
            "" if relative is None else f"{relative:.0e}",
        )
    return table


def _cell(numbers: dict, ours: dict, *, mark: bool) -> str:
    if "error" in numbers:
        return "[red]failed[/]"
    text = f"{numbers['min_ms']:.2f} ({numbers['median_ms']:.2f})"
    if mark and "min_ms" in ours:
        text += f"  ×{numbers['min_ms'] / ours['min_ms']:.2f}"
    return text


def _document(results: list[dict], options) -> dict:
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": {"cpu": _cpu(), "threads": options.threads, "system": platform.platform()},
        "command": " ".join(["python", *sys.argv]),
        "results": results,
    }


def _cpu() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


if __name__ == "__main__":
    main()
