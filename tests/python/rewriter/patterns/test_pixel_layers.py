"""Dense layers on pictures, sums of planes, padding and cutting of planes stay blocked."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts

from tf_blockdnn.python.targets import optimize

_SAME = {"strides": 1, "padding": "SAME"}


@pytest.fixture
def between(weights):
    """between(middle) -> a function: 3x3 to 40 channels, middle(y), 3x3 to 24 channels."""
    first, last = weights(3, 3, 3, 40), weights(3, 3, 40, 24)

    def make(middle):
        def function(x):
            return tf.nn.conv2d(middle(tf.nn.conv2d(x, first, **_SAME)), last, **_SAME)

        return function

    return make


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("channels", [20, 32])
@pytest.mark.parametrize("size", [9, None])
def test_sums_of_masks_are_counts(rewrite, image, keepdims, channels, size):
    """TensorFlow sums the blocks; a mean times the number of pixels is not exact."""
    kernel = np.eye(channels, dtype=np.float32)[None, None]
    last = np.eye(channels, dtype=np.float32)[None, None]

    def function(x):
        seen = tf.cast(tf.nn.conv2d(x, kernel, 1, "SAME") > 0.3, tf.float32)
        count = tf.reduce_sum(seen, [1, 2], keepdims=keepdims)
        return tf.nn.conv2d(seen, last, 1, "SAME"), count

    result = rewrite(function, [None, size, 7, channels])
    assert (result.ops["Sum"], result.ops["Mean"], result.ops["Squeeze"]) == (1, 0, not keepdims)
    assert any("Sum" in item.node for item in result.report.converted)
    x = image(3, 9, 7, channels)
    for wanted, got in zip(result.original(x), result.concrete(x), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_sums_without_a_convolution_stay(rewrite, image):
    result = rewrite(lambda x: tf.reduce_sum(tf.cast(x > 0.3, tf.float32), [1, 2]), [2, 9, 7, 24])
    assert result.blockdnn == {} and result.ops["Sum"] == 1
    x = image(2, 9, 7, 24)
    np.testing.assert_array_equal(result.concrete(x), result.original(x))


@pytest.mark.parametrize("spec", [[None, 6, 7, 3], [2, None, None, 3]], ids=str)
def test_dense_on_pictures_is_a_convolution(rewrite, image, weights, between, spec):
    layer = keras.layers.Dense(40, activation="relu")
    layer.build([None, None, None, 40])
    layer.set_weights([weights(40, 40), weights(40)])
    result = rewrite(between(layer), spec)
    assert result.blockdnn == {"Conv": 3, "Reorder": 1}
    assert "binary(add,channel);eltwise(relu)" in result.post_ops()
    assert not {"MatMul", "Reshape", "Transpose"} & set(result.ops)
    result.assert_same(image(2, 6, 7, 3))


@converts([None, 6, 7, 40], {"InnerProduct": 1})
def test_dense_by_itself_stays_an_inner_product(x, weights):
    return tf.tensordot(x, weights(40, 40), 1)


@converts([None, 6, 7, 3], some={"Conv": 2, "InnerProduct": 1})
def test_a_product_that_is_read_flat_stays(x, weights, between):
    def middle(x):
        flat = tf.matmul(tf.reshape(x, [-1, 40]), weights(40, 40))
        return tf.reshape(flat, [-1, 6, 7, 40]) + tf.reduce_max(flat)

    return between(middle)(x)


def test_convnext():
    """Blocks of ConvNeXt: no reorder, the last convolution stores plain."""
    image = keras.Input((32, 32, 3))
    x = keras.layers.Conv2D(48, 4, 4)(image)
    x = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    for _ in range(2):
        y = keras.layers.Conv2D(48, 7, padding="same", groups=48)(x)
        y = keras.layers.LayerNormalization(epsilon=1e-6)(y)
        y = keras.layers.Dense(192, activation="gelu")(y)
        y = keras.layers.Dense(48)(y)
        x = keras.layers.Add()([x, y * np.linspace(0.5, 1.5, 48, dtype="float32")])
    x = keras.layers.LayerNormalization(epsilon=1e-6)(x)
    model = keras.Model(image, keras.layers.Conv2D(64, 2, 2)(x))
    fast = optimize(model)
    assert fast.report.counts() == {"BlockdnnConv": 8, "BlockdnnLayerNorm": 4}
    x = np.random.default_rng(5).standard_normal((2, 32, 32, 3), np.float32)
    np.testing.assert_allclose(fast(x), model(x), atol=2e-5)


def _padded(x):
    return tf.pad(x, [[0, 0], [1, 0], [0, 2], [0, 0]])


_MOVES = {
    "pad": _padded,
    "cut": lambda x: x[:, 1:, :-2, :],
    "cut to a size": lambda x: x[:, :4, 2:],
    "pad and cut": lambda x: _padded(x)[:, 1:, 1:],
}


@pytest.mark.parametrize("move", _MOVES.values(), ids=_MOVES)
def test_planes_are_padded_and_cut_in_blocks(rewrite, between, move):
    """Averages read the zeros as zeros, and maxima of negative numbers do, too."""

    def middle(x):
        y = move(x)
        return tf.nn.max_pool2d(y, 3, 2, "VALID") - tf.nn.avg_pool2d(y, 3, 2, "VALID")

    result = rewrite(between(middle), [None, 6, 7, 3])
    pads = 2 if move is _MOVES["pad and cut"] else 1
    assert result.blockdnn.pop("Eltwise", 1) == 1
    assert result.blockdnn["Pad"] == pads and result.blockdnn["Pool"] == 2
    assert result.blockdnn["Reorder"] == 1 and not {"Pad", "StridedSlice"} & set(result.ops)


@pytest.mark.parametrize(
    "move",
    [
        lambda x: x[:, ::2, :, :],
        lambda x: x[:, -3:, :, :],
        lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], constant_values=2.0),
        lambda x: tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT"),
        lambda x: tf.pad(x, [[0, 0], [0, 0], [0, 0], [0, 3]])[..., :40],
    ],
    ids=["every other", "from the end", "with twos", "mirrored", "channels"],
)
@converts([None, 6, 7, 3], some={"Pad": 0})
def test_what_is_no_padding_stays(x, between, move):
    return between(move)(x)
