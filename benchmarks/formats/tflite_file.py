"""LiteRT's files through TensorFlow's converter, float32 throughout."""

import pathlib

import tensorflow as tf
from peers.libraries import with_shapes


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Writes the SavedModel's signature for inputs of these shapes."""
    model = tf.saved_model.load(source)
    function = with_shapes(model.signatures["serving_default"], shapes).get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function], model)
    pathlib.Path(target).write_bytes(converter.convert())
