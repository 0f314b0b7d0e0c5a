"""Measures products with packed weights against other libraries, turn by turn.

    python benchmarks/gemm.py [--shapes 1/4096/1024,64/4096/1024] [--peers onednn,mkl]

A shape is M/N/K. Every library has a process of its own and packs B once, where it can; the
processes take turns. The script prints GFLOP/s by the fastest run, and, for each row, how fast B is
read: at M = 1 the bandwidth is the limit, from about M = 6 on it is arithmetic. It writes a JSON
file, too. The speed-up is over the fastest other library.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

import numpy as np
from measuring import machine, turns
from measuring.turns import OURS, TURN_MS, Say
from peers.gemm import LIBRARIES, PEERS, sizes
from rich.table import Table

SHAPES = [f"{m}/4096/1024" for m in (1, 4, 16, 64, 256)]
TOLERANCE = 1e-5  # of the largest sum


def main() -> int:
    """Parses the arguments, measures, prints and writes. Returns the exit code."""
    return turns.run("gemm", _parse(), 100, _measure)


def _parse() -> argparse.Namespace:
    others = [name for name in PEERS if name != OURS]
    parser = turns.parser(__doc__, "gemm", rounds=20)
    parser.add_argument("--shapes", type=turns.names, default=SHAPES, help="M/N/K")
    parser.add_argument("--peers", type=turns.among(PEERS), default=others, help=",".join(others))
    options = parser.parse_args()
    if any(len(shape.split("/")) != 3 for shape in options.shapes):
        parser.error("a shape is M/N/K")
    return options


def _measure(options, say: Say) -> tuple[list[Table], dict]:
    """A table with a row for each shape, and all times."""
    workshop = turns.workshop(say)
    busy, rows, models = machine.BusyElsewhere(), [], {}
    for peer in [OURS, *options.peers]:
        library = ""
        if peer in LIBRARIES:
            environment = pathlib.Path(workshop.interpreter(PEERS[peer].venv)).parents[1]
            library = str(environment / LIBRARIES[peer])
        models[peer] = library, sys.executable
    cases = {"cases": np.array(options.shapes)}
    with turns.start("peers.gemm", PEERS, cases, options, models) as workers:
        workers.check(OURS, lambda peer: TOLERANCE)
        turns.require(workers)
        for shape in options.shapes:
            timings = workers.take_turns(options.rounds, shape, turn_ms=TURN_MS)
            rows.append({"shape": shape} | {p: t.to_json() for p, t in timings.items()})
    cores = busy.cores()
    return [table(rows, cores)], {"cores_busy_elsewhere": cores, "products": rows}


def table(rows: list[dict], busy: float) -> Table:
    """A row for each shape: GFLOP/s of each library, by min."""
    peers = [peer for peer in PEERS if peer in rows[0]]
    columns = ("M/N/K", *(PEERS[peer].title for peer in peers), "B, GB/s", "speed-up")
    shown = turns.table("products with packed weights: GFLOP/s, by min", busy, columns)
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
