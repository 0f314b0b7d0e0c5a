"""Transposed convolutions of Keras and TensorFlow graphs become ours, inside blocked regions."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts
from keras import layers

import tf_blockdnn as bd


def stack(*layers, size=(7, 9)):
    return keras.Sequential([keras.Input((*size, 16)), *layers])


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize("strides", [1, 2, (2, 1)], ids=str)
@pytest.mark.parametrize("kernel", [1, 2, 3])
def test_every_window(kernel, strides, padding, of_keras):
    """Bias, batch normalisation and activation go into it; of stride 1 it is a convolution."""
    layer = layers.Conv2DTranspose(32, kernel, strides=strides, padding=padding)
    result = of_keras(stack(layer, layers.BatchNormalization(), layers.LeakyReLU()))
    op = "Conv" if strides == 1 else "ConvTranspose"
    # Single pixels are read and written plain.
    reorders = {"Reorder": 2} if max(kernel, np.max(strides)) > 1 else {}
    assert result.blockdnn == {op: 1} | reorders or "Conv2DBackpropInput" in result.ops
    assert "Conv2DBackpropInput" not in result.ops or kernel == 1
    if "Conv2DBackpropInput" not in result.ops:
        (chain,) = result.post_ops(f"Blockdnn{op}")
        assert [entry.split("(")[0] for entry in chain.split(";")] == ["binary", "eltwise"]


def test_sizes_that_are_open(of_keras):
    """Keras computes the size of the result from that of the source."""
    both = [layers.Conv2DTranspose(24, 4, strides=2, padding=p) for p in ("same", "valid")]
    result = of_keras(stack(*both, size=(None, None)), 7, 9, 16)
    assert result.blockdnn == {"ConvTranspose": 2, "Reorder": 2}


def test_output_padding(of_keras):
    both = [
        layers.Conv2DTranspose(24, 3, strides=2, padding="same", output_padding=p) for p in (0, 1)
    ]
    assert of_keras(stack(*both)).blockdnn == {"ConvTranspose": 2, "Reorder": 2}


def test_added_to_another_tensor(of_keras):
    x = keras.Input((8, 8, 16))
    down = layers.Conv2D(32, 3, strides=2, padding="same")(x)
    up = layers.Conv2DTranspose(16, 3, strides=2, padding="same")(down)
    y = layers.ReLU()(layers.Add()([up, layers.Conv2D(16, 3, padding="same")(x)]))
    assert of_keras(keras.Model(x, y)).blockdnn == {"Conv": 2, "ConvTranspose": 1, "Reorder": 2}


def test_memory_low_packs_no_winograd():
    model = stack(layers.Conv2DTranspose(32, 4, strides=2, padding="same"))
    report = bd.optimize(model, options=bd.Options(memory="low")).report
    assert [item.algorithm for item in report.converted] == ["auto_smallest"]


def test_a_size_that_is_given(rewrite, image):
    """Of the sizes that one source may come from, the one that is asked for."""
    weights = np.random.default_rng(5).normal(size=(3, 3, 16, 16)).astype("float32")
    for size in (13, 14):
        result = rewrite(
            lambda x, size=size: tf.nn.relu(
                tf.nn.conv2d_transpose(x, weights, [2, size, 18, 16], 2, "SAME")
            ),
            [2, 7, 9, 16],
        )
        assert result.blockdnn == {"ConvTranspose": 1, "Reorder": 2}
        result.assert_same(image(2, 7, 9, 16))


@converts(
    [2, 7, 9, 16], tf.TensorSpec([4], tf.int32), reason=("conv2d_transpose", "not proven to grow")
)
def test_a_size_that_is_an_input_stays(x, size):
    weights = np.ones((3, 3, 16, 16), "float32")
    return tf.nn.conv2d_transpose(x, weights, size, 2, "SAME")


def test_dcgan_generator(of_keras):
    """As TensorFlow's tutorial has it."""
    model = keras.Sequential([keras.Input((100,)), layers.Dense(7 * 7 * 32, use_bias=False)])
    model.add(layers.BatchNormalization())
    model.add(layers.LeakyReLU())
    model.add(layers.Reshape((7, 7, 32)))
    for filters, strides in ((32, 1), (16, 2)):
        model.add(
            layers.Conv2DTranspose(filters, 5, strides=strides, padding="same", use_bias=False)
        )
        model.add(layers.BatchNormalization())
        model.add(layers.LeakyReLU())
    model.add(layers.Conv2DTranspose(1, 5, strides=2, padding="same", activation="tanh"))
    result = of_keras(model)
    assert result.blockdnn == {"Conv": 1, "ConvTranspose": 2, "InnerProduct": 1, "Reorder": 1}
