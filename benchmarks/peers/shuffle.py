"""The libraries that run_shuffle.py compares, as rows of `PEERS`.

A runner's "network" is the list of groups, "3,80", and its input is an image in NHWC. It returns a
run for each case, "LAYOUT/GROUP/KIND". The kind `call` is one eager shuffle. `session` is one in a
prepared session, which calls TensorFlow with the least overhead. `chain` is CHAIN shuffles one
after the other, in one graph if the framework has graphs. A runner checks every case against the
definition before it returns it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import numpy as np

from .row import Peer, limit_tensorflow

CHAIN = 100
LAYOUTS = ("NHWC", "NCHW", "nChw16c", "nChw8c")

Cases = dict[str, Callable[[], Mapping]]


def _image(inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    (image,) = inputs.values()
    return image


def _expected(image: np.ndarray, group: int) -> np.ndarray:
    """The definition, on an NHWC image."""
    channels = image.shape[-1]
    order = [u * group + v for v in range(group) for u in range(channels // group)]
    return image[..., order]


def _add(cases: Cases, name: str, runs: Mapping[str, Callable], check: Callable) -> None:
    """Adds the runs of `name` by kind; `check` tells whether a shuffled tensor is right."""
    for kind, run in runs.items():
        if kind != "chain" and not check(run()):
            raise ValueError(f"{name}/{kind}: not the shuffle that is defined")
        cases[f"{name}/{kind}"] = lambda run=run: {"y": run()}


def _tensorflow_runs(shuffle, array: np.ndarray, threads: int) -> dict[str, Callable]:
    import tensorflow as tf

    x = tf.constant(array)
    chain = tf.function(_repeated(shuffle), autograph=False)
    return {
        "call": lambda: shuffle(x),
        "session": _session_call(shuffle, array, threads),
        "chain": lambda: chain(x),
    }


def _session_call(shuffle, array: np.ndarray, threads: int) -> Callable:
    import tensorflow as tf
    from tensorflow.core.protobuf import config_pb2

    config = tf.compat.v1.ConfigProto(
        intra_op_parallelism_threads=threads, inter_op_parallelism_threads=1
    )
    config.experimental.executor_type = "SINGLE_THREADED_EXECUTOR"
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, array.shape)
        y = shuffle(x)
    session = tf.compat.v1.Session(graph=graph, config=config)
    options = config_pb2.CallableOptions(feed=[x.name], fetch=[y.name])
    function = session._make_callable_from_options(options)
    feed = _aligned(array)
    return lambda: function(feed)[0]


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy aligned to 64 bytes; TensorFlow would copy other feeds once more."""
    room = np.empty(array.size + 16, array.dtype)
    first = -(room.ctypes.data // array.itemsize) % 16
    aligned = room[first : first + array.size].reshape(array.shape)
    aligned[...] = array
    return aligned


def _repeated(shuffle):
    def chain(x):
        for _ in range(CHAIN):
            x = shuffle(x)
        return x

    return chain


def _checker(to_nhwc: Callable, expected: np.ndarray) -> Callable:
    return lambda y: np.array_equal(to_nhwc(y), expected)


def _to_nhwc(y) -> np.ndarray:
    return np.moveaxis(np.asarray(y), 1, -1)


def tf_blockdnn(groups: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """bd.ops.shuffle on every layout."""
    limit_tensorflow(threads)
    import tf_blockdnn as bd

    image = _image(inputs)
    channels = image.shape[-1]
    first = np.moveaxis(image, -1, 1)

    def pack(block: int) -> np.ndarray:
        blocks = -(-channels // block)
        padded = np.zeros((first.shape[0], blocks * block, *first.shape[2:]), image.dtype)
        padded[:, :channels] = first
        return np.moveaxis(padded.reshape(first.shape[0], blocks, block, *first.shape[2:]), 2, -1)

    def unpack(y) -> np.ndarray:
        lanes = np.moveaxis(np.asarray(y), 1, -2)
        return lanes.reshape(*lanes.shape[:-2], -1)[..., :channels]

    cases: Cases = {}
    for group in map(int, groups.split(",")):
        expected = _expected(image, group)
        for layout, x, axis, named, to_nhwc in (
            ("NHWC", image, -1, {}, np.asarray),
            ("NCHW", first, 1, {}, _to_nhwc),
            ("nChw16c", pack(16), 1, {"layout": "nChw16c", "channels": channels}, unpack),
            ("nChw8c", pack(8), 1, {"layout": "nChw8c", "channels": channels}, unpack),
        ):

            def shuffle(x, axis=axis, group=group, named=named):
                return bd.ops.shuffle(x, axis, group, **named)

            runs = _tensorflow_runs(shuffle, np.ascontiguousarray(x), threads)
            _add(cases, f"{layout}/{group}", runs, _checker(to_nhwc, expected))
    return cases


def tensorflow(groups: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """Reshape, transpose, reshape."""
    tf = limit_tensorflow(threads)

    image = _image(inputs)
    n, h, w, c = image.shape
    cases: Cases = {}
    for group in map(int, groups.split(",")):
        expected = _expected(image, group)
        for layout, shape, split, order, to_nhwc in (
            ("NHWC", (n, h, w, c), (n, h, w, c // group, group), (0, 1, 2, 4, 3), np.asarray),
            ("NCHW", (n, c, h, w), (n, c // group, group, h, w), (0, 2, 1, 3, 4), _to_nhwc),
        ):

            def shuffle(x, shape=shape, split=split, order=order):
                return tf.reshape(tf.transpose(tf.reshape(x, split), order), shape)

            x = image if layout == "NHWC" else np.moveaxis(image, -1, 1)
            runs = _tensorflow_runs(shuffle, np.ascontiguousarray(x), threads)
            _add(cases, f"{layout}/{group}", runs, _checker(to_nhwc, expected))
    return cases


def torch(groups: str, inputs: Mapping[str, np.ndarray], threads: int) -> Cases:
    """torch.nn.ChannelShuffle, whose groups are C / G; NHWC is its channels_last."""
    import torch

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    image = _image(inputs)
    cases: Cases = {}
    for group in map(int, groups.split(",")):
        expected = _expected(image, group)
        module = torch.nn.ChannelShuffle(image.shape[-1] // group)
        for layout, form in (
            ("NHWC", torch.channels_last),
            ("NCHW", torch.contiguous_format),
        ):
            x = torch.from_numpy(np.moveaxis(image, -1, 1)).contiguous(memory_format=form)
            runs = {
                "call": functools.partial(module, x),
                "chain": functools.partial(_repeated(module), x),
            }
            _add(cases, f"{layout}/{group}", runs, _checker(_to_nhwc, expected))
    return cases


# The first row is the one that is compared with the others.
PEERS = {
    "tf_blockdnn": Peer("tf_blockdnn", tf_blockdnn, ("tf_blockdnn", "tensorflow")),
    "torch": Peer("torch", torch, ("torch",), venv="ncnn"),
    "tensorflow": Peer("TensorFlow", tensorflow, ("tensorflow",)),
}
