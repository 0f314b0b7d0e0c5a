"""Made-up inputs."""

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python.measuring.examples import example_inputs, resolve_shape


def test_unknown_dimensions_are_filled():
    shape = resolve_shape([None, None, None, 3], batch=2, size=(5, 7))
    assert shape == (2, 5, 7, 3)
    assert resolve_shape([None, 32, None, 3], batch=2, size=(5, 7)) == (2, 32, 7, 3)
    assert resolve_shape([None, None], batch=2, size=(5, 7)) == (2, 1)
    assert resolve_shape([], batch=2, size=(5, 7)) == ()


def test_example_inputs():
    specs = {
        "x": tf.TensorSpec([None, 4], tf.float32),
        "h": tf.TensorSpec([2], tf.bfloat16),
        "i": tf.TensorSpec([None], tf.int64),
        "b": tf.TensorSpec([], tf.bool),
    }
    inputs = example_inputs(specs, batch=3)
    assert {name: tf.constant(value).dtype for name, value in inputs.items()} == {
        name: spec.dtype for name, spec in specs.items()
    }
    assert inputs["x"].shape == (3, 4) and np.ptp(inputs["x"]) > 0
    np.testing.assert_array_equal(inputs["i"], [0, 0, 0])
    np.testing.assert_array_equal(inputs["x"], example_inputs(specs, batch=3)["x"])


@pytest.mark.parametrize(
    "spec, match",
    [
        (tf.TensorSpec([None], tf.string), "'x' is string"),
        (tf.TensorSpec(None, tf.float32), "'x' has no known rank"),
    ],
)
def test_inputs_that_cannot_be_made_up(spec, match):
    with pytest.raises(ValueError, match=match):
        example_inputs({"x": spec})
