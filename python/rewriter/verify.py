"""Checks a rewritten function against the original."""

import numpy as np
import tensorflow as tf

from ..errors import VerificationError
from ..graph import GraphView

_SIDE = 64  # of unknown sizes but the batch


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
    inputs = random_inputs(original, seed=seed)
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


def random_inputs(concrete, *, batch: int = 2, seed: int = 0) -> list[tf.Tensor]:
    """A random tensor for each argument; an unknown first size is `batch`, others are 64."""
    count = len(concrete.inputs) - len(concrete.captured_inputs)
    rng = np.random.default_rng(seed)
    return [_random(tensor, rng, batch) for tensor in concrete.inputs[:count]]


def given_inputs(concrete, example) -> list[tf.Tensor]:
    """The arguments of `example`, a list or one tensor, as the function takes them.

    Raises:
        ValueError: another number of arguments, or shapes or dtypes that it does not take.
    """
    count = len(concrete.inputs) - len(concrete.captured_inputs)
    given = tf.nest.flatten(example)
    if len(given) != count:
        raise ValueError(f"example must hold {count} tensors, one an argument, not {len(given)}")
    inputs = []
    for tensor, value in zip(concrete.inputs, given, strict=False):
        inputs.append(tf.convert_to_tensor(value, tensor.dtype))
        if not tensor.shape.is_compatible_with(inputs[-1].shape):
            raise ValueError(f"example: {tensor.name} is {tensor.shape}, not {inputs[-1].shape}")
    return inputs


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


def _random(tensor, rng, batch: int) -> tf.Tensor:
    shape = [
        (_SIDE if axis else batch) if size is None else size
        for axis, size in enumerate(tensor.shape)
    ]
    if tensor.dtype.is_floating:
        return tf.constant(rng.standard_normal(shape), tensor.dtype)
    if tensor.dtype == tf.bool:
        return tf.constant(rng.integers(0, 2, shape), tf.bool)
    if tensor.dtype == tf.string:
        return tf.fill(shape, "")
    return tf.constant(rng.integers(0, 2, shape), tensor.dtype)
