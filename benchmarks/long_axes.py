"""Measures convolutions along one long axis against TensorFlow, whichever axis that is.

    python benchmarks/long_axes.py [--rows 3] [--seconds 0.5]

24 shapes of kernels of 3 to 63, dilations of 1 to 64, lengths of 100 to 100,000 and 8 to 512
channels, through Conv1D with SAME and with causal padding, Conv2D along the width and along the
height, and depthwise and transposed ones. Each is a function of one layer, so that its reorders are
part of it; both sides take turns in one process. The geometric mean must be at most `MEAN`, none
above `MOST`; a stack like SpliceAI's and filters with one channel in or out have their own bounds.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import sys
from collections.abc import Callable

import numpy as np
from backbones import times

MEAN, MOST, STACK, FILTERS = 0.60, 0.85, 0.55, 0.70
# way, kernel, dilation, length, channels in and out
SHAPES = [
    ("Conv1D", 3, 1, 100, 8, 8),
    ("Conv1D", 3, 1, 100000, 8, 8),
    ("Conv1D", 11, 1, 10000, 32, 32),
    ("Conv1D", 21, 10, 10000, 32, 32),
    ("Conv1D", 41, 25, 10000, 32, 32),
    ("Conv1D", 3, 64, 100000, 32, 32),
    ("Conv1D", 63, 1, 1000, 64, 64),
    ("Conv1D", 5, 4, 1000, 512, 512),
    ("causal", 3, 16, 4000, 64, 64),
    ("causal", 7, 64, 16000, 16, 16),
    ("causal", 3, 1, 100, 512, 512),
    ("width", 3, 1, 100, 512, 512),
    ("width", 21, 1, 11000, 32, 32),
    ("width", 63, 1, 100000, 8, 8),
    ("width", 11, 4, 10000, 32, 32),
    ("width", 3, 64, 100000, 32, 32),
    ("height", 21, 1, 11000, 32, 32),
    ("height", 63, 1, 100000, 8, 8),
    ("height", 11, 4, 10000, 32, 32),
    ("height", 3, 64, 100000, 32, 32),
    ("height", 5, 16, 1000, 256, 256),
    ("depthwise", 15, 1, 10000, 64, 64),
    ("depthwise", 9, 4, 4000, 256, 256),
    ("transposed", 8, 1, 4000, 64, 32),
]
# kernel, stride, length, channels in and out
BANKS = [(256, 2, 44100, 1, 1), (512, 256, 44100, 1, 72), (512, 8, 8000, 1, 72)]


def layer(way: str, kernel: int, dilation: int, channels: int, outputs: int) -> Callable:
    """The function of one layer."""
    import tensorflow as tf

    random = np.random.default_rng(0)
    weights = random.normal(size=(kernel, channels, outputs)).astype("f") / kernel
    if way == "depthwise":
        weights = weights[:, None, :, :1]
        return lambda x: tf.nn.depthwise_conv2d(
            x[:, None], weights.transpose(1, 0, 2, 3), [1] * 4, "SAME", dilations=[1, dilation]
        )[:, 0]
    if way == "transposed":
        weights = weights.transpose(0, 2, 1)
        return lambda x: tf.nn.conv1d_transpose(x, weights, [1, 4 * x.shape[1], outputs], 4, "SAME")
    if way == "causal":
        pad = [[0, 0], [(kernel - 1) * dilation, 0], [0, 0]]
        return lambda x: tf.nn.conv1d(tf.pad(x, pad), weights, 1, "VALID", dilations=dilation)
    if way == "Conv1D":
        return lambda x: tf.nn.conv1d(x, weights, 1, "SAME", dilations=dilation)
    axis = {"width": 1, "height": 2}[way]
    kernels = np.expand_dims(weights, axis - 1)
    return lambda x: tf.nn.conv2d(x, kernels, 1, "SAME", dilations=dilation)


def _bank(weights: np.ndarray, stride: int, x):
    import tensorflow as tf

    return tf.nn.conv1d(x, weights, stride, "SAME")


def stack() -> Callable:
    """16 residual pairs of 32 channels, as SpliceAI has them."""
    import tensorflow as tf

    random = np.random.default_rng(0)
    pairs = [
        (dilation, *random.normal(0, 0.05, (2, kernel, 32, 32)).astype("f"))
        for kernel, dilation in ((11, 1), (11, 4), (21, 10), (41, 25))
        for _ in range(4)
    ]

    def run(x):
        for dilation, first, second in pairs:
            y = tf.nn.conv1d(tf.nn.relu(x * 0.9), first, 1, "SAME", dilations=dilation)
            x += tf.nn.conv1d(tf.nn.relu(y * 0.9), second, 1, "SAME", dilations=dilation)
        return x

    return run


def ratio(function: Callable, shape: tuple[int, ...], seconds: float) -> tuple[float, str]:
    """Ours by TensorFlow's fastest call, and a text of both."""
    import tensorflow as tf

    import tf_blockdnn as bd

    x = tf.constant(np.random.default_rng(1).normal(size=shape), tf.float32)
    original = tf.function(function, autograph=False)
    fast = bd.optimize(original.get_concrete_function(x))
    difference = tf.reduce_max(tf.abs(fast(x) - original(x))) / tf.reduce_max(tf.abs(original(x)))
    if not difference < 1e-4:
        raise SystemExit(f"wrong by {difference:.0e}: {shape}")
    ours, theirs = (timing.minimum for timing in times((fast, original), x, seconds))
    reorders = len(fast.report.reorders)
    return ours / theirs, f"{reorders} | {ours:.2f} | {theirs:.2f} | {ours / theirs:.2f}"


def main() -> None:
    """Parses the arguments, measures and prints."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=len(SHAPES), help="how many of the shapes")
    parser.add_argument("--seconds", type=float, default=0.5, help="of timing for each")
    options = parser.parse_args()
    tf.config.threading.set_inter_op_parallelism_threads(1)
    heads = "way | kernel | dilation or stride | length | channels | reorders | ours, ms"
    print(f"| {heads} | TensorFlow, ms | ratio |\n|---|{'---:|' * 8}")
    ratios, faults = [], []

    def measure(name: str, facts: tuple, function: Callable, shape: tuple, most: float) -> float:
        share, text = ratio(function, shape, options.seconds)
        print(f"| {name} | {' | '.join(map(str, facts))} | {text} |", flush=True)
        if share > most:
            faults.append(f"{name} {facts}: {share:.2f}")
        return share

    for way, kernel, dilation, length, channels, outputs in SHAPES[: options.rows]:
        lengths = {"width": (1, length), "height": (length, 1)}.get(way, (length,))
        function = layer(way, kernel, dilation, channels, outputs)
        facts = (kernel, dilation, length, channels)
        ratios.append(measure(way, facts, function, (1, *lengths, channels), MOST))
    for kernel, stride, length, channels, outputs in BANKS:
        weights = np.random.default_rng(0).normal(size=(kernel, channels, outputs)).astype("f")
        run = functools.partial(_bank, weights, stride)
        facts = (kernel, stride, length, f"{channels} to {outputs}")
        measure("filters", facts, run, (1, length, channels), FILTERS)
    measure("stack", ("11 to 41", "1 to 25", 10000, 32), stack(), (1, 10000, 32), STACK)
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean of the {len(ratios)} shapes: {mean:.2f}")
    if mean > MEAN or faults:
        sys.exit(f"above the bound: mean {mean:.2f}; {'; '.join(faults)}")


if __name__ == "__main__":
    main()
