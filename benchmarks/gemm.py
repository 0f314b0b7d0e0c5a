"""Measures products with packed weights against other libraries, turn by turn.

    python benchmarks/gemm.py [--shapes 1/4096/1024,64/4096/1024] [--peers onednn,mkl]

A shape is M/N/K. Every library has a process of its own and packs B once, where it can; the
processes take turns. The script prints GFLOP/s by the fastest run, and, for each row, how fast B is
read: at M = 1 the bandwidth is the limit, from about M = 6 on it is arithmetic. It writes a JSON
file, too. The speed-up is over the fastest other library.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import pathlib
import sys
import tempfile

import machine
import numpy as np
from gemm_peers import LIBRARIES, PEERS, sizes
from prepare import BUILD, HERE, SetUpError, Workshop
from rich.console import Console
from rich.table import Table
from worker import Worker, WorkerError

# The module alone: importing the package would load TensorFlow into the measuring process.
sys.path.insert(0, str(HERE.parent / "python"))
from benchmark import interleave  # noqa: E402

SHAPES = [f"{m}/4096/1024" for m in (1, 4, 16, 64, 256)]
OURS = "tf_blockdnn"
TURN_MS = 40.0  # A turn is as many runs as fit.
TOLERANCE = 1e-3  # of sums of 1024 products of the size of 1


def main() -> int:
    """Parses the arguments, measures, prints and writes. Returns the exit code."""
    options = _parse()
    try:
        rows, busy = _measure(options)
    except (SetUpError, WorkerError) as error:
        Console(stderr=True).print(f"gemm: {error}", style="red", highlight=False)
        return 2
    Console(width=None if sys.stdout.isatty() else 100).print(table(rows, busy))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    document = {"threads": options.threads, "cores_busy_elsewhere": busy, "products": rows}
    options.output.write_text(json.dumps(document, indent=2) + "\n")
    print(f"written: {options.output}")
    return 0


def _parse() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    others = [name for name in PEERS if name != OURS]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shapes", type=names, default=SHAPES, help="M/N/K")
    parser.add_argument("--peers", type=names, default=others, help=",".join(others))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20, help="turns of each")
    parser.add_argument("--output", type=pathlib.Path, default=BUILD / "gemm.json")
    options = parser.parse_args()
    if unknown := {*options.peers} - {*PEERS}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if any(len(shape.split("/")) != 3 for shape in options.shapes):
        parser.error("a shape is M/N/K")
    return options


def _measure(options) -> tuple[list[dict], float]:
    """A row for each shape, and the cores that others kept busy."""
    notes = Console(stderr=True)
    workshop = Workshop(functools.partial(notes.print, highlight=False), lambda text: None)
    busy, rows = machine.BusyElsewhere(), []
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        place, workers = pathlib.Path(folder), {}
        np.savez(place / "inputs.npz", cases=np.array(options.shapes))
        for peer in [OURS, *options.peers]:
            library = ""
            if peer in LIBRARIES:
                environment = pathlib.Path(workshop.interpreter(PEERS[peer].venv)).parents[1]
                library = str(environment / LIBRARIES[peer])
            workers[peer] = Worker(
                *(peer, sys.executable, library, place / "inputs.npz", place),
                threads=options.threads,
                burst=1,
                table="gemm_peers",
            )
            stack.callback(workers[peer].close)
        _check(workers)
        for shape in options.shapes:
            bursts = {p: max(1, int(TURN_MS / min(w(shape, 2)))) for p, w in workers.items()}
            turns = {p: functools.partial(w, shape, bursts[p]) for p, w in workers.items()}
            timings = interleave(turns, runs=options.rounds, warmup=1)
            rows.append({"shape": shape} | {p: t.to_json() for p, t in timings.items()})
    return rows, busy.cores()


def _check(workers: dict[str, Worker]) -> None:
    """All libraries compute the same product."""
    (ours,) = workers[OURS].outputs()
    for peer, worker in workers.items():
        difference = np.max(np.abs(worker.outputs()[0] - ours))
        if difference > TOLERANCE:
            raise WorkerError(peer, f"{peer} computes another product: it differs by {difference}")


def table(rows: list[dict], busy: float) -> Table:
    """A row for each shape: GFLOP/s of each library, by min."""
    peers = [peer for peer in PEERS if peer in rows[0]]
    shown = Table(
        title="products with packed weights: GFLOP/s, by min",
        caption=f"[red]other processes kept {busy:.1f} cores busy[/]" if busy > 0.1 else None,
    )
    for name in ("M/N/K", *(PEERS[peer].title for peer in peers), "B, GB/s", "speed-up"):
        shown.add_column(name, justify="left" if name == "M/N/K" else "right")
    for row in rows:
        m, n, k = sizes(row["shape"])
        best = min((row[peer]["min_ms"] for peer in peers if peer != OURS), default=None)
        shown.add_row(
            row["shape"],
            *(f"{2 * m * n * k / row[peer]['min_ms'] / 1e6:.0f}" for peer in peers),
            f"{4 * n * k / row[OURS]['min_ms'] / 1e6:.0f}",
            f"{best / row[OURS]['min_ms']:.2f}x" if best else "",
        )
    return shown


if __name__ == "__main__":
    sys.exit(main())
