"""Who trains: a row in `PEERS` each. Runners work as those of networks.py, and give cases.

The cases of a runner, each a function of no arguments:

    inference  the model's results
    forward    the loss, with training=True
    data       the gradient of the loss by the images alone: forward, and backward without weights
    step       forward, backward and the update of all weights
"""

from __future__ import annotations

import contextlib
import gc
import pathlib
from collections.abc import Mapping

import numpy as np
from models.training import NETWORKS

from .row import Peer, Run, limit_tensorflow

RATE = 1e-4  # small enough for random weights to stay finite


def _cases(model, images, threads: int) -> dict[str, Run]:
    import tensorflow as tf

    images = tf.constant(images["images"])
    # Another target for each pixel or class, so that no gradient is zero.
    target = tf.reshape(tf.range(np.prod(model.output_shape[1:]), dtype=tf.float32), [1, -1])
    target = tf.cos(target)

    def loss(training=True):
        y = model(images, training=training)
        return tf.reduce_mean(tf.square(tf.reshape(y, [len(images), -1]) - target))

    def data():
        with tf.GradientTape() as tape:
            tape.watch(images)
            value = loss()
        return tape.gradient(value, images)

    def step():
        variables = [v.value for v in model.trainable_variables]
        with tf.GradientTape() as tape:
            value = loss()
        for v, g in zip(variables, tape.gradient(value, variables), strict=True):
            v.assign_sub(RATE * g)
        return value

    functions = {
        "inference": lambda: model(images, training=False),
        "forward": loss,
        "data": data,
        "step": step,
    }
    compiled = model.jit_compile
    made = {
        name: tf.function(f, jit_compile=compiled, autograph=False) for name, f in functions.items()
    }
    return {name: lambda f=f: {"y": f().numpy()} for name, f in made.items()}


def _model(name: str, threads: int):
    limit_tensorflow(threads)
    import keras

    keras.utils.set_random_seed(7)
    model = NETWORKS[name].build()
    model.jit_compile = False
    return model


def _forget_peak() -> None:
    """What building takes, two models where one is converted, is no memory of a step."""
    gc.collect()
    with contextlib.suppress(OSError):  # only Linux has it
        pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak is what is used now


def blockdnn_layers(name: str, inputs: Mapping[str, np.ndarray], threads: int) -> dict[str, Run]:
    """The model that bd.layers.convert makes."""
    model = _model(name, threads)
    import tf_blockdnn as bd

    model = bd.layers.convert(model)  # and the one that it was made of goes
    model.jit_compile = False
    _forget_peak()
    return _cases(model, inputs, threads)


def blockdnn_optimize(name: str, inputs: Mapping[str, np.ndarray], threads: int) -> dict[str, Run]:
    """bd.optimize: inference only."""
    model = _model(name, threads)
    import tensorflow as tf

    import tf_blockdnn as bd

    fast, images = bd.optimize(model), tf.constant(inputs["images"])
    return {"inference": lambda: {"y": fast(images).numpy()}}


def keras_tensorflow(name: str, inputs: Mapping[str, np.ndarray], threads: int) -> dict[str, Run]:
    """Keras's layers on TensorFlow."""
    model = _model(name, threads)
    _forget_peak()
    return _cases(model, inputs, threads)


def keras_xla(name: str, inputs: Mapping[str, np.ndarray], threads: int) -> dict[str, Run]:
    """Keras's layers, each case compiled as one XLA program."""
    model = _model(name, threads)
    model.jit_compile = True
    return _cases(model, inputs, threads)


def keras_torch(name: str, inputs: Mapping[str, np.ndarray], threads: int) -> dict[str, Run]:
    """Keras's layers on torch, eager, as Keras trains there."""
    import torch

    torch.set_num_threads(threads)
    import keras

    keras.utils.set_random_seed(7)
    model = NETWORKS[name].build()
    images = torch.tensor(inputs["images"])
    size = int(np.prod(model.output_shape[1:]))
    target = torch.cos(torch.arange(size, dtype=torch.float32))[None]

    def loss():
        y = model(images, training=True)
        return torch.mean(torch.square(torch.reshape(y, [len(images), -1]) - target))

    def inference():
        with torch.no_grad():
            return {"y": model(images, training=False).numpy()}

    def forward():
        with torch.no_grad():
            return {"y": loss().numpy()}

    def step():
        parameters = [v.value for v in model.trainable_variables]
        value = loss()
        gradients = torch.autograd.grad(value, parameters)
        with torch.no_grad():
            for p, g in zip(parameters, gradients, strict=True):
                p -= RATE * g
        return {"y": value.detach().numpy()}

    return {"inference": inference, "forward": forward, "step": step}


PEERS = {
    "layers": Peer("bd.layers", blockdnn_layers, ("tf_blockdnn", "tensorflow", "keras")),
    "optimize": Peer("bd.optimize", blockdnn_optimize, ("tf_blockdnn",)),
    "onednn": Peer(
        "Keras, oneDNN on", keras_tensorflow, ("keras",), {"TF_ENABLE_ONEDNN_OPTS": "1"}
    ),
    "plain": Peer(
        "Keras, oneDNN off", keras_tensorflow, ("keras",), {"TF_ENABLE_ONEDNN_OPTS": "0"}
    ),
    "xla": Peer("Keras, XLA", keras_xla, ("keras",)),
    "torch": Peer("Keras on torch", keras_torch, ("torch",), {"KERAS_BACKEND": "torch"}),
}
