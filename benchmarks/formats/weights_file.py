"""A Keras application's weights in the order of its layers, for a Python without TensorFlow."""

import numpy as np
import tensorflow as tf


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Writes the variables that the zoo's SavedModels keep in `weights`."""
    del shapes
    model = tf.saved_model.load(source)
    np.savez(target, *[variable.numpy() for variable in model.weights])
