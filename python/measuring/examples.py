"""Inputs that are made up for a signature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np


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
) -> dict[str, np.ndarray]:
    """Makes up an array for every tf.TensorSpec: standard normal floats, zeros for whole numbers.

    Zeros, because whole numbers are mostly indices and zero is always a legal one.

    Raises:
      ValueError: an input of unknown rank, or of a type nothing can be made up for (text).
    """
    random = np.random.default_rng(0)
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
