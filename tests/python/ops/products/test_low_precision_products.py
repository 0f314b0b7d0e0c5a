"""Products by weights of bfloat16 and of int8, and of bfloat16 and uint8, against their definition.

Tensors of small integers give exact sums, so results are equal, not near.
"""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa

# Few rows, many, and no rows at all.
ROWS = [1, 3, 20, 21, 70, 0]


@pytest.fixture
def bytes_of():
    rng = np.random.default_rng(5)
    return lambda *shape: rng.integers(-127, 128, shape, dtype=np.int8)


def _scales(n):
    return (0.125 * (1 + np.arange(n) % 3)).astype(np.float32)


def _weights(dtype, integers, bytes_of, k, n):
    """Weights, arguments for their scales, and the floats they stand for."""
    if dtype == "int8":
        weights = bytes_of(k, n)
        return weights, {"weight_scales": _scales(n)}, weights * _scales(n)
    floats = integers(k, n)
    return tf.cast(floats, tf.bfloat16), {}, floats


def _product(x, wide):
    return (x.astype(np.float64) @ wide.astype(np.float64)).astype(np.float32)


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("k, n", [(1, 1), (7, 5), (64, 16), (131, 100)])
def test_low_precision_weights(integers, bytes_of, dtype, rows, k, n):
    x, (weights, scales, wide) = integers(rows, k), _weights(dtype, integers, bytes_of, k, n)
    expected = _product(x, wide)
    for constant in (False, True):
        y = bd.ops.inner_product(x, weights, **scales, how=f"{'constant' * constant} direct")
        np.testing.assert_array_equal(y, expected)
        y = bd.ops.packed_matmul(x, weights, **scales, how=f"{'constant' * constant} direct")
        np.testing.assert_array_equal(y, expected)
    turned = tf.transpose(weights)
    y = bd.ops.packed_matmul(x, turned, transpose_b=True, **scales)
    np.testing.assert_array_equal(y, expected)
    y = bd.ops.packed_matmul(tf.transpose(x), weights, transpose_a=True, **scales)
    np.testing.assert_array_equal(y, expected)


def test_part_of_a_flat_vector(integers, bytes_of):
    flat = bytes_of(5 + 20 * 30)
    y = bd.ops.inner_product(
        x := integers(2, 20),
        flat,
        weights_shape=[20, 30],
        weights_offset=5,
        weight_scales=_scales(30),
    )
    np.testing.assert_array_equal(y, _product(x, flat[5:].reshape(20, 30) * _scales(30)))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("k, n", [(1, 1), (7, 5), (64, 16), (131, 100)])
def test_bytes_by_bytes(bytes_of, rows, k, n):
    a, b = (bytes_of(rows, k) ^ -128).view(np.uint8), bytes_of(k, n)
    y = bd.ops.packed_matmul(a, b, weight_scales=_scales(n), src_quantization=(0.25, 7))
    sums = (a.astype(np.int64) - 7) @ b.astype(np.int64)
    np.testing.assert_array_equal(y, sums.astype(np.float32) * (np.float32(0.25) * _scales(n)))


@pytest.mark.parametrize("rows", ROWS)
def test_bfloat16_by_bfloat16(integers, rows):
    a, b = integers(rows, 37), integers(37, 50)
    for weights in (b, tf.cast(b, tf.bfloat16)):
        y = bd.ops.packed_matmul(tf.cast(a, tf.bfloat16), weights, post_ops="eltwise(relu)")
        assert y.dtype == tf.float32
        np.testing.assert_array_equal(y, np.maximum(_product(a, b), 0))


@pytest.mark.parametrize("shape", [(1, 7), (5, 64), (40, 131), (2, 3, 30), (0, 4)])
def test_quantized_rows_are_the_integers_of_keras(floats, bytes_of, shape):
    x, b = floats(*shape), bytes_of(shape[-1], 50)
    x[..., 0] *= 30
    if len(x):
        x[-1] = 0
    scale = np.float32(127) / (np.abs(x).max(-1, keepdims=True) + np.float32(1e-7))
    steps = np.clip(np.round(x * scale), -127, 127)
    sums = steps.astype(np.int64) @ b.astype(np.int64)
    y = bd.ops.packed_matmul(x, b, weight_scales=_scales(50), quantize_rows=True)
    expected = sums.astype(np.float32) * _scales(50) / scale
    np.testing.assert_allclose(y, expected, rtol=4e-7)
    assert np.array_equal(np.round(y / _scales(50) * scale), sums)


@pytest.mark.parametrize("k", [1, 7, 16, 131])
def test_rows_are_balanced_before_they_are_quantized(floats, bytes_of, k):
    x, b, factors = floats(5, k), bytes_of(k, 20), 2.0 ** (np.arange(k, dtype=np.float32) % 5)
    x[2] = 0
    both = np.concatenate([[9.0], _scales(20), factors]).astype("float32")
    how = {"weight_scales": both, "scales_offset": 1, "quantize_rows": True, "balance_rows": True}
    y = bd.ops.inner_product(x, b, **how)
    wanted = bd.ops.inner_product(x * factors, b, weight_scales=_scales(20), quantize_rows=True)
    np.testing.assert_array_equal(y, wanted)
    for changes, words in (
        ({"quantize_rows": False}, "balance_rows needs quantize_rows"),
        ({"weight_scales": both[:-1]}, "weight_scales must hold"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            bd.ops.inner_product(x, b, **(how | changes))


def test_low_precision_products_have_no_gradient(floats, bytes_of):
    x = tf.constant(floats(2, 8))
    for op in (bd.ops.inner_product, bd.ops.packed_matmul):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = op(x, bytes_of(8, 3), weight_scales=_scales(3))
        with pytest.raises(ValueError, match="of int8 has no gradient; train it in float32"):
            tape.gradient(y, x)


def test_saved_and_loaded(tmp_path, floats, bytes_of):
    module, x = tf.Module(), floats(3, 8)
    module.b, module.scales = tf.Variable(bytes_of(8, 5)), tf.Variable(_scales(5))

    @tf.function(input_signature=[tf.TensorSpec([None, 8])])
    def call(x):
        y = bd.ops.inner_product(x, module.b, weight_scales=module.scales)
        return y, bd.ops.packed_matmul(x, module.b, weight_scales=module.scales, quantize_rows=True)

    module.call = call
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    for y, expected in zip(loaded.call(x), call(x), strict=True):
        np.testing.assert_array_equal(y, expected)


def _int4(k, n, group, seed=5):
    """Numbers of 4 bits as arguments of `inner_product`, and the floats that they stand for."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, 16, (k, n), dtype=np.uint8)
    scales = (0.125 * rng.integers(-8, 9, (2, -(-k // group), n))).astype(np.float32)
    low, high = numbers[::2], np.pad(numbers, [(0, k % 2), (0, 0)])[1::2]
    of_row = np.arange(k) // group
    wide = numbers * scales[0, of_row] + scales[1, of_row]
    arguments = {"weights_shape": [k, n], "weight_scales": scales, "group": group}
    return low | high << 4, arguments, wide


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize(
    "k, n, group", [(1, 1, 1), (7, 5, 7), (64, 16, 32), (131, 100, 64), (131, 100, 131)]
)
def test_weights_of_4_bits(integers, rows, k, n, group):
    x, (weights, arguments, wide) = integers(rows, k), _int4(k, n, group)
    for constant in (False, True):
        y = bd.ops.inner_product(x, weights, **arguments, how=f"{'constant' * constant} direct")
        np.testing.assert_array_equal(y, _product(x, wide))
    bias = integers(n)
    y = bd.ops.inner_product(
        x, weights, **arguments, post_ops="binary(add,channel,#0);eltwise(relu)", args=(bias,)
    )
    expected = np.maximum(_product(x, wide) + bias, 0)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-4)  # many rows may be in pairs


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_sums_by_4_bits_are_those_of_floats(floats, rows):
    """Numbers meet a base of their own on the way, which must not cost digits."""
    x, (weights, arguments, wide) = floats(rows, 1000) + 3, _int4(1000, 48, 128)
    y = bd.ops.inner_product(x, weights, **arguments)
    bound = np.abs(x.astype(np.float64)) @ np.abs(wide.astype(np.float64))
    assert (np.abs(y - x.astype(np.float64) @ wide) <= 2e-6 * bound).all()


def test_rows_of_no_numbers_stay_theirs_by_4_bits(integers):
    x, (weights, arguments, wide) = integers(5, 64), _int4(64, 32, 32)
    x[1, 3], x[2, 5], x[3] = np.nan, np.inf, 0.0
    y = bd.ops.inner_product(x, weights, **arguments).numpy()
    assert np.isnan(y[1]).all() and not np.isfinite(y[2]).any()
    np.testing.assert_array_equal(y[[0, 3, 4]], _product(x[[0, 3, 4]], wide))


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"group": 0}, "group is that of weights of uint8"),
        ({"group": 12, "weight_scales": np.ones(400, np.float32)}, "of 8 rows, 16, ..; got 12"),
        ({"weight_scales": np.ones(7, np.float32)}, "weight_scales must hold"),
        ({"quantize_rows": True}, "quantize_rows is for weights of int8"),
    ],
)
def test_what_4_bits_cannot_be(integers, changes, words):
    weights, arguments, _ = _int4(64, 32, 32)
    with pytest.raises(tf.errors.InvalidArgumentError, match=words) as caught:
        bd.ops.inner_product(integers(2, 64), weights, **(arguments | changes))
    assert "\n" not in str(caught.value).split(" [Op:")[0]
