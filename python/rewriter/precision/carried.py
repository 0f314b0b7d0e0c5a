"""What a model that was quantized elsewhere says of its own tensors."""

import numpy as np

from ...graph import Body, Node, Ref, grid
from ...graph.quantized import QUANTIZING
from .quantize import LEVELS, Quantization

# What leaves values, or the order in which channels come, as they are.
_VIEWS = frozenset({"ExpandDims", "Identity", "Reshape", "Squeeze", "StopGradient"})
# A whole multiple of a step is off by rounding only: 2^-24 of 128 steps.
_NEAR = 1e-3
MOST_STEPS = 128  # of a byte with a sign, on its longer side


def byte_of(node: Node, body: Body) -> tuple[Quantization, int] | str:
    """The quantization of what one of `QUANTIZING` makes, and the greatest byte, or why none is."""
    found = grid(node, body.constants)
    if isinstance(found, str):
        return found
    if found.step.size != 1 or found.axis is not None:
        return "each of its channels has a grid of its own"
    step, low, high = (values.reshape(()).item() for values in found[:3])
    if not -LEVELS <= low <= 0 <= high <= low + LEVELS:
        return f"int8 does not hold its {high - low + 1} numbers"
    if step < 1e-30:  # nothing but zeros
        return Quantization(1.0, 0), 0
    return Quantization(step, -low), high - low


def weight_steps(ref: Ref, weights: np.ndarray, body: Body) -> np.ndarray | None:
    """The step of which the weights of each output channel are multiples; None if none is known.

    Args:
        ref: the constant tensor.
        weights: its values, [.., output channels].
    """
    node = body.view.producer(body.view.origin(ref, _VIEWS))
    if node.op not in QUANTIZING:
        return None
    found, channels = grid(node, body.constants), weights.shape[-1]
    if isinstance(found, str) or channels % found.step.size:
        return None
    given, times = found.step.ravel(), channels // found.step.size
    # A depthwise filter [kh, kw, C, m] may have a step for each of C or m.
    for steps in (np.tile(given, times), np.repeat(given, times)):
        if multiples(weights, steps) is not None:
            return steps
    return None


def multiples(weights: np.ndarray, steps: np.ndarray) -> np.ndarray | None:
    """Weights [.., channels] as int8 numbers of steps; None where they are no such numbers."""
    with np.errstate(all="ignore"):
        of_zero = np.where(weights == 0, 0.0, np.inf)
        numbers = np.where(steps > 0, np.asarray(weights, np.float64) / steps, of_zero)
    whole = np.rint(numbers)
    if not np.isfinite(numbers).all() or np.abs(numbers - whole).max(initial=0.0) > _NEAR:
        return None
    if whole.min(initial=0) < -MOST_STEPS or whole.max(initial=0) >= MOST_STEPS:
        return None
    return whole.astype(np.int8)
