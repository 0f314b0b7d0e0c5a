"""One sample of a batch that is enormous, or not a number: the others do not notice.

What `auto` promises (docs/algorithms.md) is a bound on an output's error by the products that it
sums, 60 eps a layer, so other samples may differ from a run without the outlier by rounding only.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

_BATCH, _BAD = 5, 2
_OUTLIERS = (1e2, 1e4, 1e6, 1e30, np.inf, -np.inf, np.nan)
layers = keras.layers


def _residual():
    source = keras.Input((14, 14, 16))
    x = source
    for stride in (1, 2):
        y = layers.Conv2D(32, 3, stride, "same", activation="relu")(x)
        y = layers.BatchNormalization()(layers.Conv2D(32, 3, padding="same")(y))
        x = layers.ReLU()(y + layers.Conv2D(32, 1, stride)(x))
    return keras.Model(source, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


def _mobile():
    source = keras.Input((12, 12, 3))
    x = layers.Conv2D(16, 3, 2, "same", activation="relu6")(source)
    for _ in range(2):
        y = layers.Conv2D(64, 1, activation="relu6")(x)
        y = layers.DepthwiseConv2D(3, padding="same", activation="relu6")(y)
        gate = layers.GlobalAveragePooling2D(keepdims=True)(y)
        gate = layers.Dense(64, "sigmoid")(layers.Dense(8, "relu")(gate))
        x = x + layers.Conv2D(16, 1)(y * gate)
    return keras.Model(source, layers.Softmax()(layers.Dense(7)(layers.Flatten()(x))))


def _pyramid():
    """Groups, transposed convolutions, resizing, concatenation."""
    source = keras.Input((8, 8, 32))
    x = layers.Conv2D(32, 3, padding="same", groups=2, activation="relu")(source)
    y = layers.Conv2DTranspose(16, 4, 2, "same")(layers.MaxPooling2D(2)(x))
    z = layers.UpSampling2D(2, interpolation="bilinear")(layers.AveragePooling2D(2)(x))
    return keras.Model(source, layers.Conv2D(8, 1)(layers.Concatenate()([x, y, z])))


def _volume():
    source = keras.Input((4, 6, 6, 8))
    x = layers.Conv3D(16, 3, padding="same", activation="relu")(source)
    return keras.Model(source, layers.Conv3D(16, 2)(x))


def _recurrent():
    source = keras.Input((6, 9))
    x = layers.Bidirectional(layers.LSTM(32, return_sequences=True))(source)
    return keras.Model(source, layers.Dense(4)(layers.GRU(33)(x)))


def _dense():
    source = keras.Input((64,))
    x = layers.Dense(256, "gelu")(source)
    x = layers.LayerNormalization()(layers.Dense(128)(x))
    return keras.Model(source, layers.Dense(64, "tanh")(x))


@pytest.fixture(scope="module", params=[_residual, _mobile, _pyramid, _volume, _recurrent, _dense])
def network(request):
    keras.utils.set_random_seed(5)
    model = request.param()
    fast = bd.optimize(model)
    assert fast.report.converted
    shape = (_BATCH, *model.inputs[0].shape[1:])
    return fast, np.random.default_rng(1).standard_normal(shape, np.float32)


@pytest.mark.parametrize("everywhere", [False, True], ids=["one element", "the whole sample"])
@pytest.mark.parametrize("outlier", _OUTLIERS, ids=str)
def test_other_samples_do_not_notice(network, outlier, everywhere):
    fast, x = network
    wanted = np.array(fast(tf.constant(x)))
    spoiled = x.copy()
    sample = spoiled[_BAD].reshape(-1)
    sample[: None if everywhere else 1] = outlier
    got = np.array(fast(tf.constant(spoiled)))
    others = np.arange(_BATCH) != _BAD
    magnitude = np.max(np.abs(wanted))
    # Ten layers of 60 eps = 3.6e-6, where the products of each cancel little.
    np.testing.assert_allclose(got[others], wanted[others], rtol=0, atol=4e-5 * magnitude)
