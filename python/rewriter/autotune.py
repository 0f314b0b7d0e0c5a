"""Measures parts of a function both ways, in blocks and as TensorFlow runs them.

A part is what hangs together in blocks and has reorders at its edges; without these it cannot lose.
Each is left to TensorFlow once, the largest reorders first, and stays so where the whole function
is faster then. In the end the function itself has to be faster than the original.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import tensorflow as tf

_MOST_PARTS = 8
_ROUNDS, _WARMUP = 12, 3
_GAIN = 0.98  # of the time: what is less is noise
REASON = "autotune: TensorFlow is faster here on the example"


def fastest(concrete, make: Callable, inputs: Sequence[tf.Tensor]):
    """The fastest of what `make` gives, and notes on what was measured.

    Args:
        concrete: the original function.
        make: {label: reason} of convolutions to leave -> (rewritten function, its parts, each the
            labels of its convolutions, and something that belongs to it).
        inputs: one tensor an argument.

    Returns: (what `make` returned, or None where the original is faster; sentences).
    """
    leave: dict[str, str] = {}
    best, notes = make(leave), []
    for part in best[1][:_MOST_PARTS]:
        tried = leave | dict.fromkeys(part, REASON)
        other = make(tried)
        now, then = _milliseconds((best[0], other[0]), inputs)
        if then < _GAIN * now:
            best, leave = other, tried
            notes.append(f"autotune: {now:.3g} ms became {then:.3g} without {', '.join(part)}")
    original, now = _milliseconds((concrete, best[0]), inputs)
    notes.append(f"autotune: {original:.3g} ms as it was, {now:.3g} ms now")
    return (best if now <= original else None), notes


def compared(concrete, make: Callable, inputs: Sequence[tf.Tensor]) -> list[str]:
    """Sentences that say how long the function takes with each part either way; nothing changes.

    Args:
        concrete, make, inputs: as of `fastest`.
    """
    whole, parts = make({})[:2]
    original, ours = _milliseconds((concrete, whole), inputs)
    notes = [f"measured: {original:.3g} ms as it was, {ours:.3g} ms converted"]
    for part in parts[:_MOST_PARTS]:
        other = make(dict.fromkeys(part, REASON))[0]
        now, then = _milliseconds((whole, other), inputs)
        more = f" and {len(part) - 1} more of its part" if len(part) > 1 else ""
        notes.append(
            f"measured: {now:.3g} ms converted, {then:.3g} where {part[0]}{more} stays"
            " with TensorFlow"
        )
    return notes


def _milliseconds(functions, inputs) -> list[float]:
    """The fastest call of each, turn by turn."""
    times: list[list[float]] = [[] for _ in functions]
    for turn in range(_WARMUP + _ROUNDS):
        for function, own in zip(functions, times, strict=True):
            start = time.perf_counter()
            for result in tf.nest.flatten(function._call_flat(inputs, function.captured_inputs)):
                if result is not None:
                    result.numpy()
            if turn >= _WARMUP:
                own.append((time.perf_counter() - start) * 1e3)
    return [min(own) for own in times]
