"""Checks what `optimize` makes of Hugging Face's TF models (models/huggingface.py).

    pip install -r benchmarks/requirements-huggingface.txt
    python benchmarks/huggingface.py [--models bert,swin]

Each is built with random weights, optimised strictly for two sequences or pictures, and compared:
outputs must lie within 1e-5 of TensorFlow's, as a share of the largest magnitude. What is left of
products, softmax and transposes is counted. Rows go to docs/huggingface.json;
`python benchmarks/zoo.py --page` writes the page. The exit code is 1 where one is wrong.
"""

from __future__ import annotations

import argparse
import collections
import os
import pathlib
import sys

from measuring import machine, turns

DOCS = pathlib.Path(__file__).resolve().parent.parent / "docs"
TOLERANCE = 1e-5
BATCH = 2

INTRODUCTION = """
## Hugging Face's TF models

Models of transformers {version} on tf_keras (`benchmarks/models/huggingface.py`): two layers of
256 channels with random weights, 64 tokens or small pictures, batch {batch}, padding in the first
sequence. Their times were not measured. *Attention* is how many attentions became one op each. The
next columns count the matmuls, softmaxes and transposes that are left to TensorFlow, and the last
one has the largest difference from TensorFlow's states, as a share of their largest magnitude.

Swin adds a bias to its scores whose shape the graph does not tell, as conditions compute the size
of its windows. DeBERTa and XLNet add matmuls by positions to their scores, which stay matmuls of
two computed tensors. One matmul of ESM is by weights along an axis that is not the last.

Commit {commit}, {date}; two cores of an AMD EPYC (Zen 3), TensorFlow 2.21.

| model | attention | matmuls left | softmax left | transposes left | difference |
|---|---:|---:|---:|---:|---:|
"""


def main() -> None:
    """Parses the arguments, checks and writes."""
    options = _parse()
    facts = machine.facts()
    wrong = []
    for name in options.models:
        row = check(name)
        print(line(name, row), flush=True)
        for reason in row["declined"]:
            print(f"    {reason}", flush=True)
        _keep(name, row, facts, options.output)
        if row["difference"] > TOLERANCE:
            wrong.append(name)
    if wrong:
        sys.exit(f"wrong: {', '.join(wrong)}")


def _parse() -> argparse.Namespace:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["TF_BLOCKDNN_STRICT"] = "1"
    os.environ["TF_USE_LEGACY_KERAS"] = "1"
    from models import huggingface

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = list(huggingface.ROWS)
    parser.add_argument("--models", type=turns.among(names), default=names)
    parser.add_argument("--output", type=pathlib.Path, default=DOCS / "huggingface.json")
    return parser.parse_args()


def check(name: str) -> dict:
    """The row of one model: what was converted and is left, and the difference."""
    import numpy as np
    import tensorflow as tf
    from models import huggingface

    import tf_blockdnn as bd

    tf.config.threading.set_inter_op_parallelism_threads(1)
    model = huggingface.Model(name)
    sample = [tf.constant(x) for x in model.sample(BATCH)]
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in sample]
    original = tf.function(model, input_signature=specs)
    fast = bd.optimize(original)
    wanted, got = (np.asarray(f(*sample), np.float64) for f in (original, fast))
    ops = _counted(fast)
    return {
        "attention": ops["BlockdnnAttention"],
        "products": sum(ops[op] for op in ("BatchMatMulV2", "Einsum", "MatMul")),
        "softmax": ops["Softmax"] + ops["BlockdnnSoftmax"],
        "transposes": ops["Transpose"],
        "declined": _reasons(fast.report),
        "difference": float(np.abs(wanted - got).max() / np.abs(wanted).max()),
    }


def _counted(fast) -> collections.Counter:
    """op -> how many there are in the graph and its functions."""
    graph = fast.concrete.graph.as_graph_def()
    nodes = [*graph.node, *(node for one in graph.library.function for node in one.node_def)]
    return collections.Counter(node.op for node in nodes)


def _reasons(report) -> list[str]:
    """Why products, softmax and attention stayed, each reason once with its number."""
    counts = collections.Counter(reason for _, reason in report.declined)
    return [f"{count} x {reason}" for reason, count in sorted(counts.items())]


def line(name: str, row: dict) -> str:
    """A row of the table."""
    counts = (str(row[key]) for key in ("attention", "products", "softmax", "transposes"))
    return f"| {' | '.join([name, *counts, format(row['difference'], '.0e')])} |"


def section(document: dict) -> str:
    """The part of docs/zoo.md that docs/huggingface.json gives."""
    rows = document["models"]
    return INTRODUCTION.format(**document) + "".join(f"{line(n, rows[n])}\n" for n in sorted(rows))


def _keep(name: str, row: dict, facts: dict, path: pathlib.Path) -> None:
    import transformers

    document = turns.kept(path, "models") | {
        "version": transformers.__version__,
        "batch": BATCH,
        "commit": facts["commit"],
        "date": turns.today(),
    }
    document["models"][name] = row
    turns.keep(path, document)


if __name__ == "__main__":
    main()
