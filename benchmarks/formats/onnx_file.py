"""ONNX through tf2onnx."""

import tensorflow as tf
import tf2onnx

from .static_shapes import with_shapes


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Writes the SavedModel's signature for inputs of these shapes."""
    function = with_shapes(model := tf.saved_model.load(source), shapes)
    tf2onnx.convert.from_function(
        function, input_signature=function.input_signature, opset=18, output_path=target
    )
    del model  # A signature does not own its variables.
