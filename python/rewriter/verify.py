"""Checks a rewritten function against the original."""

import numpy as np
import tensorflow as tf

from ..errors import VerificationError
from ..graph import GraphView

_DYNAMIC_SIZES = {0: 2}  # batch; other unknown sizes take _SIDE
_SIDE = 64


def check_graph(view: GraphView) -> None:
    """Raises VerificationError unless every input, control edge and fetch exists."""
    for node in view:
        for name in [ref.node for ref in node.inputs] + node.controls:
            if name not in view:
                raise VerificationError(f"{node.name} ({node.op}) reads {name}, which is gone")
    for ref in view.fetches:
        if ref.node not in view:
            raise VerificationError(f"the output {ref} is gone")


def check_signature(original, rewritten) -> None:
    """Raises VerificationError unless inputs and outputs have kept dtypes and shapes."""
    for old, new in zip(original.outputs, rewritten.outputs, strict=True):
        if old.dtype != new.dtype or not old.shape.is_compatible_with(new.shape):
            raise VerificationError(
                f"output {old.name} was {old.dtype.name} {old.shape}, "
                f"became {new.dtype.name} {new.shape}"
            )
    count = len(original.inputs) - len(original.captured_inputs)
    if count != len(rewritten.inputs) - len(rewritten.captured_inputs):
        raise VerificationError("the number of inputs changed")


def check_numbers(original, rewritten, *, tolerance: float, seed: int = 0) -> float:
    """Runs both functions on one random input.

    Returns: the largest difference of a float output, relative to the output's magnitude.
    Raises:
        VerificationError: that is above `tolerance`, or another output differs at all.
    """
    count = len(original.inputs) - len(original.captured_inputs)
    rng = np.random.default_rng(seed)
    inputs = [_random(tensor, rng) for tensor in original.inputs[:count]]
    worst = 0.0
    wanted = original._call_flat(inputs, original.captured_inputs)
    got = rewritten._call_flat(inputs, rewritten.captured_inputs)
    for old, new in zip(tf.nest.flatten(wanted), tf.nest.flatten(got), strict=True):
        if old is None:
            continue
        worst = max(worst, difference(old.numpy(), new.numpy()))
    if not worst <= tolerance:
        raise VerificationError(
            f"outputs differ by {worst:.3g} of their magnitude, {tolerance:.3g} is allowed"
        )
    return worst


def difference(wanted: np.ndarray, got: np.ndarray) -> float:
    """max |wanted - got| / max |wanted|; infinite where non-float values or shapes differ."""
    if wanted.shape != got.shape:
        return np.inf
    if wanted.dtype.kind != "f":
        return 0.0 if np.array_equal(wanted, got) else np.inf
    if not wanted.size:
        return 0.0
    magnitude = float(np.max(np.abs(wanted))) or 1.0
    return float(np.max(np.abs(wanted.astype(np.float64) - got))) / magnitude


def _random(tensor, rng) -> tf.Tensor:
    shape = [
        _DYNAMIC_SIZES.get(axis, _SIDE) if size is None else size
        for axis, size in enumerate(tensor.shape)
    ]
    if tensor.dtype.is_floating:
        return tf.constant(rng.standard_normal(shape), tensor.dtype)
    if tensor.dtype == tf.bool:
        return tf.constant(rng.integers(0, 2, shape), tf.bool)
    if tensor.dtype == tf.string:
        return tf.fill(shape, "")
    return tf.constant(rng.integers(0, 2, shape), tensor.dtype)
