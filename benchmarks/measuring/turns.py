"""What the benchmarks of single ops share: workers take turns, results are printed and written."""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import pathlib
import shlex
import sys
from collections.abc import Callable, Iterable

import numpy as np
from rich.console import Console
from rich.table import Table

from . import machine
from .prepare import BUILD, SetUpError, Workshop
from .timing import Timing, interleave
from .worker import Worker, WorkerError

OURS = "tf_blockdnn"
TURN_MS = 40.0  # A turn is as many runs as fit.

Say = Callable[[str], None]


def names(text: str) -> list[str]:
    """What an option lists."""
    return text.split(",")


def parser(description: str, name: str, rounds: int) -> argparse.ArgumentParser:
    """The options that all of them have; `name` is that of the JSON file."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--rounds", type=int, default=rounds, help="turns of each")
    made.add_argument("--output", type=pathlib.Path, default=BUILD / f"{name}.json")
    return made


def workshop(say: Say) -> Workshop:
    return Workshop(say, lambda text: None)


def run(
    name: str, options, width: int, measure: Callable[..., tuple[Iterable[Table], dict]]
) -> int:
    """Prints the tables of measure(options, say) and writes its document. Returns the exit code."""
    notes = Console(stderr=True)
    say = functools.partial(notes.print, highlight=False)
    try:
        tables, document = measure(options, say)
    except (SetUpError, WorkerError) as error:
        notes.print(f"{name}: {error}", style="red", highlight=False)
        return 2
    console = Console(width=None if sys.stdout.isatty() else width)
    for table in tables:
        console.print(table)
    about = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "command": shlex.join(["python", *sys.argv]),
        "threads": options.threads,
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(about | document, indent=2) + "\n")
    console.print(f"written: {options.output}")
    return 0


def take_turns(workers: dict[str, Worker], case: str, rounds: int) -> dict[str, Timing]:
    """Measures a case by all workers, turn by turn."""
    bursts = {peer: max(1, int(TURN_MS / min(w(case, 2)))) for peer, w in workers.items()}
    turns = {peer: functools.partial(w, case, bursts[peer]) for peer, w in workers.items()}
    return interleave(turns, runs=rounds, warmup=1)


def check_same(workers: dict[str, Worker], what: str, tolerance: float) -> None:
    """All workers compute the same."""
    (ours,) = workers[OURS].outputs()
    for peer, worker in workers.items():
        difference = np.max(np.abs(worker.outputs()[0] - ours))
        if difference > tolerance:
            raise WorkerError(peer, f"{peer} computes another {what}: it differs by {difference}")


def table(title: str, busy: float, columns: Iterable[str], left: int = 1) -> Table:
    """An empty table whose columns are numbers, but for the first `left`.

    Args:
        busy: how many cores others kept busy, for a note below.
    """
    note = f"[red]other processes kept {busy:.1f} cores busy[/]" if busy > 0.1 else None
    made = Table(title=title, caption=note)
    for i, name in enumerate(columns):
        made.add_column(name, justify="left" if i < left else "right")
    return made
