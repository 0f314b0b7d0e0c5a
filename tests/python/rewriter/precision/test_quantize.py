"""Bytes for floats, checked by hand and against their definition."""

import math

import numpy as np
import pytest

from tf_blockdnn.python.rewriter.precision.quantize import (
    Quantization,
    as_int4,
    balance,
    bias_correction,
    decibels,
    dequantize_int4,
    pack_int4,
    quantize_int4,
    quantize_weights,
    snr,
)


def test_a_range_of_both_signs_by_hand():
    quantization = Quantization.of_range(-1.0, 4.1)
    assert quantization == (pytest.approx(0.02), 50)
    values = np.float32([-1.0, 0.0, 0.03, 0.05, 4.1, 9.0, -9.0, np.nan, np.inf, -np.inf])
    stored = quantization.quantized(values)
    assert stored.tolist() == [0, 50, 52, 52, 255, 255, 0, 50, 255, 0]  # halves go to even
    assert quantization.dequantized(stored[:2]).tolist() == [pytest.approx(-1.0), 0.0]


@pytest.mark.parametrize(
    ("low", "high", "zero_point"),
    [(0.0, 6.0, 0), (2.0, 6.0, 0), (-3.0, -1.0, 255), (-5.0, 0.0, 255), (0.0, 0.0, 0)],
)
def test_zero_is_exact_whatever_the_range(low, high, zero_point):
    quantization = Quantization.of_range(low, high)
    assert quantization.zero_point == zero_point
    assert quantization.scale > 0
    assert quantization.dequantized(quantization.quantized(np.float32([0.0]))).tolist() == [0.0]


def test_a_range_of_no_width_has_a_scale():
    assert Quantization.of_range(0.0, 1e-40) == (1.0, 0)


@pytest.mark.parametrize("bounds", [(math.nan, 1.0), (0.0, math.inf), (2.0, 1.0)])
def test_a_range_must_be_one(bounds):
    with pytest.raises(ValueError, match="two finite numbers"):
        Quantization.of_range(*bounds)


def test_no_value_of_the_range_loses_more_than_half_a_step():
    rng = np.random.default_rng(0)
    for low, high in [(-1, 1), (0, 6), (-0.1, 30), (-1e-3, 1e-4)]:
        quantization = Quantization.of_range(low, high)
        values = rng.uniform(*quantization.range, 10_000).astype(np.float32)
        back = quantization.dequantized(quantization.quantized(values))
        assert np.abs(back - values).max() <= quantization.scale * 0.5001


def test_weights_have_a_scale_a_channel():
    weights = np.zeros((1, 1, 3, 3), np.float32)
    weights[..., 0] = [127.0, -63.5, 1.0]
    weights[..., 2] = [0.0, -0.5, 0.25]
    stored, scales = quantize_weights(weights)
    assert stored.dtype == np.int8 and scales.dtype == np.float32
    assert stored[0, 0].T.tolist() == [[127, -64, 1], [0, 0, 0], [0, -127, 64]]
    assert scales.tolist() == [1.0, 1.0, pytest.approx(0.5 / 127)]


def test_weights_must_be_finite():
    with pytest.raises(ValueError, match="NaN"):
        quantize_weights(np.full((1, 1, 1, 1), np.nan))


def test_the_ratio_in_decibels():
    assert snr(np.float32([3, 4]), np.float32([3, 3.5])) == pytest.approx(20.0)
    assert snr(np.ones(3), np.ones(3)) == math.inf
    assert decibels(0.0, 1.0) == decibels(1.0, math.nan) == -math.inf


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_the_bias_makes_up_for_what_rounding_takes_from_the_mean(groups):
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((3, 3, 6 // groups, 12))
    stored, scales = quantize_weights(weights)
    means = rng.standard_normal(6)
    correction = bias_correction(weights, stored, scales, means)
    lost = weights - stored * scales.astype(np.float64)
    for o in range(12):
        first = (o // (12 // groups)) * (6 // groups)
        wanted = sum(lost[:, :, i, o].sum() * means[first + i] for i in range(6 // groups))
        assert correction[o] == pytest.approx(wanted)


@pytest.mark.parametrize(("rows", "group"), [(256, 128), (300, 128), (7, 7), (1, 1)])
def test_4_bits_keep_zeros_and_what_a_group_holds(rows, group):
    weights = np.random.default_rng(0).standard_normal((rows, 40)).astype("float32")
    weights[:, 0], weights[::3, 1], weights[:, 2] = 0.0, 0.0, -2.5
    packed, scales, of_group = quantize_int4(weights)
    assert of_group == group and packed.shape == (-(-rows // 2), 40)
    assert scales.shape == (2, -(-rows // group), 40)
    back = dequantize_int4(packed, scales, of_group, rows)
    assert not back[:, 0].any() and not back[::3, 1].any()
    np.testing.assert_allclose(back[:, 2], -2.5, rtol=1e-6)
    assert np.abs(back - weights).max() < np.abs(weights).max() / 4 and snr(weights, back) > 19


def _alike(rows, columns, seed):
    """Rows whose columns go together, as those between layers do, and two of which are large."""
    rng, mixing = np.random.default_rng(seed), np.random.default_rng(9)
    x = rng.standard_normal((rows, columns // 4)) @ mixing.standard_normal((columns // 4, columns))
    x += rng.standard_normal((rows, columns))
    x[:, [3, 17]] *= 40
    return x.astype("float32")


def test_rounding_to_4_bits_makes_good_what_rows_are_known_to_lose():
    weights = np.random.default_rng(0).standard_normal((300, 20)).astype("float32")
    weights[::7], weights[:, 4] = 0.0, 0.5
    seen, unseen = _alike(500, 300, 1), _alike(500, 300, 2)
    nearest, known = (
        dequantize_int4(*quantize_int4(weights, read=read), len(weights)) for read in (None, seen)
    )
    wanted = unseen @ weights
    assert snr(wanted, unseen @ known) > snr(wanted, unseen @ nearest) + 4
    np.testing.assert_allclose(known[:, 4][weights[:, 4] != 0], 0.5, atol=0.1)


def test_columns_of_large_numbers_are_balanced():
    weights, read = np.random.default_rng(0).standard_normal((64, 20)), _alike(200, 64, 1)
    weights[5], read[:, 6] = 0.0, 0.0
    factors = balance(weights.astype("float32"), read)
    assert factors.dtype == np.float32 and factors.shape == (64,)
    assert factors[[5, 6]].tolist() == [1.0, 1.0]
    assert factors[[3, 17]].max() < np.median(factors) / 4
    even = np.random.default_rng(2).standard_normal((200, 64)).astype("float32")
    assert balance(weights, even) is None and balance(weights, 0 * even) is None


def test_no_4_bits_stand_for_no_numbers():
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN or infinities"):
            quantize_int4(np.full((8, 2), value, np.float32))


@pytest.mark.parametrize("group", [32, 64, 128, 300])
def test_numbers_of_4_bits_are_known_again(group):
    rng = np.random.default_rng(group)
    numbers = rng.integers(0, 16, (300, 12), np.uint8)
    numbers[:, 0], numbers[:, 1] = 3, rng.choice([0, 2, 5], 300)  # one number; no neighbours
    scales = rng.uniform(0.01, 1.0, (2, -(-300 // group), 12)).astype("float32")
    weights = dequantize_int4(pack_int4(numbers), scales, group, 300)
    *found, of_group = as_int4(weights)
    assert of_group == group
    np.testing.assert_allclose(dequantize_int4(*found, of_group, 300), weights, atol=1e-5)
    weights[17, 3] += 0.3 * scales[0, 0, 3]  # between two numbers
    assert as_int4(weights) is None
    assert as_int4(rng.standard_normal((300, 12)).astype("float32")) is None
