"""Networks of kinds that keras.applications does not have, with the weights of `applications`.

Each builder makes a functional model of one input; its name is the argument of `save`.
"""

from __future__ import annotations

import keras
from keras import layers

from .applications import randomise, save_model


def _convolution(x, filters: int, size=3, strides=1, activation: str = "relu", **options):
    x = layers.Conv2D(filters, size, strides, padding="same", use_bias=False, **options)(x)
    return layers.Activation(activation)(layers.BatchNormalization()(x))


def unet(size: int = 256, width: int = 32) -> keras.Model:
    """Ronneberger et al. 2015, with transposed convolutions on the way up."""
    image = x = keras.Input((size, size, 3))
    kept = []
    for level in range(4):
        x = _convolution(_convolution(x, width << level), width << level)
        kept.append(x)
        x = layers.MaxPooling2D()(x)
    x = _convolution(_convolution(x, width << 4), width << 4)
    for level in reversed(range(4)):
        x = layers.Conv2DTranspose(width << level, 2, 2, padding="same")(x)
        x = layers.Concatenate()([kept[level], x])
        x = _convolution(_convolution(x, width << level), width << level)
    return keras.Model(image, layers.Conv2D(4, 1)(x))


def cnn3d(frames: int = 16, size: int = 64) -> keras.Model:
    """Four 3-D convolutions with pooling, for short films."""
    film = x = keras.Input((frames, size, size, 1))
    for filters in (16, 32, 64, 64):
        x = layers.Conv3D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling3D(2)(x)
    return keras.Model(film, layers.Dense(20)(layers.GlobalAveragePooling3D()(x)))


def dcgan(noise: int = 100) -> keras.Model:
    """The generator of Radford et al. 2016: noise -> [64, 64, 3]."""
    code = keras.Input((noise,))
    x = layers.Reshape((4, 4, 512))(layers.Dense(4 * 4 * 512)(code))
    x = layers.ReLU()(layers.BatchNormalization()(x))
    for filters in (256, 128, 64):
        x = layers.Conv2DTranspose(filters, 4, 2, padding="same", use_bias=False)(x)
        x = layers.ReLU()(layers.BatchNormalization()(x))
    x = layers.Conv2DTranspose(3, 4, 2, padding="same", activation="tanh")(x)
    return keras.Model(code, x)


def _backbone(x):
    """Three maps, at 1/8, 1/16 and 1/32 of the image."""
    maps = []
    x = _convolution(x, 16, strides=2)
    for filters in (32, 64, 128, 256):
        x = _convolution(x, filters, strides=2, activation="swish")
        y = _convolution(x, filters // 2, 1, activation="swish")
        x = layers.Add()([x, _convolution(y, filters, activation="swish")])
        maps.append(x)
    return maps[1:]


def yolo(size: int = 256, classes: int = 20) -> keras.Model:
    """A backbone, a path down with nearest upsampling, and three heads of decoded boxes."""
    image = keras.Input((size, size, 3))
    small, middle, large = _backbone(image)
    middle = layers.Concatenate()([layers.UpSampling2D()(_convolution(large, 128, 1)), middle])
    small = layers.Concatenate()([layers.UpSampling2D()(_convolution(middle, 64, 1)), small])
    heads = []
    for x in (small, middle, large):
        x = layers.Conv2D(3 * (5 + classes), 1)(_convolution(x, 64, activation="swish"))
        x = layers.Reshape((-1, 5 + classes))(x)
        heads.append(layers.Activation("sigmoid")(x))
    return keras.Model(image, layers.Concatenate(axis=1)(heads))


def ssd(size: int = 256, classes: int = 20) -> keras.Model:
    """A backbone with boxes and classes of every map, side by side."""
    image = keras.Input((size, size, 3))
    maps = _backbone(image)
    maps.append(_convolution(maps[-1], 256, strides=2))
    boxes = [layers.Reshape((-1, 4))(layers.Conv2D(24, 3, padding="same")(x)) for x in maps]
    scores = [
        layers.Softmax()(
            layers.Reshape((-1, classes))(layers.Conv2D(6 * classes, 3, padding="same")(x))
        )
        for x in maps
    ]
    sides = layers.Concatenate(axis=1)(boxes), layers.Concatenate(axis=1)(scores)
    return keras.Model(image, layers.Concatenate()(sides))


def resnext50(size: int = 224, groups: int = 32) -> keras.Model:
    """Xie et al. 2017, 32x4d."""
    image = keras.Input((size, size, 3))
    x = layers.MaxPooling2D(3, 2, padding="same")(_convolution(image, 64, 7, 2))
    for stage, repeats in enumerate((3, 4, 6, 3)):
        for block in range(repeats):
            strides = 2 if block == 0 and stage else 1
            y = _convolution(x, 128 << stage, 1)
            y = _convolution(y, 128 << stage, 3, strides, groups=groups)
            y = _convolution(y, 256 << stage, 1, activation="linear")
            if block == 0:
                x = _convolution(x, 256 << stage, 1, strides, activation="linear")
            x = layers.ReLU()(layers.Add()([x, y]))
    return keras.Model(image, layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)))


def keywords(frames: int = 98, bands: int = 40) -> keras.Model:
    """Spoken words from log-mel frames: residual 1-D convolutions."""
    sound = keras.Input((frames, bands))
    x = layers.Conv1D(64, 3, padding="same", activation="relu")(sound)
    for dilation in (1, 2, 4):
        y = layers.Conv1D(64, 9, padding="same", dilation_rate=dilation, use_bias=False)(x)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        y = layers.Conv1D(64, 1)(y)
        x = layers.ReLU()(layers.Add()([x, y]))
    return keras.Model(sound, layers.Dense(12)(layers.GlobalAveragePooling1D()(x)))


def crnn(height: int = 32, width: int = 128) -> keras.Model:
    """Shi et al. 2015: convolutions, then a bidirectional LSTM over the columns of a line."""
    line = keras.Input((height, width, 1))
    x = line
    for filters, pool in ((32, 2), (64, 2), (128, (2, 1)), (128, (2, 1))):
        x = layers.MaxPooling2D(pool)(_convolution(x, filters))
    x = layers.Permute((2, 1, 3))(x)
    x = layers.Reshape((width // 4, height // 16 * 128))(x)
    x = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(x)
    return keras.Model(line, layers.Dense(40)(x))


def save(folder: str, name: str) -> None:
    """Writes one of them with a signature image [None, ...] -> {"scores"}."""
    save_model(randomise(globals()[name]()), folder)
