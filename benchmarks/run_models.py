"""Measures whole networks against the other ways of running them, turn by turn.

    python benchmarks/run_models.py [--models resnet50,hed] [--peers …] [--batch 1] [--threads 2]

Sets up the peers first (environments and files under build/benchmarks; once). Each has a process of
its own; they take turns in short bursts, so drift and disturbance hit all alike, and stand still
between them. Only a peer whose outputs agree with TensorFlow's is timed. Prints tables and writes a
JSON file; what the pages show is measured by `measurements`. Workers inherit the environment:
TF_BLOCKDNN_MAX_ISA=avx2 ONEDNN_MAX_CPU_ISA=AVX2 caps those who know these variables.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys

from measuring import machine, results
from measuring.prepare import BUILD, HERE, SetUpError, Workshop
from measuring.timing import Timing
from measuring.turns import among, write
from measuring.workers import Workers
from models import ZOO
from peers.networks import PEERS
from rich.console import Console
from rich.progress import Progress

REFERENCE = "tensorflow"
TOLERANCE = 1e-3  # Of the reference's largest magnitude, in float32.
# Random weights separate the classes of a picture little: this finds only what is not the network.
LOW_PRECISION_TOLERANCE = 0.5
SETTINGS = ("TF_BLOCKDNN_MAX_ISA", "ONEDNN_MAX_CPU_ISA")
FULL_WIDTH = 140


def main() -> None:
    """Parses the arguments, measures, prints and writes."""
    options = _parse()
    # A file or a pipe has no width of its own, so nothing is folded.
    console = Console(width=None if sys.stdout.isatty() else FULL_WIDTH)
    notes = Console(stderr=True)
    plan = [
        (name, batch, threads)
        for threads in options.threads
        for batch in options.batch
        for name in options.models
        if not ZOO[name].batches or batch in ZOO[name].batches
    ]
    settings = {name: os.environ[name] for name in SETTINGS if name in os.environ}
    about = machine.facts() | {"runs": options.runs, "environment": settings}
    measured = []
    # The bar is drawn between turns only; a redrawing thread would take a core from a peer.
    with Progress(console=notes, auto_refresh=False) as progress:
        task = progress.add_task("", total=len(plan))

        def hint(text: str) -> None:
            progress.update(task, description=text[:60], refresh=True)

        workshop = Workshop(lambda line: notes.print(f"==> {line}", highlight=False), hint)
        for name, batch, threads in plan:
            hint(f"{ZOO[name].title}, batch {batch}")
            result = measure(name, batch, threads, options, workshop, hint)
            measured.append(result)
            console.print(results.table(result))
            progress.advance(task)
            write(options.output, about | {"results": measured})
    for precision in dict.fromkeys(PEERS[peer].precision for peer in options.peers):
        console.print(results.summary(measured, precision))
    for line in results.failures(measured):
        console.print(line, highlight=False)
    console.print(f"written: {options.output}")


def _parse() -> argparse.Namespace:
    def count(text: str) -> int:
        if (number := int(text)) < 1:
            raise argparse.ArgumentTypeError(f"{number} is less than 1")
        return number

    def counts(text: str) -> list[int]:
        return [count(part) for part in text.split(",")]

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    everyday = [name for name, network in ZOO.items() if network.everyday]
    parser.add_argument("--models", type=among(ZOO), default=everyday, help=",".join(ZOO))
    usual = [name for name, row in PEERS.items() if row.precision == "float32"]
    parser.add_argument("--peers", type=among(PEERS), default=usual, help=",".join(PEERS))
    parser.add_argument("--batch", type=counts, default=[1, 8], help="default: 1,8")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument(
        "--threads",
        type=counts,
        default=sorted({1, min(2, cores), cores}),
        help="of each peer; default: 1, 2 and all cores",
    )
    parser.add_argument("--runs", type=count, default=30, help="counted runs of each")
    parser.add_argument("--burst", type=count, default=5, help="counted runs a turn")
    parser.add_argument(
        "--with-load",
        action="store_true",
        help="measures again while another process holds one core",
    )
    parser.add_argument("--output", type=pathlib.Path, default=BUILD / "models.json")
    return parser.parse_args()


def measure(name: str, batch: int, threads: int, options, workshop: Workshop, hint) -> dict:
    """One network at one batch; what comes back is described in measuring/results.py."""
    chosen = [
        peer
        for peer in PEERS
        if (peer in options.peers or peer == REFERENCE)
        and (not PEERS[peer].networks or name in PEERS[peer].networks)
    ]
    numbers: dict[str, dict] = {peer: {} for peer in chosen}
    ready = {}
    for peer in chosen:
        row = PEERS[peer]
        try:
            python = workshop.interpreter(row.venv)
            ready[peer] = (
                workshop.model(name, row.other_formats.get(name, row.format), batch),
                python,
            )
        except SetUpError as error:
            numbers[peer]["error"] = str(error)
    busy = machine.BusyElsewhere()
    inputs, burst = ZOO[name].example(batch), min(options.burst, options.runs)
    with Workers(HERE, "peers.networks", inputs, threads=threads, burst=burst) as workers:
        for peer, (model, python) in ready.items():
            hint(f"{ZOO[name].title}, batch {batch}: loading {PEERS[peer].title}")
            if workers.start(peer, PEERS[peer], model, python):
                numbers[peer] |= workers.running[peer].about
        tolerance = getattr(options, "tolerance", TOLERANCE)
        rounding = {peer for peer in chosen if PEERS[peer].precision != "float32"}
        differences = workers.check(
            REFERENCE, lambda peer: LOW_PRECISION_TOLERANCE if peer in rounding else tolerance
        )
        for peer, difference in differences.items():
            numbers[peer] |= difference.to_json()
        _time(workers, numbers, options, hint)
    elsewhere = busy.cores()
    for peer, problem in workers.problems.items():
        numbers[peer]["error"] = problem
    return {
        "model": name,
        "batch": batch,
        "threads": threads,
        "cores_busy_elsewhere": elsewhere,
        "peers": numbers,
    }


def _time(workers: Workers, numbers: dict[str, dict], options, hint) -> None:
    """Adds the times of all workers that run, and on request those with one core taken."""
    for peer, timing in _take_turns(workers, options, hint).items():
        memory = workers.running[peer].memory_above_imports()
        numbers[peer] |= {**timing.to_json(), "memory_bytes": memory}
    if not options.with_load:
        return
    with machine.one_core_taken():
        loaded = _take_turns(workers, options, hint)
    for peer, timing in loaded.items():
        slowdown = timing.median / numbers[peer]["median_ms"]
        numbers[peer]["loaded"] = {**timing.to_json(), "slowdown": slowdown}


def _take_turns(workers: Workers, options, hint) -> dict[str, Timing]:
    rounds = -(-options.runs // options.burst)
    return workers.take_turns(
        rounds, on_round=lambda done: hint(f"measuring: round {done} of {rounds + 1}")
    )


if __name__ == "__main__":
    main()
