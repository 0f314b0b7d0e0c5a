"""The libraries that `tf-blockdnn benchmark --peers` compares, a row of `PEERS` each.

A worker process imports this file alone. A runner of the table takes (a SavedModel and a
signature, as JSON, inputs by name, threads) and returns a function that computes the outputs once,
as a dict of arrays. All compute in float32. The functions above the table run files that are
converted already; the benchmarks use these.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import pathlib
import sys
import tempfile
from collections.abc import Callable, Mapping

import numpy as np

Outputs = dict[str, np.ndarray]
Run = Callable[[], Outputs]


def onnxruntime(file: str, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    """ONNX Runtime's CPU provider with all graph optimisations."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    for value in inputs.values():
        options.add_free_dimension_override_by_name("batch", len(value))
    session = ort.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda: dict(zip(names, session.run(names, dict(inputs)), strict=True))


def openvino(
    folder: str, inputs: Mapping[str, np.ndarray], threads: int, *, precision: str = "f32"
) -> Run:
    """OpenVINO's own form, compiled for these shapes; results are read in OpenVINO's memory."""
    import openvino as ov

    model = ov.Core().read_model(f"{folder}/model.xml")
    return _compiled(ov, model, inputs, threads, precision)


def _compiled(
    ov, model, inputs: Mapping[str, np.ndarray], threads: int, precision: str = "f32"
) -> Run:
    model.reshape({name: ov.PartialShape(value.shape) for name, value in inputs.items()})
    config = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": precision,
    }
    request = ov.Core().compile_model(model, "CPU", config).create_infer_request()

    def run() -> Outputs:
        results = request.infer(dict(inputs), share_inputs=True, share_outputs=True)
        return {output.any_name: array for output, array in results.items()}

    return run


def litert(file: str, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    """LiteRT's interpreter, which hands XNNPACK whatever that can run."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(file, num_threads=threads)
    run_signature = interpreter.get_signature_runner()
    return lambda: run_signature(**inputs)


def limit_tensorflow(threads: int):
    """TensorFlow with pools of that size, which must be set before it runs anything."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    return tf


def _signature(model: str, threads: int):
    """(TensorFlow, what was loaded, the function) of the JSON, with pools of so many threads."""
    tf = limit_tensorflow(threads)
    asked = json.loads(model)
    loaded = tf.saved_model.load(asked["folder"])
    return tf, loaded, loaded.signatures[asked["signature"]]


def tensorflow(
    model: str,
    inputs: Mapping[str, np.ndarray],
    threads: int,
    optimize: Callable = lambda function: function,
) -> Run:
    tf, loaded, function = _signature(model, threads)
    function = optimize(function)
    feed = {name: tf.constant(value) for name, value in inputs.items()}

    def run() -> Outputs:
        return {name: tensor.numpy() for name, tensor in function(**feed).items()}

    run.keeps = loaded  # A signature does not own variables.
    return run


def _run_tf_blockdnn(model: str, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    return tensorflow(model, inputs, threads, importlib.import_module("tf_blockdnn").optimize)


def with_shapes(serve, shapes: Mapping[str, tuple[int, ...]]):
    """A signature as a tf.function of inputs so shaped, as converters need it.

    Its arguments are the inputs in the order of `shapes`, of the dtypes that the signature says: a
    call of a function with another dtype would not be inlined. Whoever loaded it must outlive it.
    """
    import tensorflow as tf

    specs = serve.structured_input_signature[1]
    specs = [tf.TensorSpec(shape, specs[name].dtype, name=name) for name, shape in shapes.items()]

    @tf.function(input_signature=specs, autograph=False)
    def function(*values):
        return serve(**dict(zip(shapes, values, strict=True)))

    return function


def _fixed(model: str, inputs: Mapping[str, np.ndarray], threads: int):
    """(TensorFlow, what was loaded, the signature with these shapes)."""
    tf, loaded, serve = _signature(model, threads)
    return tf, loaded, with_shapes(serve, {name: value.shape for name, value in inputs.items()})


def _run_onnxruntime(model: str, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    import tf2onnx

    # This file is imported alone, so neighbours of it are, too.
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[2]))
    from tensorflow_private import frozen

    tf, loaded, function = _fixed(model, inputs, threads)
    # tf2onnx would make inputs of captured tensors that are no variables.
    constant = frozen(function.get_concrete_function())
    signature = function.input_signature
    with tempfile.TemporaryDirectory() as place:
        file = f"{place}/model.onnx"
        tf2onnx.convert.from_function(
            tf.function(lambda *values: constant(*values), input_signature=signature),
            input_signature=signature,
            opset=18,
            output_path=file,
        )
        return onnxruntime(file, inputs, threads)


def _run_openvino(model: str, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    import openvino as ov

    read = ov.Core().read_model(json.loads(model)["folder"])
    for tensor in read.inputs:  # The graph's names, "serving_default_x:0", become the signature's.
        name = tensor.any_name.partition(":")[0]
        tensor.set_names({next((n for n in inputs if name in (n, f"serving_default_{n}")), name)})
    return _compiled(ov, read, inputs, threads)


def _run_litert(model: str, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    tf, loaded, function = _fixed(model, inputs, threads)
    concrete = function.get_concrete_function()
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete], loaded)
    with tempfile.TemporaryDirectory() as place:
        file = pathlib.Path(place) / "model.tflite"
        file.write_bytes(converter.convert())
        return litert(str(file), inputs, threads)


@dataclasses.dataclass(frozen=True)
class Library:
    """One row.

    Attributes:
      title: for tables.
      runner: as above.
      packages: those whose versions are worth naming.
      environment: variables of the process.
      modules: that must be installed, and whose import is no memory of a network's.
    """

    title: str
    runner: Callable[[str, Mapping[str, np.ndarray], int], Run]
    packages: tuple[str, ...] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    modules: tuple[str, ...] = ()

    def missing(self) -> list[str]:
        """Those of `modules` that are not installed here."""
        return [name for name in self.modules if importlib.util.find_spec(name) is None]


OURS, REFERENCE = "tf_blockdnn", "tensorflow"
_ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
PEERS = {
    OURS: Library("tf_blockdnn", _run_tf_blockdnn, (OURS,), modules=(REFERENCE, OURS)),
    REFERENCE: Library(
        "TensorFlow, oneDNN on", tensorflow, (REFERENCE,), {_ONEDNN: "1"}, (REFERENCE,)
    ),
    "tensorflow-plain": Library(
        "TensorFlow, oneDNN off", tensorflow, (REFERENCE,), {_ONEDNN: "0"}, (REFERENCE,)
    ),
    "onnxruntime": Library(
        "ONNX Runtime", _run_onnxruntime, ("onnxruntime",), modules=("tf2onnx", "onnxruntime")
    ),
    "openvino": Library("OpenVINO", _run_openvino, ("openvino",), modules=("openvino",)),
    "litert": Library("LiteRT", _run_litert, ("ai-edge-litert",), modules=("ai_edge_litert",)),
}
