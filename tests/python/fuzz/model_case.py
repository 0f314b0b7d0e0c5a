"""One case of edited models: a SavedModel that holds an attribute nobody would write.

`save` writes the models; `run` edits one, loads it in both ways, and calls it.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pathlib
import shutil
import tempfile

import keras
import numpy as np
import tensorflow as tf
from call import Draw
from make_call import definitions
from spoil import hostile_value
from tensorflow.core.protobuf import saved_model_pb2

import tf_blockdnn as bd
from tf_blockdnn.python.errors import UserError

_IMAGE, _SEQUENCE = (2, 9, 8, 20), (3, 4, 6)


def _pictures():
    """A network in which most ops of the rewriter occur, some of them in parts of tensors."""
    layers, source = keras.layers, keras.Input(_IMAGE[1:])
    x = layers.Conv2D(32, 3, padding="same", activation="relu")(source)
    y = layers.DepthwiseConv2D(3, padding="same")(layers.Conv2D(24, 1)(x))
    x = layers.Concatenate()([x, layers.ReLU(6.0)(layers.BatchNormalization()(y))])
    gate = layers.Dense(8, "relu")(layers.GlobalAveragePooling2D(keepdims=True)(x))
    x = x * layers.Dense(56, "sigmoid")(gate)
    x = layers.Conv2DTranspose(16, 2, 2)(layers.MaxPooling2D(2)(x))
    x = layers.UpSampling2D(2)(layers.AveragePooling2D(2)(x)) + x
    x = layers.ZeroPadding2D(1)(layers.LayerNormalization()(layers.Conv2D(16, 3)(x)))
    return keras.Model(source, layers.Softmax()(layers.Dense(10)(layers.Flatten()(x))))


def _sequences():
    source = keras.Input(_SEQUENCE[1:])
    x = keras.layers.Bidirectional(keras.layers.LSTM(8, return_sequences=True))(source)
    return keras.Model(source, keras.layers.Dense(5)(keras.layers.GRU(7)(x)))


def save(folder):
    """Writes the optimised models into `folder`, and what they are called with."""
    keras.utils.set_random_seed(3)
    for name, make, shape in (("a", _pictures, _IMAGE), ("b", _sequences, _SEQUENCE)):
        bd.optimize(make()).save(folder / name)
        np.save(folder / f"{name}.npy", np.random.default_rng(1).standard_normal(shape, np.float32))


def _blockdnn_nodes(saved):
    graph = saved.meta_graphs[0].graph_def
    functions = (node for function in graph.library.function for node in function.node_def)
    return [node for node in (*graph.node, *functions) if node.op.startswith("Blockdnn")]


def ops(folder):
    """How many kinds of nodes of ours there are to edit."""
    saved = [
        saved_model_pb2.SavedModel.FromString((folder / name / "saved_model.pb").read_bytes())
        for name in "ab"
    ]
    return sorted({node.op for one in saved for node in _blockdnn_nodes(one)})


def _editable(node):
    """Definitions of the node's attributes, functions aside."""
    return [a for a in definitions()[node.op].attr if a.name in node.attr and a.type != "func"]


def _edit(d, saved):
    """Changes attributes of one node; says which."""
    node = d.of(*filter(_editable, _blockdnn_nodes(saved)))
    said = [node.name, node.op]
    for _ in range(d.of(1, 1, 2)):
        attr = d.of(*_editable(node))
        value = node.attr[attr.name]
        if attr.type == "list(shape)":
            for shape in value.list.shape:
                for dim in shape.dim:
                    dim.size = d.of(dim.size, 0, 1, 7, 2**31, 2**62)
        else:
            value.CopyFrom(hostile_value(d, attr, value))
        said.append(f"{attr.name}={str(value)[:200]}")
    return " ".join(" ".join(said).split())


def _call(function, x):
    for _ in range(2):
        tf.nest.map_structure(np.asarray, function(x))


def run(case):
    """(what was edited, outcome, finding) of (folder, seed, index)."""
    if case is None:
        definitions()
        return tf.constant(0)
    folder, seed, index = case
    d = Draw(seed, index)
    name = d.of("a", "a", "b")
    source = pathlib.Path(folder) / name
    x = tf.constant(np.load(f"{source}.npy"))
    with tempfile.TemporaryDirectory() as place:
        copy = pathlib.Path(shutil.copytree(source, pathlib.Path(place) / "model"))
        saved = saved_model_pb2.SavedModel.FromString((copy / "saved_model.pb").read_bytes())
        said = _edit(d, saved)
        (copy / "saved_model.pb").write_bytes(saved.SerializeToString())
        outcomes = []
        # TensorFlow's own reading of a graph, in the first way, has KeyError for missing outputs.
        for load, refusals in ((_signature, KeyError), (bd.load, UserError)):
            try:
                _call(load(copy), x)
                outcomes.append("accepted")
            except (tf.errors.OpError, refusals, ValueError, TypeError) as error:
                outcomes.append("refused")
                if isinstance(error, (tf.errors.InternalError, tf.errors.UnknownError)):
                    return said, "", f"{type(error).__name__}: {str(error)[:500]}"
            except Exception as error:
                return said, "", f"{type(error).__name__}: {str(error)[:500]}"
    return said, "/".join(outcomes), None


def _signature(folder):
    loaded = tf.saved_model.load(str(folder))
    function = loaded.signatures["serving_default"]
    (name,) = function.structured_input_signature[1]
    return lambda x: (function(**{name: x}), loaded)[0]  # which holds the variables
