"""Times and differences of what computes the same.

Contestants take turns, so drift and disturbance hit all of them alike.

A contestant is a function of no arguments that takes a turn, one run or a burst of them, and
returns the milliseconds of each. `timed` makes one from any callable of this process; benchmarks/
makes them from worker processes.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

Contestant = Callable[[], Sequence[float]]


@dataclasses.dataclass(frozen=True)
class Timing:
    """The milliseconds of one contestant's runs, in the order they were run."""

    milliseconds: tuple[float, ...]

    @property
    def minimum(self) -> float:
        """The fastest run in milliseconds: what the code takes when nothing disturbs it."""
        return min(self.milliseconds)

    @property
    def median(self) -> float:
        """The middle run in milliseconds: what a caller typically waits."""
        return statistics.median(self.milliseconds)

    def to_json(self) -> dict:
        """{"min_ms", "median_ms", "runs"} as plain numbers."""
        return {"min_ms": self.minimum, "median_ms": self.median, "runs": len(self.milliseconds)}


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far two outputs lie apart: the largest absolute difference and the reference's range."""

    absolute: float
    magnitude: float

    @property
    def relative(self) -> float:
        """`absolute` as a fraction of the reference's largest magnitude."""
        return self.absolute / self.magnitude if self.magnitude else self.absolute

    def to_json(self) -> dict:
        """{"largest_difference", "relative_difference"} as plain numbers."""
        return {"largest_difference": self.absolute, "relative_difference": self.relative}


def timed(run: Callable[[], object]) -> Contestant:
    """A contestant that calls `run` once a turn. `run` must return only when its result exists."""

    def once() -> list[float]:
        start = time.perf_counter()
        run()
        return [(time.perf_counter() - start) * 1e3]

    return once


def interleave(
    contestants: Mapping[str, Contestant],
    *,
    runs: int = 30,
    warmup: int = 3,
    on_round: Callable[[int], None] | None = None,
) -> dict[str, Timing]:
    """Gives every contestant a turn a round, `runs` rounds after `warmup` uncounted ones.

    Who begins moves on by one each round, so nobody always runs behind the same neighbour.

    Args:
      contestants: name to contestant.
      runs: counted rounds, at least 1.
      warmup: rounds before those; weights are packed and caches filled there.
      on_round: called with the number of rounds done, warm-up included.

    Raises:
      ValueError: `runs` below 1 or `warmup` below 0.
    """
    if runs < 1 or warmup < 0:
        raise ValueError(f"runs must be at least 1 and warmup at least 0, got {runs} and {warmup}")
    names = list(contestants)
    samples: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(warmup + runs):
        begin = turn % len(names)
        for name in names[begin:] + names[:begin]:
            elapsed = contestants[name]()
            if turn >= warmup:
                samples[name].extend(elapsed)
        if on_round:
            on_round(turn + 1)
    return {name: Timing(tuple(values)) for name, values in samples.items()}


def largest_difference(reference: Iterable, actual: Iterable) -> Difference:
    """Compares two flat sequences of arrays, element by element in float64.

    NaNs in the same place are equal; a NaN against a number, or an infinity against anything else,
    makes the difference infinite. Arrays of text or truth values differ by 0 or infinity.

    Raises:
      ValueError: another number of arrays, or arrays of other shapes.
    """
    absolute = magnitude = 0.0
    for want, got in zip(map(np.asarray, reference), map(np.asarray, actual), strict=True):
        if want.shape != got.shape:
            raise ValueError(f"shapes differ: {want.shape} against {got.shape}")
        if not (np.issubdtype(want.dtype, np.number) and want.size):
            absolute = max(absolute, 0.0 if np.array_equal(want, got) else np.inf)
            continue
        absolute = max(absolute, float(apart(want, got).max()))
        finite = np.abs(want[np.isfinite(want)].astype(np.float64))
        magnitude = max(magnitude, float(finite.max(initial=0.0)))
    return Difference(absolute, magnitude)


def apart(want: np.ndarray, got: np.ndarray) -> np.ndarray:
    """|want - got| of each number: 0 for equal infinities and for NaN twice, never NaN."""
    wide = np.result_type(want.dtype, np.float64)
    want, got = want.astype(wide), got.astype(wide)
    same = (want == got) | (np.isnan(want) & np.isnan(got))
    with np.errstate(invalid="ignore"):
        found = np.where(same, 0.0, np.abs(want - got))
    return np.where(np.isnan(found), np.inf, found)


def resolve_shape(shape: Iterable[int | None], *, batch: int, size: tuple[int, int]) -> tuple:
    """Fills the unknown dimensions of an input: `batch` first, `size` (H, W) in rank 4, else 1."""
    shape = list(shape)
    spatial = {1: size[0], 2: size[1]} if len(shape) == 4 else {}
    fill = {0: batch, **spatial}
    return tuple(fill.get(i, 1) if d is None else d for i, d in enumerate(shape))


def example_inputs(
    specs: Mapping[str, object],
    *,
    batch: int = 1,
    size: tuple[int, int] = (224, 224),
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Makes up an array for every tf.TensorSpec: standard normal floats, zeros for whole numbers.

    Zeros, because whole numbers are mostly indices and zero is always a legal one.

    Raises:
      ValueError: an input of unknown rank, or of a type nothing can be made up for (text).
    """
    random = np.random.default_rng(seed)
    inputs = {}
    for name, spec in specs.items():
        if spec.shape.rank is None:
            raise ValueError(f"input {name!r} has no known rank: no example can be made up for it")
        shape = resolve_shape(spec.shape.as_list(), batch=batch, size=size)
        dtype = spec.dtype
        if dtype.is_floating:
            inputs[name] = random.standard_normal(shape).astype(dtype.as_numpy_dtype)
        elif dtype.is_integer or dtype.is_bool:
            inputs[name] = np.zeros(shape, dtype.as_numpy_dtype)
        else:
            raise ValueError(f"input {name!r} is {dtype.name}: no example can be made up for it")
    return inputs
