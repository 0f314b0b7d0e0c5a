"""Keras applications with random weights that behave like trained ones.

Fresh networks are useless for comparing outputs. Batch normalisation with mean 0 and variance 1
does nothing, so folding it wrongly would go unseen. If its parameters were drawn blindly, the
signal would shrink from layer to layer until the scores were the same for every picture (in
MobileNetV2 to 1e-8 of their magnitude). Kernels therefore keep the size of the signal (He et al.
2015), normalisation has the statistics of some pictures, a little off, and every bias and scale is
random. The scores of different pictures are then 4 to 9 % of their magnitude apart. There is no
softmax at the end, which would hide errors.
"""

import keras
import numpy as np
import tensorflow as tf

from . import pictures


def build(name: str) -> keras.Model:
    """The application `name`; its weights are drawn from fixed seeds."""
    network = getattr(keras.applications, name)
    return randomise(network(weights=None, classifier_activation=None))


def randomise(model: keras.Model, parts: list[keras.Layer] | None = None) -> keras.Model:
    """The model, its weights drawn from fixed seeds as the head of this file says.

    Args:
      parts: all of its layers, where they lie within others.
    """
    random = np.random.default_rng(0)
    normalisations = []
    for layer in parts or model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            normalisations.append(layer)
            shape = layer.moving_mean.shape
            layer.beta.assign(random.normal(0, 0.1, shape))
            if layer.scale:
                layer.gamma.assign(random.uniform(0.8, 1.2, shape))
            layer.momentum = 0.0  # The statistics become those of the next call in training mode.
        elif isinstance(layer, keras.layers.Dropout):
            layer.rate = 0.0
        elif (kernel := getattr(layer, "kernel", None)) is not None:
            fan_in = np.prod(kernel.shape[:-1])
            if isinstance(layer, keras.layers.DepthwiseConv2D):
                fan_in = np.prod(kernel.shape[:2])
            kernel.assign(random.normal(0, np.sqrt(2 / fan_in), kernel.shape))
            if layer.bias is not None:
                layer.bias.assign(random.normal(0, 0.1, layer.bias.shape))
    if normalisations:
        model(_example(model), training=True)
    for layer in normalisations:
        shape = layer.moving_mean.shape
        variance = layer.moving_variance.numpy()
        layer.moving_mean.assign_add(np.sqrt(variance) * random.normal(0, 0.1, shape))
        layer.moving_variance.assign(variance * random.uniform(0.8, 1.25, shape))
    return model


def _example(model: keras.Model) -> np.ndarray:
    """Four samples: pictures where it takes these, else noise."""
    shape = tuple(size or 224 for size in model.input_shape[1:])
    if len(shape) == 3 and shape[2] == 3:
        return pictures(4, shape[:2], spread=128)
    return np.random.default_rng(1).standard_normal((4, *shape), np.float32)


def save(folder: str, name: str) -> None:
    """Writes application `name` with a signature image [None, H, W, 3] -> {"scores"}."""
    save_model(build(name), folder)


def save_model(model: keras.Model, folder: str) -> None:
    """Writes a model of one input with a signature image [None, ..] -> {"scores"}."""
    spec = tf.TensorSpec([None, *model.input_shape[1:]], model.inputs[0].dtype, name="image")

    @tf.function(input_signature=[spec])
    def score(image):
        return {"scores": model(image, training=False)}

    module = tf.Module()
    module.weights = model.variables
    tf.saved_model.save(module, folder, signatures=score)
