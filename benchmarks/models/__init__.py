"""The networks that are measured, as SavedModels: one row each in `ZOO`.

`python -m models NAME FOLDER` writes one (from benchmarks/). This file imports no TensorFlow, so
that the process that measures stays small.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable

import numpy as np


@dataclasses.dataclass(frozen=True)
class Network:
    """A network of the zoo.

    Attributes:
      title: for tables.
      builder: module of this package whose `save(folder, argument)` writes the SavedModel.
      argument: what that function takes besides the folder.
      input_name: of the signature's one input, float32 [batch, height, width, 3].
      size: height and width it is measured at.
    """

    title: str
    builder: str
    argument: str
    input_name: str
    size: tuple[int, int]

    def example(self, batch: int) -> dict[str, np.ndarray]:
        """{input name: standard normal float32 [batch, H, W, 3]}, the same in every process."""
        random = np.random.default_rng(0)
        return {self.input_name: random.standard_normal((batch, *self.size, 3), np.float32)}

    def save(self, folder: str) -> None:
        """Writes the SavedModel, signature `serving_default`; weights are the same every time."""
        writer: Callable = importlib.import_module(f"{__name__}.{self.builder}").save
        writer(folder, self.argument)


ZOO = {
    "resnet50": Network("ResNet-50", "applications", "ResNet50", "image", (224, 224)),
    "vgg16": Network("VGG-16", "applications", "VGG16", "image", (224, 224)),
    "mobilenetv2": Network("MobileNetV2", "applications", "MobileNetV2", "image", (224, 224)),
    "hed": Network("HED", "hed", "", "image", (512, 512)),
}
