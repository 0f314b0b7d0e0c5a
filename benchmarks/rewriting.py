"""Measures how long `optimize` takes, beyond TensorFlow's tracing, in seconds of CPU.

    python benchmarks/rewriting.py [--kinds table,local,detector]

The table is of functions of about 1,000 to 30,000 nodes: slices, each times a matrix of its own.
A node of the largest may take `MOST` times as long as one of the smallest. `local` is a locally
connected layer of tf_keras with 3,025 slices, and `detector` suppresses boxes of 91 classes in
loops of their own. `make test` counts the lines that run (tests/python/rewriter/test_linear.py).
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable

import numpy as np
from measuring.turns import among

NODES = (1_000, 3_000, 10_000, 30_000)
MOST = 1.2


def slices(count: int) -> tuple[Callable, tuple]:
    """A function of as many products of slices by variables, and the shape of its argument."""
    import tensorflow as tf

    random = np.random.default_rng(0)
    matrices = [tf.Variable(random.normal(size=(36, 4)).astype("f")) for _ in range(count)]

    def function(x):
        rows = [tf.reshape(x[:, i : i + 3, :3], (-1, 36)) for i in range(count)]
        return tf.concat([tf.matmul(*pair) for pair in zip(rows, matrices, strict=True)], 1)

    return function, (1, count + 2, 3, 4)


def local() -> tuple[Callable, tuple]:
    """A locally connected layer of 55 x 55 places, as DeepFace has it."""
    import tf_keras

    x = tf_keras.Input((63, 63, 16))
    return tf_keras.Model(x, tf_keras.layers.LocallyConnected2D(16, (9, 9))(x)), (None, 63, 63, 16)


def detector() -> tuple[Callable, tuple]:
    """Boxes and scores of 91 classes by convolutions, each class with a suppression of its own."""
    import tensorflow as tf

    random, classes = np.random.default_rng(0), 91
    first, scores, boxes = (
        random.normal(0, 0.1, (3, 3, 16, outputs)).astype("f") for outputs in (16, classes, 4)
    )

    def function(x):
        x = tf.nn.relu(tf.nn.conv2d(x, first, 1, "SAME"))
        all_scores = tf.reshape(tf.nn.conv2d(x, scores, 1, "SAME"), [-1, classes])
        all_boxes, kept = tf.reshape(tf.nn.conv2d(x, boxes, 1, "SAME"), [-1, 4]), []
        for i in range(classes):
            score, order = tf.math.top_k(all_scores[:, i], 512)
            near = tf.gather(all_boxes, order)
            chosen, _ = tf.image.non_max_suppression_padded(
                near, score, 100, 0.5, 0.05, pad_to_max_output_size=True, sorted_input=True
            )
            kept.append(tf.gather(near, chosen))
        return tf.stack(kept)

    return function, (1, 32, 32, 16)


# What they may take, in seconds.
KINDS = {
    "local": (local, 3),
    "detector": (detector, 3),
}


def measure(function: Callable, shape: tuple) -> tuple[int, float, float, int]:
    """Nodes, seconds of tracing and of rewriting, and MiB at most beyond what there was before."""
    import tensorflow as tf

    import tf_blockdnn as bd

    start = time.process_time()
    traced = tf.function(function, autograph=False, input_signature=[tf.TensorSpec(shape)])
    concrete = traced.get_concrete_function()
    middle, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert bd.optimize(concrete).report.error is None
    rewriting = time.process_time() - middle
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return len(concrete.graph.get_operations()), middle - start, rewriting, grown >> 10


def main() -> None:
    """Parses the arguments, measures and prints."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["table", *KINDS]
    parser.add_argument("--kinds", type=among(names), default=names)
    options = parser.parse_args()
    print("| function | nodes | tracing, s | rewriting, s | us a node | MiB more |")
    print(f"|---|{'---:|' * 5}")
    faults, by_node = [], []

    def show(name: str, function: Callable, shape: tuple) -> tuple[float, float]:
        nodes, tracing, rewriting, grown = measure(function, shape)
        times = f"{tracing:.2f} | {rewriting:.2f} | {1e6 * rewriting / nodes:.0f}"
        print(f"| {name} | {nodes} | {times} | {grown} |", flush=True)
        return rewriting, rewriting / nodes

    measure(*slices(8))  # what is done once
    for nodes in NODES if "table" in options.kinds else ():
        by_node.append(show("slices", *slices(nodes // 9))[1])
    if by_node and by_node[-1] > MOST * by_node[0]:
        faults.append(f"a node of {NODES[-1]} takes {by_node[-1] / by_node[0]:.2f} times as long")
    for name, (build, most) in KINDS.items():
        if name in options.kinds and (seconds := show(name, *build())[0]) > most:
            faults.append(f"{name} takes {seconds:.1f} s, and {most} are asked")
    if faults:
        sys.exit("; ".join(faults))


if __name__ == "__main__":
    main()
