"""Products by constant weights in bfloat16 and in bytes: which become so, and what they lose."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter.precision.quantize import snr

keras = tf.keras
# Type of the layers, and the least signal to noise of the outputs of two of them, in dB.
_PRECISIONS = {"bf16": ("bfloat16", 45), "int8": ("int8", 34), "int8-dynamic": ("int8", 34)}
each_precision = pytest.mark.parametrize("precision", _PRECISIONS)


def rows(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def lowered(target, precision, data, **options):
    """The target in the precision, which alone of all needs data if that is "int8"."""
    given = {"calibration": data} if precision == "int8" else {}
    return bd.optimize(
        target, precision=precision, options=bd.Options(strict=True), **given, **options
    )


def layer_types(report):
    return [layer.dtype for layer in report.precision.layers]


def two_layers(features=64):
    keras.utils.set_random_seed(3)
    return keras.Sequential(
        [
            keras.Input((None, features)),
            keras.layers.Dense(96, activation="gelu", bias_initializer="normal"),
            keras.layers.Dense(33),
        ]
    )


@each_precision
def test_dense_layers(precision, tmp_path):
    """By all doors; whatever the rows: one, few, many, none."""
    model, x = two_layers(), rows(4, 20, 64)
    fast = lowered(model, precision, x)
    kind, least = _PRECISIONS[precision]
    assert layer_types(fast.report) == [kind] * 2
    assert fast.report.count("BlockdnnInnerProduct") == 2 and not fast.report.precision.left
    how = "rows rounded" if precision == "bf16" else "rows quantized"
    assert all(f"{kind}, {how}" in item.details for item in fast.report.converted)
    wanted = model(x)
    assert least < snr(wanted, fast(x)) < 70
    np.testing.assert_array_equal(fast.predict(x, verbose=0), fast(x))
    fast.save(tmp_path / "fast")
    np.testing.assert_array_equal(bd.load(tmp_path / "fast")(x)["output_0"], fast(x))
    for count in (0, 1, 2, 7):
        got = fast(x[:1, :count])
        assert got.shape == (1, count, 33)
        assert not count or snr(wanted[:1, :count], got) > least - 4
    assert fast(x[:0]).shape == (0, 20, 33)


_EQUATIONS = {
    "btd,dnh->btnh": ((5, 7, 24), (24, 3, 8)),
    "btnh,nhd->btd": ((5, 7, 3, 8), (3, 8, 24)),
    "btd,ndh->btnh": ((5, 7, 24), (3, 24, 8)),
    "btd,dnh->bnth": ((5, 7, 24), (24, 3, 8)),
    "abc,dc->abd": ((5, 7, 24), (31, 24)),
}


@each_precision
@pytest.mark.parametrize("equation", _EQUATIONS)
def test_einsum(equation, precision):
    of_x, of_weights = _EQUATIONS[equation]
    x, weights = rows(*of_x), rows(*of_weights, seed=1)
    function = tf.function(
        lambda x: tf.einsum(equation, x, weights),
        input_signature=[tf.TensorSpec([None, *of_x[1:]])],
    )
    fast = lowered(function, precision, x)
    kind, least = _PRECISIONS[precision]
    assert layer_types(fast.report) == [kind]
    assert snr(function(x), fast(x)) > least


@each_precision
def test_matmul_of_either_side_and_turned(precision):
    weights = rows(48, 40)

    @tf.function(input_signature=[tf.TensorSpec([None, 9, 48])])
    def network(x):
        y = tf.nn.relu(tf.matmul(x, weights))
        return tf.matmul(tf.reshape(y, [-1, 40]), rows(17, 40, seed=2), transpose_b=True)

    x = rows(3, 9, 48)
    fast = lowered(network, precision, x)
    assert layer_types(fast.report) == [_PRECISIONS[precision][0]] * 2
    assert snr(network(x), fast(x)) > _PRECISIONS[precision][1]


@each_precision
def test_a_row_is_its_own(precision):
    """Whatever its neighbours hold: zeros, outliers, infinities, no numbers."""
    model, x = two_layers(), rows(1, 12, 64)
    fast = lowered(model, precision, x)
    alone = fast(x).numpy()
    others = x.copy()
    others[0, 0], others[0, 2], others[0, 5], others[0, 7] = 0, np.nan, np.inf, -3e38
    got = fast(others).numpy()
    kept = [1, 3, 4, 6, *range(8, 12)]
    np.testing.assert_array_equal(got[0, kept], alone[0, kept])
    np.testing.assert_allclose(got[0, 0], model(others).numpy()[0, 0], rtol=0.02, atol=0.02)


@each_precision
def test_outliers_and_constant_channels_of_weights(precision):
    """A channel that is large costs the others of the weights nothing; one of zeros is exact."""
    weights = rows(51, 37)
    weights[:, 3] *= 1e4
    weights[:, 5], weights[:, 6] = 0, 0.25
    function = tf.function(
        lambda x: tf.matmul(x, weights), input_signature=[tf.TensorSpec([None, 51])]
    )
    x = rows(20, 51)
    fast = lowered(function, precision, x)
    assert layer_types(fast.report) == [_PRECISIONS[precision][0]]
    wanted, got = function(x).numpy(), fast(x).numpy()
    np.testing.assert_array_equal(got[:, 5], 0)
    for channel in (0, 3, 6, 36):
        assert snr(wanted[:, channel], got[:, channel]) > _PRECISIONS[precision][1]


@pytest.mark.parametrize("precision", ["int8", "int8-dynamic"])
def test_columns_of_large_numbers_are_balanced_by_calibration(precision, tmp_path):
    """Those of the input, and those that weights make of them."""
    large, first, second = np.ones(64, np.float32), rows(64, 64, seed=1), rows(64, 9, seed=2)
    large[[3, 17]] = 60

    @tf.function(input_signature=[tf.TensorSpec([None, 64])])
    def two(x):
        return tf.nn.relu(x @ first) @ second + x @ first[:, :9]

    data, x = rows(120, 64) * large, rows(40, 64, seed=5) * large
    fast = bd.optimize(two, precision=precision, calibration=data, options=bd.Options(strict=True))
    balanced = [item.details for item in fast.report.converted if "rows balanced" in item.details]
    assert len(balanced) == 3
    alone = bd.optimize(two, precision="int8-dynamic")
    assert not any("balanced" in item.details for item in alone.report.converted)
    assert snr(two(x), fast(x)) > snr(two(x), alone(x)) + 6
    fast.save(tmp_path / "fast")
    np.testing.assert_array_equal(bd.load(tmp_path / "fast")(x)["output_0"], fast(x))


@pytest.mark.parametrize("precision", ["int8", "int8-dynamic", "int4-weights"])
def test_calibration_that_says_little_of_products(precision):
    """Data that fit in no way are one line; zeros, one number a column, and few rows are enough."""
    model = two_layers(7)
    for data, words in (
        (rows(8, 5, 6), "batch 0, .* is .*; the function takes"),
        (rows(8, 5, 7) * np.float32(np.nan), "holds NaN or infinities"),
        (rows(0, 5, 7), "no samples"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            bd.optimize(model, precision=precision, calibration=data)
        assert "\n" not in str(caught.value)
    x, plain = rows(3, 5, 7), bd.optimize(model, precision="int8-weights")
    for data in (0 * rows(8, 5, 7), np.ones((8, 5, 7), np.float32), rows(1, 1, 7)):
        fast = bd.optimize(model, precision=precision, calibration=data)
        assert layer_types(fast.report) == ["int4" if precision == "int4-weights" else "int8"] * 2
        assert snr(plain(x), fast(x)) > 12
        np.testing.assert_allclose(fast(0 * x), plain(0 * x), atol=0.3)
        assert fast(x[:0]).shape == (0, 5, 33)


@each_precision
def test_weights_that_are_no_numbers_stay_float32(precision):
    weights = rows(16, 16)
    weights[3, 3] = np.inf
    function = tf.function(
        lambda x: tf.matmul(tf.matmul(x, rows(16, 16, seed=4)), weights),
        input_signature=[tf.TensorSpec([None, 16])],
    )
    fast = lowered(function, precision, rows(8, 16))
    assert layer_types(fast.report) == [_PRECISIONS[precision][0]]
    ((_, reason),) = fast.report.precision.left
    assert "no finite numbers" in reason


@each_precision
def test_the_loss_that_is_allowed(precision):
    """The products that lose most stay float32."""
    model, x = two_layers(), rows(16, 20, 64)
    given = {"calibration": x, "max_loss": 1e-5}
    fast = bd.optimize(model, precision=precision, **given)
    assert layer_types(fast.report) == ["float32"] * 2
    assert any("changed nothing" in warning for warning in fast.report.warnings)
    np.testing.assert_allclose(fast(x), model(x), rtol=1e-4, atol=1e-5)
    fast = bd.optimize(model, precision=precision, calibration=x, max_loss=0.05)
    assert layer_types(fast.report) == [_PRECISIONS[precision][0]] * 2
    assert fast.report.precision.outputs[0].snr > _PRECISIONS[precision][1]


@pytest.mark.parametrize("precision", ["bf16", "int8-dynamic"])
def test_products_of_loops(precision):
    """Which no calibration sees, and need none."""
    weights = rows(32, 32) / 6

    @tf.function(input_signature=[tf.TensorSpec([None, 32])])
    def network(x):
        for _ in tf.range(4):
            x = tf.tanh(tf.matmul(x, weights))
        return x

    fast, x = lowered(network, precision, None), rows(9, 32)
    assert layer_types(fast.report) == [_PRECISIONS[precision][0]]
    assert _PRECISIONS[precision][1] - 8 < snr(network(x), fast(x)) < 70


def test_dense_layers_on_pictures_are_products_of_dynamic_bytes():
    """Convolutions beside them stay float32, and the report says why."""
    keras.utils.set_random_seed(3)
    model = keras.Sequential(
        [
            keras.Input((16, 16, 16)),
            keras.layers.Conv2D(32, 3, activation="relu"),
            keras.layers.Dense(64),
            keras.layers.Dense(32),
        ]
    )
    fast = lowered(model, "int8-dynamic", None)
    assert layer_types(fast.report) == ["int8"] * 2
    ((_, reason),) = fast.report.precision.left
    assert 'precision="int8" makes convolutions bytes' in reason
    x = rows(2, 16, 16, 16)
    assert 34 < snr(model(x), fast(x)) < 60
