"""How long a saved model takes to its first result and what it keeps, before and after optimising.

Every load has a process of its own, in which the imports come before the clock starts; the two
models take turns. Memory is what is resident after three calls, above what it was after the
imports.
"""

from __future__ import annotations

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from formats import SAVED_MODEL
from measuring.prepare import Workshop
from models import ZOO

LOADS = 3  # of each

_LOAD = """
import json, sys, time
import numpy as np
import tensorflow as tf

def resident():
    (line,) = [line for line in open("/proc/self/status") if "VmRSS" in line]
    return int(line.split()[1]) / 1024

kind, folder, inputs = sys.argv[1:]
imported = time.perf_counter()
import tf_blockdnn as bd
imported = time.perf_counter() - imported
feed = {name: tf.constant(value) for name, value in np.load(inputs).items()}
before, start = resident(), time.perf_counter()
loaded = tf.saved_model.load(folder) if kind == "original" else bd.load(folder)
call = loaded.signatures["serving_default"] if kind == "original" else loaded
call(**feed)
seconds = time.perf_counter() - start
call(**feed), call(**feed)
print(json.dumps({"seconds": seconds, "mib": resident() - before, "import_s": imported}))
"""


def measure(name: str, workshop: Workshop) -> dict:
    """{"runs", "original", "optimised"}: the two are medians of loads, with their "least_s"."""
    import tf_blockdnn as bd

    original = workshop.model(name, SAVED_MODEL, 1)
    with tempfile.TemporaryDirectory() as place:
        optimised, inputs = f"{place}/model", f"{place}/inputs.npz"
        bd.optimize(str(original)).save(optimised)
        np.savez(inputs, **ZOO[name].example(1))
        loads: dict[str, list[dict]] = {"original": [], "optimised": []}
        for _ in range(LOADS):
            for kind, folder in (("original", original), ("optimised", optimised)):
                loads[kind].append(_load(kind, folder, inputs))
    sides = {
        kind: {key: statistics.median(load[key] for load in each) for key in each[0]}
        | {"least_s": min(load["seconds"] for load in each)}
        for kind, each in loads.items()
    }
    return {"runs": LOADS} | sides


def _load(kind: str, folder: str | pathlib.Path, inputs: str) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", _LOAD, kind, str(folder), inputs],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)
