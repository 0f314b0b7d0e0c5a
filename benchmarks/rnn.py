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
import sys

from measuring import machine, turns
from measuring.prepare import HERE, Workshop
from measuring.turns import OURS, TURN_MS, Say
from measuring.workers import Workers
from peers.rnn import GATES, PEERS
from rich.table import Table

SHAPES = ["1/100/256/256", "1/50/512/512", "16/50/512/1024", "64/25/256/512"]
DEEP_SPEECH = "vanilla/16/100/2048/2048"
TOLERANCE = 1e-4  # of the largest output


def main() -> int:
    """Parses the arguments, measures, prints and writes. Returns the exit code."""
    return turns.run("rnn", _parse(), 160, _measure)


def _parse() -> argparse.Namespace:
    others = [name for name in PEERS if name not in (OURS, "zentf")]
    parser = turns.parser(__doc__, "rnn", rounds=8)
    parser.add_argument("--cells", type=turns.among(GATES), default=list(GATES))
    parser.add_argument(
        "--shapes", type=turns.names, default=SHAPES, help="BATCH/STEPS/INPUTS/UNITS"
    )
    parser.add_argument("--peers", type=turns.among(PEERS), default=others, help=",".join(PEERS))
    options = parser.parse_args()
    if any(len(shape.split("/")) != 4 for shape in options.shapes):
        parser.error("a shape is BATCH/STEPS/INPUTS/UNITS")
    return options


def _measure(options, say: Say) -> tuple[list[Table], dict]:
    """A table with a row for each layer, all times, and the libraries' versions."""
    cases = [f"{cell}/{shape}" for shape in options.shapes for cell in options.cells]
    if options.shapes == SHAPES and "vanilla" in options.cells:
        cases.append(DEEP_SPEECH)
    workshop, busy = turns.workshop(say), machine.BusyElsewhere()
    rows, versions = [], {}
    for case in cases:
        row = measure(case, [OURS, *options.peers], options.threads, options.rounds, workshop)
        peers = row.pop("peers")
        versions |= {peer: numbers.pop("versions") for peer, numbers in peers.items()}
        rows.append({"layer": case} | peers)
        say(f"{case}: {peers[OURS]['min_ms']:.3f} ms")
    cores = busy.cores()
    document = {"versions": versions, "cores_busy_elsewhere": cores, "layers": rows}
    return [table(rows, options.peers, cores)], document


def measure(case: str, peers, threads: int, rounds: int, workshop: Workshop) -> dict:
    """{"runs", "cores_busy_elsewhere", "peers": {peer: times and versions}} of one layer.

    Raises:
      WorkerError: a peer does not run, or computes something else.
    """
    busy = machine.BusyElsewhere()
    with Workers(HERE, "peers.rnn", {}, threads=threads) as workers:
        for peer in peers:
            workers.start(peer, PEERS[peer], case, workshop.interpreter(PEERS[peer].venv))
        turns.require(workers)
        workers.check(OURS, lambda peer: TOLERANCE)
        turns.require(workers)
        timings = workers.take_turns(rounds, case, turn_ms=TURN_MS)
        about = {peer: worker.about["versions"] for peer, worker in workers.running.items()}
    numbers = {peer: t.to_json() | {"versions": about[peer]} for peer, t in timings.items()}
    runs = min(len(timing.milliseconds) for timing in timings.values())
    return {"runs": runs, "cores_busy_elsewhere": busy.cores(), "peers": numbers}


def table(rows: list[dict], peers: list[str], busy: float) -> Table:
    """A row for each layer: our milliseconds, and those of others over ours."""
    columns = ("layer", OURS, "GFLOP/s", "weights GB/s", "fastest other", "speed-up")
    shown = turns.table(
        "recurrent layers: ms, min (median); others: their time over ours, by min",
        busy,
        (*columns, *(PEERS[peer].title for peer in peers)),
    )
    for row in rows:
        cell, *sizes = row["layer"].split("/")
        batch, steps, inputs, units = map(int, sizes)
        ours, flops = row[OURS]["min_ms"], 2 * batch * steps * units * (inputs + units)
        best = min(peers, key=lambda peer: row[peer]["min_ms"], default=None)
        read = 4 * GATES[cell] * units * units * steps
        shown.add_row(
            row["layer"],
            f"{ours:.3f} ({row[OURS]['median_ms']:.3f})",
            f"{GATES[cell] * flops / ours / 1e6:.0f}",
            f"{read / ours / 1e6:.0f}",
            f"{PEERS[best].title} {row[best]['min_ms']:.3f}" if best else "",
            f"{row[best]['min_ms'] / ours:.2f}x" if best else "",
            *(f"{row[peer]['min_ms'] / ours:.2f}x" for peer in peers),
        )
    return shown


if __name__ == "__main__":
    sys.exit(main())
