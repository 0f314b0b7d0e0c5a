"""Measures parts of a function both ways, in blocks and as TensorFlow runs them.

A part is what hangs together in blocks and has reorders at the edges; without these it cannot lose.
Each is left to TensorFlow once, the largest reorders first, and stays so where the whole function
is faster then. In the end the function itself has to be faster than the original.
"""

from collections.abc import Sequence

import tensorflow as tf

from . import measure
from .cost import NOTICED
from .report import Report

REASON = "autotune: TensorFlow is faster here on the example"


def fastest(run, inputs: Sequence[tf.Tensor]):
    """The fastest way to run a function, with notes on what was measured.

    Args:
        run: the Rewrite of which all parts are converted.
        inputs: one tensor an argument.

    Returns: that run, one that leaves some of the parts, or one that leaves all.
    """
    best, notes = run, []
    for part in run.parts[: measure.MOST_PARTS]:
        other = best.again(leave=dict.fromkeys(part, REASON)).run()
        now, then = measure.milliseconds((best.function, other.function), inputs)
        if then < NOTICED * now:
            best = other
            notes.append(f"autotune: {now:.3g} ms became {then:.3g} without {', '.join(part)}")
    original, now = measure.milliseconds((run.concrete, best.function), inputs)
    notes.append(f"autotune: {original:.3g} ms as it was, {now:.3g} ms now")
    if now > original:
        best = run.untouched(Report(notes=notes, blocked=run.report.blocked))
        best.report.decline(run.name, "autotune: it is faster as it was")
    else:  # Warnings and notes of the first run hold for the others.
        for known, ours in ((run.report.warnings, best.report.warnings), (run.report.notes, notes)):
            ours[:] = dict.fromkeys([*known, *ours])
        best.report.notes = notes
    return best
