"""FunctionDefs as graphs and back: edges, several outputs, new arguments and results."""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

from tf_blockdnn.python.graph import GraphView, Node, Ref, flatten, unflatten


def _definition(function, *specs):
    concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    return concrete.function_def


def _run(function, *inputs):
    """Calls a FunctionDef by name in a graph of its own."""
    with tf.Graph().as_default() as graph:
        graph_def = graph.as_graph_def()
        graph_def.library.function.add().CopyFrom(function)
        names = []
        for i, value in enumerate(inputs):
            node = graph_def.node.add(name=f"in{i}", op="Const")
            node.attr["dtype"].type = types_pb2.DT_FLOAT
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, tf.float32))
            names.append(node.name)
        call = graph_def.node.add(name="call", op="PartitionedCall", input=names)
        call.attr["f"].func.name = function.signature.name
        call.attr["Tin"].list.type.extend([types_pb2.DT_FLOAT] * len(inputs))
        outputs = function.signature.output_arg
        call.attr["Tout"].list.type.extend(arg.type for arg in outputs)
        fetches = [f"call:{i}" for i in range(len(outputs))]
        tensors = tf.graph_util.import_graph_def(graph_def, return_elements=fetches, name="")
        with tf.compat.v1.Session() as session:
            return session.run(list(tensors))


def _split(x):
    parts = tf.split(x, 3)
    return parts[2] - parts[0], tf.unstack(parts[1])[0]


def test_there_and_back():
    function = _definition(_split, tf.TensorSpec([6]))
    flat = flatten(function)
    assert len(flat.inputs) == 1 and len(flat.fetches) == 2
    ports = {ref for node in GraphView(flat.graph_def, flat.fetches) for ref in node.inputs}
    assert any(ref.port == 2 for ref in ports)  # split:2
    view = GraphView(flat.graph_def, flat.fetches, flat.targets)
    back = unflatten(function, "again", view, inputs=flat.inputs)
    x = np.arange(6.0)
    difference, first = _run(back, x)
    np.testing.assert_array_equal(difference, [4.0, 4.0])
    assert first == 2.0


def test_a_new_argument_and_a_new_result():
    function = _definition(lambda x: x * 2.0, tf.TensorSpec([2]))
    flat = flatten(function)
    view = GraphView(flat.graph_def, flat.fetches, flat.targets)
    view.add(Node("Weights/extra", "Placeholder"))
    back = unflatten(
        function,
        "wider",
        view,
        inputs=flat.inputs,
        new_inputs=[("Weights/extra", types_pb2.DT_FLOAT)],
        new_outputs=[(Ref("Weights/extra"), types_pb2.DT_FLOAT)],
    )
    doubled, handed_on = _run(back, [1.0, 2.0], [7.0])
    np.testing.assert_array_equal(doubled, [2.0, 4.0])
    np.testing.assert_array_equal(handed_on, [7.0])
