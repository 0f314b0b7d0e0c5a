"""Checks and measures the backbones of KerasHub (models/kerashub) against TensorFlow.

    pip install -r benchmarks/requirements-kerashub.txt
    python benchmarks/backbones.py [--models text/bert,cnn/resnet50] [--seconds 2]

Each is built with random weights, optimised with the default options and compared on one sample:
outputs must lie within 2e-4 of TensorFlow's, as a share of the largest magnitude. Both run in one
process, TensorFlow by its defaults, in turns of three calls. One whose fastest call takes more than
1.03 of TensorFlow's time is named, and the exit code is then 1. Results go to docs/backbones.json,
row by row; `python benchmarks/zoo.py --page` writes the page.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import pathlib
import sys
import textwrap
import time

from measuring import machine, turns
from measuring.difference import largest_difference
from measuring.prepare import HERE
from measuring.timing import Timing, interleave, timed

DOCS = HERE.parent / "docs"
# With random weights, 50 layers multiply what rounding does: outputs of ResNetVD-50 differ by 5e-5
# between TensorFlow with oneDNN and without, by 7e-5 with algorithm="direct", by 1e-4 with "auto".
TOLERANCE = 2e-4
MOST = 1.03  # of TensorFlow's time
CALLS = 3  # a turn

INTRODUCTION = """
## KerasHub's backbones

The backbones of KerasHub {hub} (`benchmarks/models/kerashub`), built with random weights at batch 1
and optimised in the same way. Texts have 128 tokens, and pictures 224 x 224 pixels unless the code
says otherwise; transformers are as wide as published, but mostly four layers deep. *Converted* is
the share of multiply-adds that runs in our ops. Times are medians in milliseconds with the fastest
call in parentheses, {calls} calls of each in turns within one process, TensorFlow by its defaults;
the *speed-up* is TensorFlow's median divided by ours. *Rewriting* is the time of `optimize` in
seconds, Keras's tracing included. D-FINE is left out, since it is unstable with random weights:
where its kernels are moved by 1e-6, the original's own results move by 0.77.

{note}
{missing}
| network | converted | reorders | difference | tf_blockdnn | TensorFlow | speed-up | rewriting |
|---|---:|---:|---:|---:|---:|---:|---:|
"""


def main() -> None:
    """Parses the arguments, measures and writes."""
    options = _parse()
    facts = machine.facts()
    slow = []
    for name in options.models:
        row = measure(name, options.seconds)
        gc.collect()
        _keep(name, row, facts, options.output)
        print(line(name, row), flush=True)
        if row["difference"] > TOLERANCE or ratio(row) > MOST:
            slow.append(name)
    if slow:
        sys.exit(f"wrong or slower than TensorFlow: {', '.join(slow)}")


def _parse() -> argparse.Namespace:
    import os

    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from models import kerashub

    names = kerashub.names()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=turns.among(names), default=names)
    parser.add_argument("--seconds", type=float, default=2, help="of timing for each")
    parser.add_argument("--output", type=pathlib.Path, default=DOCS / "backbones.json")
    return parser.parse_args()


def measure(name: str, seconds: float, quiet=contextlib.nullcontext) -> dict:
    """The row of one backbone: what converted, the difference and milliseconds.

    Args:
      quiet: a context in which calls are timed.
    """
    import tensorflow as tf
    from models import kerashub

    import tf_blockdnn as bd

    tf.config.threading.set_inter_op_parallelism_threads(1)
    network = kerashub.network(name)
    sample = tf.constant(network.sample())
    spec = tf.TensorSpec([None, *sample.shape[1:]], sample.dtype)
    original = tf.function(lambda x: network.model(x, training=False), input_signature=[spec])
    start = time.perf_counter()
    fast = bd.optimize(network.model)
    rewriting = time.perf_counter() - start
    difference = _difference(tf.nest.flatten(original(sample)), tf.nest.flatten(fast(sample)))
    with quiet():
        ours, theirs = times((fast, original), sample, seconds)
    report = fast.report
    return {
        "converted": (
            report.multiply_adds / total
            if (total := report.multiply_adds + report.multiply_adds_left)
            else None
        ),
        "reorders": len(report.reorders),
        "difference": difference,
        "rewriting_s": rewriting,
        "tf_blockdnn": of_timing(ours),
        "tensorflow": of_timing(theirs),
        "calls": len(ours.milliseconds),
    }


def _difference(wanted, got) -> float:
    """The largest one, as a share of the largest magnitude of its output."""
    pairs = zip(wanted, got, strict=True)
    return max(largest_difference([a], [b]).relative for a, b in pairs)


def times(functions, sample, seconds: float) -> list[Timing]:
    """Of each function, in turns of `CALLS` calls."""
    calls = [timed(functools.partial(function, sample)) for function in functions]
    turns = {str(i): lambda call=call: [*call(), *call(), *call()] for i, call in enumerate(calls)}
    once = sum(timing.minimum for timing in interleave(turns, runs=1, warmup=1).values()) / 1e3
    rounds = max(2, round(seconds / (CALLS * once)))
    return list(interleave(turns, runs=rounds, warmup=0).values())


def of_timing(timing: Timing) -> dict[str, float]:
    return {"min_ms": timing.minimum, "median_ms": timing.median}


def ratio(row: dict) -> float:
    """Our fastest call's time divided by TensorFlow's."""
    return row["tf_blockdnn"]["min_ms"] / row["tensorflow"]["min_ms"]


def speedup(row: dict) -> float:
    """TensorFlow's time divided by ours, by medians."""
    return row["tensorflow"]["median_ms"] / row["tf_blockdnn"]["median_ms"]


def line(name: str, row: dict) -> str:
    """A row of the table."""
    share = row["converted"]
    times = (
        f"{row[who]['median_ms']:.2f} ({row[who]['min_ms']:.2f})"
        for who in ("tf_blockdnn", "tensorflow")
    )
    cells = [
        name,
        "none" if share is None else f"{100 * share:.0f} %",
        str(row["reorders"]),
        f"{row['difference']:.0e}",
        *times,
        f"{speedup(row):.1f}x",
        f"{row['rewriting_s']:.1f}",
    ]
    return f"| {' | '.join(cells)} |"


def section(document: dict) -> str:
    """The part of docs/zoo.md that docs/backbones.json gives."""
    rows = document["networks"]
    calls = [row["calls"] for row in rows.values()]
    missing = f"Not measured: {', '.join(document['missing'])}." if document["missing"] else ""
    about = document | {
        "calls": f"{min(calls)} to {max(calls)}",
        "missing": f"\n{textwrap.fill(missing, 100)}\n" if missing else "",
    }
    return INTRODUCTION.format(**about) + "".join(f"{line(n, rows[n])}\n" for n in sorted(rows))


def _keep(name: str, row: dict, facts: dict, path: pathlib.Path) -> None:
    import keras_hub
    import tensorflow as tf
    from models import kerashub

    cpu, threads = facts["machine"]["cpu"], facts["machine"]["cores"]
    document = turns.kept(path, "networks") | {
        "hub": keras_hub.__version__,
        "note": f"{cpu}; {threads} threads; {turns.today()}; TensorFlow {tf.__version__}; "
        f"commit {facts['commit']}.",
    }
    document["networks"][name] = row
    document["missing"] = [name for name in kerashub.names() if name not in document["networks"]]
    turns.keep(path, document)


if __name__ == "__main__":
    main()
