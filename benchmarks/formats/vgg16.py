"""VGG-16 layer by layer in the channels-first terms of ONNX and PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

BLOCKS = (2, 2, 3, 3, 3)  # 3x3 convolutions, each with ReLU; 2x2 max pooling after each block.
DENSE = 3  # ReLU after all but the last.
LAST_PLANE = (7, 7, 512)


class Layer(NamedTuple):
    """`kind` is conv (weights [out, in, 3, 3]), pool, flatten or dense (weights [out, in])."""

    kind: str
    weights: np.ndarray | None = None
    bias: np.ndarray | None = None
    relu: bool = False


def layers(path: str) -> Iterator[Layer]:
    """The layers, with weights of Keras's VGG16 as `weights_file` wrote them."""
    with np.load(path) as arrays:
        keras = iter([arrays[f"arr_{i}"] for i in range(len(arrays.files))])
    for convolutions in BLOCKS:
        for _ in range(convolutions):
            hwio, bias = next(keras), next(keras)
            yield Layer("conv", np.ascontiguousarray(hwio.transpose(3, 2, 0, 1)), bias, relu=True)
        yield Layer("pool")
    yield Layer("flatten")
    for i in range(DENSE):
        kernel, bias = next(keras), next(keras)
        if i == 0:  # Keras flattens [H, W, C], the others [C, H, W].
            kernel = kernel.reshape(*LAST_PLANE, -1).transpose(2, 0, 1, 3).reshape(kernel.shape)
        yield Layer("dense", np.ascontiguousarray(kernel.T), bias, relu=i < DENSE - 1)
