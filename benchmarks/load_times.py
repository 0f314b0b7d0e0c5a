"""Measures how long a SavedModel takes to load and to give its first result, before and after.

    python benchmarks/load_times.py [--models resnet50,mobilenetv2] [--runs 3] [--output …]

Every load has a process of its own, with TensorFlow imported before the clock starts; the two
models take turns. Prints the least and the median time of each, and the resident memory behind
the first result, and writes them as JSON; `make measure` puts that into docs/measurements.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from formats import SAVED_MODEL
from measuring import machine, turns
from measuring.prepare import BUILD
from models import ZOO
from rich.console import Console

NETWORKS = "resnet50,vgg16,mobilenetv2,efficientnetb0,inceptionv3,densenet121"

_LOAD = """
import json, sys, time
import numpy as np
import tensorflow as tf
import tf_blockdnn as bd

kind, folder, inputs = sys.argv[1:]
feed = {name: tf.constant(value) for name, value in np.load(inputs).items()}
start = time.perf_counter()
if kind == "original":
    loaded = tf.saved_model.load(folder)
    loaded.signatures["serving_default"](**feed)
else:
    bd.load(folder)(**feed)
seconds = time.perf_counter() - start
(resident,) = [int(line.split()[1]) for line in open("/proc/self/status") if "VmRSS" in line]
print(json.dumps([seconds, resident]))
"""


def main() -> None:
    """Parses the arguments, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=turns.among(ZOO), default=NETWORKS.split(","))
    parser.add_argument("--runs", type=int, default=3, help="loads of each; default: 3")
    parser.add_argument("--output", type=pathlib.Path, default=BUILD / "load-times.json")
    options = parser.parse_args()
    document = {
        **machine.facts(),
        "runs": options.runs,
        "results": [_row(name, options.runs) for name in options.models],
    }
    turns.write(options.output, document)
    columns = ("network", "original", "optimised", "original, MiB", "optimised, MiB")
    shown = turns.table("to the first result: seconds, median (min); MiB, median", 0, columns)
    for row in document["results"]:
        sides = row["original"], row["optimised"]
        seconds = (f"{side['median_s']:.2f} ({side['min_s']:.2f})" for side in sides)
        shown.add_row(ZOO[row["model"]].title, *seconds, *(f"{s['mib']:.0f}" for s in sides))
    Console().print(shown)


def _row(name: str, runs: int) -> dict:
    import tf_blockdnn as bd

    original = turns.workshop(print).model(name, SAVED_MODEL, 1)
    with tempfile.TemporaryDirectory() as place:
        optimised, inputs = f"{place}/model", f"{place}/inputs.npz"
        bd.optimize(str(original)).save(optimised)
        np.savez(inputs, **ZOO[name].example(1))
        taken = {"original": [], "optimised": []}
        for _ in range(runs):
            for kind, folder in (("original", original), ("optimised", optimised)):
                taken[kind].append(_load(kind, folder, inputs))
    sides = {
        kind: {
            "min_s": min(seconds for seconds, _ in loads),
            "median_s": statistics.median(seconds for seconds, _ in loads),
            "mib": statistics.median(kilobytes for _, kilobytes in loads) / 1024,
        }
        for kind, loads in taken.items()
    }
    return {"model": name, **sides}


def _load(kind: str, folder: str | pathlib.Path, inputs: str) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, kind, str(folder), inputs],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


if __name__ == "__main__":
    main()
