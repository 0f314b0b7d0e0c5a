"""The networks that are measured, as SavedModels: one row each in `ZOO`.

`python -m models NAME FOLDER` writes one (from benchmarks/). This file imports no TensorFlow, so
that the process that measures stays small.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable

import numpy as np


def pictures(count: int, size: tuple[int, int], spread: float) -> np.ndarray:
    """Made-up pictures, float32 [count, H, W, 3] around 0: patches of colour under fine noise.

    White noise alone will not do: averaged over a plane, one such picture is like the next.
    """
    random = np.random.default_rng(0)
    patches = random.standard_normal((count, 4, 4, 3), np.float32)
    for axis, length in zip((1, 2), size, strict=True):
        patches = patches.take(np.arange(length) * 4 // length, axis)
    noise = random.standard_normal((count, *size, 3), np.float32)
    return (patches + noise) * np.float32(spread / 2)


@dataclasses.dataclass(frozen=True)
class Network:
    """A network of the zoo.

    Attributes:
      title: for tables.
      builder: module of this package whose `save(folder, argument)` writes the SavedModel.
      argument: what that function takes besides the folder.
      input_name: of the signature's one input, float32 [batch, height, width, 3].
      size: height and width it is measured at.
      batches: those it is measured at; empty: any.
    """

    title: str
    builder: str
    argument: str
    input_name: str
    size: tuple[int, int]
    batches: tuple[int, ...] = ()

    def example(self, batch: int) -> dict[str, np.ndarray]:
        """{input name: float32 [batch, H, W, 3]}, the same in every process."""
        return {self.input_name: pictures(batch, self.size, spread=128)}

    def save(self, folder: str) -> None:
        """Writes the SavedModel, signature `serving_default`; weights are the same every time."""
        writer: Callable = importlib.import_module(f"{__name__}.{self.builder}").save
        writer(folder, self.argument)


def _application(title: str, name: str, size: int = 224) -> Network:
    return Network(title, "applications", name, "image", (size, size))


ZOO = {
    "resnet50": _application("ResNet-50", "ResNet50"),
    "vgg16": _application("VGG-16", "VGG16"),
    "mobilenetv2": _application("MobileNetV2", "MobileNetV2"),
    "efficientnetb0": _application("EfficientNetB0", "EfficientNetB0"),
    "inceptionv3": _application("InceptionV3", "InceptionV3", 299),
    "densenet121": _application("DenseNet121", "DenseNet121"),
    "shufflenetv2": Network("ShuffleNetV2", "shufflenet", "2", "image", (224, 224)),
    "shufflenetv1": Network("ShuffleNetV1", "shufflenet", "1", "image", (224, 224)),
    "hed": Network("HED", "hed", "", "image", (512, 512), batches=(1,)),
}
