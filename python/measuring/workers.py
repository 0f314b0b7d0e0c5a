"""Peers in worker processes that take turns."""

from __future__ import annotations

import contextlib
import functools
import pathlib
import sys
import tempfile
from collections.abc import Callable, Mapping

import numpy as np

from .difference import Difference, largest_difference
from .timing import Timing, interleave
from .worker import Worker, WorkerError


class Workers(contextlib.ExitStack):
    """A block in which each peer has a separate process, which ends with the block.

    Peers that fail, or compute something else, leave.

    Attributes:
      running: peer -> worker, in the order in which they started.
      problems: peer -> why it does not run, in one line.
      place: a folder for files, which goes with the block.
    """

    def __init__(
        self,
        root: pathlib.Path,
        table: str,
        inputs: Mapping[str, np.ndarray],
        *,
        threads: int,
        burst: int = 1,
    ):
        """Starts nobody yet.

        Args:
          root, table: the folder and the module that lists the peers.
          inputs: by name.
          threads: of each peer.
          burst: counted runs a turn, unless `take_turns` says otherwise.
        """
        super().__init__()
        self.running: dict[str, Worker] = {}
        self.problems: dict[str, str] = {}
        self.place = pathlib.Path(self.enter_context(tempfile.TemporaryDirectory()))
        np.savez(self.place / "inputs.npz", **inputs)
        self._options = dict(root=root, table=table, threads=threads, burst=burst)

    def start(self, peer: str, row, model, python: str = sys.executable) -> bool:
        """Whether the peer now runs.

        Args:
          row: that of the table, whose `environment` the process has.
          model: what the runner takes.
          python: the interpreter.
        """
        place = self.place
        try:
            worker = Worker(
                *(peer, python, model, place / "inputs.npz", place),
                environment=row.environment,
                **self._options,
            )
        except WorkerError as error:
            self.problems[peer] = str(error)
            return False
        self.callback(worker.close)
        self.running[peer] = worker
        return True

    def check(self, reference: str, tolerance: Callable[[str], float]) -> dict[str, Difference]:
        """How far each peer's outputs lie from the reference's; who is beyond the tolerance leaves.

        Args:
          reference: a peer; where it does not run, the first that does instead.
          tolerance: peer -> the largest relative difference.
        """
        differences: dict[str, Difference] = {}
        if not self.running:
            return differences
        wanted = self.running.get(reference, next(iter(self.running.values()))).outputs()
        for peer, worker in list(self.running.items()):
            try:
                differences[peer] = largest_difference(wanted, worker.outputs())
            except ValueError as error:
                self._drop(peer, f"other outputs: {error}")
                continue
            relative = differences[peer].relative
            if not relative <= tolerance(peer):
                self._drop(peer, f"other outputs: off by {relative:.1e} of the largest")
        return differences

    def take_turns(
        self,
        rounds: int,
        case: str = "",
        *,
        turn_ms: float | None = None,
        on_round: Callable[[int], None] | None = None,
    ) -> dict[str, Timing]:
        """Times all peers that have the case; where one fails, the others begin anew without it.

        Args:
          rounds: counted turns of each.
          case: of their runners.
          turn_ms: a turn is as many runs as fit.
          on_round: called with the number of rounds done, one of warm-up included.
        """
        while workers := {p: w for p, w in self.running.items() if case in w.about["cases"]}:
            try:
                turns = {}
                for peer, worker in workers.items():
                    burst = turn_ms and max(1, int(turn_ms / min(worker(case, 2))))
                    turns[peer] = functools.partial(worker, case, burst)
                return interleave(turns, runs=rounds, warmup=1, on_round=on_round)
            except WorkerError as error:
                self._drop(error.peer, str(error))
        return {}

    def _drop(self, peer: str, problem: str) -> None:
        self.problems[peer] = problem
        self.running.pop(peer).close()
