"""Powers, and moves that move nothing, as TensorFlow's own optimiser writes them."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts


@pytest.mark.parametrize(
    "exponent, ops",
    [
        (2.0, {"Square": 1}),
        (3.0, {"Square": 1, "Mul": 1}),
        (0.5, {"Sqrt": 1}),
        (-0.5, {"Rsqrt": 1}),
        (-1.0, {"Reciprocal": 1}),
    ],
)
def test_a_power_is_cheap(rewrite_beside, exponent, ops):
    result = rewrite_beside(lambda x: tf.pow(tf.exp(x), exponent), [None, 20])
    assert "Pow" not in result.ops
    assert {op: result.ops[op] for op in ops} == ops


@pytest.mark.parametrize("exponent", [2.5, [2.0, 2.0], np.full([1, 1, 1], 2.0)])
def test_another_power_stays(rewrite_beside, exponent):
    """A third axis, or two exponents, make another shape."""
    result = rewrite_beside(lambda x: tf.pow(x, tf.constant(exponent, tf.float32)), [3, 1])
    assert result.ops["Pow"] == 1
    result.assert_same(np.full([3, 1], 0.5, np.float32))


def test_a_power_of_integers_stays(rewrite):
    result = rewrite(lambda x: tf.pow(x, 3), tf.TensorSpec([4], tf.int32))
    assert result.ops["Pow"] == 1
    result.assert_same(np.arange(4, dtype=np.int32))


@pytest.mark.parametrize(
    "activation",
    [tf.nn.relu, tf.nn.gelu, keras.activations.gelu, lambda x: keras.ops.gelu(x, False)],
)
def test_a_dense_layer_of_tokens_is_one_op(rewrite, activation):
    """The bias, the activation and the addition stand behind Tensordot's Reshape."""
    x = keras.Input([7, 32])
    y = keras.layers.Dense(24, activation, bias_initializer="normal")(x)
    model = keras.Model(x, keras.layers.Add()([keras.layers.Dense(32)(y), x]))
    result = rewrite(model, [None, 7, 32])
    assert result.blockdnn == {"InnerProduct": 2}
    left = set(result.ops) & {"Reshape", "Transpose", "BiasAdd", "AddV2", "Pow", "Tanh", "Erfc"}
    assert not left


_PHASES = [(0, 0), (1, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [0, 2, 1, 3], [3, 2, 1, 0]])
@pytest.mark.parametrize("sizes", [(6, 8), (5, 8)])
def test_merged_patches_are_a_transpose(rewrite_beside, order, sizes):
    """Other orders, and sizes that phases do not share evenly, stay slices."""
    phases = [_PHASES[i] for i in order]

    def merge(x):
        y = tf.pad(tf.exp(x), [[0, 0], [0, sizes[0] % 2], [0, 0], [0, 0]])
        return tf.concat([y[:, i::2, j::2] for i, j in phases], -1) * 2.0

    result = rewrite_beside(merge, [None, *sizes, 5])
    known = order != [3, 2, 1, 0]
    assert (result.ops["Transpose"], result.ops["ConcatV2"]) == ((1, 0) if known else (0, 1))
    assert result.ops["Pad"] == sizes[0] % 2


@pytest.mark.parametrize(
    "cut",
    [
        lambda x: [x[:, :2, :2], x[:, 1::2, ::2], x[:, ::2, 1::2], x[:, 1::2, 1::2]],
        lambda x: [x[:, ::2, ::2], x[:, 1::2, ::2], x[:, ::2, ::2], x[:, 1::2, 1::2]],
        lambda x: [x[:, ::2, ::2], (-x)[:, 1::2, ::2], x[:, ::2, 1::2], x[:, 1::2, 1::2]],
        lambda x: [x[:, ::2, ::2], x[:, ::-2, ::2], x[:, ::2, 1::2], x[:, 1::2, 1::2]],
    ],
)
def test_what_is_not_all_phases_of_one_tensor_stays(rewrite_beside, cut):
    result = rewrite_beside(lambda x: tf.concat(cut(tf.exp(x)), -1), [2, 4, 4, 3])
    assert result.ops["ConcatV2"] == 1


def _by_rows_and_columns(*addends):
    """Attention of 3 x 4 pixels whose scores get a bias of each row and of each column of keys."""

    def attention(q, k, v, *biases):
        scores = tf.reshape(tf.matmul(q, k, transpose_b=True), [-1, 3, 4, 3, 4])
        for cut, bias in zip(addends, biases, strict=True):
            scores += cut(tf.reshape(bias, [-1, 3, 4, 3, 4]))
        return tf.matmul(tf.nn.softmax(tf.reshape(scores, [-1, 12, 12])), v)

    return attention


_ROWS, _COLUMNS, _ALL = lambda x: x[..., :1], lambda x: x[..., :1, :], lambda x: x


@pytest.mark.parametrize(
    "addends", [(_ROWS, _COLUMNS), (_ALL,), (_COLUMNS, _ALL), (_ROWS, _COLUMNS, _ROWS)]
)
def test_biases_by_rows_and_columns_are_one(rewrite, addends):
    specs = [[5, 12, 8]] * 3 + [[5, 12, 12]] * len(addends)
    result = rewrite(_by_rows_and_columns(*addends), *specs)
    assert result.blockdnn == {"Attention": 1}
    assert result.ops["AddV2"] == len(addends) - 1
    result.assert_same(*(np.random.default_rng(0).standard_normal(s, np.float32) for s in specs))


def test_a_bias_of_rows_alone_stays_between_reshapes(rewrite):
    """As a bias of scores it would have to be repeated for all columns first."""
    specs = [[2, 12, 8]] * 3 + [[2, 12, 12]]
    result = rewrite(_by_rows_and_columns(_ROWS), *specs)
    assert "Attention" not in result.blockdnn
    result.assert_same(*(np.random.default_rng(0).standard_normal(s, np.float32) for s in specs))


@converts([None, 36, 32], {"Conv": 1, "InnerProduct": 1, "Reorder": 2})
def test_an_activation_of_tokens_is_the_convolutions(x, weights):
    """As in the feed-forward layers of SegFormer and PVT; a gelu reads the tokens twice."""
    y = tf.nn.depthwise_conv2d(
        tf.reshape(x, [-1, 6, 6, 32]), weights(3, 3, 32, 1), [1, 1, 1, 1], "SAME"
    )
    tokens = tf.nn.gelu(tf.reshape(tf.nn.bias_add(y, weights(32)), [-1, 36, 32]))
    return tf.tensordot(tokens, weights(32, 8), 1)


@pytest.mark.parametrize("is_read_twice", [False, True])
def test_an_activation_of_rows_of_boxes_is_the_convolutions(rewrite, is_read_twice):
    """The convolution computes it where nothing else reads the rows."""
    x = keras.Input([6, 5, 8])
    rows = keras.layers.Conv2D(3 * 7, 1, bias_initializer="normal")(x)
    rows = keras.layers.Reshape([-1, 7])(rows)
    boxes = keras.layers.Activation("sigmoid")(rows)
    result = rewrite(keras.Model(x, [boxes, rows] if is_read_twice else boxes), [None, 6, 5, 8])
    assert result.blockdnn["Conv"] == 1
    assert result.ops["Sigmoid"] == is_read_twice


def _softmax(x, axis=-1, make=tf.exp, keeps=True, most=lambda x: x):
    e = make(x - tf.stop_gradient(tf.reduce_max(most(x), axis, keepdims=True)))
    return e / tf.reduce_sum(e, axis, keepdims=keeps)


def test_a_softmax_that_is_written_out(rewrite_beside, image):
    result = rewrite_beside(lambda x: _softmax(x) + _softmax(x, axis=2), [2, 3, 20])
    assert result.ops["Softmax"] == 2 and not {"Exp", "Max", "Sum"} & set(result.ops)
    result.assert_same(100 * image(2, 3, 20))


@pytest.mark.parametrize(
    "options",
    [{"axis": 1}, {"make": tf.abs}, {"make": tf.identity}, {"keeps": False}, {"most": tf.negative}],
    ids=["other axis", "no exponential", "no function", "dropped axis", "no maximum"],
)
def test_what_is_no_softmax(rewrite_beside, image, options):
    result = rewrite_beside(lambda x: _softmax(x, **options), [3, 3, 3])
    assert result.ops["Softmax"] == 0
    result.assert_same(image(3, 3, 3))


def test_attention_by_a_softmax_that_is_written_out(rewrite, weights):
    matrices = [weights(32, 32) for _ in range(3)]

    def function(x):
        split = [tf.reshape(tf.einsum("bnc,cd->bnd", x, w), [-1, 12, 4, 8]) for w in matrices]
        q, k, v = (tf.transpose(each, [0, 2, 1, 3]) for each in split)
        return tf.matmul(_softmax(tf.matmul(q, k, transpose_b=True) * 0.3), v)

    result = rewrite(function, [None, 12, 32])
    assert result.blockdnn["Attention"] == 1


def test_pixels_by_a_matrix_with_a_bias_are_a_convolution(rewrite, weights, conv):
    matrix, bias = weights(32, 48), weights(48)

    def function(x):
        y = tf.einsum("bhwc,cd->bhwd", conv(x, 32), matrix) + bias
        return conv(tf.nn.relu(y), 32)

    result = rewrite(function, [None, 6, 7, 16])
    assert result.blockdnn == {"Conv": 3, "Reorder": 2}
    assert result.ops["MatMul"] == result.ops["AddV2"] == 0


def test_repetitions_of_pixels_are_a_resize(rewrite, conv):
    def function(x):
        apart = tf.reshape(conv(x, 32), [-1, 6, 1, 5, 1, 32])
        return conv(tf.reshape(tf.tile(apart, [1, 1, 2, 1, 3, 1]), [-1, 12, 15, 32]), 32)

    result = rewrite(function, [None, 6, 5, 16])
    assert result.blockdnn == {"Conv": 2, "Reorder": 2, "Resize": 1}


_GROUPS = [-1, 6, 6, 4, 8]


@pytest.mark.parametrize("static", [False, True])
@converts([2, 6, 6, 32], some={"Conv": 2, "Reorder": 2}, ops={"OnesLike": 0, "DivNoNan": 0})
def test_moments_that_are_weighted_by_ones_are_plain(x, conv, static):
    """As Keras 2 normalises groups, of a batch that is known or not."""
    y, ones = conv(x, 32), 1.0 if static else tf.reshape(tf.raw_ops.OnesLike(x=x), _GROUPS)
    groups = tf.reshape(y, _GROUPS)
    moments = tf.nn.weighted_moments(groups, [1, 2, 4], ones, keepdims=True)
    groups = tf.nn.batch_normalization(groups, *moments, None, None, 1e-3)
    return conv(tf.nn.relu(tf.reshape(groups, [-1, 6, 6, 32])), 32)


@pytest.mark.parametrize("weight", [2.0, 0.0])
def test_moments_of_other_weights_stay(rewrite_beside, weight):
    def mean(x):
        return tf.nn.weighted_moments(x, [1, 2], tf.ones_like(x) * weight + tf.zeros_like(x))[0]

    assert rewrite_beside(mean, [2, 4, 4, 8]).ops["DivNoNan"] == 1


@pytest.mark.parametrize("makes", [tf.nn.softmax, tf.exp, tf.identity])
def test_a_softmax_has_no_negative_zeros(rewrite_beside, makes):
    """Keras's argmax takes them for less than zeros; other numbers may be such."""
    result = rewrite_beside(lambda x: keras.ops.argmax(makes(x) / 1.0, axis=-1), [2, 9])
    others = {"SelectV2", "BitwiseAnd", "Bitcast", "LogicalAnd"}
    assert others & set(result.ops) == (others if makes is tf.identity else set())
    assert "RealDiv" not in result.ops
    x = np.full([2, 9], -0.0, np.float32)
    x[:, 4:] = [[0.0], [-300.0]]
    result.assert_same(x)


def test_a_division_by_one_that_broadcasts_stays(rewrite_beside):
    result = rewrite_beside(lambda x: tf.exp(x) / tf.ones([3, 1]), [1, 20])
    assert result.ops["RealDiv"] == 1
    result.assert_same(np.ones([1, 20], np.float32))


def test_a_sum_of_fractions_stays(rewrite_beside):
    """It is rounded at each addition, so that it is no multiple of one of them to the bit."""

    def share(x):
        return tf.math.divide_no_nan(x, tf.reduce_sum(tf.raw_ops.ZerosLike(x=x) + 0.1))

    result = rewrite_beside(share, [7, 9])
    assert result.ops["DivNoNan"] == 1
    result.assert_same(np.ones([7, 9], np.float32))
