"""The measuring helper: turns, statistics, differences, made-up inputs."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python import measures


def contestants(log, **milliseconds):
    def contestant(name, times):
        times = iter(times)

        def once():
            log.append(name)
            milliseconds = next(times)
            return milliseconds if isinstance(milliseconds, list) else [milliseconds]

        return once

    return {name: contestant(name, times) for name, times in milliseconds.items()}


def test_contestants_take_turns_and_the_first_one_moves_on():
    log = []
    measures.interleave(contestants(log, a=range(9), b=range(9), c=range(9)), runs=2, warmup=1)
    assert "".join(log) == "abc" + "bca" + "cab"


def test_warmup_is_not_counted():
    times = measures.interleave(contestants([], a=[100, 50, 3, 1, 2]), runs=3, warmup=2)["a"]
    assert times.milliseconds == (3, 1, 2)
    assert (times.minimum, times.median) == (1, 2)
    assert json.loads(json.dumps(times.to_json())) == {"min_ms": 1, "median_ms": 2, "runs": 3}


def test_a_turn_may_be_a_burst():
    times = measures.interleave(contestants([], a=[[9, 9], [4, 2], [3]]), runs=2, warmup=1)["a"]
    assert times.milliseconds == (4, 2, 3)


def test_rounds_are_reported():
    rounds = []
    measures.interleave(contestants([], a=range(9)), runs=2, warmup=1, on_round=rounds.append)
    assert rounds == [1, 2, 3]


@pytest.mark.parametrize("runs, warmup", [(0, 1), (1, -1)])
def test_senseless_counts(runs, warmup):
    with pytest.raises(ValueError, match="at least"):
        measures.interleave(contestants([], a=[]), runs=runs, warmup=warmup)


def test_timed_measures_milliseconds(monkeypatch):
    clock = iter([1.0, 1.25])
    monkeypatch.setattr(measures.time, "perf_counter", lambda: next(clock))
    assert measures.timed(lambda: None)() == [250]


def test_difference_is_the_largest_over_all_outputs():
    difference = measures.largest_difference([[1, 2], [[-8.0]]], [[1, 2.5], [[-8.0]]])
    assert (difference.absolute, difference.magnitude, difference.relative) == (0.5, 8, 0.0625)


@pytest.mark.parametrize(
    "want, got, absolute",
    [
        ([np.nan], [np.nan], 0),
        ([np.nan], [1.0], np.inf),
        ([np.inf], [np.inf], 0),
        ([np.inf], [-np.inf], np.inf),
        ([np.inf], [1.0], np.inf),
        ([b"a"], [b"a"], 0),
        ([b"a"], [b"b"], np.inf),
        ([True], [False], np.inf),
        (np.zeros([0, 3]), np.zeros([0, 3]), 0),
        (np.uint8([3]), np.uint8([5]), 2),
    ],
)
def test_difference_of_special_values(want, got, absolute):
    assert measures.largest_difference([want], [got]).absolute == absolute


def test_difference_of_other_shapes():
    with pytest.raises(ValueError, match=r"shapes differ: \(2,\) against \(1, 2\)"):
        measures.largest_difference([np.zeros(2)], [np.zeros([1, 2])])
    with pytest.raises(ValueError):
        measures.largest_difference([np.zeros(2)], [])


def test_unknown_dimensions_are_filled():
    shape = measures.resolve_shape([None, None, None, 3], batch=2, size=(5, 7))
    assert shape == (2, 5, 7, 3)
    assert measures.resolve_shape([None, 32, None, 3], batch=2, size=(5, 7)) == (2, 32, 7, 3)
    assert measures.resolve_shape([None, None], batch=2, size=(5, 7)) == (2, 1)
    assert measures.resolve_shape([], batch=2, size=(5, 7)) == ()


def test_example_inputs():
    specs = {
        "x": tf.TensorSpec([None, 4], tf.float32),
        "h": tf.TensorSpec([2], tf.bfloat16),
        "i": tf.TensorSpec([None], tf.int64),
        "b": tf.TensorSpec([], tf.bool),
    }
    inputs = measures.example_inputs(specs, batch=3)
    assert {name: tf.constant(value).dtype for name, value in inputs.items()} == {
        name: spec.dtype for name, spec in specs.items()
    }
    assert inputs["x"].shape == (3, 4) and np.ptp(inputs["x"]) > 0
    np.testing.assert_array_equal(inputs["i"], [0, 0, 0])
    np.testing.assert_array_equal(inputs["x"], measures.example_inputs(specs, batch=3)["x"])


@pytest.mark.parametrize(
    "spec, match",
    [
        (tf.TensorSpec([None], tf.string), "'x' is string"),
        (tf.TensorSpec(None, tf.float32), "'x' has no known rank"),
    ],
)
def test_inputs_that_cannot_be_made_up(spec, match):
    with pytest.raises(ValueError, match=match):
        measures.example_inputs({"x": spec})
