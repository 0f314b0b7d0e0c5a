"""ONNX through tf2onnx."""

import tensorflow as tf
import tf2onnx
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from .static_shapes import with_shapes


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Writes the SavedModel's signature for inputs of these shapes."""
    model = tf.saved_model.load(source)
    function = with_shapes(model, shapes)
    # tf2onnx would make inputs of captured tensors that are no variables (EfficientNetB0 has two).
    frozen = convert_variables_to_constants_v2(function.get_concrete_function())
    tf2onnx.convert.from_function(
        tf.function(lambda *inputs: frozen(*inputs), input_signature=function.input_signature),
        input_signature=function.input_signature,
        opset=18,
        output_path=target,
    )
