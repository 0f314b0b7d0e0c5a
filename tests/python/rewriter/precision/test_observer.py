"""What is remembered of tensors, and which quantization follows from it."""

import math

import numpy as np
import pytest

from tf_blockdnn.python.rewriter.precision.observer import Observer
from tf_blockdnn.python.rewriter.precision.quantize import snr


def observed(*batches):
    observer = Observer()
    for batch in batches:
        observer.add(np.asarray(batch, np.float32))
    return observer


def test_range_mean_and_energy_over_batches():
    observer = observed([[1.0, -2.0]], [[3.0, 0.0], [5.0, 8.0]])
    assert (observer.low, observer.high, observer.count) == (-2.0, 8.0, 6)
    assert observer.means.tolist() == [3.0, 2.0]
    assert observer.energy == pytest.approx(1 + 4 + 9 + 25 + 64)


def test_means_of_blocks():
    blocks = np.zeros((2, 2, 3, 3, 16), np.float32)
    blocks[:, 1, :, :, 4] = 2.0
    blocks[0, 1, :, :, 4] = 4.0
    means = observed(blocks).means
    assert means.shape == (32,)
    assert means[20] == 3.0 and means.sum() == 3.0


def test_memory_does_not_grow_and_order_does_not_matter():
    rng = np.random.default_rng(0)
    batches = [rng.standard_normal(1000) * 10.0**k for k in (-3, 2, 0)]
    first, last = observed(*batches), observed(*batches[::-1])
    assert first.bins.size == last.bins.size == observed(batches[0]).bins.size
    assert first.bins.sum() == last.bins.sum() == 3000
    one, other = first.choose(), last.choose()
    assert one.quantization.scale == pytest.approx(other.quantization.scale, rel=0.05)


def test_uniform_values_keep_their_range():
    choice = observed(np.random.default_rng(0).uniform(-1, 1, 100_000)).choose()
    assert choice.quantization.range[1] == pytest.approx(1.0, abs=0.02)


def test_few_outliers_are_given_up():
    values = np.random.default_rng(0).standard_normal(200_000).astype(np.float32)
    values[:2] = 20.0, -20.0
    observer = observed(values)
    choice = observer.choose()
    assert choice.method != "min-max"
    assert choice.quantization.range[1] < 15


def test_an_outlier_that_costs_more_than_all_steps_is_kept():
    values = np.random.default_rng(0).standard_normal(1000).astype(np.float32)
    values[0] = 100.0
    assert observed(values).choose().quantization.range[1] > 60


@pytest.mark.parametrize("rectified", [False, True])
def test_the_estimate_of_the_loss_is_the_loss(rectified):
    values = np.random.default_rng(3).standard_normal(100_000).astype(np.float32)
    values = np.maximum(values, 0) if rectified else values
    quantization, _, estimate = observed(values).choose()
    back = quantization.dequantized(quantization.quantized(values))
    assert snr(values, back) == pytest.approx(estimate, abs=0.3)


def test_zeros_first_and_zeros_only():
    zeros = observed(np.zeros(5))
    assert zeros.choose() == ((1.0, 0), "min-max", math.inf)
    later = observed(np.zeros((5, 1)), [[1.0], [2.0]])
    assert later.count == 7 and later.bins.sum() == 2
    assert observed(np.zeros([0, 3])).choose().snr == math.inf  # an empty batch


@pytest.mark.parametrize("value", [0.3, -7.0, 1e-3])
def test_a_constant_is_exact(value):
    observer = observed(np.full(7, value))
    quantization, _, ratio = observer.choose()
    back = quantization.dequantized(quantization.quantized(np.float32([value])))
    assert back[0] == pytest.approx(value, rel=1e-5)
    assert ratio > 80


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match="NaN or infinite"):
        observed([1.0, value])
