"""Dense layers: MatMul by constant weights with bias and activation."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts


def test_bias_and_activation_are_fused(rewrite, weights):
    result = rewrite(lambda x: tf.nn.relu(tf.matmul(x, weights(40, 24)) + weights(24)), [None, 40])
    assert result.blockdnn == {"InnerProduct": 1}
    (text,) = result.post_ops("BlockdnnInnerProduct")
    assert text == "binary(add,channel);eltwise(relu)"


def test_one_copy_of_the_weights_is_all_that_is_kept(rewrite, weights):
    kernel = weights(40, 24)
    result = rewrite(lambda x: tf.matmul(x, kernel), [None, 40])
    assert not any(item is kernel for item in result.trackables)
    assert sum(item.shape.num_elements() for item in result.trackables) == 40 * 24


def test_a_row_added_to_each_sample_is_no_bias(rewrite, weights):
    """[1, C] and [N, 1] broadcast differently."""
    column = tf.Variable(np.arange(3, dtype=np.float32)[:, None])
    result = rewrite(lambda x: tf.matmul(x, weights(40, 24)) + column, [3, 40])
    assert result.post_ops("BlockdnnInnerProduct") == [""]


def test_what_stays_with_tensorflow(rewrite, weights):
    transposed = rewrite(lambda x: tf.matmul(x, weights(24, 40), transpose_a=True), [24, None])
    assert "transpose_a=True" in transposed.reason("MatMul")
    computed = rewrite(lambda x: tf.matmul(x, x + 1.0), [4, 4])
    assert "computed" in computed.reason("MatMul")
    double = tf.Variable(tf.ones([4, 4], tf.float64))
    result = rewrite(lambda x: tf.matmul(x, double), tf.TensorSpec([4, 4], tf.float64))
    assert "float64" in result.reason("MatMul")


@pytest.mark.parametrize(
    "product",
    [
        lambda x, table: tf.matmul(x, table, transpose_b=True),
        lambda x, table: tf.matmul(x, tf.transpose(table)),
        lambda x, table: tf.matmul(x, tf.transpose(table) * 2.0) * 0.5,
        lambda x, table: tf.matmul(
            x, tf.transpose(table) + tf.matmul(table[:2], table[:, :2], True, True)
        ),
        lambda x, table: tf.matmul(x, tf.split(tf.transpose(table), 2, 1)[1]),
    ],
)
def test_computed_weights_are_stored_once(rewrite, weights, product):
    """Otherwise each call would compute them, and pack what it computed."""
    table = weights(40, 24)  # an embedding's, which gives the logits, too
    result = rewrite(lambda x: product(x, table), [None, 24])
    assert result.blockdnn == {"InnerProduct": 1} and "Transpose" not in result.ops
    assert all(item is not table for item in result.trackables)


@pytest.mark.parametrize(
    "equation, src, by",
    [
        ("abc,cde->abde", [None, 7, 20], [20, 3, 8]),
        ("abcd,cde->abe", [2, None, 3, 8], [3, 8, 20]),
        ("ab,bc->ac", [None, 20], [20, 24]),
        ("abc,cd->adb", [2, 7, 20], [20, 8]),  # the result is transposed, as TensorFlow does it
        ("abc,cde->adbe", [None, None, 20], [20, 3, 8]),
    ],
)
@pytest.mark.parametrize("weights_first", [False, True])
def test_einsum_by_weights_is_a_product(rewrite, weights, equation, src, by, weights_first):
    kernel = weights(*by)

    def function(x):
        if not weights_first:
            return tf.einsum(equation, x, kernel)
        operands, result = equation.split("->")
        return tf.einsum(f"{','.join(operands.split(',')[::-1])}->{result}", kernel, x)

    result = rewrite(function, src)
    assert result.blockdnn == {"InnerProduct": 1} and "Einsum" not in result.ops
    x = np.random.default_rng(0).standard_normal([size or 5 for size in src], np.float32)
    result.assert_same(x, tolerance=1e-5)


@pytest.mark.parametrize("shape", [[3, 8], [1, 3, 8], [1, 1, 3, 8], [8]], ids=str)
def test_work_on_several_axes_is_fused(rewrite, weights, shape):
    """The bias of a projection to heads stands behind the Reshape that splits them."""
    result = rewrite(
        lambda x: tf.nn.gelu(
            tf.einsum("abc,cde->abde", x, weights(20, 3, 8)) + weights(*shape), True
        ),
        [None, 7, 20],
    )
    fused = "binary(add,channel);eltwise(gelu_tanh)"
    assert result.post_ops("BlockdnnInnerProduct") == [fused]
    assert not {"Add", "AddV2"} & set(result.ops)


@converts([2, 7, 20], {"InnerProduct": 1})
def test_work_behind_rows_with_a_bias_is_fused(x, weights):
    """Hugging Face's GPT-2 gives rows their axes behind the bias."""
    rows = tf.matmul(tf.reshape(x, [-1, 20]), weights(20, 24)) + weights(24)
    return tf.nn.gelu(tf.reshape(rows, [2, 7, 24]), True)


def test_a_bias_behind_the_axes_of_rows_is_fused(rewrite, weights):
    """MobileViT's patches."""

    def function(x):
        rows = tf.reshape(tf.matmul(x, weights(20, 24)), [2, 7, 24])
        return tf.nn.bias_add(rows, weights(24))

    result = rewrite(function, [14, 20])
    assert result.post_ops("BlockdnnInnerProduct") == ["binary(add,channel)"]


def test_a_bias_of_zeros_is_nothing(rewrite, weights):
    result = rewrite(
        lambda x: tf.nn.relu(tf.matmul(x, weights(40, 24)) + np.zeros(24, "f")), [None, 40]
    )
    assert result.post_ops("BlockdnnInnerProduct") == ["eltwise(relu)"]


@pytest.mark.parametrize("shape", [[7, 3, 8], [7, 1, 8]], ids=str)
def test_another_sum_is_no_bias(rewrite, weights, shape):
    result = rewrite(
        lambda x: tf.einsum("abc,cde->abde", x, weights(20, 3, 8)) + weights(*shape), [None, 7, 20]
    )
    assert result.post_ops("BlockdnnInnerProduct") == [""] and result.ops["AddV2"] == 1


def test_a_product_with_another_reader_keeps_its_bias(rewrite, weights):
    """XLNet's queries get three; none of them has its axes after it."""

    def function(x):
        y = tf.einsum("abc,cde->abde", x, weights(20, 3, 8))
        return y + weights(3, 8), y - weights(3, 8), y + weights(8), tf.math.bessel_i0e(y)

    result = rewrite(function, [None, 7, 20])
    assert result.post_ops("BlockdnnInnerProduct") == [""]
    assert result.ops["Reshape"] == 3


@pytest.mark.parametrize(
    "equation, src, by",
    [
        ("abc,cde->abde", [None, None, 20], [20, 3, 8]),
        ("abcd,cde->abe", [None, None, 3, 8], [3, 8, 20]),
        ("abc,cd->abd", [None, None, 20], [20, 24]),
        ("abc,dce->abde", [None, None, 20], [3, 20, 8]),  # weights with axes in other orders
        ("abcd,ecd->abe", [None, None, 3, 8], [20, 3, 8]),
        ("abcd,edc->abe", [None, None, 3, 8], [20, 8, 3]),
        ("...c,dc->...d", [None, None, 20], [8, 20]),
    ],
)
def test_batch_and_length_may_be_open(rewrite, weights, floats, equation, src, by):
    result = rewrite(lambda x: tf.einsum(equation, x, weights(*by)) * 2.0, src)
    assert result.blockdnn == {"InnerProduct": 1} and "Einsum" not in result.ops
    for batch, length in ((1, 1), (2, 7), (3, 513)):
        result.assert_same(floats(batch, length, *src[2:]))


@pytest.mark.parametrize(
    "equation, src, by, multiply_adds",
    [
        ("abc,dc->abc", [2, 7, 20], [8, 20], 2 * 7 * 20 * 8),  # c is kept
        ("abc,abd->acd", [2, 7, 20], [2, 7, 8], 2 * 20 * 8 * 7),  # a batch of products
        ("abc,bcd->abd", [2, 7, 20], [7, 20, 8], 2 * 7 * 8 * 20),  # b is kept
    ],
)
def test_other_einsums_stay(rewrite, weights, equation, src, by, multiply_adds):
    result = rewrite(lambda x: tf.einsum(equation, x, weights(*by)), src)
    assert result.blockdnn == {} and result.ops["Einsum"] == 1
    assert "another order" in result.reason("insum")
    assert result.report.multiply_adds_left == multiply_adds
    result.assert_same(np.random.default_rng(0).standard_normal(src, np.float32), tolerance=1e-5)


def test_attention_multiplies_by_our_op(rewrite):
    """Attention, the projections around it and the normalisation are an op each."""
    x = keras.Input([10, 32])
    y = keras.layers.LayerNormalization()(keras.layers.MultiHeadAttention(4, 8)(x, x))
    result = rewrite(keras.Model(x, y), [None, 10, 32])
    # Query, key, value, output.
    assert result.blockdnn == {"Attention": 1, "InnerProduct": 4, "LayerNorm": 1}
    assert "AddV2" not in result.ops
    reasons = [reason for _, reason in result.report.declined]
    assert "a matmul of two computed tensors" not in reasons
    assert result.report.multiply_adds == 64 * 10 * (4 * 32 * 32 + 2 * 32 * 10)
    assert result.report.multiply_adds_left == 0
    rows = np.random.default_rng(0).standard_normal((3, 10, 32), np.float32)
    result.assert_same(rows, tolerance=1e-5)


def test_a_product_of_pictures_is_a_convolution(rewrite, weights, image, conv):
    result = rewrite(
        lambda x: tf.nn.relu(tf.matmul(conv(x, 32), weights(32, 16))), [None, 6, 7, 32]
    )
    assert result.blockdnn == {"Conv": 2, "Reorder": 1}
    result.assert_same(image(2, 6, 7, 32), tolerance=1e-5)


@pytest.mark.parametrize(
    "rows, ic, oc, stays",
    [
        (12544, 64, 256, True),
        (3136, 64, 256, False),
        (12544, 256, 64, False),
        (2048, 512, 1024, False),
        (None, 64, 256, False),  # judged by one sample
    ],
)
def test_a_product_that_would_be_slower_stays(rewrite, weights, rows, ic, oc, stays):
    """TensorFlow's optimiser fuses it with its bias and activation, which no region may hide."""

    def function(x):
        y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, weights(ic, oc)), weights(oc)))
        return tf.matmul(y[:8] * 1.5, weights(oc, 24))

    result = rewrite(function, [rows, ic])
    assert result.blockdnn == {"InnerProduct": 1 if stays else 2}
    if stays:
        assert f"faster at {rows} rows of {ic}->{oc}" in result.reason("MatMul")
        outside = {op.type for op in result.concrete.graph.get_operations()}
        assert {"MatMul", "BiasAdd", "Relu", "BlockdnnRegion"} <= outside
    x = np.random.default_rng(0).standard_normal((rows or 9, ic), np.float32)
    result.assert_same(x, tolerance=1e-5)
