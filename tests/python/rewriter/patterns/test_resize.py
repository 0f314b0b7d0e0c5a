"""Resizing and upsampling do not end a blocked region."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts
from keras import layers

from tf_blockdnn import Options


@converts(
    [2, 6, 7, 16], tf.TensorSpec([2], tf.int32), reason=("ResizeBilinear", "size are not known")
)
def test_a_size_that_is_an_input_stays(x, size, conv):
    return tf.image.resize(conv(x, 32), size)


@converts([2, 4, 5, 16], some={"Resize": 2}, ops={"Tile": 0})
def test_a_repetition_with_another_reader(x, conv):
    """Rows that are read by themselves are repeated by themselves."""
    x = conv(x, 32)
    rows = tf.repeat(x, 2, axis=1)
    both = tf.repeat(rows, 3, axis=2)
    return conv(rows, 16), conv(both, 16)


def _u_net(up, channels=16, levels=3):
    """Encoder and decoder with skip connections, ending in a convolution of 2 channels."""
    x = y = keras.Input((32, 32, 3))
    skips = []
    for level in range(levels + 1):
        for _ in range(2):
            y = layers.Conv2D(channels << level, 3, padding="same", use_bias=False)(y)
            y = layers.ReLU()(layers.BatchNormalization()(y))
        if level < levels:
            skips.append(y)
            y = layers.MaxPooling2D()(y)
    for level, skip in reversed(list(enumerate(skips))):
        y = layers.Concatenate()([up(channels << level)(y), skip])
        for _ in range(2):
            y = layers.Conv2D(channels << level, 3, padding="same", activation="relu")(y)
    return keras.Model(x, layers.Conv2D(2, 1, activation="sigmoid")(y))


@pytest.mark.parametrize("kind", ["transposed", "nearest", "bilinear"])
def test_a_u_net_is_one_region(kind, result_of, image):
    def up(channels):
        if kind == "transposed":
            return layers.Conv2DTranspose(channels, 2, strides=2, padding="same")
        return layers.UpSampling2D(2, interpolation=kind)

    model = _u_net(up)
    for weight in model.weights:
        if "variance" in weight.path:
            weight.assign(np.random.default_rng(1).uniform(0.5, 2, weight.shape))
    function = tf.function(lambda x: model(x, training=False), autograph=False)
    result = result_of(function, tf.TensorSpec((None, 32, 32, 3)))
    op = "ConvTranspose" if kind == "transposed" else "Resize"
    assert result.blockdnn[op] == 3 and result.blockdnn["Conv"] == 15
    assert "Reorder" not in result.blockdnn and "Concat" not in result.blockdnn
    assert not result.report.declined and result.ops["BlockdnnRegion"] == 1
    assert [done for _, done in result.report.joined] == ["2 of 2"] * 3
    result.assert_same(image(2, 32, 32, 3))


def _enlarged(x, size, method="bilinear"):
    return tf.image.resize(x, [size, size], method)


def _multiply_adds(result) -> int:
    return result.report.multiply_adds + result.report.multiply_adds_left


@pytest.mark.parametrize("method", ["bilinear", "nearest", "bicubic"])
def test_a_pointwise_convolution_is_computed_of_small_planes(rewrite, weights, method, conv):
    def function(x):
        y = conv(_enlarged(x, 20, method), 48, 1)
        return tf.nn.relu(tf.nn.bias_add(y, weights(48)))

    result = rewrite(function, [2, 10, 10, 32])
    assert _multiply_adds(result) == 2 * 100 * 32 * 48


@pytest.mark.parametrize("batch", [2, None])
def test_a_pyramid_is_joined_behind_its_convolution(rewrite, weights, image, batch):
    """The head of SegFormer: four planes of one size, concatenated, and a 1x1 convolution."""

    def function(a, b, c, d):
        joined = [a, _enlarged(b, 16), _enlarged(c, 16), tf.sigmoid(d)]
        y = tf.nn.conv2d(tf.concat(joined, 3), weights(1, 1, 24 + 32 + 40 + 16, 48), 1, "VALID")
        return tf.nn.relu(y * weights(48) + weights(48))

    shapes = [[16, 16, 24], [8, 8, 32], [4, 4, 40], [16, 16, 16]]
    result = rewrite(function, *[[batch, *shape] for shape in shapes])
    assert _multiply_adds(result) == (batch or 64) * (256 * (24 + 16) + 64 * 32 + 16 * 40) * 48
    assert "ConcatV2" not in result.ops
    result.assert_same(*[image(2, *shape) for shape in shapes])


_LEFT = {
    "3x3": ((3, 3, 32, 48), {}, {}),
    "of stride 2": ((1, 1, 32, 48), {"strides": 2}, {}),
    "of far more channels": ((1, 1, 32, 256), {}, {}),
    "of few channels": ((1, 1, 8, 8), {"channels": 8}, {}),
    "made smaller": ((1, 1, 32, 48), {"size": 8}, {}),
    "read elsewhere": ((1, 1, 32, 48), {"again": True}, {}),
    "direct": ((1, 1, 32, 48), {}, {"algorithm": "direct"}),
}


@pytest.mark.parametrize("case", _LEFT)
def test_what_is_convolved_behind_its_resize(rewrite, weights, image, case):
    shape, how, options = _LEFT[case]
    size = how.get("size", 20)

    def function(x):
        large = _enlarged(x, size)
        y = tf.nn.conv2d(large, weights(*shape), how.get("strides", 1), "SAME")
        return (y, large) if "again" in how else y

    image_shape = [2, 10, 10, how.get("channels", 32)]
    result = rewrite(function, image_shape, options=Options(strict=True, **options))
    pixels = (size // how.get("strides", 1)) ** 2
    assert _multiply_adds(result) == 2 * pixels * np.prod(shape)
    result.assert_same(image(*image_shape))


def test_bytes_are_enlarged_before_they_are_convolved(rewrite, conv):
    """A resize makes float32 of any type, a convolution does not."""

    spec = tf.TensorSpec([2, 10, 10, 32], tf.uint8)
    result = rewrite(lambda x: conv(_enlarged(x, 20), 48, 1), spec, options=Options(strict=True))
    assert _multiply_adds(result) == 2 * 400 * 32 * 48
    result.assert_same(tf.cast(tf.reshape(tf.range(6400) % 251, spec.shape), tf.uint8))
