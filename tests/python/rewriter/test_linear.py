"""The work of rewriting grows as the graph does."""

import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.graph import OneOf
from tf_blockdnn.python.graph.families import BEGINNINGS
from tf_blockdnn.python.graph.match import Pattern
from tf_blockdnn.python.rewriter.patterns import PATTERNS
from tf_blockdnn.python.rewriter.rules import Rule

_MOST = 1.2
_OURS = str(Path(bd.__file__).resolve().parents[1])


def _slices(count: int):
    """A locally connected layer, with a matrix for each place."""
    draw = np.random.default_rng(0).normal
    matrices = [tf.Variable(draw(size=(36, 4)).astype("f")) for _ in range(count)]

    def function(x):
        rows = [tf.reshape(x[:, i : i + 3, :3], (-1, 36)) for i in range(count)]
        return tf.concat([tf.matmul(*pair) for pair in zip(rows, matrices, strict=True)], 1)

    return function, (1, count + 2, 3, 4)


def _blocks(count: int):
    """Residual blocks."""
    kernel = np.random.default_rng(0).normal(size=(3, 3, 16, 16)).astype("f")

    def function(x):
        for _ in range(count):
            y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME") * kernel[0, 0, 0])
            x += tf.nn.conv2d(y, kernel, 1, "SAME")
        return x

    return function, (1, 16, 16, 16)


def _joins(count: int):
    """Convolutions side by side, whose channels are joined."""
    kernels = np.random.default_rng(0).normal(size=(2, 1, 1, 32, 16)).astype("f")

    def function(x):
        for _ in range(count):
            x = tf.nn.relu(tf.concat([tf.nn.conv2d(x, kernel, 1, "SAME") for kernel in kernels], 3))
        return x

    return function, (1, 8, 8, 32)


def _loops(count: int):
    """A convolution, and a loop over each of its channels, as of detectors for each class."""
    draw = np.random.default_rng(0).normal
    kernel, heads = draw(size=(3, 3, 16, 16)), draw(size=(1, 1, 16, count))

    def function(x):
        y = tf.nn.relu(tf.nn.conv2d(x, kernel.astype("f"), 1, "SAME"))
        y = tf.nn.conv2d(y, heads.astype("f"), 1, "SAME")
        scores = [tf.reshape(y[..., i], [-1]) for i in range(count)]
        step = lambda i, s: (i + 1, s - 0.1 * tf.reduce_max(s))  # noqa: E731
        return [tf.while_loop(lambda i, _: i < 5, step, [0, s])[1] for s in scores]

    return function, (1, 16, 16, 16)


def _lines(function, shape: tuple) -> tuple[int, Counter]:
    """The nodes of a function, and how many lines of ours `optimize` of it runs, by function."""
    spec = tf.TensorSpec(shape)
    concrete = tf.function(function, autograph=False).get_concrete_function(spec)
    lines: Counter = Counter()

    def count(frame, event, _):
        lines[frame.f_code] += event == "line"
        return count

    def enter(frame, event, argument):
        return count if frame.f_code.co_filename.startswith(_OURS) else None

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        assert bd.optimize(concrete).report.converted
    finally:
        sys.settrace(before)
    return len(concrete.graph.get_operations()), lines


@pytest.mark.parametrize("network", [_slices, _blocks, _joins, _loops])
def test_work_grows_no_faster_than_the_graph(network):
    _lines(*network(2))  # what is done once
    (few, lines), (many, others) = (_lines(*network(count)) for count in (8, 32))
    growth = many / few * _MOST
    slow = {c.co_qualname: (n, lines[c]) for c, n in others.items() if n > growth * lines[c] + 999}
    assert sum(others.values()) < growth * sum(lines.values()), slow
    assert not slow


def _begins(pattern) -> bool:
    """Whether whatever is this has one of the ops."""
    if isinstance(pattern, OneOf):
        return all(map(_begins, pattern.patterns))
    inner = [*getattr(pattern, "args", ()), *vars(pattern).values()]
    inner = [part for part in inner if isinstance(part, Pattern)]
    ops = getattr(pattern, "ops", None)
    return bool(ops) and ops <= BEGINNINGS or any(map(_begins, inner))


def test_what_is_converted_in_a_loop_has_an_op_that_is_looked_for():
    passes = ("lift_attention", "lift_convolutions", "lift_inner_products")
    for pattern in (pattern for run in passes for pattern in PATTERNS[run]):
        is_rule = isinstance(pattern, Rule)
        assert _begins(pattern.pattern) if is_rule else BEGINNINGS.issuperset(pattern.ROOTS)
