"""Comparisons, choices by them, and functions of two tensors, between blocked tensors."""

import numpy as np
import pytest
import tensorflow as tf
from converts import converts

from tf_blockdnn.python.rewriter import Options

STRICT = Options(strict=True)
COMPARISONS = (tf.greater, tf.greater_equal, tf.less, tf.less_equal, tf.equal, tf.not_equal)


@pytest.fixture
def between(rewrite, weights):
    """between(f) -> a network that runs f of two blocked tensors; nothing of it stays.

    Weights and sources are small integers, so that all sums are exact, and ties are met.
    """

    def run(f, kinds=("Conv", "Reorder", "Eltwise")):
        rng = np.random.default_rng(3)
        first, second = (np.float32(rng.integers(-1, 2, (1, 1, 24, 24))) for _ in range(2))
        last = np.eye(24, dtype=np.float32)[None, None]

        def function(x):
            a, b = (tf.nn.conv2d(x, kernel, 1, "SAME") for kernel in (first, second))
            return tf.nn.conv2d(f(a, b), last, 1, "SAME")

        result = rewrite(function, [1, 6, 7, 24], options=STRICT)
        assert set(result.blockdnn) <= set(kinds), result.report.declined
        left = {"Select", "SelectV2", "Cast", "FloorDiv", "FloorMod", "DivNoNan"} & set(result.ops)
        left |= {op for op in result.ops if op in {f.__name__ for f in COMPARISONS}}
        assert not left and result.blockdnn.get("Reorder", 0) <= 2, (left, result.report.declined)
        x = np.float32(rng.integers(-2, 3, (1, 6, 7, 24)))
        np.testing.assert_array_equal(result.concrete(x), result.original(x))
        return result

    return run


BETWEEN = {
    "a number of a comparison": lambda a, b: tf.cast(a > b, tf.float32),
    "of a constant": lambda a, b: b * tf.cast(np.arange(24, dtype="f") >= a, tf.float32),
    "a choice": lambda a, b: tf.where(a >= b, a, 2.0 * b),
    "by a constant": lambda a, b: tf.where(3.0 < a, a, b),
    "hard shrinkage": lambda a, b: tf.where(tf.abs(a) > 3.0, a, 0.0) + b,
    "a number, else b": lambda a, b: tf.where(a < b, -3.0, b),
    "zero, else b": lambda a, b: tf.where(a < b, 0.0, b),
    "of two": lambda a, b: tf.math.floordiv(a, tf.abs(b) + 1.0),
    "a squared difference": lambda a, b: tf.math.squared_difference(a, b),
    "a quotient": lambda a, b: b / (tf.abs(a) + 1.0),
}


@pytest.mark.parametrize("name", BETWEEN)
def test_nothing_of_it_stays_between_blocked_tensors(between, name):
    between(BETWEEN[name])


def test_a_choice_keeps_infinities_and_nan_of_what_is_left_out(rewrite, conv):
    def function(x):
        y = conv(x, 16, 1)
        y = tf.where(y > 1.0, tf.math.log(y - 1.0), tf.sqrt(1.0 - y))
        return conv(y, 16, 1)

    result = rewrite(function, [1, 8, 8, 16], options=STRICT)
    assert result.blockdnn.get("Reorder", 0) <= 2 and not result.ops["SelectV2"]
    x = 3 * np.random.default_rng(0).standard_normal((1, 8, 8, 16)).astype(np.float32)
    assert np.isfinite(result.concrete(x)).all()
    result.assert_same(x)


@converts([1, 8, 8, 16], ops={"SelectV2": 1, "Greater": 1}, options=STRICT)
def test_a_condition_that_is_read_elsewhere_stays(x, conv):
    y = conv(x, 16, 1)
    condition = y > 0.5
    return conv(tf.where(condition, y, 0.0), 16, 1), condition


@converts([1, 8, 8, 16], ops={"SelectV2": 0, "Greater": 1}, options=STRICT)
def test_a_condition_that_is_written_twice_does_not(x, conv):
    y = conv(x, 16, 1)
    return conv(tf.where(y > 0.5, y, 0.0), 16, 1), y > 0.5


def test_a_constant_by_a_tensor_is_one_division(between):
    """A product with the reciprocal would overflow where the quotient does not."""
    result = between(lambda a, b: 4.0 / (tf.abs(a) + 1.0) + b)
    assert "binary(rdiv,scalar)" in ";".join(result.post_ops())
