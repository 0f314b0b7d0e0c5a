"""The libraries that are compared, a row of `PEERS` each, and how each one runs a network.

A runner takes (the network's file or folder, inputs by name, threads) and returns a function that
computes the outputs once, as a dict of numpy arrays, in float32 unless the row says otherwise. A
runner's imports are its own: it runs in a worker process, which may have an interpreter (a venv)
and environment variables of its own.
"""

from __future__ import annotations

import functools
import json
import tempfile
from collections.abc import Callable, Mapping

import numpy as np

from . import libraries
from .libraries import litert, onnxruntime, openvino
from .row import Outputs, Peer, Run, limit_tensorflow


def tf_blockdnn(
    folder: str, inputs: Mapping[str, np.ndarray], threads: int, *, way: str = "fast(x)"
) -> Run:
    """The SavedModel after tf_blockdnn.optimize, called in one of `WAYS`."""
    tf = limit_tensorflow(threads)
    import tf_blockdnn as bd

    feed = {name: tf.constant(value) for name, value in inputs.items()}
    call = _way(bd, tf, folder, way)
    if way == "fast(x)":
        (x,) = feed.values()

        def run() -> Outputs:
            return {name: tensor.numpy() for name, tensor in call(x).items()}

        run.about = functools.partial(_conversion, tf, folder, call)
        return run
    if way == "numpy":
        feed = dict(inputs)
    return lambda: {name: tensor.numpy() for name, tensor in call(**feed).items()}


_CONVOLUTIONS = (
    "Conv2D",
    "Conv2DBackpropInput",
    "Conv3D",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNative",
)


def _conversion(tf, folder: str, fast) -> dict:
    """How many convolutions there were and are left, and the reorders between layouts."""
    before = tf.saved_model.load(folder).signatures["serving_default"]
    counts = []
    for concrete in (before, fast.concrete):
        graph = concrete.graph.as_graph_def()
        nodes = [*graph.node, *(n for f in graph.library.function for n in f.node_def)]
        counts.append(sum(node.op in _CONVOLUTIONS for node in nodes))
    return {
        "convolutions": counts[0],
        "converted": counts[0] - counts[1],
        "reorders": len(fast.report.reorders),
    }


WAYS = ("fast(x)", "keyword", "numpy", "bd.load", "tf.saved_model.load", "tf.function")


def _way(bd, tf, folder: str, way: str) -> Callable:
    fast = bd.optimize(folder)
    if way == "tf.function":
        return tf.function(lambda **feed: fast(**feed), autograph=False)
    if way not in ("bd.load", "tf.saved_model.load"):
        return fast
    with tempfile.TemporaryDirectory() as saved:
        fast.save(saved)
        if way == "bd.load":
            return bd.load(saved)
        loaded = tf.saved_model.load(saved)
    signature = loaded.signatures["serving_default"]

    def call(**feed):
        return signature(**feed)

    call.keeps = loaded  # A signature does not own its variables.
    return call


def tf_blockdnn_low_precision(
    folder: str, inputs: Mapping[str, np.ndarray], threads: int, *, precision: str
) -> Run:
    """The SavedModel after tf_blockdnn.optimize(precision=...), int8 with made-up pictures."""
    tf = limit_tensorflow(threads)
    from formats.samples import samples

    import tf_blockdnn as bd

    shapes = {name: list(value.shape) for name, value in inputs.items()}
    floats = all(value.dtype == np.float32 for value in inputs.values())
    data = list(samples(shapes)) if floats else [dict(inputs)]  # ids are no pictures
    fast = bd.optimize(folder, precision=precision, calibration=data)
    (x,) = (tf.constant(value) for value in inputs.values())

    def run() -> Outputs:
        return {name: tensor.numpy() for name, tensor in fast(x).items()}

    run.about = functools.partial(_conversion, tf, folder, fast)
    return run


def tensorflow(
    folder: str,
    inputs: Mapping[str, np.ndarray],
    threads: int,
    *,
    xla: bool = False,
    bf16: bool = False,
) -> Run:
    """The SavedModel's signature as TensorFlow runs it, on request as one XLA program, or by its
    automatic bfloat16."""
    tf = limit_tensorflow(threads)
    if bf16:
        tf.config.optimizer.set_experimental_options({"auto_mixed_precision_onednn_bfloat16": True})
    compiled = functools.partial(tf.function, jit_compile=True, autograph=False)
    model = json.dumps({"folder": folder, "signature": "serving_default"})
    return libraries.tensorflow(model, inputs, threads, *([compiled] if xla else []))


def ncnn(folder: str, inputs: Mapping[str, np.ndarray], threads: int) -> Run:
    """ncnn with its Winograd. It has no batches, so pictures run one after the other."""
    import ncnn

    network = ncnn.Net()
    network.opt.num_threads = threads
    for reduced in (
        "use_fp16_packed",
        "use_fp16_storage",
        "use_fp16_arithmetic",
        "use_bf16_storage",
    ):
        setattr(network.opt, reduced, False)
    network.load_param(f"{folder}/model.param")
    network.load_model(f"{folder}/model.bin")
    (pictures,) = inputs.values()
    # Its own layout, [C, H, W]. A Mat borrows the array's memory; its clone has memory of its own.
    arrays = [np.ascontiguousarray(picture.transpose(2, 0, 1)) for picture in pictures]
    feed = [ncnn.Mat(array).clone() for array in arrays]

    def score(picture) -> np.ndarray:
        extractor = network.create_extractor()
        extractor.input("in0", picture)
        return np.array(extractor.extract("out0")[1])

    return lambda: {"scores": np.stack([score(picture) for picture in feed])}


_ON = {"TF_ENABLE_ONEDNN_OPTS": "1"}
_OURS, _TENSORFLOW = ("tensorflow", "tf_blockdnn"), ("tensorflow",)
# The first row is the one that is compared with the others; rows whose names begin with its name
# are other ways of calling it.
PEERS = {
    "tf_blockdnn": Peer("tf_blockdnn", tf_blockdnn, _OURS, modules=_OURS),
    **{
        f"tf_blockdnn-{way}": Peer(
            f"tf_blockdnn, {way}",
            functools.partial(tf_blockdnn, way=way),
            _OURS,
            modules=_OURS,
        )
        for way in WAYS[1:]
    },
    "tensorflow": Peer("TensorFlow, oneDNN on", tensorflow, _TENSORFLOW, _ON, _TENSORFLOW),
    "tensorflow-plain": Peer(
        "TensorFlow, oneDNN off",
        tensorflow,
        _TENSORFLOW,
        {"TF_ENABLE_ONEDNN_OPTS": "0"},
        _TENSORFLOW,
    ),
    "tensorflow-xla": Peer(
        "TensorFlow, XLA", functools.partial(tensorflow, xla=True), _TENSORFLOW, _ON, _TENSORFLOW
    ),
    # Settings beside the switches: AMD's guide for convolution networks in float32.
    "zentf": Peer(
        "TensorFlow, zentf",
        tensorflow,
        ("zentf", "tensorflow-cpu"),
        {
            "TF_ENABLE_ONEDNN_OPTS": "0",
            "TF_ENABLE_ZENDNN_OPTS": "1",
            "TF_ZENDNN_PLUGIN_BF16": "0",
            "OMP_NUM_THREADS": "{threads}",
            "OMP_DYNAMIC": "FALSE",
            "KMP_BLOCKTIME": "1",
            "ZENDNNL_MATMUL_ALGO": "1",
        },
        modules=_TENSORFLOW,
        venv="zentf",
    ),
    "onnxruntime": Peer(
        "ONNX Runtime",
        onnxruntime,
        ("onnxruntime", "tf2onnx"),
        modules=("onnxruntime",),
        venv="onnx",
        format="onnx",
        other_formats={"vgg16": "vgg16_onnx"},
    ),
    "openvino": Peer(
        "OpenVINO",
        openvino,
        ("openvino",),
        modules=("openvino",),
        venv="openvino",
        format="openvino",
    ),
    "litert": Peer(
        "LiteRT",
        litert,
        ("ai-edge-litert",),
        modules=("ai_edge_litert.interpreter",),
        venv="litert",
        format="tflite",
    ),
    "ncnn": Peer(
        "ncnn",
        ncnn,
        ("ncnn", "pnnx"),
        modules=("ncnn",),
        venv="ncnn",
        format="vgg16_ncnn",
        networks=("vgg16",),
    ),
    **{
        f"tf_blockdnn-{precision}": Peer(
            f"tf_blockdnn, {precision}",
            functools.partial(tf_blockdnn_low_precision, precision=precision),
            _OURS,
            modules=_OURS,
            precision=precision.removesuffix("-dynamic"),
        )
        for precision in ("int8", "int8-dynamic", "bf16")
    },
    **{
        f"onnxruntime-{kind}": Peer(
            f"ONNX Runtime, {kind}",
            onnxruntime,
            ("onnxruntime", "tf2onnx"),
            modules=("onnxruntime",),
            venv="onnx",
            format=f"onnx_{kind.replace('-', '_')}",
            precision="int8",
        )
        for kind in ("int8", "int8-dynamic")
    },
    "openvino-int8": Peer(
        "OpenVINO, int8",
        openvino,
        ("openvino", "nncf"),
        modules=("openvino",),
        venv="openvino",
        format="openvino_int8",
        precision="int8",
    ),
    "litert-int8": Peer(
        "LiteRT, int8",
        litert,
        ("ai-edge-litert",),
        modules=("ai_edge_litert.interpreter",),
        venv="litert",
        format="tflite_int8",
        precision="int8",
    ),
    "openvino-bf16": Peer(
        "OpenVINO, bf16",
        functools.partial(openvino, precision="bf16"),
        ("openvino",),
        modules=("openvino",),
        venv="openvino",
        format="openvino",
        precision="bf16",
    ),
    "tensorflow-bf16": Peer(
        "TensorFlow, automatic bf16",
        functools.partial(tensorflow, bf16=True),
        _TENSORFLOW,
        _ON,
        _TENSORFLOW,
        precision="bf16",
    ),
}
