"""LiteRT's files in int8 through TensorFlow's converter; inputs and outputs stay float32."""

import pathlib

import tensorflow as tf
from peers.libraries import with_shapes

from .samples import samples


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Quantizes the SavedModel's signature for inputs of these shapes."""
    model = tf.saved_model.load(source)
    function = with_shapes(model.signatures["serving_default"], shapes).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([*feed.values()] for feed in samples(shapes))
    converter.target_spec.supported_ops = [
        tf.lite.OpsSet.TFLITE_BUILTINS_INT8,
        tf.lite.OpsSet.TFLITE_BUILTINS,
    ]
    pathlib.Path(target).write_bytes(converter.convert())
