"""Measures shuffles of one image against torch's and TensorFlow's, turn by turn.

    python benchmarks/run_shuffle.py [--shape 1,56,56,240] [--groups 3,80] [--threads 2]

There are three ways to call. `call` is one eager shuffle from Python. `session` is one shuffle in a
prepared TensorFlow session, compared with torch's call, because eager TensorFlow takes 5 us for an
Identity. `chain` is the time for one of 100 shuffles in a row, in one tf.function where there is
one. torch comes from requirements-ncnn.txt, in an environment of its own. The script prints a table
for each group and writes a JSON file.
"""

from __future__ import annotations

import argparse
import functools
import sys

import numpy as np
from measuring import machine, turns
from measuring.timing import Timing, interleave
from measuring.turns import OURS, Say
from peers.shuffle import CHAIN, LAYOUTS, PEERS
from rich.table import Table

KINDS = {"call": 1, "session": 1, "chain": CHAIN}  # The number of shuffles in a run.
RATIO_TO = "torch"
SLOWER = 1.03  # A ratio above this is more than noise.


def main() -> int:
    """Parses the arguments, measures, prints and writes. Returns the exit code."""
    return turns.run("run_shuffle", _parse(), 140, _measure)


def _parse() -> argparse.Namespace:
    def integers(text: str) -> list[int]:
        return [int(part) for part in text.split(",")]

    parser = turns.parser(__doc__, "shuffle", rounds=6)
    parser.add_argument("--shape", type=integers, default=[1, 56, 56, 240], help="N,H,W,C")
    parser.add_argument(
        "--groups", type=integers, default=[3, 80], help="G, where ShuffleNet's groups are C/G"
    )
    parser.add_argument("--burst", type=int, default=100, help="calls a turn; chains: 1")
    options = parser.parse_args()
    channels = options.shape[-1]
    if len(options.shape) != 4 or any(channels % group for group in options.groups):
        parser.error("--shape must be N,H,W,C and each of --groups must divide C")
    return options


def _measure(options, say: Say) -> tuple[list[Table], dict]:
    """A table for each group; timings by "PEER/LAYOUT/GROUP/KIND", versions by peer."""
    workshop = turns.workshop(say)
    groups = ",".join(map(str, options.groups))
    models = {peer: (groups, workshop.interpreter(row.venv)) for peer, row in PEERS.items()}
    image = np.random.default_rng(1).standard_normal(options.shape, np.float32)
    versions, calls = {}, {}
    busy = machine.BusyElsewhere()
    with turns.start("peers.shuffle", PEERS, {"image": image}, options, models) as workers:
        for peer, worker in workers.running.items():
            versions[peer] = worker.about["versions"]
            for case in worker.about["cases"]:
                burst = 1 if case.endswith("chain") else options.burst
                calls[f"{peer}/{case}"] = functools.partial(worker, case, burst)
        timings = interleave(calls, runs=options.rounds, warmup=1)
    cores = busy.cores()  # The workers have ended: they count as ours.
    document = {
        "shape": options.shape,
        "shuffles_in_a_run": KINDS,
        "results": {name: timing.to_json() for name, timing in timings.items()},
        "versions": versions,
        "cores_busy_elsewhere": cores,
    }
    return [table(timings, options.shape, group, cores) for group in options.groups], document


def table(timings: dict[str, Timing], shape: list[int], group: int, busy: float = 0.0) -> Table:
    """A row for each layout; microseconds a shuffle."""
    titles = (row.title for row in PEERS.values())
    shown = turns.table(
        f"shuffle of {shape}, G = {group}: microseconds, min (median)",
        busy,
        ("layout", "way", *titles, f"ours / {RATIO_TO}"),
        left=2,
    )
    for layout in LAYOUTS:
        for kind, shuffles in KINDS.items():
            times = {peer: timings.get(f"{peer}/{layout}/{group}/{kind}") for peer in PEERS}
            if kind == "session":
                times[RATIO_TO] = timings.get(f"{RATIO_TO}/{layout}/{group}/call")
            cells = [_microseconds(timing, shuffles) if timing else "" for timing in times.values()]
            shown.add_row(layout, kind, *cells, _ratio(times))
        shown.add_section()
    return shown


def _microseconds(timing: Timing, shuffles: int) -> str:
    return f"{timing.minimum * 1e3 / shuffles:.1f} ({timing.median * 1e3 / shuffles:.1f})"


def _ratio(times: dict[str, Timing | None]) -> str:
    if not (times[OURS] and times[RATIO_TO]):
        return ""
    ratio = times[OURS].median / times[RATIO_TO].median
    return f"[red]{ratio:.2f}[/]" if ratio > SLOWER else f"{ratio:.2f}"


if __name__ == "__main__":
    sys.exit(main())
