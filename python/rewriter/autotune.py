"""Measures parts of a function both ways, in blocks and as TensorFlow runs them.

A part is what hangs together in blocks and has reorders at its edges; without these it cannot lose.
Each is left to TensorFlow once, the largest reorders first, and stays so where the whole function
is faster then. In the end the function itself has to be faster than the original.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from . import measure

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
    for part in best[1][: measure.MOST_PARTS]:
        tried = leave | dict.fromkeys(part, REASON)
        other = make(tried)
        now, then = measure.milliseconds((best[0], other[0]), inputs)
        if then < _GAIN * now:
            best, leave = other, tried
            notes.append(f"autotune: {now:.3g} ms became {then:.3g} without {', '.join(part)}")
    original, now = measure.milliseconds((concrete, best[0]), inputs)
    notes.append(f"autotune: {original:.3g} ms as it was, {now:.3g} ms now")
    return (best if now <= original else None), notes
