"""Regions are measured alone, next to TensorFlow on the same tensors."""

import time

import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter import Options, measure
from tf_blockdnn.python.rewriter.verify import random_inputs

_SAME = {"strides": 1, "padding": "SAME"}


def _two_regions(weights):
    first, second = weights(3, 3, 24, 32), weights(3, 3, 32, 24)

    def function(x):
        y = tf.math.bessel_i0e(tf.nn.relu(tf.nn.conv2d(x, first, **_SAME)))
        y = tf.nn.relu(tf.nn.conv2d(y, second, **_SAME) + x)
        return {"y": y, "mean": tf.reduce_mean(y, [1, 2])}

    return function


def test_each_region_has_both_times(rewrite, weights):
    function = _two_regions(weights)
    result = rewrite(function, [None, 64, 64, 24], options=Options(measure=True))
    measured = result.report.measured
    assert result.report.regions == len(measured.regions) == 2
    for region in measured.regions:
        assert 0 < region.optimized_ms <= 1.5 * measured.optimized_ms
        assert 0 < region.original_ms <= 1.5 * measured.original_ms
        assert region.ratio == region.original_ms / region.optimized_ms
    text = result.report.summary()
    assert "region 1: " in text and "region 2: " in text and "region 3" not in text


@pytest.fixture
def runs(rewrite, monkeypatch):
    """runs(function, spec): per region, what its call and TensorFlow's give, in place of times."""

    def give(function, spec):
        result, seen = rewrite(function, spec), []

        def compare(calls):
            seen.append([call() for call in calls])
            return [1.0 for _ in calls]

        monkeypatch.setattr(measure, "_fastest", compare)
        inputs = random_inputs(result.original, batch=1)
        measure.region_times(result.original, result.concrete, inputs)
        return seen

    return give


def test_regions_run_on_the_tensors_of_both_graphs(runs, weights):
    """The second region also reads the blocked input that the first one made."""
    seen = runs(_two_regions(weights), [1, 9, 9, 24])
    assert [len(pair) for pair in seen] == [2, 2]
    assert [len(ours) for ours, _ in seen] == [2, 2]
    for ours, theirs in seen:
        for values, other in zip(ours, theirs, strict=True):
            assert measure._is_same(values, other)


def test_tensors_that_are_not_in_the_original_have_no_second_time(runs, weights, monkeypatch):
    monkeypatch.setattr(measure, "_is_same", lambda ours, theirs: False)
    assert [len(calls) for calls in runs(_two_regions(weights), [1, 9, 9, 24])] == [1, 1]


def test_other_numbers_are_no_match():
    values, other = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.1])
    assert measure._is_same(values, values) and not measure._is_same(values, other)
    assert not measure._is_same(values, tf.constant([[1.0, 2.0]]))


def test_blocked_tensors_are_compared_without_their_tail():
    plain = tf.random.stateless_normal([1, 4, 5, 24], [1, 2])
    blocked = bd.ops.reorder(plain, "nhwc", "nChw16c")
    assert measure._is_same(blocked, plain) and not measure._is_same(-blocked, plain)


def test_the_fastest_run_counts():
    waits = iter([0.02, 0.001] * 30)
    assert 0.9 < measure._fastest([lambda: time.sleep(next(waits))])[0] < 10
