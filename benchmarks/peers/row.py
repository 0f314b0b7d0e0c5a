"""What one of the libraries is that are compared: `Peer`, a row of a table `PEERS`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from formats import SAVED_MODEL

from .libraries import Library, Outputs, Run, limit_tensorflow

__all__ = ["Outputs", "Peer", "Run", "limit_tensorflow"]


@dataclasses.dataclass(frozen=True)
class Peer(Library):
    """One row, with what the benchmarks set up for it.

    Attributes:
      environment: of `Library`; "{threads}" is replaced.
      venv: of `measuring/prepare.py`; None: the interpreter that measures.
      format: of `formats`, what the runner is given.
      other_formats: network to format, where `format` will not do.
      networks: the only ones it runs; empty: all.
      precision: what it computes in; other than "float32" it is measured only when asked for.
    """

    venv: str | None = None
    format: str = SAVED_MODEL
    other_formats: Mapping[str, str] = dataclasses.field(default_factory=dict)
    networks: tuple[str, ...] = ()
    precision: str = "float32"
