"""Measures how networks keep their lead over TensorFlow beside busy processes.

    python benchmarks/under_load.py [--models ResNet50,MobileNetV2,BERT,LSTM] [--busy 0,2,4]
                                    [--seconds 8]

The busy processes multiply numbers in Python, which needs a core each and little memory. Ours and
TensorFlow's calls take turns in one process, at batch 1 and with a thread for each core. The ratio
is of the sums of their times: what the operating system gives to others is part of both. A ratio
beside others that is more than `MOST` above the quiet one is named, and the exit code is then 1.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator

from measuring.timing import interleave, timed
from measuring.turns import among

MOST = 0.06
BUSY = "x = 1\nwhile True: x = x * 3 % 1000003"


def _bert():
    import keras_hub

    return keras_hub.models.BertBackbone(30522, 4, 12, 768, 3072)


def _application(name: str):
    import keras

    return getattr(keras.applications, name)(weights=None)


def _lstm():
    import keras

    return keras.Sequential([keras.Input((100, 256)), keras.layers.LSTM(256)])


MODELS = {
    "ResNet50": lambda: _application("ResNet50"),
    "MobileNetV2": lambda: _application("MobileNetV2"),
    "BERT": _bert,
    "LSTM": _lstm,
}


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """As many processes that do nothing else than compute."""
    others = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in others:
            process.kill()
            process.wait()


def calls(name: str) -> dict:
    """Ours and TensorFlow's, functions without arguments."""
    import numpy as np
    import tensorflow as tf

    import tf_blockdnn as bd

    model = MODELS[name]()
    random = np.random.default_rng(0)
    if name == "BERT":
        ids = tf.constant(random.integers(0, 30000, (1, 128), np.int32))
        x = {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids * 0 + 1}
    else:
        x = tf.constant(random.random((1, *model.input_shape[1:]), np.float32))
    fast, original = bd.optimize(model), tf.function(lambda x: model(x, training=False))
    return {"ours": lambda: fast(x), "theirs": lambda: original(x)}


def ratio(turns: dict, seconds: float) -> tuple[float, dict]:
    """Ours by TensorFlow's, and the median milliseconds of each."""
    timing, start = {who: [] for who in turns}, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for who, each in interleave(turns, runs=6, warmup=0).items():
            timing[who] += each.milliseconds
    sums = {who: sum(each) for who, each in timing.items()}
    medians = {who: statistics.median(each) for who, each in timing.items()}
    return sums["ours"] / sums["theirs"], medians


def main() -> None:
    """Parses the arguments, measures and prints."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=among(MODELS), default=list(MODELS))
    parser.add_argument(
        "--busy", type=lambda text: list(map(int, text.split(","))), default=[0, 2, 4]
    )
    parser.add_argument("--seconds", type=float, default=8, help="of timing for each")
    options = parser.parse_args()
    tf.config.threading.set_inter_op_parallelism_threads(1)
    print("| network | busy | ours, ms | TensorFlow, ms | ratio |\n|---|---:|---:|---:|---:|")
    faults = []
    for name in options.models:
        turns = {who: timed(call) for who, call in calls(name).items()}
        interleave(turns, runs=1, warmup=5)
        quiet = None
        for count in options.busy:
            with busy(count):
                time.sleep(0.5)
                share, medians = ratio(turns, options.seconds)
            quiet = share if quiet is None else quiet
            times = " | ".join(f"{medians[who]:.1f}" for who in ("ours", "theirs"))
            print(f"| {name} | {count} | {times} | {share:.2f} |", flush=True)
            if share > quiet + MOST:
                faults.append(f"{name} beside {count}")
    if faults:
        sys.exit(f"more than {MOST} above the first ratio: {', '.join(faults)}")


if __name__ == "__main__":
    main()
