"""Parts with reorders are measured both ways; what is faster stays."""

import numpy as np
import pytest
import tensorflow as tf
from converts import converts
from graph_nodes import all_nodes

from tf_blockdnn.python.rewriter import Options, autotune, measure
from tf_blockdnn.python.targets import optimize

_SAME = {"strides": 1, "padding": "SAME"}


@pytest.fixture
def two_parts(weights):
    """Two convolutions with an op in between that has no blocked form."""
    kernels = [weights(3, 3, 24, 24), weights(3, 3, 24, 24)]

    def function(x):
        y = tf.math.bessel_i0e(tf.nn.conv2d(x, kernels[0], **_SAME, name="first"))
        return tf.nn.conv2d(y, kernels[1], **_SAME, name="second")

    return function


@pytest.fixture
def slow(monkeypatch):
    """slow(test): functions for which `test(op types)` holds take twice the others' time."""

    def give(test):
        def milliseconds(functions, inputs):
            assert [x.shape for x in inputs] == [[1, 8, 8, 24]]
            ops = [_ops(function) for function in functions]
            return [2.0 if test(counts) else 1.0 for counts in ops]

        monkeypatch.setattr(measure, "milliseconds", milliseconds)

    return give


def _ops(concrete):
    return [node.op for node in all_nodes(concrete)]


def test_a_part_that_loses_is_left(rewrite, image, two_parts, slow):
    """Here whatever has two converted convolutions is slow."""
    slow(lambda ops: ops.count("BlockdnnConv") != 1)
    result = rewrite(
        two_parts, [None, 8, 8, 24], options=Options(autotune=True), example=image(1, 8, 8, 24)
    )
    assert result.blockdnn["Conv"] == 1 and result.ops["Conv2D"] == 1
    assert result.reason("first") == autotune.REASON
    assert "2 ms became 1 without first" in result.report.notes[0]


def test_what_a_precision_costs_is_that_of_the_fastest(rewrite, image, two_parts, slow):
    """`report.precision` of a variant that wins names what is low in it."""
    slow(lambda ops: ops.count("BlockdnnConv") != 1)
    options = Options(autotune=True, precision="bf16-weights")
    data = np.random.default_rng(0).standard_normal((8, 8, 8, 24), np.float32)
    result = rewrite(two_parts, [None, 8, 8, 24], options=options, calibration=data)
    assert result.blockdnn["Conv"] == 1
    precision = result.report.precision
    assert [layer.node for layer in precision.layers] == ["second"]
    assert precision.outputs[0].snr > 30


def test_parts_are_measured_and_stay(rewrite, image, two_parts, slow):
    slow(lambda ops: ops.count("BlockdnnConv") != 1)
    result = rewrite(two_parts, [1, 8, 8, 24], options=Options(measure=True))
    assert result.blockdnn["Conv"] == 2
    measured = result.report.measured
    assert (measured.original_ms, measured.optimized_ms) == (2, 2)
    assert [(part.nodes, part.optimized_ms, part.without_ms) for part in measured.parts] == [
        (("first",), 2, 1),
        (("second",), 2, 1),
    ]
    assert "  with first left to TensorFlow: 1 ms instead of 2" in result.report.summary()


@converts(
    [1, 8, 8, 24],
    some={"Conv": 2},
    report={"notes": ["autotune: 2 ms as it was, 1 ms now"]},
    options=Options(autotune=True),
)
def test_parts_that_win_stay(x, two_parts, slow):
    slow(lambda ops: ops.count("BlockdnnConv") < 2)
    return two_parts(x)


def test_a_function_that_is_faster_as_it_was(rewrite, image, two_parts, slow):
    slow(lambda ops: "BlockdnnConv" in ops)
    options = Options(autotune=True)
    result = rewrite(two_parts, [None, 8, 8, 24], options=options, example=[image(1, 8, 8, 24)])
    assert not result.blockdnn
    assert result.concrete is result.original


def test_without_it_nothing_is_measured(rewrite, two_parts, slow):
    slow(lambda ops: pytest.fail("measured"))
    assert rewrite(two_parts, [None, 8, 8, 24]).blockdnn["Conv"] == 2


def test_what_is_measured(two_parts):
    """Really, on random inputs: the result is right whatever was faster."""
    function = tf.function(two_parts, input_signature=[tf.TensorSpec([None, 8, 8, 24])])
    fast = optimize(function, options=Options(autotune=True))
    assert any("ms as it was" in note for note in fast.report.notes)
    x = tf.constant(np.random.default_rng(0).standard_normal((3, 8, 8, 24)), tf.float32)
    np.testing.assert_allclose(fast(x), function(x), atol=1e-5)


@pytest.mark.parametrize("shapes", [[], [(1, 8, 8, 3)], [(1, 8, 8, 24), (1,)]])
def test_an_example_of_other_shapes_is_refused(rewrite, two_parts, shapes):
    example = [np.zeros(shape, np.float32) for shape in shapes]
    with pytest.raises(ValueError, match="example"):
        rewrite(two_parts, [None, 8, 8, 24], options=Options(autotune=True), example=example)
