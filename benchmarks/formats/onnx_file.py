"""ONNX through tf2onnx."""

import pathlib

import numpy as np
import onnxruntime
import tensorflow as tf
import tf2onnx
from peers.libraries import with_shapes
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2
from tf2onnx.handler import tf_op


@tf_op("Erfc")
class _Erfc:
    """erfc(x) as 1 - erf(x): gelu has it, and tf2onnx 1.17 no rule for it."""

    @classmethod
    def version_9(cls, ctx, node, **_options) -> None:
        """For opset 9 and later, which have Erf."""
        (target,) = node.output
        shape, dtype = ctx.get_shape(target), ctx.get_dtype(target)
        ctx.remove_node(node.name)
        one = ctx.make_const(tf2onnx.utils.make_name("one"), np.float32(1))
        erf = ctx.make_node("Erf", node.input)
        ctx.make_node(
            "Sub", [one.output[0], erf.output[0]], outputs=[target], shapes=[shape], dtypes=[dtype]
        )


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Writes the SavedModel's signature for inputs of these shapes.

    Raises:
      ValueError: ONNX Runtime does not take the file, which is deleted: tf2onnx writes ops that it
        has no rule for as they are, and only prints so.
    """
    model = tf.saved_model.load(source)
    function = with_shapes(model.signatures["serving_default"], shapes)
    # tf2onnx would make inputs of captured tensors that are no variables (EfficientNetB0 has two).
    frozen = convert_variables_to_constants_v2(function.get_concrete_function())
    tf2onnx.convert.from_function(
        tf.function(lambda *inputs: frozen(*inputs), input_signature=function.input_signature),
        input_signature=function.input_signature,
        opset=18,
        output_path=target,
    )
    try:
        onnxruntime.InferenceSession(target, providers=["CPUExecutionProvider"])
    except Exception as error:
        pathlib.Path(target).unlink()
        raise ValueError(f"tf2onnx wrote an invalid file: {error}") from error
