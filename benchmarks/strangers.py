"""Checks and measures networks that other people built (models/strangers.py) against TensorFlow.

    python benchmarks/strangers.py [--models tcn,nbeats] [--seconds 2]

Each has a process of its own, since it chooses Keras's version; its biases, scales and statistics
are drawn, so that nothing in it is idle, and it is optimised strictly with the default options.
Outputs may lie as far from TensorFlow's as `MOST_NOISE` times TensorFlow's own move where each
weight and input moves by one ulp. Both are timed in turns. A network that is wrong, takes more
than `MOST` of TensorFlow's time or loses time by reorders is named, and the exit code is then 1.
Many small reorders lose little: where there are more than `MOST_REORDERS`, what counts is their
part of the time of all our ops, by the log of another process (in parentheses).
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import pathlib
import subprocess
import sys

from measuring.prepare import BUILD
from measuring.turns import among

PACKAGES = BUILD / "strangers"  # where `make zoo` puts requirements-strangers.txt
MOST_NOISE = 10  # Sums in another order round at each of a network's ops; an ulp moves once.
QUIET = 1e-5  # Of the largest magnitude: what is as near is right.
MOST_REORDERS = 8
MOST_REORDERING = 0.03  # of the time of our ops
MOST = 1.03  # of TensorFlow's time
TIMES = ("ours", "TensorFlow")
HEADS = ("network", "converted", "reorders", "difference", "noise", *TIMES, "rewriting")


def main() -> None:
    """Parses the arguments, measures and prints."""
    sys.path.append(str(PACKAGES))
    from models.strangers import NETWORKS

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=among(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--seconds", type=float, default=2, help="of timing for each")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        row = measure(NETWORKS[options.child], options.seconds)
        pathlib.Path(os.environ["STRANGERS_ROW"]).write_text(json.dumps(row))
        return
    print(f"| {' | '.join(HEADS)} |\n|---{'|---:' * (len(HEADS) - 1)}|")
    faults = []
    for name in options.models:
        row, _ = _in_process(name, options.seconds)
        if row.get("reorders", 0) > MOST_REORDERS:
            row["reordering"] = _reordering(name)
        print(line(name, row), flush=True)
        faults += [f"{name} {what}" for what in judged(row)]
    if faults:
        sys.exit("; ".join(faults))


def _in_process(name: str, seconds: float, **environ: str) -> tuple[dict, str]:
    """The row of a network, and what its process wrote to stderr."""
    from models.strangers import NETWORKS

    file = BUILD / "strangers.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    environ |= {
        "TF_BLOCKDNN_STRICT": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_USE_LEGACY_KERAS": str(int(NETWORKS[name].keras == 2)),
        "SM_FRAMEWORK": "tf.keras",  # segmentation_models asks
        "STRANGERS_ROW": str(file),
    }
    command = [sys.executable, __file__, "--child", name, "--seconds", str(seconds)]
    run = subprocess.run(
        command, env=os.environ | environ, capture_output=True, text=True, check=False
    )
    if file.exists():
        return json.loads(file.read_text()), run.stderr
    error = (run.stderr.strip() or f"exit code {run.returncode}").splitlines()[-1]
    return {"error": error}, run.stderr


def _reordering(name: str) -> float:
    """The part that reorders have of the time of all our ops; the first half of calls warms up."""
    _, log = _in_process(name, 1, TF_BLOCKDNN_VERBOSE="1")
    lines = [line.split() for line in log.splitlines() if line.startswith("tf_blockdnn ")]
    times = [(line[1], float(line[-1][:-2])) for line in lines if line[-1].endswith("us")]
    times = times[len(times) // 2 :]
    return sum(us for op, us in times if op == "reorder") / sum(us for _, us in times)


def measure(network, seconds: float) -> dict:
    """The row of one network: what converted, the difference, the noise and milliseconds."""
    import time

    import tensorflow as tf
    from backbones import of_timing, times

    import tf_blockdnn as bd

    tf.config.threading.set_inter_op_parallelism_threads(1)
    model = network.build()
    sample = tf.nest.map_structure(tf.constant, network.sample())
    is_keras = hasattr(model, "trainable_variables")
    if is_keras:
        draw(model, sample)
    original = tf.function(functools.partial(model, training=False) if is_keras else model)
    wanted = original(sample)
    start = time.process_time()
    fast = bd.optimize(model if is_keras else original.get_concrete_function(sample))
    rewriting = time.process_time() - start
    difference = distance(wanted, fast(sample))
    ours, theirs = times((fast, original), sample, seconds)
    for variable in model.variables if is_keras else ():
        variable.assign(moved(variable))
    report = fast.report
    whole = report.multiply_adds + report.multiply_adds_left
    return {
        "converted": report.multiply_adds / whole if whole else None,
        "reorders": len(report.reorders),
        "difference": difference,
        "noise": distance(wanted, original(tf.nest.map_structure(moved, sample))),
        "ours": of_timing(ours),
        "TensorFlow": of_timing(theirs),
        "rewriting_s": rewriting,
    }


def draw(model, sample) -> None:
    """Gives biases and scales that are all 0 or 1, and statistics of batches, other values."""
    import numpy as np

    random = np.random.default_rng(0)
    for variable in model.trainable_variables:
        values = np.asarray(variable)
        if values.ndim == 1 and values.dtype == np.float32:
            if not values.any():
                variable.assign(random.normal(0, 0.1, values.shape))
            elif (values == 1).all():
                variable.assign(random.uniform(0.8, 1.2, values.shape))
    layers = getattr(model, "_flatten_layers", lambda: model.layers)()
    norms = [layer for layer in layers if getattr(layer, "moving_mean", None) is not None]
    for layer in norms:
        layer.momentum = 0.0  # The statistics become those of the next call in training mode.
    if norms:
        model(sample, training=True)
    for layer in norms:
        mean, variance = np.asarray(layer.moving_mean), np.asarray(layer.moving_variance)
        layer.moving_mean.assign(mean + np.sqrt(variance) * random.normal(0, 0.1, mean.shape))
        layer.moving_variance.assign(np.where(variance > 0, variance, 1))


def moved(tensor):
    """A tensor whose floats are one ulp further up or down."""
    import numpy as np

    values = np.asarray(tensor)
    if values.dtype != np.float32:
        return tensor
    up = np.random.default_rng(0).integers(2, size=values.shape, dtype=bool)
    return np.nextafter(values, np.where(up, np.float32(np.inf), np.float32(-np.inf)))


def distance(wanted, got) -> float:
    """The largest one between two nests, as a share of the largest magnitude of its tensor."""
    import numpy as np
    import tensorflow as tf

    def flat(nest) -> list:
        return [np.asarray(tensor, np.float64) for tensor in tf.nest.flatten(nest)]

    pairs = zip(flat(wanted), flat(got), strict=True)
    return max(float(np.abs(a - b).max() / (np.abs(a).max() or 1)) for a, b in pairs)


def judged(row: dict) -> list[str]:
    """What is wrong with a network, in words."""
    if "error" in row:
        return ["failed"]
    faults = {
        "is wrong": not row["difference"] <= max(QUIET, MOST_NOISE * row["noise"]),  # or NaN
        "is slower than TensorFlow": row["ours"]["min_ms"] > MOST * row["TensorFlow"]["min_ms"],
        "loses time by reorders": row.get("reordering", 0) > MOST_REORDERING,
    }
    return [fault for fault, holds in faults.items() if holds]


def line(name: str, row: dict) -> str:
    """A row of the table."""
    if "error" in row:
        return f"| {name} | {row['error']} |"
    share = row["converted"]
    of_time = f" ({100 * row['reordering']:.1f} %)" if "reordering" in row else ""
    cells = [
        name,
        "none" if share is None else f"{100 * share:.0f} %",
        f"{row['reorders']}{of_time}",
        *(f"{row[key]:.0e}" for key in ("difference", "noise")),
        *(f"{row[key]['median_ms']:.2f} ({row[key]['min_ms']:.2f})" for key in TIMES),
        f"{row['rewriting_s']:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
