"""Loops, conditions and calls are converted inside: counted, compared, saved and loaded."""

import collections
import functools
import itertools

import numpy as np
import pytest
import tensorflow as tf
from converts import converts

from tf_blockdnn.python.errors import VerificationError
from tf_blockdnn.python.rewriter import emit, optimize_concrete
from tf_blockdnn.python.targets import optimize

_SAME = {"strides": 1, "padding": "SAME"}


def _ops(nodes):
    return collections.Counter(node.op for node in nodes)


def _loop(step, x, times=3):
    """`step` applied `times` times by a While."""
    return tf.while_loop(lambda i, y: i < times, lambda i, y: (i + 1, step(y)), [0, x])[1]


def _conv(kernel):
    return lambda y: tf.nn.conv2d(y, kernel, **_SAME)


def test_the_body_of_a_loop(rewrite, weights, conv):
    step = lambda y: tf.nn.relu(conv(y, 16) + weights(16))  # noqa: E731
    result = rewrite(lambda x: _loop(step, x), [None, 6, 6, 16])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    assert "Conv2D" not in result.ops and result.report.declined == []
    (item,) = result.report.converted
    assert item.node == "while/body/while/Relu" and "eltwise(relu)" in item.details
    assert result.report.reorders[0][0].startswith("while/body/")


def test_weights_are_packed_once_not_once_an_iteration(rewrite, weights):
    """The bundle is read once, outside: the same memory in every iteration, whose pack is kept."""
    result = rewrite(lambda x: _loop(_conv(weights(3, 3, 16, 16)), x, 5), [1, 6, 6, 16])
    graph_def = result.concrete.graph.as_graph_def()
    assert _ops(graph_def.node)["ReadVariableOp"] == 1
    inner = [node for f in graph_def.library.function for node in f.node_def]
    assert _ops(inner)["ReadVariableOp"] == 0
    (conv,) = (node for node in inner if node.op == "BlockdnnConv")
    assert conv.attr["constant_weights"].b


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_both_branches_of_a_condition(sign, rewrite, image, conv):
    def function(x):
        return tf.cond(
            tf.reduce_sum(x) > 0, lambda: tf.nn.relu(conv(x, 16)), lambda: conv(x, 32)[..., :16]
        )

    result = rewrite(function, [1, 6, 6, 16])
    assert result.blockdnn["Conv"] == 2 and result.ops["If"] + result.ops["StatelessIf"] == 1
    result.assert_same(sign * tf.abs(image(1, 6, 6, 16)))


def test_only_one_branch_reads_weights(rewrite, weights, image):
    def function(x):
        return tf.cond(
            tf.reduce_sum(x) > 0, lambda: _conv(weights(3, 3, 16, 16))(x), lambda: x * 2.0
        )

    result = rewrite(function, [1, 6, 6, 16])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    for sign in (1.0, -1.0):
        result.assert_same(sign * tf.abs(image(1, 6, 6, 16)))


def test_nested_bodies_share_one_bundle(rewrite, weights):
    kernel = weights(3, 3, 16, 16)

    def step(y):
        y = tf.cond(tf.reduce_sum(y) > 0, lambda: _conv(kernel)(y), lambda: y * 0.5)
        return tf.tanh(_conv(kernel)(y))

    result = rewrite(lambda x: _conv(kernel)(_loop(step, x)), [None, 6, 6, 16])
    assert result.blockdnn["Conv"] == 3 and result.report.count("BlockdnnConv") == 3
    bundles = [v for v in result.trackables if "blockdnn_weights" in v.name]
    assert [v.shape.num_elements() for v in bundles] == [3 * 3 * 16 * 16]


def _if(body, y):
    return tf.cond(tf.reduce_sum(y) > -1e9, lambda: body(y), lambda: y * 0.5)


def _case(body, y):
    number = tf.cast(tf.reduce_sum(y) > 1e9, tf.int32)
    return tf.switch_case(number, [lambda: body(y), lambda: y * 0.5, lambda: y - 1.0])


def _map(body, y):
    return tf.map_fn(lambda row: body(row[None])[0], y)


_WAYS = {"if": _if, "while": _loop, "case": _case, "map": _map}


def _attend(y):
    """Something of ours without weights."""
    rows = tf.reshape(y, [-1, 36, 16])
    scores = tf.nn.softmax(tf.matmul(rows, rows, transpose_b=True) * 0.25)
    return tf.reshape(tf.matmul(scores, rows), tf.shape(y))


@pytest.mark.parametrize(
    "ways",
    [*itertools.product(_WAYS, _WAYS, ["if"]), ("if", "if", "while"), ("if", "if", "case")],
    ids="-".join,
)
def test_only_the_innermost_of_three_bodies_has_something_to_convert(ways, rewrite, weights, image):
    kernel = weights(3, 3, 16, 16)

    def nested(body):
        for way in reversed(ways):
            body = functools.partial(_WAYS[way], body)
        return body

    for body, op in ((_conv(kernel), "BlockdnnConv"), (_attend, "BlockdnnAttention")):
        result = rewrite(nested(body), [2, 6, 6, 16])
        assert result.report.count(op) == 1 == result.ops[op], result.report.summary()
        result.assert_same(image(2, 6, 6, 16))


def test_what_is_reported_and_not_written_is_refused(rewrite, monkeypatch):
    monkeypatch.setattr(emit._Calls, "write", lambda *args: None)
    with pytest.raises(VerificationError, match="1 BlockdnnAttention of 1 .* are not"):
        rewrite(lambda x: _if(_attend, x), [1, 6, 6, 16])


@converts([1, 6, 6, 16], {"Conv": 1, "Reorder": 2})
def test_constants_from_outside_are_constants_inside(x, weights):
    scaled = weights(3, 3, 16, 16) * 0.5  # read and computed outside, handed down
    return _loop(lambda y: tf.nn.relu(_conv(scaled)(y)), x)


@converts([1, 6, 6, 16], {}, reason=("Conv2D", "computed or assigned"))
def test_what_a_loop_changes_is_no_constant(x, weights):
    def step(i, y, w):
        return i + 1, tf.nn.conv2d(y, w, **_SAME), w * 0.5

    return tf.while_loop(lambda i, *_: i < 3, step, [0, x, weights(3, 3, 16, 16).read_value()])[1]


@converts([1, 6, 6, 16], {}, reason=("Conv2D", "computed or assigned"))
def test_weights_that_a_loop_assigns_are_left_alone(x, weights):
    kernel = weights(3, 3, 16, 16)

    def step(y):
        kernel.assign(kernel * 1.0)
        return _conv(kernel)(y)

    return _loop(step, x)


@converts([1, 6, 6, 64], {}, reason=("Conv2D", "two reorders"))
def test_an_island_in_a_body_that_loses_stays(x, conv):
    pad = [[0, 0], [0, 0], [0, 0], [0, 32]]
    return _loop(lambda y: tf.pad(conv(y, 32, 1), pad), x)


@converts([1, 6, 6, 16], {"Conv": 1, "Reorder": 2}, ops={"Mul": 0})
def test_batch_normalisation_is_folded_inside(x, weights):
    step = lambda y: tf.nn.relu(_conv(weights(3, 3, 16, 16))(y) * weights(16) + weights(16))  # noqa: E731
    return _loop(step, x)


def test_saved_and_loaded(weights, image, tmp_path):
    spec = [tf.TensorSpec([None, 6, 6, 16], name="x")]
    function = tf.function(
        lambda x: {"y": _loop(_conv(weights(3, 3, 16, 16)), x)}, input_signature=spec
    )
    fast = optimize(function)
    assert fast.report.count("BlockdnnConv") == 1
    fast.save(tmp_path / "fast")
    loaded = tf.saved_model.load(str(tmp_path / "fast"))
    x = image(2, 6, 6, 16)
    got = loaded.signatures["serving_default"](x=x)["y"]
    np.testing.assert_allclose(got, function(x)["y"], atol=1e-4)
    again = optimize(loaded).signatures["serving_default"]
    assert again.report.converted == []
    np.testing.assert_allclose(again(x)["y"], got, atol=0)


def test_the_same_function_rewritten_twice(weights, image):
    """New functions get names that nobody has."""
    function = tf.function(lambda x: _loop(_conv(weights(3, 3, 16, 16)), x), autograph=False)
    concrete = function.get_concrete_function(tf.TensorSpec([1, 6, 6, 16]))
    x = image(1, 6, 6, 16)
    first, second = (optimize_concrete(concrete).concrete for _ in range(2))
    np.testing.assert_array_equal(first(x), second(x))
    np.testing.assert_allclose(first(x), concrete(x), atol=1e-5)


@pytest.mark.parametrize("flag", [True, False])
def test_branches_assign_in_their_order_though_data_joins_them(weights, image, flag):
    """Once they are switches, what the second branch assigns waits for no data of the first."""
    kernel, log = weights(3, 3, 16, 16), tf.Variable(1, dtype=tf.int64)

    def model(x, flag):
        def noted(y, number):
            log.assign(log * 31 + number)
            return y

        for number in (11, 17):
            y = tf.nn.relu(_conv(kernel)(x))
            x = tf.cond(flag, lambda y=y, n=number: noted(y, n), lambda y=y, n=number: noted(-y, n))
        return _conv(kernel)(x)

    specs = tf.TensorSpec([None, 6, 6, 16]), tf.TensorSpec([], tf.bool)
    original = tf.function(model, autograph=False).get_concrete_function(*specs)
    rewritten = optimize_concrete(original)
    assert rewritten.report.count("BlockdnnConv") == 3
    rewritten.concrete(image(1, 6, 6, 16), tf.constant(flag))
    assert int(log) == (1 * 31 + 11) * 31 + 17


def test_a_branch_waits_for_the_loop_whose_result_it_reads(weights, image):
    """Nothing that it notes reads the result, which is no reason to note it before the loop."""
    kernel, log = weights(3, 3, 16, 16), tf.Variable(1, dtype=tf.int64)

    def note(y, number):
        log.assign(log * 31 + number)
        return y

    def model(x, flag):
        def turn(i, x):
            return i + 1, note(_conv(kernel)(x), 7 + tf.cast(i, tf.int64))

        x = tf.while_loop(lambda i, x: i < 2, turn, (tf.constant(0), x))[1]
        x = tf.cond(flag, lambda: note(tf.nn.relu(x), 11), lambda: note(-x, 13))
        return _conv(kernel)(x)

    specs = tf.TensorSpec([None, 6, 6, 16]), tf.TensorSpec([], tf.bool)
    original = tf.function(model, autograph=False).get_concrete_function(*specs)
    rewritten = optimize_concrete(original)
    assert rewritten.report.count("BlockdnnConv") == 2
    branch = next(op for op in rewritten.concrete.graph.get_operations() if op.type == "If")
    assert "While" in [op.type for op in branch.control_inputs]
    rewritten.concrete(image(1, 6, 6, 16), tf.constant(True))
    assert int(log) == ((1 * 31 + 7) * 31 + 8) * 31 + 11
