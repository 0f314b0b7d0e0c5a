"""Inner product against tf.matmul; integers, so with zero tolerance."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


@pytest.mark.parametrize("rows", [1, 2, 13, 14, 15, 100, 513])
@pytest.mark.parametrize("ic,oc", [(1, 1), (7, 5), (64, 16), (100, 33), (513, 200), (77, 600)])
@pytest.mark.parametrize("algorithm", ["direct", "auto"])
def test_equals_matmul(integers, rows, ic, oc, algorithm):
    x, w = integers(rows, ic), integers(ic, oc)
    result = bd.ops.inner_product(x, w, how=f"{algorithm} constant")
    np.testing.assert_array_equal(result, tf.matmul(x, w))


@pytest.mark.parametrize("shape", [(20,), (3, 20), (2, 3, 20), (2, 1, 3, 20), (0, 20), (2, 0, 20)])
def test_any_rank_and_no_rows(integers, shape):
    x, w = integers(*shape), integers(20, 24)
    result = bd.ops.inner_product(x, w)
    np.testing.assert_array_equal(result, np.matmul(x, w))
    assert result.shape == (*shape[:-1], 24)


def test_chain(integers):
    x, w, bias = integers(5, 20), integers(20, 24), integers(24)
    old, other = integers(5, 24), integers(5, 24)
    result = bd.ops.inner_product(
        x,
        w,
        post_ops="binary(add,channel,#0);sum(#1,scale=2);eltwise(relu);binary(sub,tensor,#2)",
        args=[bias, old, other],
    )
    np.testing.assert_array_equal(result, np.maximum(x @ w + bias + 2 * old, 0) - other)


@pytest.mark.parametrize("batch, length", [(1, 1), (1, 197), (3, 5), (32, 17), (2, 513)])
@pytest.mark.parametrize("ic, oc", [(96, 600), (511, 257), (200, 48)])
@pytest.mark.parametrize("gelu", ["gelu_erf", "gelu_tanh"])
def test_a_dense_layer_of_tokens(floats, batch, length, ic, oc, gelu):
    """Many rows, in pairs where the CPU gains from them, with all that follows in a transformer."""
    x, w, bias = floats(batch, length, ic), floats(ic, oc) / np.sqrt(ic), floats(oc)
    w, old = w.astype(np.float32), floats(batch, length, oc)
    chain = f"binary(add,channel,#0);eltwise({gelu});binary(add,tensor,#1)"
    got = bd.ops.inner_product(x, w, post_ops=chain, args=[bias, old], how="constant")
    sums = tf.constant(x.astype(np.float64) @ w + bias)
    expected = tf.nn.gelu(sums, gelu == "gelu_tanh").numpy() + old
    assert np.abs(got - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.mark.parametrize("shape", [(5, 20), (2, 3, 20)])
def test_the_chain_of_the_source_document(integers, shape):
    """s_lin * (alpha * (s_sum * dst + s_tanh * tanh(s_conv * x @ w)) + beta)"""
    x, w, previous = integers(*shape), integers(20, 24), integers(*shape[:-1], 24)
    chain = bd.PostOps().eltwise("linear", 0.05).eltwise("tanh", scale=0.75).sum(-1.5)
    chain = chain.eltwise("linear", 0.3, -0.7, 2.5)
    result = bd.ops.inner_product(x, w, post_ops=chain, dst=previous)
    expected = 2.5 * (0.3 * (-1.5 * previous + 0.75 * np.tanh(0.05 * (x @ w))) - 0.7)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)


def test_a_value_a_sample_and_channel(integers):
    x, w, gate = integers(2, 3, 4, 20), integers(20, 24), integers(2, 24)
    chain = bd.PostOps().binary("mul", gate).eltwise("relu")
    expected = np.maximum((x @ w) * gate[:, None, None], 0)
    np.testing.assert_array_equal(bd.ops.inner_product(x, w, post_ops=chain), expected)
    run = tf.function(
        lambda x: bd.ops.inner_product(x, w, post_ops="binary(mul,sample_channel,#0)", args=[gate]),
        input_signature=[tf.TensorSpec(None)],
    )
    np.testing.assert_array_equal(run(x), (x @ w) * gate[:, None, None])


def test_part_of_a_flat_vector(integers):
    x, w = integers(3, 20), integers(20, 24)
    vector = np.concatenate([np.full(7, np.nan, np.float32), w.ravel()])
    result = bd.ops.inner_product(x, vector, weights_shape=[20, 24], weights_offset=7)
    np.testing.assert_array_equal(result, x @ w)


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("algorithm", ["direct", "auto"])
def test_weights_may_change_between_calls(integers, algorithm, constant):
    x, w = integers(3, 20), tf.Variable(integers(20, 24))
    options = {"how": f"{algorithm} {'constant' * constant}"}
    function = tf.function(lambda x: bd.ops.inner_product(x, w, weights_shape=[20, 24], **options))
    for _ in range(4):
        np.testing.assert_array_equal(function(x), tf.matmul(x, w))
    w.assign(integers(20, 24))
    np.testing.assert_array_equal(function(x), tf.matmul(x, w))


def test_the_plan_names_the_algorithm():
    def algorithm(ic, **options):
        return bd.ops.memory_plan("inner_product", (1, ic), (ic, 1024), **options).algorithm

    assert algorithm(2048) == algorithm(20, how="constant") == "rows"
    assert algorithm(2048, how="constant direct") == "rows"
