"""What rounding weights to bfloat16 takes, and how windows and biases make good for it."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter.passes.layout import low_precision_weights, lower_precision
from tf_blockdnn.python.rewriter.precision.quantize import BF16, bfloat16_weights, snr


def to_nearest(weights):
    return weights.astype(BF16)


@pytest.mark.parametrize("shape", [(3, 3, 8, 16), (5, 5, 1, 32), (1, 7, 4, 8)])
def test_sums_of_windows_stay(shape):
    weights = np.random.default_rng(0).standard_normal(shape).astype("float32")
    off = weights - bfloat16_weights(weights).astype("float32")
    nearest = weights - to_nearest(weights).astype("float32")
    most = np.abs(weights).max(axis=(0, 1))
    assert np.square(off.sum((0, 1))).sum() < 0.05 * np.square(nearest.sum((0, 1))).sum()
    assert (np.abs(off) <= 2.0**-7 * most).all()
    assert np.square(off).sum() < 3 * np.square(nearest).sum()


def test_by_hand():
    """1 + 1/512 + 1/8192 becomes 1, of steps of 1/128; 1/4, of steps of 1/512, takes over 1/512."""
    window = np.float32([0.25, 0, 1 + 1 / 512 + 1 / 8192]).reshape(1, 3, 1, 1)
    assert bfloat16_weights(window).ravel().tolist() == [0.25 + 1 / 512, 0, 1]


def test_exact_numbers_and_windows_of_one_tap_are_rounded_to_nearest():
    rng = np.random.default_rng(1)
    exact = to_nearest(rng.standard_normal((3, 3, 4, 8)).astype("float32"))
    assert (bfloat16_weights(exact.astype("float32")) == exact).all()
    for shape in ((1, 1, 32, 8), (32, 8)):
        weights = rng.standard_normal(shape).astype("float32")
        assert (bfloat16_weights(weights) == to_nearest(weights)).all()


def bright(count, seed):
    """Pictures whose differences are small beside their brightness, of numbers that are exact."""
    shape = count, 16, 16, 32
    return np.random.default_rng(seed).integers(96, 128, shape).astype("float32")


def contrasts(*shape):
    """Filters whose sums are zero, so that only differences count."""
    filters = np.random.default_rng(4).standard_normal(shape)
    return (filters - filters.mean(axis=(0, 1, 2))).astype("float32")


def depthwise(size):
    filters = contrasts(size, size, 1, 32).reshape(size, size, 32, 1)
    return lambda x: tf.nn.depthwise_conv2d(x, filters, [1] * 4, "VALID")


def pointwise(x):
    """Behind a depthwise one that is exact: alone it would stay TensorFlow's."""
    centre = np.zeros((3, 3, 32, 1), np.float32)
    centre[1, 1] = 1
    x = tf.nn.depthwise_conv2d(x, centre, [1] * 4, "VALID")
    return tf.nn.conv2d(x, contrasts(1, 1, 32, 32), 1, "VALID")


def function(call):
    return tf.function(call, input_signature=[tf.TensorSpec([None, 16, 16, 32])])


def ratio(call, precision, **options):
    fast = bd.optimize(
        function(call), precision=precision, options=bd.Options(strict=True), **options
    )
    count = 2 if call is pointwise else 1
    assert [layer.dtype for layer in fast.report.precision.layers] == ["bfloat16"] * count
    x = bright(8, 6)
    return snr(call(x).numpy(), fast(x).numpy())


@pytest.mark.parametrize("precision", ["bf16", "bf16-weights"])
@pytest.mark.parametrize("size", [3, 5])
def test_a_depthwise_convolution_keeps_more(monkeypatch, precision, size):
    kept = ratio(depthwise(size), precision)
    monkeypatch.setattr(lower_precision, "bfloat16_weights", to_nearest)
    monkeypatch.setattr(low_precision_weights, "bfloat16_weights", to_nearest)
    assert kept > ratio(depthwise(size), precision) + 6


def test_with_data_a_bias_makes_good_for_what_a_mean_loses():
    without = ratio(pointwise, "bf16")
    assert ratio(pointwise, "bf16", calibration=bright(32, 5)) > without + 6


def test_nobody_sees_the_tensors_of_a_branch():
    """Its nodes may have the names of the function's, whose means are others."""

    def either(x):
        y = tf.cond(x[0, 0, 0, 0] > 0, lambda: pointwise(x), lambda: pointwise(-x))
        with tf.name_scope("cond/"):
            return y, pointwise(x)

    fasts = [
        bd.optimize(
            function(either), precision="bf16", options=bd.Options(strict=True), calibration=data
        )
        for data in (None, bright(32, 5))
    ]
    x = bright(8, 6)
    (inner, outer), (inner_by_data, outer_by_data) = (fast(x) for fast in fasts)
    assert [len(fast.report.precision.layers) for fast in fasts] == [6, 6]
    assert (inner.numpy() == inner_by_data.numpy()).all()
    wanted = pointwise(x).numpy()
    assert snr(wanted, outer_by_data.numpy()) > snr(wanted, outer.numpy()) + 6


def test_tensors_that_overflow_keep_their_biases():
    """In bfloat16 as in float32; a mean that is no number corrects nothing."""
    filters = tf.fill((3, 3, 16, 16), 2.0**126)

    @tf.function(input_signature=[tf.TensorSpec([None, 12, 12, 16])])
    def network(x):
        y = tf.nn.conv2d(x, filters, 1, "SAME")
        return tf.nn.conv2d(y, tf.fill((1, 1, 16, 16), 0.3), 1, "SAME")

    x = np.full((8, 12, 12, 16), 9, np.float32)
    x[:, :6] = 0
    fast = bd.optimize(network, precision="bf16", calibration=x, options=bd.Options(strict=True))
    got = fast(x).numpy()
    assert fast.report.precision.count == 2
    assert not got[:, :4].any() and not np.isfinite(got[:, 8:]).any()
