"""Inner product against tf.matmul; integers, so with zero tolerance."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


@pytest.mark.parametrize("rows", [1, 2, 13, 14, 15, 100, 513])
@pytest.mark.parametrize("ic,oc", [(1, 1), (64, 16), (513, 200), (77, 600)])
@pytest.mark.parametrize("algorithm", ["direct", "auto"])
def test_equals_matmul(integers, rows, ic, oc, algorithm):
    x, w = integers(rows, ic), integers(ic, oc)
    result = bd.ops.inner_product(x, w, how=f"{algorithm} constant")
    np.testing.assert_array_equal(result, tf.matmul(x, w))


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
