"""The list of passes: one signature, one table in the docs; what functions share."""

import inspect
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn import Options
from tf_blockdnn.python.rewriter import Bundles, Rewrite, optimize_concrete
from tf_blockdnn.python.rewriter.capture import capture
from tf_blockdnn.python.rewriter.passes.order import PASSES
from tf_blockdnn.python.rewriter.verify import difference

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-it-works.md"


def test_every_pass_takes_the_graph_and_the_context():
    for run in PASSES:
        assert list(inspect.signature(run).parameters)[1:] == ["context"], run


def passes_table() -> str:
    """The passes as rows of a Markdown table: function, file, the docstring's first line."""
    rows = ["| pass | file in `python/rewriter/passes/` | what it does |", "|---|---|---|"]
    for run in PASSES:
        file = run.__module__.partition(".passes.")[2].replace(".", "/")
        line = run.__doc__.partition("\n")[0].rstrip(".")
        rows.append(f"| `{run.__name__}` | `{file}.py` | {line[0].lower()}{line[1:]} |")
    return "\n".join(rows)


def test_the_table_in_the_docs_is_the_list_of_passes():
    table = passes_table()
    assert table in _PAGE.read_text(), f"docs/how-it-works.md must have this table:\n{table}"


def test_a_losing_island_does_not_capture_again(rewrite, monkeypatch, conv):
    calls = []

    def counted(*args, **options):
        calls.append(args)
        return capture(*args, **options)

    monkeypatch.setattr("tf_blockdnn.python.rewriter.rewrite.capture", counted)

    def function(x):
        y = tf.math.bessel_i0e(conv(x, 32))
        return tf.math.bessel_i0e(conv(y, 16, 1))

    result = rewrite(function, [1, 8, 8, 32])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    assert "two reorders" in result.reason("Conv2D_1")
    assert len(calls) == 1


def test_rules_say_where_they_end(weights):
    kernel = weights(3, 3, 16, 16)

    def function(x):
        with tf.name_scope("gate"):
            y = tf.nn.conv2d(x, kernel, 1, "SAME", name="conv")
            return y * tf.sigmoid(y + 1.0, name="open")

    concrete = tf.function(function).get_concrete_function(tf.TensorSpec([1, 8, 8, 16]))
    lines = Rewrite(concrete, Options(), Bundles()).why_not("gate")
    assert "gate/mul (Mul) is no swish: gate/add is made by AddV2, not by Mul" in lines
    assert not any("gate/conv (" in line for line in lines)  # It is converted.
    left = Rewrite(concrete, Options(exclude=["gate/conv"]), Bundles()).why_not("conv")
    assert set(left) == {"gate/conv (Conv2D) is no convolution: excluded by 'gate/conv'"}


@pytest.mark.parametrize(
    "values, others",
    [
        (np.array([1, np.nan, 0], np.float32), np.array([1, np.nan, -0.0], np.float32)),
        (np.array([b"a", b"bc"], object), np.array([b"a", b"d"], object)),
        (np.ones([], np.int64), np.zeros([], np.int64)),
        (np.ones([2, 3]), np.ones([3, 2])),
    ],
)
def test_equal_values_are_shared_and_others_are_not(values, others):
    bundles = Bundles()
    variable = bundles.variable(values)
    assert bundles.variable(values.copy()) is variable
    assert bundles.variable(others) is not variable


def test_a_variable_that_was_assigned_is_not_shared():
    bundles, values = Bundles(), np.ones([2], np.float32)
    variable = bundles.variable(values)
    variable.assign([1.0, 2.0])
    assert bundles.variable(values) is not variable


def test_they_are_shared_while_a_function_is_traced():
    bundles, variables = Bundles(), []

    @tf.function
    def function():
        variables.extend(bundles.variable(np.zeros([0, 4], np.float32)) for _ in range(2))

    function()
    assert variables[0] is variables[1]


def repeated(step, x, times=400):
    for i in range(times):
        x = step(x, i)
    return x


def masked_by(mask, x):
    scores = tf.where(mask, tf.matmul(x, x, transpose_b=True), -1e9)
    return tf.matmul(tf.nn.softmax(scores), x)


KERNEL, ROW = np.full((1, 1, 8, 8), 0.1, np.float32), np.linspace(0.5, 1, 8, dtype=np.float32)
# What walks go along, back from a convolution or forward from it.
DEEP = {
    "weights": lambda x: tf.nn.conv2d(
        x,
        repeated(lambda y, i: tf.reshape(y, [1, 1, 8, 8] if i % 2 else [8, 8]), KERNEL),
        1,
        "SAME",
    ),
    # Also twice along each way: 2 to the power of 400 ways in all.
    "a number": lambda x: tf.nn.conv2d(x, KERNEL, 1, "SAME") * repeated(lambda y, i: y * y, 1.0),
    "a shared bias": lambda x: (
        tf.nn.conv2d(x, KERNEL, 1, "SAME")
        + repeated(lambda y, i: tf.reshape(y, [8] if i % 2 else [1, 8]), ROW)
    ),
    "blocks": lambda x: repeated(lambda y, i: tf.nn.relu(y), tf.nn.conv2d(x, KERNEL, 1, "SAME")),
    "sums": lambda x: repeated(lambda y, i: y + 0.01, tf.nn.conv2d(x, KERNEL, 1, "SAME")),
    "a mask": lambda x: masked_by(
        repeated(lambda y, i: tf.logical_not(y), tf.abs(x[..., :4]) < 1.0), x
    ),
    "a view of a mask": lambda x: masked_by(
        repeated(lambda y, i: tf.reshape(y, [4, 4] if i % 2 else [1, 4, 4]), np.tri(4) > 0), x
    ),
    "a bias": lambda x: tf.matmul(
        tf.nn.softmax(
            tf.matmul(x, x, transpose_b=True) + repeated(lambda y, i: tf.abs(y), x[..., :4])
        ),
        x,
    ),
}


@pytest.mark.parametrize("name", DEEP)
def test_graphs_may_be_deeper_than_pythons_stack(name, floats):
    function = tf.function(DEEP[name], input_signature=[tf.TensorSpec([2, 4, 4, 8])])
    original, limit = function.get_concrete_function(), sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 250)
    try:
        rewritten = optimize_concrete(original, options=Options(strict=True))
    finally:
        sys.setrecursionlimit(limit)
    x = tf.constant(floats(2, 4, 4, 8))
    assert difference(original(x).numpy(), rewritten.concrete(x).numpy()) < 1e-5
    assert rewritten.report.count("BlockdnnConv") + rewritten.report.count("BlockdnnAttention") == 1


def _slices(x, matrix, count):
    """A locally connected layer: each patch has a product of its own."""
    patches = [tf.matmul(x[:, i : i + 3], matrix) for i in range(count)]
    return tf.stack(patches, 1)


def _layers(x, matrix, count):
    for _ in range(count):
        x = tf.concat([tf.nn.relu(tf.matmul(x[:, :3], matrix)) + 1.0, x[:, 2:]], 1)
    return x


def _results(x, matrix, count):
    return [tf.matmul(x[:, i : i + 3], matrix) for i in range(count)]


def _loops(x, matrix, count):
    loops = [
        tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * 0.5), [0, x[:, i]])[1]
        for i in range(count)
    ]
    return [tf.matmul(x[:, :3], matrix), *loops]


@pytest.mark.parametrize("network", [_slices, _layers, _results, _loops])
def test_rewriting_is_linear(floats, network):
    """Counted are the lines of ours that run, each turn of a comprehension, too."""

    def lines(count):
        ran = 0

        def enter(frame, event, _):
            return step if "/python/" in frame.f_code.co_filename else None

        def step(frame, event, _):
            nonlocal ran
            ran += event == "line"
            return step

        matrix = tf.constant(floats(3, 2 if network is not _layers else 3))
        traced = tf.function(lambda x: network(x, matrix, count), autograph=False)
        concrete = traced.get_concrete_function(tf.TensorSpec([None, 4 * count + 8]))
        before = sys.gettrace()
        sys.settrace(enter)
        try:
            optimize_concrete(concrete)
        finally:
            sys.settrace(before)
        return ran

    lines(4)  # what is done once a process
    few, many = lines(40), lines(240)
    assert many < 6.3 * few, (few, many)
