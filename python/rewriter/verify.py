"""Checks a rewritten function against the original."""

from collections import Counter

import numpy as np
import tensorflow as tf

from ..errors import VerificationError
from ..graph import Module
from ..measuring.difference import apart
from ..tensorflow_private import nest, results_of
from .regions import ops_of_ours
from .report import Report

# The difference that is allowed at least, by the precision; None is float32.
TOLERANCES = {None: 0.0, "bf16": 0.1, "int8": 0.25, "bf16-weights": 0.05, "int8-weights": 0.1}
_SIDE = 64  # of unknown sizes but the batch


def check_signature(original, rewritten) -> None:
    """Raises VerificationError unless inputs and outputs have kept dtypes and shapes."""
    for old, new in zip(results_of(original), results_of(rewritten), strict=True):
        if old.dtype != new.dtype or not old.shape.is_compatible_with(new.shape):
            raise VerificationError(
                f"output {old.name} was {old.dtype.name} {old.shape}, "
                f"became {new.dtype.name} {new.shape}"
            )
    count = len(original.inputs) - len(original.captured_inputs)
    if count != len(rewritten.inputs) - len(rewritten.captured_inputs):
        raise VerificationError("the number of inputs changed")


def check_written(report: Report, module: Module) -> None:
    """Raises VerificationError where the function lacks an op that the report names."""
    written = Counter(op for _, op in ops_of_ours(module))
    for op, count in report.counts().items():
        if op.startswith("Blockdnn") and written[op] < count:  # A plan may be one of TensorFlow's.
            lost = count - written[op]
            raise VerificationError(f"{lost} {op} of {count} in the report are not in the function")


def check_numbers(
    original, rewritten, *, tolerance: float, seed: int = 0, inputs: list | None = None
) -> float:
    """Runs both functions on one random input, or on `inputs`.

    Returns: the largest difference of a float output, relative to the output's magnitude.
    Raises:
        VerificationError: that is above `tolerance`, NaN or an infinity stands where the original
            has another value, or another output differs at all. It names the output and the
            element that is farthest off.
    """
    inputs = random_inputs(original, seed=seed) if inputs is None else inputs
    worst = 0.0
    wanted = outputs(original, inputs)
    got = outputs(rewritten, inputs)
    for (name, old), (_, new) in zip(wanted, got, strict=True):
        if old is None:
            continue
        old, new = old.numpy(), new.numpy()
        relative = difference(old, new)
        if not relative <= tolerance:
            raise VerificationError(
                f"output {name} differs by {relative:.3g} of its magnitude, {tolerance:.3g} is "
                f"allowed: {_where(old, new)}"
            )
        worst = max(worst, relative)
    return worst


def outputs(concrete, inputs) -> list[tuple]:
    """(name in the output's structure, value) for each output; None stays None."""
    results = concrete._call_flat(inputs, concrete.captured_inputs)
    flat = nest.flatten_with_joined_string_paths(results, expand_composites=True)
    return [(path or str(index), value) for index, (path, value) in enumerate(flat)]


def _where(wanted: np.ndarray, got: np.ndarray) -> str:
    """The element that is farthest off, with both of its values."""
    if wanted.shape != got.shape:
        return f"its shape was {wanted.shape}, became {got.shape}"
    by = apart(wanted, got) if wanted.dtype.kind in "fc" else wanted != got
    index = np.unravel_index(np.argmax(by), wanted.shape)
    place = f"at {[int(i) for i in index]} " if index else ""
    return f"{place}it was {wanted[index]}, became {got[index]}"


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
        raise ValueError(
            f"example must hold {count} tensors, one for each argument, not {len(given)}"
        )
    inputs = []
    for tensor, value in zip(concrete.inputs, given, strict=False):
        inputs.append(tf.convert_to_tensor(value, tensor.dtype))
        if not tensor.shape.is_compatible_with(inputs[-1].shape):
            raise ValueError(f"example: {tensor.name} is {tensor.shape}, not {inputs[-1].shape}")
    return inputs


def difference(wanted: np.ndarray, got: np.ndarray) -> float:
    """max |wanted - got| / max |wanted| over finite values.

    Infinite where shapes or values that are not floats differ, and where NaN or an infinity stands
    against another value.
    """
    if wanted.shape != got.shape:
        return np.inf
    if wanted.dtype.kind not in "fc":
        return 0.0 if np.array_equal(wanted, got) else np.inf
    if not wanted.size:
        return 0.0
    finite = wanted[np.isfinite(wanted)]
    magnitude = float(np.max(np.abs(finite), initial=0.0)) or 1.0
    return float(np.max(apart(wanted, got))) / magnitude


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
