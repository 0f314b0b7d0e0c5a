"""Runs one peer with one network in a separate process, which stands still until it is asked.

`Worker` is the side that measures. The other side is `python worker.py ROOT TABLE PEER MODEL INPUTS
OUTPUTS THREADS`, where TABLE is the module with the PEERS, in the folder ROOT. It runs this file
alone, perhaps with an interpreter that has no TensorFlow. It writes the outputs of the first run to
OUTPUTS and then answers on stdout with one JSON object on each line: first what it is, then
{"ms": [...]} for each line {"case", "runs"} that it reads. A runner gives one run, of case "", or a
table of runs by case.

Between turns the process is stopped (SIGSTOP): threads that wait for work by spinning would take a
core from whoever's turn it is.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.metadata
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Mapping

import numpy as np

_PR_SET_PDEATHSIG = 1  # prctl(2)


class WorkerError(RuntimeError):
    """A worker that ended early; the message has the last line it wrote."""

    def __init__(self, peer: str, message: str):
        super().__init__(message)
        self.peer = peer


class Worker:
    """A stopped worker process. A call runs a case `burst` times and returns the milliseconds."""

    def __init__(
        self,
        peer: str,
        python: str,
        model: pathlib.Path,
        inputs: pathlib.Path,
        place: pathlib.Path,
        *,
        threads: int,
        burst: int,
        root: pathlib.Path,
        table: str,
        environment: Mapping[str, str],
    ):
        """Starts it, as `Workers` says, with `inputs` an .npz file and `place` a folder for the
        outputs and log. In `environment`, "{threads}" is replaced.

        Raises:
          WorkerError: it ended before the first result.
        """
        self._peer = peer
        self._burst = burst
        self._outputs = place / f"{peer}.npz"
        self._log = place / f"{peer}.log"
        settings = {name: text.format(threads=threads) for name, text in environment.items()}
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [python, __file__, root, table, peer, model, inputs, self._outputs, str(threads)],
                env=os.environ | quiet | settings,
                stderr=log,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        self.about = self._receive()

    def __call__(self, case: str = "", burst: int | None = None) -> list[float]:
        self._process.send_signal(signal.SIGCONT)
        try:
            request = {"case": case, "runs": burst or self._burst}
            print(json.dumps(request), file=self._process.stdin)
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # _receive says why.
        return self._receive()["ms"]

    def memory(self) -> int:
        """The most resident memory that the process has held so far, in bytes."""
        return self._status("VmHWM")

    def memory_above_imports(self) -> int:
        """The resident memory of the process now, in bytes, without what the row's `modules` took
        when they were imported."""
        return self._status("VmRSS") - self.about["imports_bytes"]

    def _status(self, key: str) -> int:
        with contextlib.suppress(OSError, KeyError):
            return _status(self._process.pid)[key]
        raise WorkerError(self._peer, "ended")

    def outputs(self) -> list[np.ndarray]:
        """The outputs of the first run, sorted by name."""
        with np.load(self._outputs) as arrays:
            return [arrays[name] for name in sorted(arrays)]

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.communicate()

    def _receive(self) -> dict:
        line = self._process.stdout.readline()
        if line:
            self._process.send_signal(signal.SIGSTOP)
            return json.loads(line)
        code = self._process.wait()
        lines = self._log.read_text(errors="replace").strip().splitlines()
        raise WorkerError(self._peer, lines[-1] if lines else f"ended with exit code {code}")


def _status(pid: int | str = "self") -> dict[str, int]:
    """The sizes in /proc/PID/status, in bytes."""
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = (line.split() for line in lines if line.endswith(" kB"))
    return {name.rstrip(":"): int(size) * 1024 for name, size, _ in fields}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _serve(
    root: str, table: str, peer: str, model: str, inputs: str, outputs: str, threads: str
) -> None:
    # A stopped process would outlive a parent that was killed.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Whatever a library prints must not look like an answer.

    def answer(**values) -> None:
        print(json.dumps(values), file=answers, flush=True)

    sys.path[0] = root
    row = importlib.import_module(table).PEERS[peer]
    with np.load(inputs) as arrays:
        feed = dict(arrays)
    for module in getattr(row, "modules", ()):
        importlib.import_module(module)
    imports_bytes = _status()["VmRSS"]
    start = time.perf_counter()
    returned = row.runner(model, feed, int(threads))
    runs = {"": returned} if callable(returned) else returned
    first = next(iter(runs.values()))()
    ready = time.perf_counter() - start
    np.savez(outputs, **first)
    versions = {name: _version(name) for name in row.packages}
    more = getattr(returned, "about", dict)()
    facts = {"versions": versions, "ready_seconds": ready, "imports_bytes": imports_bytes}
    answer(cases=list(runs), **facts, **more)
    for line in sys.stdin:
        request = json.loads(line)
        run = runs[request["case"]]
        run()  # Wakes threads and warms caches that the others have used.
        answer(ms=[_milliseconds(run) for _ in range(request["runs"])])


def _milliseconds(run) -> float:
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e3


if __name__ == "__main__":
    _serve(*sys.argv[1:])
