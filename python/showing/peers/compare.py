"""One signature of a model in every library that is installed, turn by turn."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from collections.abc import Callable, Mapping

import tensorflow as tf

from ... import comparison, folders
from ...measuring.difference import Difference
from ...measuring.timing import Timing
from ...measuring.workers import Workers
from ...targets import load_signatures
from ...tensorflow_private import is_onednn_on
from .libraries import OURS, PEERS, REFERENCE

_HERE = pathlib.Path(__file__).resolve().parent
TOLERANCE = 1e-3  # Of the reference's largest magnitude.
_BURST = 5


@dataclasses.dataclass(frozen=True)
class PeerComparison:
    """Times by library.

    Attributes:
      inputs: input name to (shape, dtype name), as they were fed.
      threads: of each library.
      times: name to the times of each library that was timed.
      memory: name to the resident bytes of the process after that, above what imports took.
      differences: name to the difference from TensorFlow's outputs.
      problems: name to a line on why a library was not timed.
      versions: name to the version of the package.
      default: the row that TensorFlow's default on this CPU is.
    """

    inputs: dict[str, tuple[tuple[int, ...], str]]
    threads: int
    times: dict[str, Timing]
    memory: dict[str, int]
    differences: dict[str, Difference]
    problems: dict[str, str]
    versions: dict[str, str]
    default: str

    def ratio(self, name: str) -> float | None:
        """How many times as fast as that library tf_blockdnn is, by medians."""
        if OURS not in self.times or name not in self.times:
            return None
        return self.times[name].median / self.times[OURS].median

    def to_json(self) -> dict:
        """Plain dicts and numbers; times in milliseconds."""
        return {
            "inputs": {
                name: {"shape": shape, "dtype": dtype}
                for name, (shape, dtype) in self.inputs.items()
            },
            "threads": self.threads,
            "tensorflow_default": self.default,
            "peers": {
                name: self.times[name].to_json()
                | {
                    "ratio": self.ratio(name),
                    "memory_bytes": self.memory[name],
                    "relative_difference": self.differences[name].relative,
                    "version": self.versions.get(name),
                }
                for name in self.times
            },
            "not_timed": self.problems,
        }


def compare_peers(
    source: str | os.PathLike,
    *,
    signature: str | None = None,
    batch: int | None = None,
    size: tuple[int, int] | None = None,
    runs: int = 30,
    threads: int | None = None,
    example=None,
    custom_objects: Mapping[str, object] | None = None,
    on_step: Callable[[str], None] | None = None,
) -> PeerComparison:
    """Measures one signature in each library, in processes that take turns.

    Args:
      source, signature, batch, size, example, custom_objects, on_step: as `compare_saved_model`
        takes them.
      runs: counted runs of each, in turns of five.
      threads: of each library; all cores by default.

    Raises:
      SavedModelError: as `compare_saved_model`.
    """
    step = on_step or (lambda words: None)
    threads = threads or len(os.sched_getaffinity(0))
    source = folders.check_model(source)
    step(f"reading {source}")
    loaded, _ = load_signatures(source, custom_objects, example)
    name = comparison.choose_signature(loaded.signatures, signature, source)
    inputs = comparison.inputs_of(
        loaded.signatures[name], source, batch=batch, size=size, example=example
    )
    workers = Workers(_HERE, "libraries", inputs, threads=threads, burst=min(_BURST, runs))
    with workers:
        folder = _folder(source, loaded, name, workers.place)
        model = json.dumps({"folder": str(folder), "signature": name})
        for peer, row in PEERS.items():
            if missing := row.missing():
                workers.problems[peer] = f"not installed: {', '.join(missing)}"
                continue
            step(f"{row.title}: loading and first run")
            workers.start(peer, row, model)
        differences = workers.check(REFERENCE, lambda peer: TOLERANCE)
        step(f"measuring, {runs} runs of each in turn")
        times = workers.take_turns(-(-runs // _BURST))
        memory = {name: workers.running[name].memory_above_imports() for name in times}
        versions = {
            peer: next(iter(worker.about["versions"].values()), None) or "unknown"
            for peer, worker in workers.running.items()
        }
    shapes = {name: (value.shape, value.dtype.name) for name, value in inputs.items()}
    default = REFERENCE if is_onednn_on() else "tensorflow-plain"
    return PeerComparison(
        shapes, threads, times, memory, differences, workers.problems, versions, default
    )


def _folder(source: pathlib.Path, loaded, name: str, place: pathlib.Path) -> pathlib.Path:
    """A SavedModel for the others: the source itself, or what a file was loaded as."""
    if source.is_dir():
        return source
    module = tf.Module()
    module.kept = loaded
    tf.saved_model.save(module, str(place / "model"), signatures={name: loaded.signatures[name]})
    return place / "model"
