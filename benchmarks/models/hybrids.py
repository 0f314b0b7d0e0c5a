"""Networks that pass between convolutions and attention, with the weights of `applications`.

Each builder makes a functional model of one picture; its name is the argument of `save`.
"""

from __future__ import annotations

import math

import keras
import numpy as np
from keras import layers, ops

from .applications import randomise, save_model


def _norm(x):
    return layers.LayerNormalization(epsilon=1e-6)(x)


def _mlp(x, width: int, activation: str):
    y = layers.Dense(width, activation=activation)(x)
    return layers.Dense(x.shape[-1])(y)


class RelativeAttention(layers.Layer):
    """Self-attention of the pixels of a plane with a learnt bias for each distance (Dai 2021)."""

    def __init__(self, size: int, channels: int, width: int = 32):
        super().__init__()
        self._size, self._heads, self._width = size, channels // width, width
        self._qkv, self._out = layers.Dense(3 * channels), layers.Dense(channels)
        rows, columns = (axis.reshape(-1) for axis in np.mgrid[:size, :size])
        down = rows[:, None] - rows + size - 1
        right = columns[:, None] - columns + size - 1
        self._distances = down * (2 * size - 1) + right

    def build(self, shape):
        self._qkv.build(shape)
        self._out.build((*shape[:-1], self._heads * self._width))
        distances = (2 * self._size - 1) ** 2
        self.table = self.add_weight(shape=(distances, self._heads), initializer="normal")

    def call(self, x):
        """Of tokens [N, size * size, C]."""
        tokens = self._size**2
        qkv = ops.reshape(self._qkv(x), (-1, tokens, 3, self._heads, self._width))
        q, k, v = ops.unstack(ops.transpose(qkv, (2, 0, 3, 1, 4)), 3)
        scores = ops.matmul(q * self._width**-0.5, ops.swapaxes(k, -1, -2))
        bias = ops.take(self.table, self._distances, axis=0)
        weights = ops.softmax(scores + ops.transpose(bias, (2, 0, 1)))
        y = ops.transpose(ops.matmul(weights, v), (0, 2, 1, 3))
        return self._out(ops.reshape(y, (-1, tokens, self._heads * self._width)))


def _squeeze_excite(x, width: int, activation: str):
    y = layers.GlobalAveragePooling2D(keepdims=True)(x)
    y = layers.Conv2D(width, 1, activation=activation)(y)
    return layers.Multiply()([x, layers.Conv2D(x.shape[-1], 1, activation="sigmoid")(y)])


def _mbconv(x, channels: int, strides: int):
    """Pre-activation, with gelu and a quarter of the channels in its squeeze-and-excitation."""

    def normed(y):
        return layers.Activation("gelu")(layers.BatchNormalization()(y))

    y = layers.BatchNormalization()(x)
    y = normed(layers.Conv2D(4 * channels, 1, strides, use_bias=False)(y))
    y = normed(layers.DepthwiseConv2D(3, padding="same", use_bias=False)(y))
    y = layers.Conv2D(channels, 1)(_squeeze_excite(y, channels // 4, "gelu"))
    if strides > 1:
        x = layers.Conv2D(channels, 1)(layers.MaxPooling2D(padding="same")(x))
    return layers.Add()([x, y])


def _relative_transformer(x, channels: int, strides: int):
    size = x.shape[1] // strides
    y = _norm(x)
    if strides > 1:
        x, y = (layers.MaxPooling2D(padding="same")(one) for one in (x, y))
        x = layers.Conv2D(channels, 1)(x)
    tokens = layers.Reshape((size * size, -1))(y)
    tokens = RelativeAttention(size, channels)(tokens)
    x = layers.Add()([layers.Reshape((size * size, channels))(x), tokens])
    x = layers.Add()([x, _mlp(_norm(x), 4 * channels, "gelu")])
    return layers.Reshape((size, size, channels))(x)


def coatnet(size: int = 224) -> keras.Model:
    """Dai et al. 2021, CoAtNet-0."""
    image = x = keras.Input((size, size, 3))
    for strides in (2, 1):
        x = layers.Conv2D(64, 3, strides, padding="same", use_bias=False)(x)
        x = layers.Activation("gelu")(layers.BatchNormalization()(x))
    stages = ((_mbconv, 96, 2), (_mbconv, 192, 3))
    stages += ((_relative_transformer, 384, 5), (_relative_transformer, 768, 2))
    for block, channels, repeats in stages:
        for number in range(repeats):
            x = block(x, channels, 2 if number == 0 else 1)
    x = layers.GlobalAveragePooling2D()(_norm(x))
    return keras.Model(image, layers.Dense(1000)(x))


class CrossCovariance(layers.Layer):
    """Attention between the channels of a head (El-Nouby et al. 2021)."""

    def __init__(self, channels: int, heads: int = 4):
        super().__init__()
        self._heads, self._width = heads, channels // heads
        self._qkv, self._out = layers.Dense(3 * channels), layers.Dense(channels)

    def build(self, shape):
        self._qkv.build(shape)
        self._out.build(shape)
        self.temperature = self.add_weight(shape=(self._heads, 1, 1), initializer="ones")

    def call(self, x):
        """Of tokens [N, T, C]."""
        tokens, channels = x.shape[1:]
        qkv = ops.reshape(self._qkv(x), (-1, tokens, 3, self._heads, self._width))
        q, k, v = ops.unstack(ops.transpose(qkv, (2, 0, 3, 4, 1)), 3)
        q, k = (ops.normalize(one, axis=-1) for one in (q, k))
        scores = ops.matmul(q, ops.swapaxes(k, -1, -2)) * self.temperature
        y = ops.matmul(ops.softmax(scores), v)
        return self._out(ops.reshape(ops.transpose(y, (0, 3, 1, 2)), (-1, tokens, channels)))


class Scale(layers.Layer):
    """A learnt factor for each channel (Touvron et al. 2021)."""

    def build(self, shape):
        self.gamma = self.add_weight(shape=(shape[-1],), initializer="ones")

    def call(self, x):
        return x * self.gamma


class Positions(layers.Layer):
    """Adds Fourier features of the pixels' places, projected to the channels."""

    def __init__(self, size: int, channels: int, width: int = 32):
        super().__init__()
        self._project = layers.Dense(channels)
        places = np.arange(1, size + 1) / size * 2 * math.pi
        angles = places[:, None] / 10000 ** (np.arange(width) // 2 * 2 / width)
        waves = np.where(np.arange(width) % 2, np.cos(angles), np.sin(angles))
        both = np.broadcast_arrays(waves[:, None], waves)
        self._features = np.concatenate(both, -1).reshape(1, size * size, -1).astype("float32")

    def build(self, shape):
        self._project.build(self._features.shape)

    def call(self, x):
        return x + self._project(self._features)


def _inverted(x, y):
    """What follows the spatial part of a block: x + scale * mlp(norm(y))."""
    return layers.Add()([x, Scale()(_mlp(_norm(y), 4 * x.shape[-1], "gelu"))])


def _split_depthwise(x, scales: int, positions: bool):
    """EdgeNeXt's encoder of split depthwise convolutions and transposed attention."""
    size, channels = x.shape[2:]
    width = max(math.ceil(channels / scales), channels // scales)
    *parts, last = np.split(np.arange(channels), range(width, channels, width))
    done, y = [], None
    for part in parts:
        here = x[..., int(part[0]) : int(part[-1]) + 1]
        y = here if y is None else layers.Add()([y, here])
        y = layers.DepthwiseConv2D(3, padding="same")(y)
        done.append(y)
    y = layers.Concatenate()([*done, x[..., int(last[0]) :]])
    tokens = layers.Reshape((size * size, channels))(y)
    if positions:
        tokens = Positions(size, channels)(tokens)
    attended = Scale()(CrossCovariance(channels)(_norm(tokens)))
    tokens = layers.Add()([tokens, attended])
    return _inverted(x, layers.Reshape((size, size, channels))(tokens))


def edgenext(size: int = 256) -> keras.Model:
    """Maaz et al. 2022, EdgeNeXt-S."""
    image = keras.Input((size, size, 3))
    x = _norm(layers.Conv2D(48, 4, 4)(image))
    stages = ((48, 3, 3, 0), (96, 3, 5, 2), (160, 9, 7, 3), (304, 3, 9, 4))
    for stage, (channels, repeats, window, scales) in enumerate(stages):
        if stage:
            x = layers.Conv2D(channels, 2, 2)(_norm(x))
        for number in range(repeats):
            if scales and number == repeats - 1:
                x = _split_depthwise(x, scales, positions=stage == 1)
            else:
                x = _inverted(x, layers.DepthwiseConv2D(window, padding="same")(x))
    x = _norm(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, layers.Dense(1000)(x))


def _conv_swish(x, channels: int, window: int = 3, strides: int = 1, activation: str = "swish"):
    x = layers.Conv2D(channels, window, strides, padding="same", use_bias=False)(x)
    return layers.Activation(activation)(layers.BatchNormalization()(x))


def _inverted_residual(x, channels: int, strides: int = 1):
    y = _conv_swish(x, 4 * x.shape[-1], 1)
    y = layers.DepthwiseConv2D(3, strides, padding="same", use_bias=False)(y)
    y = layers.Activation("swish")(layers.BatchNormalization()(y))
    y = _conv_swish(y, channels, 1, activation="linear")
    return layers.Add()([x, y]) if strides == 1 and x.shape[-1] == channels else y


def _mobilevit_block(x, width: int, repeats: int, heads: int = 4):
    """Attention between the pixels that have the same place in their patches of 2x2."""
    (height, breadth, channels), (rows, columns) = x.shape[1:], (x.shape[1] // 2, x.shape[2] // 2)
    y = layers.Conv2D(width, 1, use_bias=False)(_conv_swish(x, channels))
    y = layers.Permute((2, 4, 1, 3, 5))(layers.Reshape((rows, 2, columns, 2, width))(y))
    y = layers.Reshape((4, rows * columns, width))(y)
    for _ in range(repeats):
        normed = _norm(y)
        attention = layers.MultiHeadAttention(heads, width // heads, attention_axes=2)
        y = layers.Add()([y, attention(normed, normed)])
        y = layers.Add()([y, _mlp(_norm(y), 2 * width, "swish")])
    y = layers.Permute((3, 1, 4, 2, 5))(layers.Reshape((2, 2, rows, columns, width))(_norm(y)))
    y = _conv_swish(layers.Reshape((height, breadth, width))(y), channels, 1)
    return _conv_swish(layers.Concatenate()([x, y]), channels)


def mobilevit(size: int = 256) -> keras.Model:
    """Mehta and Rastegari 2022, MobileViT-S."""
    image = keras.Input((size, size, 3))
    x = _inverted_residual(_conv_swish(image, 16, strides=2), 32)
    for strides in (2, 1, 1):
        x = _inverted_residual(x, 64, strides)
    for channels, width, repeats in ((96, 144, 2), (128, 192, 4), (160, 240, 3)):
        x = _mobilevit_block(_inverted_residual(x, channels, 2), width, repeats)
    x = layers.GlobalAveragePooling2D()(_conv_swish(x, 640, 1))
    return keras.Model(image, layers.Dense(1000)(x))


class Places(layers.Layer):
    """A learnt vector for each token."""

    def build(self, shape):
        self.table = self.add_weight(shape=tuple(shape[1:]), initializer="normal")

    def call(self, x):
        return x + self.table


def detr(size: int = 256, width: int = 256, queries: int = 100, classes: int = 91) -> keras.Model:
    """Carion et al. 2020: ResNet-50, six layers of either kind, scores and boxes side by side."""
    image = keras.Input((size, size, 3))
    plane = keras.applications.ResNet50(weights=None, include_top=False, input_tensor=image).output
    plane = layers.Conv2D(width, 1)(plane)
    tokens = layers.Reshape((-1, width))(plane)

    def attend(x, query, key, value):
        y = layers.MultiHeadAttention(8, width // 8)(query, value, key)
        return _norm(layers.Add()([x, y]))

    def feed_forward(x):
        return _norm(layers.Add()([x, _mlp(x, 8 * width, "relu")]))

    for _ in range(6):
        placed = Places()(tokens)
        tokens = feed_forward(attend(tokens, placed, placed, tokens))
    keys = Places()(tokens)
    x = layers.Lambda(lambda y: ops.zeros_like(y[:, :1]))(tokens)
    x = layers.Lambda(lambda y: ops.repeat(y, queries, axis=1))(x)
    for _ in range(6):
        placed = Places()(x)
        x = attend(x, placed, placed, x)
        x = feed_forward(attend(x, Places()(x), keys, tokens))
    boxes = layers.Dense(width, activation="relu")(layers.Dense(width, activation="relu")(x))
    boxes = layers.Dense(4, activation="sigmoid")(boxes)
    return keras.Model(image, layers.Concatenate()([layers.Dense(classes + 1)(x), boxes]))


def save(folder: str, name: str) -> None:
    """Writes one of them with a signature image [None, ...] -> {"scores"}."""
    model = globals()[name]()
    parts = list(model._flatten_layers(include_self=False))
    save_model(randomise(model, parts), folder)
