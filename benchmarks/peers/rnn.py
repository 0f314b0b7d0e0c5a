"""Recurrent layers in the libraries that are compared, a row of `PEERS` each.

A runner makes one layer of each case "CELL/BATCH/STEPS/INPUTS/UNITS" of its model argument, a list
joined by commas, with the same weights everywhere (`weights`), and returns its runs by case. Every
layer returns the outputs of all steps, [batch, steps, units]. A case is made when it first runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np

from .row import Peer, limit_tensorflow

GATES = {"lstm": 4, "gru": 3, "vanilla": 1}
Cases = dict[str, Callable[[], dict[str, np.ndarray]]]


def weights(case: str) -> tuple[np.ndarray, ...]:
    """x, kernel, recurrent kernel and bias (Keras's: two rows for a GRU) of a case."""
    cell, *sizes = case.split("/")
    batch, steps, inputs, units = map(int, sizes)
    rng = np.random.default_rng(1)

    def draw(*shape, scale=1.0):
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    columns = GATES[cell] * units
    return (
        draw(batch, steps, inputs),
        draw(inputs, columns, scale=inputs**-0.5),
        draw(units, columns, scale=0.5 * units**-0.5),
        draw(2, columns, scale=0.1) if cell == "gru" else draw(columns, scale=0.1),
    )


def _cases(model: str, make: Callable[[str], Callable[[], np.ndarray]]) -> Cases:
    def run(case: str) -> dict[str, np.ndarray]:
        return {case: made(case)()}

    made = functools.lru_cache(None)(make)
    return {case: functools.partial(run, case) for case in model.split(",")}


def _keras_layer(case: str):
    """Keras's layer of a case as a tf.function, and its input."""
    import keras
    import tensorflow as tf

    layers = {
        "lstm": keras.layers.LSTM,
        "gru": keras.layers.GRU,
        "vanilla": keras.layers.SimpleRNN,
    }
    x, *values = weights(case)
    cell, *_, units = case.split("/")
    layer = layers[cell](int(units), return_sequences=True)
    layer.build(x.shape)
    layer.set_weights(values)
    return tf.function(lambda x: layer(x, training=False)), tf.constant(x)


def tf_blockdnn(model: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """Keras's layer after `bd.optimize`, called as users call it."""
    limit_tensorflow(threads)

    import tf_blockdnn as bd

    def make(case: str):
        function, x = _keras_layer(case)
        fast = bd.optimize(function.get_concrete_function(x), options=bd.Options(strict=True))
        if fast.report.count("BlockdnnRnn") != 1:
            raise RuntimeError(f"{case} was not converted: {fast.report.summary()}")
        return lambda: fast(x).numpy()

    return _cases(model, make)


def keras(
    model: str, inputs: Mapping[str, np.ndarray], threads: int, *, xla: bool = False
) -> Cases:
    """Keras's layer in a tf.function."""
    tf = limit_tensorflow(threads)

    def make(case: str):
        function, x = _keras_layer(case)
        if xla:
            function = tf.function(function.python_function, jit_compile=True)
        concrete = function.get_concrete_function(x)
        return lambda: concrete(x).numpy()

    return _cases(model, make)


def keras_xla(model: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """Keras's layer, compiled."""
    return keras(model, inputs, threads, xla=True)


def torch(model: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """torch.nn's layer."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    modules = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "vanilla": torch.nn.RNN}

    def make(case: str):
        x, kernel, recurrent, bias = weights(case)
        cell, _, _, width, units = case.split("/")
        module = modules[cell](int(width), int(units), batch_first=True)
        bias_rows = bias if cell == "gru" else np.stack([bias, np.zeros_like(bias)])
        order = {"gru": [1, 0, 2]}.get(cell, range(GATES[cell]))  # theirs r, z, n
        for name, value in (
            ("weight_ih_l0", kernel),
            ("weight_hh_l0", recurrent),
            ("bias_ih_l0", bias_rows[:1]),
            ("bias_hh_l0", bias_rows[1:]),
        ):
            gates = np.split(value, GATES[cell], axis=-1)
            ordered = np.concatenate([gates[i] for i in order], axis=-1)
            ordered = ordered.T if name.startswith("weight") else ordered[0]
            getattr(module, name).copy_(torch.from_numpy(np.ascontiguousarray(ordered)))
        x = torch.from_numpy(x)
        return lambda: module(x)[0].numpy()

    return _cases(model, make)


def _onnx_file(case: str) -> bytes:
    """The layer as one ONNX operator; its input and output are [steps, batch, ..]."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    x, kernel, recurrent, bias = weights(case)
    cell, batch, steps, width, units = case.split("/")
    operator = {"lstm": "LSTM", "gru": "GRU", "vanilla": "RNN"}[cell]
    order = {"lstm": [0, 3, 1, 2]}.get(cell, range(GATES[cell]))  # theirs i, o, f, c
    bias_rows = bias if cell == "gru" else np.stack([bias, np.zeros_like(bias)])

    def ordered(value):
        gates = np.split(value, GATES[cell], axis=-1)
        return np.concatenate([gates[i] for i in order], axis=-1)

    tensors = {
        "w": ordered(kernel).T[None],
        "r": ordered(recurrent).T[None],
        "b": np.concatenate([ordered(bias_rows)[0], ordered(bias_rows)[1]])[None],
        "axes": np.array([1], np.int64),
    }
    options = {"linear_before_reset": 1} if cell == "gru" else {}
    nodes = [
        helper.make_node(
            operator, ["x", "w", "r", "b"], ["all"], hidden_size=int(units), **options
        ),
        helper.make_node("Squeeze", ["all", "axes"], ["y"]),
    ]
    time_major = [int(steps), int(batch)]
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*time_major, int(width)])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*time_major, int(units)])],
        [numpy_helper.from_array(np.ascontiguousarray(v), k) for k, v in tensors.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    onnx.checker.check_model(made)
    return made.SerializeToString()


def onnxruntime(model: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """The ONNX operator in ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1

    def make(case: str):
        session = onnxruntime.InferenceSession(
            _onnx_file(case), options, providers=["CPUExecutionProvider"]
        )
        x = np.ascontiguousarray(weights(case)[0].transpose(1, 0, 2))
        return lambda: session.run(["y"], {"x": x})[0].transpose(1, 0, 2)

    return _cases(model, make)


def openvino(model: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """The ONNX operator in OpenVINO, in float32."""
    import io

    import openvino

    core = openvino.Core()
    settings = {
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
    }

    def make(case: str):
        network = core.read_model(io.BytesIO(_onnx_file(case)))
        request = core.compile_model(network, "CPU", settings).create_infer_request()
        x = np.ascontiguousarray(weights(case)[0].transpose(1, 0, 2))
        # Held by run(): the request itself keeps no reference to the memory.
        tensor = openvino.Tensor(x, shared_memory=True)

        def run():
            request.infer({0: tensor}, share_inputs=True)
            return request.get_output_tensor().data.transpose(1, 0, 2)

        return run

    return _cases(model, make)


_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
# The first row is the one that is compared with the others.
PEERS = {
    "tf_blockdnn": Peer("tf_blockdnn", tf_blockdnn, ("tf_blockdnn", "tensorflow")),
    "onnxruntime": Peer("ONNX Runtime", onnxruntime, ("onnxruntime",), venv="peers"),
    "openvino": Peer("OpenVINO", openvino, ("openvino",), venv="peers"),
    "torch": Peer("torch", torch, ("torch",), venv="peers"),
    "tensorflow-plain": Peer("Keras, oneDNN off", keras, ("keras", "tensorflow"), {_ONEDNN: "0"}),
    "tensorflow": Peer("Keras, oneDNN on", keras, ("keras", "tensorflow"), {_ONEDNN: "1"}),
    "tensorflow-xla": Peer("Keras, XLA", keras_xla, ("keras", "tensorflow"), {_ONEDNN: "0"}),
    "zentf": Peer("Keras, zentf", keras, ("zentf", "tensorflow"), venv="zentf"),
}
