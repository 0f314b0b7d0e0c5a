"""What the commands share: their options, peers in processes that take turns, tables and files."""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import pathlib
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Mapping

from rich.console import Console
from rich.table import Table

from . import machine
from .prepare import BUILD, HERE, SetUpError, Workshop
from .worker import WorkerError
from .workers import Workers

OURS = "tf_blockdnn"
TURN_MS = 40.0  # A turn is as many runs as fit.

Say = Callable[[str], None]


def names(text: str) -> list[str]:
    """What an option lists."""
    return text.split(",")


def among(known: Collection[str]) -> Callable[[str], list[str]]:
    """The type of an option that lists names, all of them in `known`."""

    def parse(text: str) -> list[str]:
        if unknown := [name for name in names(text) if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: not among {', '.join(known)}")
        return names(text)

    return parse


def parser(description: str, name: str, rounds: int) -> argparse.ArgumentParser:
    """The options of benchmarks of single ops; `name` is that of the JSON file."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("--threads", type=int, default=2)
    made.add_argument("--rounds", type=int, default=rounds, help="turns of each")
    made.add_argument("--output", type=pathlib.Path, default=BUILD / f"{name}.json")
    return made


def workshop(say: Say) -> Workshop:
    return Workshop(say, lambda text: None)


def start(table: str, rows: Mapping, inputs: Mapping, options, models: Mapping) -> Workers:
    """Workers of a benchmark of single ops, all of which must run.

    Args:
      table, rows: the module that lists the peers, and its PEERS.
      inputs: by name.
      models: peer -> (what its runner takes, its interpreter).

    Raises:
      WorkerError: one ended before its first result.
    """
    workers = Workers(HERE, table, inputs, threads=options.threads)
    for peer, (model, python) in models.items():
        workers.start(peer, rows[peer], model, python)
    require(workers)
    return workers


def require(workers: Workers) -> None:
    """Raises WorkerError with the first problem, if there is one."""
    for peer, problem in workers.problems.items():
        workers.close()
        raise WorkerError(peer, f"{peer}: {problem}")


def run(
    name: str, options, width: int, measure: Callable[..., tuple[Iterable[Table], dict]]
) -> int:
    """Prints the tables of measure(options, say) and writes its document. Returns the exit code."""
    notes = Console(stderr=True)
    say = functools.partial(notes.print, highlight=False)
    try:
        tables, document = measure(options, say)
    except (SetUpError, WorkerError, OSError) as error:
        notes.print(f"{name}: {error}", style="red", highlight=False)
        return 2
    console = Console(width=None if sys.stdout.isatty() else width)
    for table in tables:
        console.print(table)
    write(options.output, {"machine": machine.describe(), "threads": options.threads} | document)
    console.print(f"written: {options.output}")
    return 0


def write(path: pathlib.Path, document: dict) -> None:
    """Writes a document with its date and the command that made it."""
    about = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["python", *sys.argv]),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about | document, indent=1) + "\n")


def today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()


def kept(path: pathlib.Path, rows: str) -> dict:
    """What a JSON file holds that gets its rows one by one; {rows: {}} where there is none yet."""
    return json.loads(path.read_text()) if path.exists() else {rows: {}}


def keep(path: pathlib.Path, document: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


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
