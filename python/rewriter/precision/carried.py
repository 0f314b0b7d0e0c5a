"""What a model that was quantized elsewhere says of the tensors in it."""

import numpy as np
from tensorflow.core.framework.types_pb2 import DT_INT8

from ...graph import UINT8, Body, Node, Ref, grid
from ...graph.families import KEEP_MEMORY
from ...graph.quantized import QUANTIZING
from ...graph.types import output_dtypes
from .quantize import LEVELS, Quantization

# A whole multiple of a step is off by rounding only: 2^-24 of 128 steps.
_NEAR = 1e-3
MOST_STEPS = 128  # of a byte with a sign, on the longer side


def byte_of(node: Node, body: Body) -> tuple[Quantization, int] | str:
    """The quantization of what one of `QUANTIZING` makes, and the greatest byte, or why none is."""
    steps = grid(node, body.constants)
    if isinstance(steps, str):
        return steps
    if steps.step.size != 1 or steps.axis is not None:
        return "each of its channels has a grid of its own"
    step, low, high = (values.reshape(()).item() for values in steps[:3])
    if not -LEVELS <= low <= 0 <= high <= low + LEVELS:
        return f"int8 does not hold its {high - low + 1} numbers"
    if step < 1e-30:  # nothing but zeros
        return Quantization(1.0, 0), 0
    return Quantization(step, -low), high - low


def weight_steps(ref: Ref, weights: np.ndarray, body: Body) -> np.ndarray | None:
    """The step of which the weights of each output channel are multiples; None if none is known.

    Args:
        ref: the constant tensor.
        weights: the values, [.., output channels].
    """
    node = body.view.producer(body.view.origin(ref, KEEP_MEMORY))
    if node.op not in QUANTIZING:
        return None
    of_grid, channels = grid(node, body.constants), weights.shape[-1]
    if isinstance(of_grid, str) or channels % of_grid.step.size:
        return None
    few, times = of_grid.step.ravel(), channels // of_grid.step.size
    # A depthwise filter [kh, kw, C, m] may have a step for each of C or m.
    for steps in (np.tile(few, times), np.repeat(few, times)):
        if multiples(weights, steps) is not None:
            return steps
    return None


def dequantizes(ref: Ref, body: Body) -> bool:
    """Whether a constant tensor is computed from integers of a byte or less that are stored."""
    view, seen, left = body.view, set(), [ref]
    while left:
        ref = left.pop()
        if ref in seen:
            continue
        seen.add(ref)
        node = view.producer(ref)
        if not node.inputs or node.op == "ReadVariableOp":
            if output_dtypes(node)[ref.port] in (DT_INT8, UINT8):
                return True
            continue
        left += node.inputs
    return False


def multiples(weights: np.ndarray, steps: np.ndarray) -> np.ndarray | None:
    """Weights [.., channels] as int8 numbers of steps; None where they are no such numbers."""
    with np.errstate(all="ignore"):
        of_zero = np.where(weights == 0, 0.0, np.inf)
        numbers = np.where(steps > 0, np.asarray(weights, np.float64) / steps, of_zero)
    rounded = np.rint(numbers)
    if not np.isfinite(numbers).all() or np.abs(numbers - rounded).max(initial=0.0) > _NEAR:
        return None
    if rounded.min(initial=0) < -MOST_STEPS or rounded.max(initial=0) >= MOST_STEPS:
        return None
    return rounded.astype(np.int8)
