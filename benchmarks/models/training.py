"""The networks whose training is measured, built by Keras with random weights: `NETWORKS`.

Importing this file loads no TensorFlow, so that the measuring process stays without.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable


@dataclasses.dataclass(frozen=True)
class Network:
    """One row.

    Attributes:
      title: for tables.
      size: height and width of the images.
      build: makes the keras.Model, with scores (or a mask) as its result.
      multiplications: of one image forward, in millions; a step has three times as many.
    """

    title: str
    size: int
    build: Callable
    multiplications: float


def _application(name: str) -> Callable:
    def build():
        import keras

        return getattr(keras.applications, name)(weights=None, classifier_activation=None)

    return build


def unet():
    """U-Net of four levels, 32 to 256 channels, on 128 x 128 pixels.

    Source: O. Ronneberger, P. Fischer, T. Brox, "U-Net", 2015.
    """
    import keras

    layers = keras.layers

    def twice(x, filters):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", use_bias=False)(x)
            x = layers.Activation("relu")(layers.BatchNormalization()(x))
        return x

    image = keras.Input((128, 128, 3))
    x, passed = image, []
    for filters in (32, 64, 128):
        x = twice(x, filters)
        passed.append(x)
        x = layers.MaxPooling2D()(x)
    x = twice(x, 256)
    for filters, before in zip((128, 64, 32), reversed(passed), strict=True):
        x = layers.Conv2DTranspose(filters, 2, strides=2)(x)
        x = twice(layers.Concatenate()([x, before]), filters)
    return keras.Model(image, layers.Conv2D(2, 1)(x))


NETWORKS = {
    "resnet50": Network("ResNet-50", 224, _application("ResNet50"), 3860),
    "vgg16": Network("VGG-16", 224, _application("VGG16"), 15470),
    "mobilenetv2": Network("MobileNetV2", 224, _application("MobileNetV2"), 300),
    "unet": Network("U-Net", 128, unet, 3080),
}
