"""Measures recurrent layers against other libraries, turn by turn.

    python benchmarks/rnn.py [--cells lstm,gru] [--shapes 1/100/256/256] [--peers onnxruntime,torch]

A shape is BATCH/STEPS/INPUTS/UNITS; every layer returns the outputs of all steps. The libraries run
in processes of their own, one at a time, and begin in turns. `Keras` is the layer before its
weights are packed, as TensorFlow runs it with oneDNN off, on (`oneDNN`), or compiled (`XLA`). The
script prints a row for each layer, with the time over ours in each library, and writes a JSON file.
Beside them stand the floating-point work of a layer a second, and its recurrent weights over the
time that they are read in: at batch 1 the second is the limit, at large batches the first.
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
from prepare import BUILD, HERE, SetUpError, Workshop
from rich.console import Console
from rich.table import Table
from rnn_peers import GATES, PEERS
from worker import Worker, WorkerError

# The module alone: importing the package would load TensorFlow into the measuring process.
sys.path.insert(0, str(HERE.parent / "python"))
from benchmark import interleave  # noqa: E402

SHAPES = ["1/100/256/256", "1/50/512/512", "16/50/512/1024", "64/25/256/512"]
DEEP_SPEECH = "vanilla/16/100/2048/2048"
TURN_MS = 40.0  # A turn is as many runs as fit.
TOLERANCE = 1e-4


def main() -> int:
    """Parses the arguments, measures, prints and writes. Returns the exit code."""
    options = _parse()
    notes = Console(stderr=True)
    cases = [f"{cell}/{shape}" for shape in options.shapes for cell in options.cells]
    if options.shapes == SHAPES and "vanilla" in options.cells:
        cases.append(DEEP_SPEECH)
    try:
        rows, versions, busy = _measure(cases, options, notes)
    except (SetUpError, WorkerError) as error:
        notes.print(f"rnn: {error}", style="red", highlight=False)
        return 2
    Console(width=None if sys.stdout.isatty() else 160).print(table(rows, options.peers, busy))
    document = {"threads": options.threads, "versions": versions, "cores_busy_elsewhere": busy}
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(document | {"layers": rows}, indent=2) + "\n")
    print(f"written: {options.output}")
    return 0


def _parse() -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return text.split(",")

    others = [name for name in PEERS if name not in ("tf_blockdnn", "zentf")]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cells", type=names, default=list(GATES))
    parser.add_argument("--shapes", type=names, default=SHAPES, help="BATCH/STEPS/INPUTS/UNITS")
    parser.add_argument("--peers", type=names, default=others, help=",".join(PEERS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=8, help="turns of each")
    parser.add_argument("--output", type=pathlib.Path, default=BUILD / "rnn.json")
    options = parser.parse_args()
    if unknown := {*options.peers} - {*PEERS} | {*options.cells} - {*GATES}:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    if any(len(shape.split("/")) != 4 for shape in options.shapes):
        parser.error("a shape is BATCH/STEPS/INPUTS/UNITS")
    return options


def _measure(cases: list[str], options, notes: Console) -> tuple[list[dict], dict, float]:
    """A row for each case, the libraries' versions, and the cores that others kept busy."""
    workshop = Workshop(functools.partial(notes.print, highlight=False), lambda text: None)
    peers = ["tf_blockdnn", *options.peers]
    pythons = {peer: workshop.interpreter(PEERS[peer].venv) for peer in peers}
    busy, rows, versions = machine.BusyElsewhere(), [], {}
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        np.savez(place / "inputs.npz")
        for case in cases:
            with contextlib.ExitStack() as stack:
                workers = {}
                for peer, python in pythons.items():
                    worker = Worker(
                        *(peer, python, case, place / "inputs.npz", place),
                        threads=options.threads,
                        burst=1,
                        table="rnn_peers",
                    )
                    stack.callback(worker.close)
                    versions[peer] = worker.about["versions"]
                    workers[peer] = worker
                _check(case, workers)
                bursts = {p: max(1, int(TURN_MS / min(w(case, 2)))) for p, w in workers.items()}
                turns = {p: functools.partial(w, case, bursts[p]) for p, w in workers.items()}
                timings = interleave(turns, runs=options.rounds, warmup=1)
            rows.append({"layer": case} | {p: t.to_json() for p, t in timings.items()})
            notes.print(f"{case}: {timings['tf_blockdnn'].minimum:.3f} ms", highlight=False)
    return rows, versions, busy.cores()


def _check(case: str, workers: dict[str, Worker]) -> None:
    """All libraries compute the same layer."""
    (ours,) = workers["tf_blockdnn"].outputs()
    for peer, worker in workers.items():
        difference = np.max(np.abs(worker.outputs()[0] - ours))
        if difference > TOLERANCE:
            raise WorkerError(peer, f"{peer} computes another {case}: it differs by {difference}")


def table(rows: list[dict], peers: list[str], busy: float) -> Table:
    """A row for each layer: our milliseconds, and those of others over ours."""
    shown = Table(
        title="recurrent layers: ms, min (median); others: their time over ours, by min",
        caption=f"[red]other processes kept {busy:.1f} cores busy[/]" if busy > 0.1 else None,
    )
    for name in ("layer", "tf_blockdnn", "GFLOP/s", "weights GB/s", "best of others", "ours/best"):
        shown.add_column(name, justify="left" if name == "layer" else "right")
    for peer in peers:
        shown.add_column(PEERS[peer].title, justify="right")
    for row in rows:
        cell, *sizes = row["layer"].split("/")
        batch, steps, inputs, units = map(int, sizes)
        ours, flops = row["tf_blockdnn"]["min_ms"], 2 * batch * steps * units * (inputs + units)
        best = min(peers, key=lambda peer: row[peer]["min_ms"], default=None)
        read = 4 * GATES[cell] * units * units * steps
        shown.add_row(
            row["layer"],
            f"{ours:.3f} ({row['tf_blockdnn']['median_ms']:.3f})",
            f"{GATES[cell] * flops / ours / 1e6:.0f}",
            f"{read / ours / 1e6:.0f}",
            f"{PEERS[best].title} {row[best]['min_ms']:.3f}" if best else "",
            f"{ours / row[best]['min_ms']:.2f}" if best else "",
            *(f"{row[peer]['min_ms'] / ours:.2f}" for peer in peers),
        )
    return shown


if __name__ == "__main__":
    sys.exit(main())
