"""Blocks of published networks, spelled as their authors do, and random networks of them.

A block takes and returns a picture of any channels. Together they are a grammar: what a rule of the
rewriter does for one of them has to hold for any sequence.
"""

import keras
import numpy as np
from keras import layers, ops


def conv(x, channels, size=3, strides=1, groups=1, activation="silu"):
    x = layers.Conv2D(channels, size, strides, "same", groups=groups, use_bias=False)(x)
    x = layers.BatchNormalization()(x)
    return layers.Activation(activation)(x) if activation else x


def residual(x):
    channels = x.shape[-1]
    return layers.ReLU()(layers.Add()([x, conv(conv(x, channels), channels, activation=None)]))


def split_and_stack(x):
    """C2f: halves of a picture, of which one goes on, all joined."""
    parts = ops.split(conv(x, 2 * (x.shape[-1] // 2), 1), 2, axis=-1)
    for _ in range(2):
        y = conv(parts[-1], parts[-1].shape[-1])
        parts.append(layers.Add()([parts[-1], y]))
    return conv(layers.Concatenate()(parts), x.shape[-1], 1)


def ghost(x):
    """Cheap channels beside others, of which as many are kept as there were."""
    some = conv(x, x.shape[-1] // 2 + 3, 1, activation="relu")
    cheap = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(some)
    return layers.Add()([x, layers.Concatenate()([some, cheap])[..., : x.shape[-1]]])


def partial(x):
    """FasterNet: a convolution of a quarter of the channels."""
    channels = x.shape[-1]
    some, rest = ops.split(x, [channels // 4], axis=-1)
    some = layers.Conv2D(channels // 4, 3, padding="same", use_bias=False)(some)
    y = conv(layers.Concatenate()([some, rest]), 2 * channels, 1, activation="relu")
    return layers.Add()([x, layers.Conv2D(channels, 1)(y)])


def gated(x):
    gate, value = ops.split(layers.Conv2D(2 * x.shape[-1], 1)(x), 2, axis=-1)
    value = layers.DepthwiseConv2D(5, padding="same")(value)
    return layers.Add()([x, layers.Conv2D(x.shape[-1], 1)(ops.silu(gate) * value)])


def hierarchical(x):
    """Res2Net: parts that are convolved one after the other."""
    width = max(x.shape[-1] // 3, 16)
    first, second, third = ops.split(conv(x, 3 * width, 1), 3, axis=-1)
    second = conv(layers.Add()([second, conv(first, width)]), width)
    y = layers.Concatenate()([first, second, third])
    return layers.Add()([x, conv(y, x.shape[-1], 1, activation=None)])


def split_attention(x):
    """ResNeSt: branches, weighed against each other channel by channel."""
    channels, radix = x.shape[-1], 2
    branches = ops.split(conv(x, channels * radix, groups=radix), radix, axis=-1)
    pooled = layers.GlobalAveragePooling2D(keepdims=True)(layers.Add()(branches))
    scores = layers.Conv2D(channels * radix, 1)(conv(pooled, 16, 1))
    scores = layers.Softmax(axis=2)(layers.Reshape((1, radix, channels))(scores))
    scores = [layers.Reshape((1, 1, channels))(s) for s in ops.split(scores, radix, axis=2)]
    return layers.Add()([layers.Multiply()(pair) for pair in zip(branches, scores, strict=True)])


def selective_kernel(x):
    channels = x.shape[-1]
    branches = [conv(x, channels, size) for size in (3, 5)]
    pooled = layers.GlobalAveragePooling2D()(layers.Add()(branches))
    pooled = layers.Dense(16, "relu")(pooled)
    weights = ops.softmax(ops.stack([layers.Dense(channels)(pooled) for _ in branches], 1), axis=1)
    weighed = [
        branch * layers.Reshape((1, 1, channels))(weights[:, i])
        for i, branch in enumerate(branches)
    ]
    return layers.Add()(weighed)


class WeightedSum(layers.Layer):
    """BiFPN's: learned weights, made positive and normalised."""

    def build(self, shapes):
        self.weight = self.add_weight(shape=(len(shapes),), initializer="ones")

    def call(self, pictures):
        weight = ops.relu(self.weight)
        weight = weight / (ops.sum(weight) + 1e-4)
        return sum(weight[i] * picture for i, picture in enumerate(pictures))


def weighted_pyramid(x):
    small = conv(layers.MaxPool2D(2, padding="same")(x), x.shape[-1])
    large = layers.UpSampling2D(2)(small)[:, : x.shape[1], : x.shape[2]]
    return conv(WeightedSum()([x, large]), x.shape[-1])


class ResponseNorm(layers.Layer):
    """ConvNeXt V2's global response normalisation."""

    def build(self, shape):
        self.scale = self.add_weight(shape=(1, 1, 1, shape[-1]), initializer="random_normal")
        self.shift = self.add_weight(shape=(1, 1, 1, shape[-1]), initializer="random_normal")

    def call(self, x):
        norm = ops.sqrt(ops.sum(ops.square(x), axis=(1, 2), keepdims=True))
        return self.scale * (x * norm / (ops.mean(norm, -1, keepdims=True) + 1e-6)) + self.shift + x


def convnext(x):
    y = layers.LayerNormalization()(layers.DepthwiseConv2D(7, padding="same")(x))
    y = layers.Activation("gelu")(layers.Dense(2 * x.shape[-1])(y))
    return layers.Add()([x, layers.Dense(x.shape[-1])(ResponseNorm()(y))])


def group_normalised(x):
    y = layers.GroupNormalization(x.shape[-1] // 4, epsilon=1e-5)(x)
    y = layers.Conv2D(x.shape[-1], 3, padding="same")(layers.Activation("silu")(y))
    return layers.Add()([x, y])


def channel_attention(x):
    """ECA: a convolution along the channels' means."""
    means = layers.Reshape((x.shape[-1], 1))(layers.GlobalAveragePooling2D()(x))
    means = layers.Conv1D(1, 3, padding="same", activation="sigmoid")(means)
    return conv(layers.Multiply()([x, layers.Reshape((1, 1, x.shape[-1]))(means)]), x.shape[-1])


def spatial_attention(x):
    """CBAM: weights of channels, then of pixels by the mean and maximum of their channels."""
    pooled = layers.GlobalAveragePooling2D(keepdims=True)(x)
    x = x * layers.Conv2D(x.shape[-1], 1, activation="sigmoid")(pooled)
    planes = layers.Concatenate()([ops.mean(x, -1, keepdims=True), ops.max(x, -1, keepdims=True)])
    x = x * layers.Conv2D(1, 7, padding="same", activation="sigmoid")(planes)
    return conv(x, x.shape[-1])


def coordinate_attention(x):
    """Weights of rows and of columns, computed together."""
    channels, rows = x.shape[-1], x.shape[1]
    columns = ops.transpose(ops.mean(x, 1, keepdims=True), (0, 2, 1, 3))
    lines = ops.concatenate([ops.mean(x, 2, keepdims=True), columns], 1)
    of_rows, of_columns = ops.split(conv(lines, 16, 1), [rows], 1)
    of_columns = ops.transpose(of_columns, (0, 2, 1, 3))
    x = x * layers.Conv2D(channels, 1, activation="sigmoid")(of_rows)
    return conv(x * layers.Conv2D(channels, 1, activation="sigmoid")(of_columns), channels)


BLOCKS = (
    residual,
    split_and_stack,
    ghost,
    partial,
    gated,
    hierarchical,
    split_attention,
    selective_kernel,
    weighted_pyramid,
    convnext,
    group_normalised,
    channel_attention,
    spatial_attention,
    coordinate_attention,
)


def network(blocks, channels: int, size: int = 16) -> keras.Model:
    """A stem, the blocks, a head of logits and one that reads the picture plain."""
    image = layers.Input((size, size, 3))
    x = conv(image, channels)
    for block in blocks:
        x = block(x)
    logits = layers.Dense(5)(layers.GlobalAveragePooling2D()(x))
    boxes = layers.Reshape((-1, 20))(layers.Conv2D(20, 1)(x))
    model = keras.Model(image, [logits, boxes])
    for weight in model.weights:  # as after a training: no statistics are those of nothing
        if "moving_variance" in weight.path:
            weight.assign(np.random.uniform(0.5, 1.5, weight.shape))
        elif "moving_mean" in weight.path:
            weight.assign(np.random.uniform(-0.5, 0.5, weight.shape))
    return model
