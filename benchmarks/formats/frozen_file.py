"""A GraphDef with its weights as constants."""

import pathlib

import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Writes the graph of the SavedModel's signature for any shapes that it takes."""
    del shapes
    model = tf.saved_model.load(source)
    frozen = convert_variables_to_constants_v2(model.signatures["serving_default"])
    pathlib.Path(target).write_bytes(frozen.graph.as_graph_def().SerializeToString())
