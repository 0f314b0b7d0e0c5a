"""Times of what computes the same: peers take turns, so that drift and disturbance hit all alike.

A turn is a function of no arguments that makes one run or a burst of them and returns the
milliseconds of each. `timed` makes one from any callable of this process, and a `worker.Worker` is
one in a separate process.
"""

from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

Turn = Callable[[], Sequence[float]]


@dataclasses.dataclass(frozen=True)
class Timing:
    """The milliseconds of one peer's runs, in the order they were run."""

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


def timed(run: Callable[[], object]) -> Turn:
    """A turn that calls `run` once. `run` must return only when the result exists."""

    def once() -> list[float]:
        start = time.perf_counter()
        run()
        return [(time.perf_counter() - start) * 1e3]

    return once


def interleave(
    turns: Mapping[str, Turn],
    *,
    runs: int = 30,
    warmup: int = 3,
    on_round: Callable[[int], None] | None = None,
) -> dict[str, Timing]:
    """Gives every peer a turn a round, `runs` rounds after `warmup` uncounted ones.

    Who begins moves on by one each round, so nobody always runs after the same neighbour.

    Args:
      turns: name to turn.
      runs: counted rounds, at least 1.
      warmup: rounds before those; weights are packed and caches filled there.
      on_round: called with the number of rounds done, warm-up included.

    Raises:
      ValueError: `runs` below 1 or `warmup` below 0.
    """
    if runs < 1 or warmup < 0:
        raise ValueError(f"runs must be at least 1 and warmup at least 0, got {runs} and {warmup}")
    names = list(turns)
    samples: dict[str, list[float]] = {name: [] for name in names}
    for done in range(warmup + runs):
        begin = done % len(names)
        for name in names[begin:] + names[:begin]:
            elapsed = turns[name]()
            if done >= warmup:
                samples[name].extend(elapsed)
        if on_round:
            on_round(done + 1)
    return {name: Timing(tuple(values)) for name, values in samples.items()}
