"""Transformers of KerasHub as SavedModels; the argument of `save` is a name of `kerashub.names`."""

from __future__ import annotations

import keras
import tensorflow as tf

from . import kerashub


def save(folder: str, name: str) -> None:
    """Writes it with a signature x [None, ...] -> {"0": first output, "1": second output, ...}."""
    model = kerashub.network(name).model
    spec = tf.TensorSpec([None, *model.input_shape[1:]], model.inputs[0].dtype, name="x")

    @tf.function(input_signature=[spec])
    def serve(x):
        outputs = keras.tree.flatten(model(x, training=False))
        return {str(number): output for number, output in enumerate(outputs)}

    module = tf.Module()
    module.weights = model.variables
    tf.saved_model.save(module, folder, signatures=serve)
