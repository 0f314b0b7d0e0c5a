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
import contextlib
import importlib.util
import json
import pathlib
import sys
import tempfile

import numpy as np
from measuring import machine
from measuring.options import among
from measuring.prepare import BUILD
from measuring.timing import largest_difference
from measuring.worker import Worker, WorkerError
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
        result = _measure(name, options)
        measured.append(result)
        console.print(_table(result, options))
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(json.dumps(measured, indent=1))
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


def _measure(name: str, options) -> dict:
    """{"network", "batch", "cores_busy_elsewhere", "peers": {peer: {case: [ms], ...}}}."""
    size = NETWORKS[name].size
    images = np.random.default_rng(0).random((options.batch, size, size, 3), np.float32)
    peers: dict[str, dict] = {}
    with contextlib.ExitStack() as stack:
        place = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        np.savez(place / "inputs.npz", images=images)
        workers: dict[str, Worker] = {}
        for peer in options.peers:
            try:
                worker = Worker(
                    *(peer, sys.executable, name, place / "inputs.npz", place),
                    threads=options.threads,
                    burst=1,
                    table="peers.training",
                )
            except WorkerError as error:
                peers[peer] = {"error": str(error)}
                continue
            stack.callback(worker.close)
            workers[peer], peers[peer] = worker, dict(worker.about)
        _drop_wrong(workers, peers)
        busy = machine.BusyElsewhere()
        for case in reversed(options.cases):  # steps first: what inference keeps is none of theirs
            able = [p for p in workers if case in peers[p]["cases"]]
            for turn in range(options.runs + 1):
                for peer in able:
                    (ms,) = workers[peer](case)
                    if turn > 0:
                        peers[peer].setdefault(case, []).append(ms)
            for peer in able:
                peers[peer].setdefault("peak_bytes", workers[peer].memory())
        elsewhere = busy.cores()
    return {
        "network": name,
        "batch": options.batch,
        "cores_busy_elsewhere": elsewhere,
        "peers": peers,
    }


def _drop_wrong(workers: dict[str, Worker], peers: dict[str, dict]) -> None:
    """Leaves those whose inference agrees with the reference's."""
    if REFERENCE not in workers:
        return
    wanted = workers[REFERENCE].outputs()
    for peer in list(workers):
        difference = largest_difference(wanted, workers[peer].outputs())
        if difference.relative > TOLERANCE and peer != "torch":  # its seeds draw other weights
            peers[peer]["error"] = f"wrong: off by {difference.relative:.1e} of the largest"
            workers.pop(peer)


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
