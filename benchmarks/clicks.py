"""Times a click-through model against TensorFlow by each way to call it, in Keras 3 and Keras 2.

    python benchmarks/clicks.py [--batches 1,32,512] [--seconds 0.5]

26 integers and 13 numbers go through embeddings of 8, 16 and 32, a factorisation machine, two
crosses and two dense layers of 400. Both sides get the same arguments, TensorFlow in a
`tf.function`, a SavedModel's signature or Keras's `predict_on_batch`, and take turns in one
process. A way that takes more than `MOST` of TensorFlow's time by fastest calls, or differs, is
named; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
from collections.abc import Callable

import numpy as np
from measuring.timing import interleave, timed
from measuring.turns import names

IDS, NUMBERS, WORDS = 26, 13, 1000
MOST = 0.80
TOLERANCE = 1e-5


def model(keras, nested: bool):
    """The network; its inputs are a list, or lists by name."""
    import tensorflow as tf

    class Machine(keras.layers.Layer):
        def call(self, fields):
            joined = tf.concat(fields, 1)
            total = tf.square(tf.reduce_sum(joined, 1)) - tf.reduce_sum(tf.square(joined), 1)
            return 0.5 * tf.reduce_sum(total, 1, keepdims=True)

    class Cross(keras.layers.Layer):
        def build(self, shape):
            width = shape[0][-1]
            self.kernel = self.add_weight(name="kernel", shape=(width, 1))
            self.bias = self.add_weight(name="bias", shape=(width,))

        def call(self, pair):
            first, x = pair
            return first * tf.matmul(x, self.kernel) + self.bias + x

    layers = keras.layers
    ids = [keras.Input((1,), name=f"C{i}", dtype="int32") for i in range(IDS)]
    numbers = [keras.Input((1,), name=f"I{i}") for i in range(NUMBERS)]
    machine = Machine()([layers.Embedding(WORDS, 8)(field) for field in ids])
    wide = [layers.Embedding(WORDS, (8, 16, 32)[i % 3])(field) for i, field in enumerate(ids)]
    first = layers.Concatenate()([*map(layers.Flatten(), wide), *numbers])
    x = Cross()([first, Cross()([first, first])])
    deep = layers.Dense(400, "relu")(layers.Dense(400, "relu")(first))
    logit = layers.Add()([machine, layers.Dense(1)(layers.Concatenate()([x, deep]))])
    inputs = {"ids": ids, "numbers": numbers} if nested else [*ids, *numbers]
    return keras.Model(inputs, layers.Activation("sigmoid")(logit))


def samples(batch: int) -> dict[str, np.ndarray]:
    """Arrays by the names of the inputs."""
    random = np.random.default_rng(0)
    ids = {f"C{i}": random.integers(0, WORDS, (batch, 1), np.int32) for i in range(IDS)}
    return ids | {f"I{i}": random.normal(size=(batch, 1)).astype("f") for i in range(NUMBERS)}


def ways(keras) -> Callable:
    """Arrays -> way to call -> (ours, TensorFlow's), functions without arguments."""
    import tensorflow as tf

    import tf_blockdnn as bd

    flat, nested = model(keras, False), model(keras, True)
    fast, fast_nested = bd.optimize(flat), bd.optimize(nested)
    traced = tf.function(flat, autograph=False)
    traced_nested = tf.function(nested, autograph=False)
    function = bd.optimize(tf.function(flat, autograph=False))
    folder = pathlib.Path(tempfile.mkdtemp())
    fast.save(folder / "fast")
    tf.saved_model.save(flat, folder / "plain")
    served, plain = (
        tf.saved_model.load(folder / name).signatures["serving_default"]
        for name in ("fast", "plain")
    )
    loaded = bd.load(folder / "fast")

    def of(arrays: dict) -> dict[str, tuple[Callable, Callable]]:
        tensors = {name: tf.constant(array) for name, array in arrays.items()}
        row = list(tensors.values())
        pair = {"ids": row[:IDS], "numbers": row[IDS:]}
        wide = {
            name: array.astype({"i": np.int64, "f": np.float64}[array.dtype.kind])
            for name, array in arrays.items()
        }
        turned = dict(reversed(tensors.items()))
        called = {
            "list": (fast, traced, row),
            "names": (fast, traced, tensors),
            "names, in another order": (fast, traced, turned),
            "names, arrays": (fast, traced, arrays),
            "names, arrays of 64 bits": (fast, traced, wide),
            "nest": (fast_nested, traced_nested, pair),
            "function": (function, traced, row),
            "predict": (fast.predict_on_batch, flat.predict_on_batch, arrays),
        }
        calls = {
            way: (lambda f=ours, x=x: f(x), lambda f=theirs, x=x: f(x))
            for way, (ours, theirs, x) in called.items()
        }
        calls["loaded, names"] = (lambda: loaded(**tensors), lambda: traced(tensors))
        # The signature of a list may have names of its own, in the order of the list.
        places = [f"inputs_{i}" if i else "inputs" for i in range(len(row))]
        by_place = dict(zip(places, row, strict=True))
        named = by_place if "inputs" in plain.structured_input_signature[1] else tensors
        calls["signature"] = (lambda: served(**tensors), lambda: plain(**named))
        return calls

    return of


def measure(calls: tuple[Callable, Callable], seconds: float) -> dict[str, float]:
    """The difference, and the least milliseconds of both in turns."""
    import tensorflow as tf

    mine, theirs = (np.asarray(tf.nest.flatten(call())[0]) for call in calls)
    ours, other = (timed(call) for call in calls)
    turns = {
        "ours": lambda: [t for _ in range(10) for t in ours()],
        "theirs": lambda: [t for _ in range(10) for t in other()],
    }
    once = sum(timing.minimum for timing in interleave(turns, runs=2, warmup=2).values()) / 1e2
    timing = interleave(turns, runs=max(3, round(seconds / once)), warmup=0)
    times = {who: each.minimum for who, each in timing.items()}
    return {"difference": float(np.abs(mine - theirs).max())} | times


def main() -> None:
    """Parses the arguments, measures and prints."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import keras
    import tensorflow as tf
    import tf_keras

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batches", type=names, default=["1", "32", "512"])
    parser.add_argument("--seconds", type=float, default=0.5, help="of timing for each")
    options = parser.parse_args()
    tf.config.threading.set_inter_op_parallelism_threads(1)
    print(
        "| Keras | batch | way | ours, us | TensorFlow, us | ratio |\n|---|---:|---|---:|---:|---:|"
    )
    faults = []
    for version, library in ((3, keras), (2, tf_keras)):
        of = ways(library)
        for batch in map(int, options.batches):
            for way, calls in of(samples(batch)).items():
                row = measure(calls, options.seconds)
                ratio = row["ours"] / row["theirs"]
                times = " | ".join(f"{1e3 * row[who]:.0f}" for who in ("ours", "theirs"))
                print(f"| {version} | {batch} | {way} | {times} | {ratio:.2f} |", flush=True)
                if ratio > MOST or not row["difference"] <= TOLERANCE:
                    faults.append(f"Keras {version}, batch {batch}, {way}")
    if faults:
        sys.exit(f"wrong, or more than {MOST} of TensorFlow's time: {'; '.join(faults)}")


if __name__ == "__main__":
    main()
