"""ShuffleNet (Zhang et al. 2017) with 3 groups and ShuffleNetV2 (Ma et al. 2018), both at width 1.

Keras has neither. `split` is how the channels are halved, `shuffle` how they are interleaved: what
people write differs, and the tests go through all of it.
"""

from __future__ import annotations

from collections.abc import Callable

import keras
from keras import layers

from .applications import randomise, save_model


def halves(x):
    """The channels in two parts by one Split."""
    return keras.ops.split(x, 2, axis=-1)


def permuted(x, groups: int):
    """Reshape, Permute, Reshape: the channels of each group one after the other."""
    height, width, channels = x.shape[1:]
    x = layers.Reshape((height, width, groups, channels // groups))(x)
    return layers.Reshape((height, width, channels))(layers.Permute((1, 2, 4, 3))(x))


def _convolution(x, filters: int, size: int, strides: int = 1, groups: int = 1, relu: bool = True):
    x = layers.Conv2D(
        filters, size, strides=strides, padding="same", groups=groups, use_bias=False
    )(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x) if relu else x


def _depthwise(x, strides: int):
    x = layers.DepthwiseConv2D(3, strides=strides, padding="same", use_bias=False)(x)
    return layers.BatchNormalization()(x)


def version_2(
    size: int = 224,
    widths: tuple[int, ...] = (116, 232, 464),
    repeats: tuple[int, ...] = (4, 8, 4),
    head: int = 1024,
    split: Callable = halves,
    shuffle: Callable = permuted,
) -> keras.Model:
    """ShuffleNetV2: [N, size, size, 3] -> [N, 1000]."""

    def branch(x, filters, strides):
        x = _depthwise(_convolution(x, filters, 1), strides)
        return _convolution(x, filters, 1)

    image = keras.Input((size, size, 3), name="image")
    x = _convolution(image, 24, 3, strides=2)
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    for width, repeat in zip(widths, repeats, strict=True):
        filters = width // 2
        left = _convolution(_depthwise(x, 2), filters, 1)
        x = shuffle(layers.Concatenate()([left, branch(x, filters, 2)]), 2)
        for _ in range(repeat - 1):
            kept, worked = split(x)
            x = shuffle(layers.Concatenate()([kept, branch(worked, filters, 1)]), 2)
    x = _convolution(x, head, 1)
    return keras.Model(image, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


def version_1(
    size: int = 224,
    groups: int = 3,
    widths: tuple[int, ...] = (240, 480, 960),
    repeats: tuple[int, ...] = (4, 8, 4),
    shuffle: Callable = permuted,
) -> keras.Model:
    """ShuffleNet with grouped 1x1 convolutions: [N, size, size, 3] -> [N, 1000]."""
    image = keras.Input((size, size, 3), name="image")
    x = _convolution(image, 24, 3, strides=2)
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    for stage, (width, repeat) in enumerate(zip(widths, repeats, strict=True)):
        for unit in range(repeat):
            strides = 2 if unit == 0 else 1
            rest = width - x.shape[-1] if strides == 2 else width
            y = _convolution(x, width // 4, 1, groups=1 if stage == unit == 0 else groups)
            y = _depthwise(shuffle(y, groups), strides)
            y = _convolution(y, rest, 1, groups=groups, relu=False)
            if strides == 2:
                x = layers.AveragePooling2D(3, strides=2, padding="same")(x)
                x = layers.ReLU()(layers.Concatenate()([x, y]))
            else:
                x = layers.ReLU()(layers.Add()([x, y]))
    return keras.Model(image, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


def save(folder: str, version: str) -> None:
    """Writes ShuffleNet, version "1" or "2", with a signature image [None, 224, 224, 3]."""
    save_model(randomise(version_1() if version == "1" else version_2()), folder)
