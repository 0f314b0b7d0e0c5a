"""Attention against its definition."""

import numpy as np
import pytest
import tensorflow as tf
from attention_calls import attended

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa
LOWEST = np.finfo(np.float32).min


def formula(q, k, v, biases=(), mask=None, scale=None, masked_value=-np.inf):
    """[B, T, N, H], by the definition in NumPy."""
    attributes = dict.fromkeys(("q_layout", "k_layout", "v_layout", "dst_layout"), "BTNH")
    attributes |= {"q_at": (), "k_at": (), "v_at": (), "at_axis": 0, "zero_masked": False}
    attributes |= {"scale": scale or q.shape[-1] ** -0.5, "soft_cap": 0, "causal": False}
    attributes |= {"num_biases": len(biases), "late_biases": 0, "masked_value": masked_value}
    masks = [] if mask is None else [mask]
    return attended(attributes | {"num_masks": len(masks)}, q, k, v, *biases, *masks)


def assert_near(ours, expected):
    """Within 1e-5 of the largest magnitude, NaN where NaN is expected."""
    ours = np.asarray(ours)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(expected))
    largest = np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-5 * largest)


@pytest.mark.parametrize("size, value_size", [(64, 64), (32, 32), (33, 17), (1, 5), (128, 80)])
@pytest.mark.parametrize("queries, keys", [(1, 1), (1, 300), (49, 49), (197, 197), (7, 1500)])
def test_equals_tensorflow(floats, queries, keys, size, value_size):
    q, k, v = floats(2, queries, 3, size), floats(2, keys, 3, size), floats(2, keys, 3, value_size)
    assert_near(bd.ops.attention(q, k, v), formula(q, k, v))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "float32", "float64"])
def test_a_mask_of_another_type_is_cast(floats, dtype):
    q, k, v = floats(2, 5, 2, 8), floats(2, 21, 2, 8), floats(2, 21, 2, 8)
    mask = np.maximum(3 * floats(2, 1, 5, 21), 0).astype(dtype)
    ours = bd.ops.attention(q, k, v, mask=mask)
    np.testing.assert_array_equal(ours, bd.ops.attention(q, k, v, mask=tf.cast(mask, tf.bool)))


@pytest.mark.parametrize("shape", [(1,), (37,), (25, 37), (1, 1, 37), (3, 1, 37), (2, 3, 25, 37)])
def test_biases_and_masks(floats, shape):
    q, k, v = floats(4, 25, 3, 16), floats(4, 37, 3, 16), floats(4, 37, 3, 16)
    bias, other = floats(*shape), floats(3, 25, 37)
    mask = floats(*shape) > -0.5
    assert_near(bd.ops.attention(q, k, v, biases=[bias]), formula(q, k, v, [bias]))
    both = [bias, other]
    assert_near(bd.ops.attention(q, k, v, biases=both), formula(q, k, v, both))
    full = np.concatenate([mask] * 2) if shape[0] == 2 else mask
    for value in (-np.inf, LOWEST, -1e9, -100.0):
        assert_near(
            bd.ops.attention(q, k, v, biases=bias, mask=mask, masked_value=value, scale=0.3),
            formula(q, k, v, [bias], full, 0.3, masked_value=value),
        )


@pytest.mark.parametrize("value", [-1e9, LOWEST, -100.0, -np.inf])
def test_a_row_that_is_masked_as_a_whole(floats, value):
    q, k, v = floats(2, 5, 2, 8), floats(2, 21, 2, 8), floats(2, 21, 2, 8)
    mask = floats(2, 1, 5, 21) > 0
    mask[1, 0, 3] = False
    ours = bd.ops.attention(q, k, v, mask=mask, masked_value=value)
    masked = formula(q, k, v, mask=mask, masked_value=value)
    assert_near(ours, masked)
    assert np.isnan(ours[1, 3]).all() == np.isinf(value)
    adds = np.where(mask, 0, value).astype(np.float32)
    # What is added to a large number is rounded away, so that the whole row is that number.
    added = formula(q, k, v, [adds]) if value == -100 else masked
    assert_near(bd.ops.attention(q, k, v, biases=adds), added)


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_nan_and_infinities(floats, special):
    for which in range(4):
        tensors = [floats(1, 9, 1, 8) for _ in range(3)] + [floats(9, 9)]
        tensors[which].reshape(-1)[13] = special
        q, k, v, bias = tensors
        assert_near(bd.ops.attention(q, k, v, biases=bias), formula(q, k, v, [bias]))


@pytest.mark.parametrize("empty", ["batch", "queries", "keys", "heads", "values"])
def test_empty(empty):
    sizes = {"batch": 2, "queries": 3, "keys": 4, "heads": 2, "values": 8} | {empty: 0}
    b, t, s, n, h = sizes.values()
    q, k, v = np.ones((b, t, n, 8)), np.ones((b, s, n, 8)), np.ones((b, s, n, h))
    ours = bd.ops.attention(*(x.astype(np.float32) for x in (q, k, v)))
    assert ours.shape == (b, t, n, h)
    np.testing.assert_array_equal(ours, 0)


def test_shapes_known_and_unknown(floats):
    x = floats(2, 20, 4, 16)
    expected = formula(x, x, x)
    for shape in ([2, 20, 4, 16], [None, None, 4, 16], [None] * 4, None):

        @tf.function(input_signature=[tf.TensorSpec(shape)])
        def run(x):
            return bd.ops.attention(x, x, x, scale=0.25)

        inferred = run.get_concrete_function().outputs[0].shape
        assert inferred.rank == tf.TensorShape(shape).rank
        assert inferred.is_compatible_with(expected.shape)
        assert_near(run(x), expected)


def test_scratchpad(floats):
    """What is planned is what runs, in either mode."""
    q, k = (2, 50, 4, 16), (2, 70, 4, 16)
    plan = bd.ops.memory_plan("attention", q, k, k, threads=3)
    names = ("packed keys", "packed values", "queries", "scores")
    assert tuple(plan.pieces) == names and {p.copies for p in plan.pieces.values()} == {3}
    assert plan.pieces["packed keys"].bytes == 3 * 4 * 16 * 80
    q, k, v = floats(*q), floats(*k), floats(*k)
    for mode in ("user", "library"):
        assert_near(bd.ops.attention(q, k, v, how=mode), formula(q, k, v))


def test_arguments():
    x = np.zeros((1, 2, 1, 4), np.float32)
    with pytest.raises(ValueError, match="layout must be one of"):
        bd.ops.attention(x, x, x, layout="NTH")
    with pytest.raises(ValueError, match="scale must be given for a q of unknown size"):
        tf.function(bd.ops.attention).get_concrete_function(*[tf.TensorSpec(None)] * 3)
