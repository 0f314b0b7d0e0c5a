"""Operands, matrices and ranks that users expect to fit, against NumPy's rules."""

import numpy as np
import pytest
import tensorflow as tf
from blocked_numpy import Blocked

import tf_blockdnn as bd


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("alpha, beta", [(1.0, 1.0), (0.5, -2.0)])
@pytest.mark.parametrize("shape", [(5,), (1, 5), (7, 1), (), (1, 1), (7, 5)], ids=str)
def test_what_matmul_adds(shape, alpha, beta, transpose_a, floats):
    a, b, c = floats(7, 6), floats(6, 5), floats(*shape)

    def both(a, b, c):
        with tf.GradientTape() as tape:
            tape.watch(c)
            y = bd.ops.packed_matmul(
                a, b, c, alpha=alpha, beta=beta, transpose_a=transpose_a, post_ops="eltwise(relu)"
            )
        return y, tape.gradient(y, c)

    given = tf.constant(a.T if transpose_a else a), tf.constant(b), tf.constant(c)
    y, gradient = both(*given)
    wanted = np.maximum(alpha * (a @ b) + beta * c, 0)
    np.testing.assert_allclose(y, wanted, atol=1e-5)
    summed = tf.reduce_sum(tf.where(wanted > 0, beta, 0.0) * tf.ones_like(wanted))
    np.testing.assert_allclose(tf.reduce_sum(gradient), summed, rtol=1e-5)
    assert gradient.shape == shape
    unknown = tf.function(
        both, input_signature=[tf.TensorSpec([None, None]) for _ in "ab"] + [tf.TensorSpec(shape)]
    )
    if alpha == 1:
        np.testing.assert_allclose(unknown(*given)[0], wanted, atol=1e-5)


OPERANDS = [(1, 6, 5, 1), (1, 6, 5, 20), (3, 6, 5, 1), (3, 1, 1, 1), (3, 6, 5, 20), (3, 1), (3, 20)]


@pytest.mark.parametrize("shape", OPERANDS, ids=str)
@pytest.mark.parametrize("layout", ["nhwc", "nChw16c"])
def test_binary_operands(layout, shape, floats):
    x, weights, operand = floats(3, 6, 5, 4), floats(3, 3, 4, 20), floats(*shape)
    y = bd.ops.conv(
        x,
        weights,
        src_layout="nhwc",
        dst_layout=layout,
        post_ops=bd.PostOps().binary("mul", operand),
        padding="SAME",
    )
    y = Blocked.unpack(y, 20) if layout == "nChw16c" else y
    spread = operand.reshape(shape[0], 1, 1, shape[1]) if len(shape) == 2 else operand
    np.testing.assert_allclose(y, tf.nn.conv2d(x, weights, 1, "SAME") * spread, atol=1e-5)


def test_one_blocked_operand_for_all_samples(floats):
    x, operand = floats(3, 4, 4, 20), floats(1, 4, 4, 20)
    chain = bd.PostOps().binary("add", Blocked.pack(operand))
    y = bd.ops.eltwise(Blocked.pack(x), chain, channels=20)
    np.testing.assert_array_equal(Blocked.unpack(y, 20), x + operand)


@pytest.mark.parametrize("shape", [(6,), (5, 6), (2, 5, 6), (2, 3, 4, 5, 6)], ids=str)
def test_plain_tensors_of_any_rank(shape, floats):
    x, other, row = floats(*shape), floats(*shape), floats(6)
    chain = bd.PostOps().binary("add", row).sum(operand=other).eltwise("relu")
    y = bd.ops.eltwise(x, chain, layout="nhwc")
    np.testing.assert_allclose(y, np.maximum(x + row + other, 0), atol=1e-6)
    if len(shape) > 1:
        y = bd.ops.eltwise(x, bd.PostOps().binary("add", other), layout="nhwc")
        np.testing.assert_array_equal(y, x + other)


@pytest.mark.parametrize("two", [np.int64(2), np.array([2, 2]), (np.int32(2), np.int32(2))])
def test_strides_of_numpy(two, floats):
    src = Blocked.pack(floats(1, 8, 8, 16))
    weights = floats(3, 3, 16, 16)
    assert bd.ops.conv(src, weights, strides=two, padding="SAME").shape == (1, 1, 4, 4, 16)
    assert bd.ops.conv_transpose(src, weights, strides=two).shape == (1, 1, 17, 17, 16)
    assert bd.ops.pool(src, "max", two, strides=two, channels=16, padding="VALID").shape == (
        1,
        1,
        4,
        4,
        16,
    )
    three = two if np.ndim(two) == 0 else np.append(two, 2)
    volume = bd.ops.conv_volume(src, weights[None], depth=1, strides=three, padding="SAME")
    assert volume.shape == (1, 1, 4, 4, 16)
    padded = bd.ops.conv(src, weights, padding=np.array([[1, 1], [2, 2]]))
    assert padded.shape == (1, 1, 8, 10, 16)


@pytest.mark.parametrize("rows, inputs, outputs", [(3, 0, 4), (3, 5, 0), (0, 5, 4), (0, 0, 0)])
def test_products_of_nothing(rows, inputs, outputs, floats):
    bias, src, weights = floats(outputs), floats(rows, inputs), floats(inputs, outputs)
    chain = bd.PostOps().binary("add", bias)
    with tf.GradientTape() as tape:
        xs = tf.constant(src), tf.constant(weights)
        tape.watch(xs)
        y = bd.ops.inner_product(*xs, post_ops=chain)
    np.testing.assert_array_equal(y, src @ weights + bias)
    for x, gradient in zip(xs, tape.gradient(y, xs), strict=True):
        assert gradient is None or gradient.shape == x.shape
