"""Measures rows of the plan and keeps them in a file for this machine and this commit."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time
import types

import load_test
import rnn
import run_models
import run_training
from formats import SAVED_MODEL
from measuring import machine, turns
from measuring.prepare import SetUpError, Workshop
from measuring.worker import WorkerError
from peers.networks import PEERS
from peers.rnn import PEERS as RECURRENT_PEERS
from peers.training import PEERS as TRAINING_PEERS

from . import document, loading
from .plan import Row


def run(
    rows: list[Row],
    folder: pathlib.Path,
    runs: int,
    minutes: float | None,
    *,
    set_up_only: bool = False,
) -> None:
    """Sets up all rows, then measures those that the machine's file lacks, until time is up."""
    workshop = turns.workshop(_say)
    for row in rows:
        set_up(row, workshop)
    if set_up_only:
        return
    about = machine.facts()
    path = folder / document.file_name(about["machine"])
    found = document.of_commit(path, about)
    start = time.monotonic()
    for number, row in enumerate(rows, 1):
        if document.has(found, row):
            continue
        spent = (time.monotonic() - start) / 60
        if minutes is not None and spent > minutes:
            _say(f"stopped after {spent:.1f} minutes; not measured: {len(rows) - number + 1} rows")
            break
        _say(f"{number} of {len(rows)}, minute {spent:.1f}: {row.kind}, {row.name}")
        try:
            measured = measure(row, runs, workshop)
        except (SetUpError, WorkerError, subprocess.CalledProcessError) as error:
            _say(f"failed: {error}")
            continue
        found[row.kind].append(
            {"model": row.name, "batch": row.batch, "threads": row.threads}
            | {"commit": about["commit"], "date": turns.today(), "runs": runs}
            | measured
        )
        turns.keep(path, found)


def set_up(row: Row, workshop: Workshop) -> None:
    """Installs what the row needs and converts its network; says what fails and goes on."""
    if row.kind == "serving":
        try:
            workshop.interpreter("serving")
            workshop.model(row.name, SAVED_MODEL, row.batch)
        except SetUpError as error:
            _say(f"{row.name}, servers: {error}")
        return
    built = {"recurrent": RECURRENT_PEERS, "training": TRAINING_PEERS}.get(row.kind)  # by workers
    for name in row.peers or ("tf_blockdnn",):
        peer = (built or PEERS)[name]
        if peer.networks and row.name not in peer.networks:
            continue
        try:
            workshop.interpreter(peer.venv)
            if not built:
                form = peer.other_formats.get(row.name, peer.format)
                workshop.model(row.name, form, row.batch)
        except SetUpError as error:
            _say(f"{row.name}, {peer.title}: {error}")


def measure(row: Row, runs: int, workshop: Workshop) -> dict:
    """The row's numbers: {"peers": {peer: ...}, ...}, or of loading {"original", "optimised"}."""
    if row.kind == "loading":
        return loading.measure(row.name, workshop)
    if row.kind == "serving":
        return load_test.measure(row.name, row.peers, workshop)
    if row.kind == "recurrent":
        return rnn.measure(row.name, row.peers, row.threads, 8, workshop)
    options = types.SimpleNamespace(peers=row.peers, runs=runs, burst=5, with_load=False)
    if row.kind == "training":
        options.cases, options.batch, options.threads = ("step",), row.batch, row.threads
        return run_training.measure(row.name, options)
    return run_models.measure(
        row.name, row.batch, row.threads, options, workshop, hint=lambda text: None
    )


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
