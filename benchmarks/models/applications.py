"""Keras applications with random weights.

Fresh batch normalisation has mean 0, variance 1, gamma 1 and beta 0: folding it wrongly would go
unseen. So its statistics are drawn at random, near enough to those of trained networks that
activations neither vanish nor explode through 50 layers. There is no softmax at the end: with
random weights it is nearly even, and an error in front of it would hardly show.
"""

import keras
import numpy as np
import tensorflow as tf


def build(name: str) -> keras.Model:
    """The application `name` with seeded weights and random batch-normalisation statistics."""
    keras.utils.set_random_seed(0)
    model = getattr(keras.applications, name)(weights=None, classifier_activation=None)
    random = np.random.default_rng(0)
    for layer in model.layers:
        if isinstance(layer, keras.layers.BatchNormalization):
            channels = layer.moving_mean.shape
            if layer.scale:
                layer.gamma.assign(random.uniform(0.8, 1.2, channels))
            layer.beta.assign(random.normal(0, 0.1, channels))
            layer.moving_mean.assign(random.normal(0, 0.1, channels))
            layer.moving_variance.assign(random.uniform(0.5, 1.5, channels))
    return model


def save(folder: str, name: str) -> None:
    """Writes application `name` with a signature image [None, H, W, 3] -> {"scores"}."""
    model = build(name)
    spec = tf.TensorSpec([None, *model.input_shape[1:]], tf.float32, name="image")

    @tf.function(input_signature=[spec])
    def score(image):
        return {"scores": model(image, training=False)}

    module = tf.Module()
    module.weights = model.variables
    tf.saved_model.save(module, folder, signatures=score)
