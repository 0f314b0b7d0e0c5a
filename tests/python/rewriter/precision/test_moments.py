"""What the taps of a convolution read, against TensorFlow's patches, and what is rounded by it."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.ops.records import Conv
from tf_blockdnn.python.rewriter.precision import lower
from tf_blockdnn.python.rewriter.precision.moments import Moments, SampledRows
from tf_blockdnn.python.rewriter.precision.quantize import quantize_weights, round_weights, snr


def pictures(count, size, channels, seed=0):
    """Smooth ones, whose neighbouring pixels are alike."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((count, size, size, channels)).astype("float32")
    return tf.nn.avg_pool2d(tf.constant(values), 5, 1, "SAME").numpy() + 1


def blocked(values):
    n, h, w, channels = values.shape
    values = np.pad(values, [(0, 0)] * 3 + [(0, -channels % 16)])
    return values.reshape(n, h, w, -1, 16).transpose(0, 3, 1, 2, 4)


@pytest.mark.parametrize("is_blocked", [False, True])
@pytest.mark.parametrize(
    ("groups", "window", "options"),
    [
        (1, (3, 3), {"padding": "SAME"}),
        (6, (3, 2), {"padding": "SAME", "strides": (2, 1)}),
        (2, (3, 3), {"padding": "VALID", "dilations": (2, 1)}),
        (3, (2, 3), {"padding": "EXPLICIT", "explicit_paddings": (1, 0, 0, 2)}),
    ],
)
def test_moments_are_those_of_what_is_multiplied(groups, window, options, is_blocked):
    """The results of a convolution have the mean and the variance that moments say."""
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((*window, 6 // groups, 12)).astype("float32")
    conv = Conv(origin="x", channels=12, in_channels=6, groups=groups, weights=weights, **options)
    moments, values = Moments(conv), pictures(1, 8, 6)  # All 64 pixels or fewer are looked at.
    moments.add(blocked(values) if is_blocked else values)
    padding = options["padding"]
    if padding == "EXPLICIT":
        top, bottom, left, right = options["explicit_paddings"]
        values = np.pad(values, [(0, 0), (top, bottom), (left, right), (0, 0)])
        padding = "VALID"
    strides, dilations = options.get("strides", (1, 1)), options.get("dilations", (1, 1))
    results = [
        tf.keras.ops.conv(x, w, strides, padding.lower(), dilation_rate=dilations).numpy()
        for x, w in zip(
            np.split(values, groups, axis=3), np.split(weights, groups, axis=3), strict=True
        )
    ]
    for group, result in enumerate(results):
        w = np.split(weights, groups, axis=3)[group].reshape(-1, 12 // groups)
        wanted = result.reshape(-1, 12 // groups)
        assert w.T @ moments.means[group] == pytest.approx(wanted.mean(axis=0), abs=1e-4)
        found = np.einsum("to,tu,uo->o", w, moments.covariance[group], w)
        assert found == pytest.approx(wanted.var(axis=0), rel=1e-3)


def test_pictures_smaller_than_the_window_count_nothing():
    weights = np.zeros((3, 3, 4, 4), np.float32)
    moments = Moments(Conv(origin="x", channels=4, in_channels=4, weights=weights, padding="VALID"))
    moments.add(np.ones((2, 2, 5, 4)))
    moments.add(np.ones((0, 5, 5, 4)))
    assert not moments.means.any() and not moments.covariance.any()


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_rounding_by_the_covariance_loses_less(groups):
    """On pictures that it did not see."""
    rng = np.random.default_rng(2)
    weights = rng.standard_normal((3, 3, 8 // groups, 16)).astype("float32")
    conv = Conv(
        origin="x", channels=16, in_channels=8, groups=groups, weights=weights, padding="SAME"
    )
    seen, unseen = Moments(conv), Moments(conv)
    for seed in range(8):
        seen.add(pictures(4, 12, 8, seed))
        unseen.add(pictures(4, 12, 8, 100 + seed))
    stored, scales = quantize_weights(weights)
    found = round_weights(weights, stored, scales, seen.covariance)

    def lost(steps):
        errors = (weights - steps * scales).reshape(-1, groups, 16 // groups)
        return np.einsum("tgo,gtu,ugo->", errors, unseen.covariance, errors)

    assert found.dtype == np.int8 and found.shape == weights.shape
    assert np.abs(found - stored.astype(int)).max() <= 3
    assert lost(found) < 0.7 * lost(stored)


def test_rounding_without_correlation_is_to_nearest():
    weights = np.random.default_rng(3).standard_normal((3, 3, 4, 8))
    stored, scales = quantize_weights(weights)
    for variance in (0.0, 2.0):
        covariance = variance * np.eye(36)[None]
        assert (round_weights(weights, stored, scales, covariance) == stored).all()


def test_a_network_loses_less(monkeypatch):
    """Pictures are bright or dark, and what rounding takes from weights must not add up."""
    rng = np.random.default_rng(4)
    first = (rng.uniform(0, 1, (3, 3, 3, 16)) / 27).astype("float32")
    second = (rng.standard_normal((7, 7, 16, 1)) / 7).astype("float32")
    second[3, 3] = 4.0  # makes the steps large

    @tf.function(input_signature=[tf.TensorSpec([None, 24, 24, 3])])
    def network(x):
        x = tf.nn.relu(tf.nn.conv2d(x, first, 1, "SAME"))
        return tf.nn.depthwise_conv2d(x, second, [1, 1, 1, 1], "SAME")

    def bright(count, most, seed):
        brightness = np.random.default_rng(seed).uniform(0, most, (count, 1, 1, 1))
        return pictures(count, 24, 3, seed) + brightness.astype("float32")

    def ratio():
        fast = bd.optimize(network, precision="int8", calibration=bright(32, 20, 5))
        assert fast.report.precision.count == 2
        x = bright(16, 10, 6)
        return snr(network(x).numpy(), fast(x).numpy())

    by_moments = ratio()
    monkeypatch.setattr(lower, "MOST_TAPS", 0)
    assert by_moments > ratio() + 2


def test_rows_of_all_batches_are_sampled_alike():
    sample = SampledRows(3)
    for batch in range(5):
        values = np.full((2, 700, 3), batch, np.float32)
        values[0, 7, 1], values[1, 0, 0] = np.nan, np.inf  # as if these rows were not there
        sample.add(values)
    assert sample.rows.shape == (2048, 3) and np.isfinite(sample.rows).all()
    assert np.bincount(sample.rows[:, 0].astype(int)).min() > 2048 / 5 * 0.8
    few = SampledRows(2)
    few.add(np.float32([[1, 2], [3, 4]]))
    few.add(np.zeros((0, 2), np.float32))
    assert sorted(few.rows.tolist()) == [[1, 2], [3, 4]]
