"""Workers with the peers of this folder's tables: python/peers/worker.py, which is one file."""

from __future__ import annotations

import importlib
import pathlib
import sys

from .prepare import HERE

sys.path.append(str(HERE.parent / "python" / "peers"))
import worker as _worker  # noqa: E402

WorkerError = _worker.WorkerError


class Worker(_worker.Worker):
    """A worker for a row of `table`, with the environment that the row names."""

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
        table: str = "peers.networks",
    ):
        super().__init__(
            *(peer, python, model, inputs, place),
            threads=threads,
            burst=burst,
            root=HERE,
            table=table,
            environment=importlib.import_module(table).PEERS[peer].environment,
        )
