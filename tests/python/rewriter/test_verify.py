"""`verify="numbers"`: what it accepts, what it refuses, and where it points."""

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python.rewriter import VerificationError, verify

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
