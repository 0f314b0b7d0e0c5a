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
      shape: of one sample, instead of size, where these are no pictures in colour.
      words: a sample is int32 ids below this; 0: it is float32.
      batches: those it is measured at; empty: any.
      everyday: whether run_models.py measures it unless told otherwise; zoo.py takes all but
        transformers, which backbones.py takes.
    """

    title: str
    builder: str
    argument: str
    input_name: str
    size: tuple[int, int]
    batches: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    words: int = 0
    everyday: bool = True

    @property
    def class_name(self) -> str:
        """Which of CLASSES it belongs to."""
        if self.builder == TRANSFORMERS:
            return "Transformers"
        return _CLASS_OF.get(self.title, "CNNs")

    def example(self, batch: int) -> dict[str, np.ndarray]:
        """{input name: float32 [batch, H, W, 3] or as `shape` and `words` say}, always the same."""
        random = np.random.default_rng(0)
        if self.words:
            ids = random.integers(1, self.words, (batch, *self.shape), np.int32)
            return {self.input_name: ids}
        if self.shape:
            return {self.input_name: random.standard_normal((batch, *self.shape), np.float32)}
        return {self.input_name: pictures(batch, self.size, spread=128)}

    def save(self, folder: str) -> None:
        """Writes the SavedModel, signature `serving_default`; weights are the same every time."""
        writer: Callable = importlib.import_module(f"{__name__}.{self.builder}").save
        writer(folder, self.argument)


def _application(title: str, name: str, size: int = 224) -> Network:
    return Network(title, "applications", name, "image", (size, size))


def _family(title: str, name: str, size: int = 224) -> Network:
    return dataclasses.replace(_application(title, name, size), everyday=False)


def _other(title: str, name: str, *shape: int, builder: str = "others") -> Network:
    return Network(title, builder, name, "image", (0, 0), shape=shape, everyday=False)


def _transformer(title: str, name: str, *shape: int, words: int = 0) -> Network:
    """KerasHub's (requirements-kerashub.txt), with all layers that were published."""
    return Network(title, TRANSFORMERS, name, "x", (0, 0), shape=shape, words=words, everyday=False)


TRANSFORMERS = "transformers"
RECURRENT = "Recurrent layers"
CLASSES = ("CNNs", "Mobile CNNs", RECURRENT, "Transformers")
_CLASS_OF = {"CRNN": RECURRENT} | dict.fromkeys(
    "MobileNet MobileNetV2 MobileNetV3Large EfficientNetB0 EfficientNetV2B0 NASNetMobile "
    "ShuffleNetV1 ShuffleNetV2 EdgeNeXt-S MobileViT-S".split(),
    "Mobile CNNs",
)
ZOO = {
    "resnet50": _application("ResNet-50", "ResNet50"),
    "vgg16": _application("VGG-16", "VGG16"),
    "mobilenetv2": _application("MobileNetV2", "MobileNetV2"),
    "efficientnetb0": _application("EfficientNetB0", "EfficientNetB0"),
    "inceptionv3": _application("InceptionV3", "InceptionV3", 299),
    "densenet121": _application("DenseNet121", "DenseNet121"),
    "hed": Network("HED", "hed", "", "image", (512, 512), batches=(1,)),
    "shufflenetv2": _other("ShuffleNetV2", "2", 224, 224, 3, builder="shufflenet"),
    "shufflenetv1": _other("ShuffleNetV1", "1", 224, 224, 3, builder="shufflenet"),
    "resnet50v2": _family("ResNet50V2", "ResNet50V2"),
    "resnext50": _other("ResNeXt-50", "resnext50", 224, 224, 3),
    "mobilenet": _family("MobileNet", "MobileNet"),
    "mobilenetv3": _family("MobileNetV3Large", "MobileNetV3Large"),
    "efficientnetv2b0": _family("EfficientNetV2B0", "EfficientNetV2B0"),
    "inceptionresnetv2": _family("InceptionResNetV2", "InceptionResNetV2", 299),
    "xception": _family("Xception", "Xception", 299),
    "nasnetmobile": _family("NASNetMobile", "NASNetMobile"),
    "convnexttiny": _family("ConvNeXtTiny", "ConvNeXtTiny"),
    "unet": _other("U-Net", "unet", 256, 256, 3),
    "cnn3d": _other("3-D CNN", "cnn3d", 16, 64, 64, 1),
    "dcgan": _other("DCGAN's generator", "dcgan", 100),
    "yolo": _other("YOLO-style head", "yolo", 256, 256, 3),
    "ssd": _other("SSD-style heads", "ssd", 256, 256, 3),
    "keywords": _other("keyword spotting, 1-D", "keywords", 98, 40),
    "crnn": _other("CRNN", "crnn", 32, 128, 1),
    "coatnet": _other("CoAtNet-0", "coatnet", 224, 224, 3, builder="hybrids"),
    "edgenext": _other("EdgeNeXt-S", "edgenext", 256, 256, 3, builder="hybrids"),
    "mobilevit": _other("MobileViT-S", "mobilevit", 256, 256, 3, builder="hybrids"),
    "detr": _other("DETR, ResNet-50", "detr", 256, 256, 3, builder="hybrids"),
    "bert": _transformer("BERT-base, 128 ids", "text/bert", 128, words=30522),
    "minilm": _transformer("MiniLM, 32 ids", "text/minilm", 32, words=30522),
    "vit": _transformer("ViT-B/16", "vision/vit", 224, 224, 3),
    "deittiny": _transformer("DeiT-tiny", "vision/deittiny", 224, 224, 3),
    "swin": _transformer("Swin-T", "vision/swin", 224, 224, 3),
    "segformer": _transformer("SegFormer-B0", "vision/segformer", 224, 224, 3),
    "whisper": _transformer("Whisper-tiny's encoder", "sound/whisperencoder", 3000, 80),
}
