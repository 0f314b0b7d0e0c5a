"""Each pattern of the rewriter, with constants at their edges and formulas spoilt, is TensorFlow.

TF_BLOCKDNN_EXAMPLES says how many cases, TF_BLOCKDNN_SEED which; a thousand take two minutes.
"""

import collections
import os

import children
import edge_graphs

from tf_blockdnn.python.rewriter.patterns import PATTERNS
from tf_blockdnn.python.rewriter.patterns.pixels import elementwise
from tf_blockdnn.python.rewriter.rules.rule import Rule

_EXAMPLES = int(os.environ.get("TF_BLOCKDNN_EXAMPLES", "480"))
_SEED = int(os.environ.get("TF_BLOCKDNN_SEED", "0"))


def _module(name):
    return name.partition(":")[0]


def test_every_pattern_has_a_formula():
    patterns = [pattern for found in PATTERNS.values() for pattern in found]
    patterns += [one for one in vars(elementwise).values() if hasattr(one, "ROOTS")]
    modules = [
        one.formula.__module__ if isinstance(one, Rule) else one.__name__ for one in patterns
    ]
    wanted = {module.rpartition(".")[2] for module in modules}
    assert {_module(name) for name in edge_graphs.FORMULAS} == wanted


def test_edges():
    names = [*edge_graphs.FORMULAS]
    cases = [(names[i % len(names)], _SEED, i // len(names)) for i in range(_EXAMPLES)]
    counts = {name: collections.Counter() for name in names}
    _count(cases, counts)
    # What is never converted proves nothing; some are one time in five, so a few tell little.
    rare = [name for name in names if not counts[name]["converted"]]
    _count([(name, _SEED, 1_000_000 + i) for name in rare for i in range(40)], counts)
    print(*(f"{name}: {dict(count)}" for name, count in counts.items()), sep="\n")
    assert all(count["converted"] for count in counts.values()), counts


def _count(cases, counts):
    """Checks the cases and counts what became of them."""
    results = children.check(edge_graphs.run, cases) if cases else []
    for (name, *_), (fired, _) in zip(cases, results, strict=True):
        counts[name]["no case" if fired is None else "converted" if fired else "left"] += 1
