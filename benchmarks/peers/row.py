"""What one of the libraries is that are compared: `Peer`, a row of a table `PEERS`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import numpy as np
from formats import SAVED_MODEL

Outputs = dict[str, np.ndarray]
Run = Callable[[], Outputs]


@dataclasses.dataclass(frozen=True)
class Peer:
    """One row.

    Attributes:
      title: for tables.
      runner: as above.
      packages: those whose versions are worth naming.
      environment: variables of its process; "{threads}" is replaced.
      venv: of `measuring/prepare.py`; None: the interpreter that measures.
      format: of `formats`, what the runner is given.
      other_formats: network to format, where `format` will not do.
      networks: the only ones it runs; empty: all.
      precision: what it computes in; other than "float32" it is measured only when asked for.
    """

    title: str
    runner: Callable[[str, Mapping[str, np.ndarray], int], Run]
    packages: tuple[str, ...]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    venv: str | None = None
    format: str = SAVED_MODEL
    other_formats: Mapping[str, str] = dataclasses.field(default_factory=dict)
    networks: tuple[str, ...] = ()
    precision: str = "float32"


def limit_tensorflow(threads: int) -> None:
    """Sets the sizes of TensorFlow's pools, which must happen before it runs anything."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
