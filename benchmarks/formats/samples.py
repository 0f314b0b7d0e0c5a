"""Inputs that calibrate a network of bytes: made-up ones, or those of a file that is given."""

from collections.abc import Iterator

import numpy as np
from models import pictures

COUNT = 16
given: list[str] = []  # The path of the file, if there is one.


def samples(shapes: dict[str, list[int]]) -> Iterator[dict[str, np.ndarray]]:
    """The batches of the file `given`, else `COUNT` made-up inputs of these shapes."""
    arrays = dict(np.load(given[0])) if given else _made_up(shapes)
    for i in range(min(len(arrays[name]) // shape[0] for name, shape in shapes.items())):
        yield {
            name: arrays[name][i * shape[0] : (i + 1) * shape[0]] for name, shape in shapes.items()
        }


def _made_up(shapes: dict[str, list[int]]) -> dict[str, np.ndarray]:
    """Pictures in colour, or noise of any other shape."""
    made = {}
    for name, shape in shapes.items():
        all_of = (COUNT * shape[0], *shape[1:])
        if len(shape) == 4 and shape[3] == 3:
            made[name] = pictures(all_of[0], tuple(shape[1:3]), spread=128)
        else:
            made[name] = np.random.default_rng(0).standard_normal(all_of, np.float32)
    return made
