"""One peer with one network in a process of its own, run once for every line that arrives.

`Worker` is the measuring side; `python worker.py PEER MODEL INPUTS OUTPUTS THREADS` the other.
The worker writes the outputs of its first run to OUTPUTS, then answers on stdout with one JSON
object a line: first what it is, then {"ms"} for each "run".
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

import numpy as np
from peers import PEERS


class WorkerError(RuntimeError):
    """A worker that ended early; the message has the last line it wrote."""


class Worker:
    """A running worker process. Calling it runs the network once and returns its milliseconds."""

    def __init__(
        self,
        peer: str,
        model: pathlib.Path,
        inputs: pathlib.Path,
        place: pathlib.Path,
        threads: int,
    ):
        self._peer = peer
        self._outputs = place / f"{peer}.npz"
        self._log = place / f"{peer}.log"
        row = PEERS[peer]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [row.python, __file__, peer, model, inputs, self._outputs, str(threads)],
                env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | dict(row.environment),
                stderr=log,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        self.about = self._receive()

    def __call__(self) -> float:
        return self._ask("run")["ms"]

    def memory(self) -> int:
        """The most memory the process has held, in bytes."""
        return self._ask("memory")["bytes"]

    def outputs(self) -> list[np.ndarray]:
        """The outputs of the first run, sorted by name."""
        with np.load(self._outputs) as arrays:
            return [arrays[name] for name in sorted(arrays)]

    def close(self) -> None:
        """Ends the process."""
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, question: str) -> dict:
        try:
            self._process.stdin.write(question + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # _receive says why.
        return self._receive()

    def _receive(self) -> dict:
        if line := self._process.stdout.readline():
            return json.loads(line)
        lines = self._log.read_text(errors="replace").strip().splitlines()
        raise WorkerError(f"{self._peer} ended: {lines[-1] if lines else 'without a word'}")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _serve(peer: str, model: str, inputs: str, outputs: str, threads: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Whatever a library prints must not look like an answer.

    def answer(**values) -> None:
        print(json.dumps(values), file=answers, flush=True)

    row = PEERS[peer]
    with np.load(inputs) as arrays:
        feed = dict(arrays)
    start = time.perf_counter()
    run = row.runner(model, feed, int(threads))
    first = run()
    ready = time.perf_counter() - start
    np.savez(outputs, **first)
    answer(versions={name: _version(name) for name in row.packages}, ready_seconds=ready)
    for question in sys.stdin:
        if question.strip() == "memory":
            answer(bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
            continue
        start = time.perf_counter()
        run()
        answer(ms=(time.perf_counter() - start) * 1e3)


if __name__ == "__main__":
    _serve(*sys.argv[1:])
