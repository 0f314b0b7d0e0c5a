"""`verify=True`: what it accepts, what it refuses, and where it points."""

import os

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter import Options, VerificationError, optimize_concrete, verify

INF, NAN = float("inf"), float("nan")


def function_of(*values):
    """Its outputs hold these values, whatever its input."""

    @tf.function(input_signature=[tf.TensorSpec([None])])
    def function(x):
        return {"same": x, "scores": [tf.constant(v, tf.float32) for v in values]}

    return function.get_concrete_function()


@pytest.mark.parametrize(
    ("wanted", "got", "message"),
    [
        ([[1.0, 2.0]], [[1.0, NAN]], r"at \[0, 1\] it was 2.0, became nan"),
        ([NAN, 1.0], [0.0, 1.0], r"at \[0\] it was nan, became 0.0"),
        ([1.0, INF], [1.0, 3e38], r"at \[1\] it was inf, became 3"),
        ([-INF], [INF], r"at \[0\] it was -inf, became inf"),
        ([1.0, 2.0], [1.0, INF], r"at \[1\] it was 2.0, became inf"),
        ([INF, 1.0], [INF, 2.0], r"by 1 of .* at \[1\] it was 1.0, became 2.0"),
        (3.0, NAN, "allowed: it was 3.0, became nan"),
    ],
)
def test_other_values_are_named(wanted, got, message):
    old, new = function_of(0.0, wanted), function_of(0.0, got)
    with pytest.raises(VerificationError, match=f"output scores/1 differs .*{message}"):
        verify.check_numbers(old, new, tolerance=1e-4)


def test_equal_infinities_and_nan_twice_are_equal():
    same = [INF, -INF, NAN, 1.0]
    assert verify.check_numbers(function_of(same), function_of(same), tolerance=0.0) == 0.0


def test_the_difference_is_of_the_finite_magnitude():
    wanted, got = np.float32([INF, 4.0]), np.float32([INF, 5.0])
    assert verify.difference(wanted, got) == 0.25


def _counting(x, kernel, state):
    state["count"].assign_add(1.0)
    return tf.nn.conv2d(x, kernel, 1, "SAME") * state["count"]


def _in_a_branch(x, kernel, state):
    y = tf.nn.conv2d(x, kernel, 1, "SAME")

    def yes():
        state["rows"].scatter_add(tf.IndexedSlices(tf.ones([1, 2]), [1]))
        return y + tf.reduce_sum(state["rows"])

    return tf.cond(tf.reduce_sum(x) > -1e9, yes, lambda: y)


def _drawing(x, kernel, state):
    return tf.nn.conv2d(x, kernel, 1, "SAME") + state["generator"].normal([16])


def _state():
    return {
        "count": tf.Variable(0.0),
        "rows": tf.Variable(tf.zeros([3, 2])),
        "generator": tf.random.Generator.from_seed(3),
        "table": tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0),
        "queue": tf.queue.FIFOQueue(9, tf.float32),
    }


def _values(state):
    return [v.numpy().tobytes() for v in (state["count"], state["rows"], state["generator"].state)]


_ONCE = {
    "as it is": {},
    "numbers": {"options": Options(verify=True)},
    "autotune": {"options": Options(autotune=True)},
    "measure": {"options": Options(measure=True)},
    "bf16": {"options": Options(precision="bf16")},
    "max_loss": {"options": Options(precision="bf16", max_loss=0.9)},
}


def _rewritten(body, options, weights, state):
    kernel = weights(3, 3, 16, 16)
    function = tf.function(lambda x: body(x, kernel, state), autograph=False)
    concrete = function.get_concrete_function(tf.TensorSpec([2, 6, 6, 16]))
    options = dict(options)
    if "options" in options and options["options"].precision:
        options["calibration"] = np.random.default_rng(0).standard_normal([6, 6, 6, 16])
    return concrete, optimize_concrete(concrete, **options)


@pytest.mark.parametrize("body", [_counting, _in_a_branch, _drawing])
@pytest.mark.parametrize("name", _ONCE)
def test_variables_are_assigned_by_calls_alone(body, name, weights, image):
    state = _state()
    before = _values(state)
    concrete, rewritten = _rewritten(body, _ONCE[name], weights, state)
    assert _values(state) == before
    x, results = image(2, 6, 6, 16), []
    for function in (concrete, rewritten.concrete):
        with verify.unchanged(concrete):
            results.append(function(x).numpy())
            assert _values(state) != before
        assert _values(state) == before
    assert rewritten.report.count("BlockdnnConv") == 1 or name == "autotune"
    tolerance = 0.05 if "bf16" in name or "loss" in name else 1e-4
    assert verify.difference(*results) < tolerance


@pytest.mark.parametrize(
    "options",
    [{"verify": True}, {"options": bd.Options(measure=True), "example": np.ones([1, 6, 6, 16])}],
)
def test_a_variable_is_an_argument(options, weights, image):
    """It is drawn as what it holds, or an example is copied; each run starts with the same."""
    matrix = weights(3, 3, 16, 16)

    @tf.function(autograph=False)
    def function(x):
        y = tf.nn.conv2d(x, matrix, 1, "SAME")
        x.assign_add(tf.ones_like(x))
        return tf.nn.relu(y) + x

    x = tf.Variable(image(1, 6, 6, 16))
    twin = tf.Variable(x)
    if "example" in options:
        options["example"] = tf.Variable(options["example"], dtype=tf.float32)
    fast = bd.optimize(function, **options)
    for _ in range(2):
        np.testing.assert_allclose(fast(x), function(twin), atol=1e-4)
        np.testing.assert_array_equal(x, twin)
    assert fast.report.count("BlockdnnConv") == 1
    if "example" in options:
        np.testing.assert_array_equal(options["example"], np.ones([1, 6, 6, 16]))


_OUTSIDE = {
    "PrintV2": lambda y, state: tf.print("never", output_stream="file:///dev/null"),
    "EagerPyFunc": lambda y, state: tf.py_function(state["called"].append, [y[0, 0, 0, 0]], []),
    "RandomStandardNormal": lambda y, state: tf.random.normal([16]),
    "LookupTableInsertV2": lambda y, state: state["table"].insert(tf.constant(1, tf.int64), 2.0),
    "QueueEnqueueV2": lambda y, state: state["queue"].enqueue(1.0),
    "WriteFile": lambda y, state: tf.io.write_file(state["file"], "text"),
}


@pytest.mark.parametrize("op", _OUTSIDE)
@pytest.mark.parametrize("name", _ONCE)
def test_what_acts_outside_does_so_in_calls_alone(op, name, weights, image, tmp_path):
    """Whether the effect stands in the function itself or in a branch of it."""
    state = _state() | {"called": [], "file": str(tmp_path / "written")}

    def body(x, kernel, state):
        y = tf.nn.conv2d(x, kernel, 1, "SAME")

        def yes():
            _OUTSIDE[op](y, state)
            return y * 2.0

        return tf.cond(tf.reduce_sum(x) > -1e9, yes, lambda: y)

    if name in ("as it is", "bf16"):
        _, rewritten = _rewritten(body, _ONCE[name], weights, state)
        assert rewritten.report.count("BlockdnnConv") == 1
        said = [line for line in rewritten.report.warnings if "the loss is not measured" in line]
        assert len(said) == (name == "bf16") and all(f"({op})" in line for line in said)
    else:
        with pytest.raises(ValueError, match=rf"runs the function more than once, and .*\({op}\)"):
            _rewritten(body, _ONCE[name], weights, state)
    assert not state["called"] and not os.path.exists(state["file"])
    assert state["table"].size() == 0 == state["queue"].size()
