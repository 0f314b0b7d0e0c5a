"""Measures inference and training steps of whole networks, turn by turn.

    python benchmarks/run_training.py [--networks resnet50,unet] [--peers layers,plain] [--runs 6]

Each peer has a process of its own; they take turns, so drift and disturbance hit all alike, and
stand still between them. The backward pass is the step without the forward one; what it takes for
the gradients of weights, which are TensorFlow's kernels in bd.layers, is the step without the one
that only goes back to the images. Beside it stands the least time that the multiplications of
the network can take on this machine at its peak. The memory is what the process has held at most by
the end of the steps, which come first. Prints a table a network and writes JSON.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import pathlib
import sys

import numpy as np
from measuring import machine, turns
from measuring.prepare import BUILD, HERE
from measuring.turns import among
from measuring.workers import Workers
from models.training import NETWORKS
from peers.training import PEERS
from rich.console import Console
from rich.table import Table

CASES = ("inference", "forward", "data", "step")
TOLERANCE = 1e-3  # of the largest result
REFERENCE = "plain"


def main() -> None:
    """Parses the arguments, measures, prints and writes."""
    options = _parse()
    console = Console(width=None if sys.stdout.isatty() else 140)
    measured = []
    for name in options.networks:
        result = measure(name, options)
        measured.append(result)
        console.print(_table(result, options))
        turns.write(options.output, {"results": measured})
    console.print(f"written: {options.output}")


def _parse() -> argparse.Namespace:
    has_torch = importlib.util.find_spec("torch") is not None
    usual = [name for name in PEERS if name != "torch" or has_torch]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", type=among(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--peers", type=among(PEERS), default=usual)
    parser.add_argument("--cases", type=among(CASES), default=list(CASES))
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2, help="of each peer; default: 2")
    parser.add_argument("--runs", type=int, default=6, help="counted runs of each case")
    parser.add_argument(
        "--peak", type=float, help="GFLOP/s of all threads; beside the times stands what it allows"
    )
    parser.add_argument("--output", type=pathlib.Path, default=BUILD / "training.json")
    return parser.parse_args()


def measure(name: str, options) -> dict:
    """{"network", "batch", "cores_busy_elsewhere", "peers": {peer: {case: [ms], ...}}}."""
    size = NETWORKS[name].size
    images = np.random.default_rng(0).random((options.batch, size, size, 3), np.float32)
    with Workers(HERE, "peers.training", {"images": images}, threads=options.threads) as workers:
        for peer in options.peers:
            workers.start(peer, PEERS[peer], name)
        # The seeds of torch draw other weights.
        workers.check(REFERENCE, lambda peer: math.inf if peer == "torch" else TOLERANCE)
        peers = {peer: dict(worker.about) for peer, worker in workers.running.items()}
        busy = machine.BusyElsewhere()
        for case in reversed(options.cases):  # steps first: what inference keeps is none of theirs
            for peer, timing in workers.take_turns(options.runs, case).items():
                peers[peer][case] = list(timing.milliseconds)
                peers[peer].setdefault("peak_bytes", workers.running[peer].memory())
        elsewhere = busy.cores()
    peers |= {peer: {"error": problem} for peer, problem in workers.problems.items()}
    return {
        "network": name,
        "batch": options.batch,
        "cores_busy_elsewhere": elsewhere,
        "peers": peers,
    }


def _table(result: dict, options) -> Table:
    network = NETWORKS[result["network"]]
    shown = Table(
        title=f"{network.title}, batch {result['batch']}: ms, min (median)",
        caption=f"other processes kept {result['cores_busy_elsewhere']:.1f} cores busy",
    )
    for column in ("", *options.cases, "backward", "of it weights", "peak MiB"):
        shown.add_column(column, justify="left" if column == "" else "right")
    for peer, row in result["peers"].items():
        if "error" in row:
            shown.add_row(PEERS[peer].title, row["error"])
            continue
        cells = [_times(row.get(case)) for case in options.cases]
        cells += [_difference(row, "step", "forward"), _difference(row, "step", "data")]
        shown.add_row(PEERS[peer].title, *cells, f"{row['peak_bytes'] / 2**20:.0f}")
    if options.peak:
        least = 2e-3 * network.multiplications * result["batch"] / options.peak * 1e3
        factor = {"inference": 1, "forward": 1, "data": 2, "step": 3}
        cells = [f"{least * factor[case]:.0f}" for case in options.cases]
        shown.add_row("multiplications at peak", *cells, f"{2 * least:.0f}", f"{least:.0f}", "")
    return shown


def _times(values: list[float] | None) -> str:
    return f"{min(values):.1f} ({np.median(values):.1f})" if values else "–"


def _difference(row: dict, whole: str, part: str) -> str:
    if whole not in row or part not in row:
        return "–"
    return f"{min(row[whole]) - min(row[part]):.1f}"


if __name__ == "__main__":
    main()
