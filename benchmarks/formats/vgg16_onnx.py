"""VGG-16 as ONNX, node by node."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from . import vgg16

_ATTRIBUTES = {
    "conv": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    "pool": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "flatten": {},
    "dense": {"transB": 1},
}
_OPERATORS = {"conv": "Conv", "pool": "MaxPool", "flatten": "Flatten", "dense": "Gemm"}


def write(source: str, shapes: dict[str, list[int]], target: str) -> None:
    """Writes the network; it takes [batch, H, W, 3] of any batch, as the SavedModel does."""
    ((name, shape),) = shapes.items()
    nodes = [helper.make_node("Transpose", [name], ["nchw"], perm=[0, 3, 1, 2])]
    constants = []

    def constant(label: str, value: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(value, label))
        return label

    def add(operator: str, label: str, *operands: str, **attributes) -> None:
        inputs = [nodes[-1].output[0], *operands]
        nodes.append(helper.make_node(operator, inputs, [label], **attributes))

    for i, layer in enumerate(vgg16.layers(source)):
        label = f"{layer.kind}{i}"
        operands = []
        if layer.weights is not None:
            operands = [constant(f"{label}_w", layer.weights), constant(f"{label}_b", layer.bias)]
        add(_OPERATORS[layer.kind], label, *operands, **_ATTRIBUTES[layer.kind])
        if layer.relu:
            add("Relu", f"{label}_relu")
    add("Identity", "scores")

    graph = helper.make_graph(
        nodes,
        "vgg16",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", *shape[1:]])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", None])],
        constants,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, target)
