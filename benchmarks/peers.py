"""Who is compared: a row in `PEERS` each, and how each one loads and runs a SavedModel.

A runner takes (SavedModel folder, inputs by name, threads) and returns a function that computes the
outputs once, as a dict of numpy arrays. Its imports are its own: it runs in a worker process, which
may have an interpreter (a venv) and environment variables of its own.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping

import numpy as np

Run = Callable[[], dict[str, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Peer:
    """One row: `python` is the interpreter its worker runs in, `packages` those worth naming."""

    title: str
    runner: Callable[[str, Mapping[str, np.ndarray], int], Run]
    packages: tuple[str, ...]
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    python: str = sys.executable


def tensorflow(folder: str, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    """The SavedModel's signature as TensorFlow runs it."""
    _limit_tensorflow(threads)
    import tensorflow as tf

    loaded = tf.saved_model.load(folder)
    function = loaded.signatures["serving_default"]
    feed = {name: tf.constant(value) for name, value in inputs.items()}

    def run():
        return {name: tensor.numpy() for name, tensor in function(**feed).items()}

    run.keeps = loaded  # A signature does not own its variables.
    return run


def _limit_tensorflow(threads: int) -> None:
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)


def tf_blockdnn(folder: str, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    """The loaded SavedModel after tf_blockdnn.optimize."""
    _limit_tensorflow(threads)
    import tensorflow as tf

    import tf_blockdnn as bd

    fast = bd.optimize(tf.saved_model.load(folder))
    feed = [tf.constant(value) for value in inputs.values()]
    return lambda: {name: tensor.numpy() for name, tensor in fast(*feed).items()}


# The first row is the one whose ratios are printed; the second is the reference for outputs.
PEERS = {
    "tf_blockdnn": Peer("tf_blockdnn", tf_blockdnn, ("tf_blockdnn", "tensorflow")),
    "tensorflow": Peer(
        "TensorFlow, oneDNN on", tensorflow, ("tensorflow",), {"TF_ENABLE_ONEDNN_OPTS": "1"}
    ),
    "tensorflow-plain": Peer(
        "TensorFlow, oneDNN off", tensorflow, ("tensorflow",), {"TF_ENABLE_ONEDNN_OPTS": "0"}
    ),
}
