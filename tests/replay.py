"""Compares what two versions of the rewriter make of networks: nothing may stop converting.

    python tests/replay.py write before.json [--kinds zoo,kerashub,huggingface,blocks]
    python tests/replay.py compare before.json after.json

`write` optimises each network strictly and keeps, of its report and its graph: how many ops of ours
there are, by op; which ops of TensorFlow are left, by op; reorders; what was declined, and why; the
share of multiply-adds; the processor's seconds. Weights are as Keras draws them, since nothing is
computed. To write the file of another version, put its checkout first on PYTHONPATH. `compare`
prints each network that differs; the exit code is 1 where one converts less or has more reorders.
"""

from __future__ import annotations

import argparse
import collections
import gc
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parents[1]
KINDS = ("zoo", "kerashub", "huggingface", "blocks")
BLOCK_NETWORKS = int(os.environ.get("TF_BLOCKDNN_NETWORKS", "200"))


def main() -> None:
    """Runs the command."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write")
    write.add_argument("file", type=pathlib.Path)
    write.add_argument("--kinds", type=lambda text: text.split(","), default=KINDS)
    write.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    compare = commands.add_parser("compare")
    compare.add_argument("before", type=pathlib.Path)
    compare.add_argument("after", type=pathlib.Path)
    options = parser.parse_args()
    if options.command == "compare":
        sys.exit(
            print_differences(*(json.loads(f.read_text()) for f in (options.before, options.after)))
        )
    if options.child:
        write_kind(options.kinds[0], options.file)
        return
    for kind in options.kinds:  # Hugging Face needs Keras 2, which a process chooses once.
        environ = os.environ | {"TF_BLOCKDNN_STRICT": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
        if kind == "huggingface":
            environ["TF_USE_LEGACY_KERAS"] = "1"
        command = [sys.executable, __file__, "write", options.file, "--kinds", kind, "--child"]
        subprocess.run(command, env=environ, check=False)


def write_kind(kind: str, file: pathlib.Path) -> None:
    """Adds the rows of one kind's networks to the file, one by one."""
    sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests/python/rewriter/networks")]
    rows = json.loads(file.read_text()) if file.exists() else {}
    for name, build in NETWORKS[kind]():
        key = f"{kind}/{name}"
        if key in rows:
            continue
        try:
            rows[key] = row_of(build())
        except Exception:
            rows[key] = {"error": traceback.format_exc().strip().splitlines()[-1]}
        file.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")
        print(key, rows[key].get("error", f"{rows[key].get('seconds', 0):.1f} s"), flush=True)
        gc.collect()


def row_of(target) -> dict:
    """What `optimize` makes of the target."""
    import tf_blockdnn as bd

    start = time.process_time()
    fast = bd.optimize(target)
    seconds = time.process_time() - start
    graph = fast.concrete.graph.as_graph_def()
    nodes = [*graph.node, *(node for f in graph.library.function for node in f.node_def)]
    ops = collections.Counter(node.op for node in nodes)
    report = fast.report
    whole = report.multiply_adds + report.multiply_adds_left
    return {
        "ours": {op: n for op, n in ops.items() if op.startswith("Blockdnn")},
        "left": {op: n for op, n in ops.items() if not op.startswith("Blockdnn")},
        "reorders": len(report.reorders),
        "declined": dict(collections.Counter(reason for _, reason in report.declined)),
        "share": report.multiply_adds / whole if whole else None,
        "seconds": seconds,
    }


def _zoo():
    from models import TRANSFORMERS, ZOO, applications

    applications.randomise = lambda model, parts=None: model
    with tempfile.TemporaryDirectory() as folder:
        for name, network in ZOO.items():
            if network.builder != TRANSFORMERS:
                place = os.path.join(folder, name)
                yield name, lambda network=network, place=place: _saved(network, place)


def _saved(network, folder: str) -> str:
    network.save(folder)
    return folder


def _kerashub():
    from models import applications

    applications.randomise = lambda model, parts=None: model
    from models import kerashub

    for name in kerashub.names():
        yield name, lambda name=name: kerashub.network(name).model


def _huggingface():
    import tensorflow as tf
    from models import huggingface

    def build(name):
        model = huggingface.Model(name)
        specs = [tf.TensorSpec(x.shape, x.dtype) for x in model.sample(2)]
        return tf.function(model, input_signature=specs)

    for name in huggingface.ROWS:
        yield name, lambda name=name: build(name)


def _blocks():
    import keras
    import numpy as np
    from blocks import BLOCKS, network

    for seed in range(BLOCK_NETWORKS):
        random = np.random.default_rng(seed)
        blocks = [BLOCKS[i] for i in random.integers(len(BLOCKS), size=random.integers(1, 6))]
        channels = int(random.choice([16, 24, 32, 48]))

        def build(blocks=blocks, channels=channels, seed=seed):
            keras.utils.set_random_seed(seed)
            return network(blocks, channels)

        yield f"{seed}-{channels}-{'-'.join(block.__name__ for block in blocks)}", build


NETWORKS = {"zoo": _zoo, "kerashub": _kerashub, "huggingface": _huggingface, "blocks": _blocks}


def print_differences(before: dict, after: dict) -> int:
    """Prints what differs; 1 where a network converts less, has more reorders or fails now."""
    worse = []
    for name in sorted(before.keys() & after.keys()):
        old, new = before[name], after[name]
        keys = [key for key in sorted(old.keys() | new.keys()) if key != "seconds"]
        changed = [key for key in keys if old.get(key) != new.get(key)]
        if not changed:
            continue
        is_worse = _is_worse(old, new)
        worse += [name] * is_worse
        print(f"{name}{' (worse)' if is_worse else ''}")
        for key in changed:
            print(f"  {key}: {_change(old.get(key), new.get(key))}")
    seconds = [sum(row.get("seconds", 0) for row in rows.values()) for rows in (before, after)]
    both = len(before.keys() & after.keys())
    print(f"{both} networks, {len(worse)} worse; {seconds[0]:.0f} s before, {seconds[1]:.0f} after")
    return int(bool(worse))


def _is_worse(old: dict, new: dict) -> bool:
    if "error" in old or "error" in new:
        return "error" in new and "error" not in old
    fewer = any(
        new["ours"].get(op, 0) < n for op, n in old["ours"].items() if op != "BlockdnnReorder"
    )
    return (
        fewer
        or new["reorders"] > old["reorders"]
        or (new["share"] or 0) < (old["share"] or 0) - 1e-9
    )


def _change(old, new) -> str:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [key for key in old.keys() | new.keys() if old.get(key, 0) != new.get(key, 0)]
        return ", ".join(f"{key} {old.get(key, 0)} -> {new.get(key, 0)}" for key in sorted(keys))
    return f"{old} -> {new}"


if __name__ == "__main__":
    main()
