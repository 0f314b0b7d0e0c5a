"""Made-up inputs that calibrate a network of bytes."""

from collections.abc import Iterator

import numpy as np
from models import pictures

COUNT = 16


def samples(shapes: dict[str, list[int]]) -> Iterator[dict[str, np.ndarray]]:
    """`COUNT` inputs of these shapes: pictures in colour, or noise of any other shape."""
    made = {}
    for name, shape in shapes.items():
        all_of = (COUNT * shape[0], *shape[1:])
        if len(shape) == 4 and shape[3] == 3:
            made[name] = pictures(all_of[0], tuple(shape[1:3]), spread=128)
        else:
            made[name] = np.random.default_rng(0).standard_normal(all_of, np.float32)
    for i in range(COUNT):
        yield {
            name: made[name][i * shape[0] : (i + 1) * shape[0]] for name, shape in shapes.items()
        }
