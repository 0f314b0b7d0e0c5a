"""Networks whose results are compared bit by bit, and a process that computes them.

python deterministic_networks.py THREADS FILE
"""

import sys

import keras
import numpy as np
import tensorflow as tf

layers = keras.layers
BATCHES = (1, 3, 8)


def _residual(x, filters, groups=1):
    y = layers.Conv2D(filters, 3, padding="same", groups=groups, use_bias=False)(x)
    y = layers.ReLU()(layers.BatchNormalization()(y))
    y = layers.Conv2D(filters, 3, padding="same")(y)
    return layers.ReLU()(layers.add([x, y]))


def residual_network():
    image = keras.Input((37, 41, 3))
    x = layers.Conv2D(64, 7, strides=2, padding="same", activation="relu")(image)
    x = layers.MaxPooling2D(3, 2, padding="same")(x)
    x = _residual(_residual(x, 64), 64, groups=16)
    x = layers.Conv2D(96, 1, strides=2)(x)
    x = layers.Dense(70)(layers.GlobalAveragePooling2D()(x))
    return keras.Model(image, layers.Softmax()(x))


def mobile_network():
    image = keras.Input((32, 32, 3))
    x = layers.Conv2D(24, 3, strides=2, padding="same", activation="swish")(image)
    for filters, stride in ((40, 2), (40, 1), (72, 2)):
        y = layers.Conv2D(6 * x.shape[-1], 1, activation="swish")(x)
        y = layers.DepthwiseConv2D(5, stride, padding="same", activation="swish")(y)
        s = layers.GlobalAveragePooling2D(keepdims=True)(y)
        s = layers.Conv2D(y.shape[-1] // 8, 1, activation="swish")(s)
        y = layers.multiply([y, layers.Conv2D(y.shape[-1], 1, activation="sigmoid")(s)])
        y = layers.Conv2D(filters, 1)(y)
        x = layers.add([x, y]) if x.shape == y.shape else y
    x = layers.Conv2DTranspose(20, 4, strides=2, padding="same")(x)
    return keras.Model(image, layers.AveragePooling2D(2)(x))


def volume_network():
    volume = keras.Input((6, 12, 12, 1))
    x = layers.Conv3D(16, 3, padding="same", activation="relu")(volume)
    x = layers.Conv3D(32, 3, strides=2, activation="relu")(x)
    return keras.Model(volume, layers.Flatten()(x))


def sequence_network():
    steps = keras.Input((9, 40))
    x = layers.Bidirectional(layers.LSTM(48, return_sequences=True))(steps)
    x = layers.Conv1D(64, 3, padding="causal", activation="relu")(x)
    x = layers.GRU(32, return_sequences=True)(x)
    return keras.Model(steps, layers.Dense(10)(layers.SimpleRNN(24)(x)))


NETWORKS = [residual_network, mobile_network, volume_network, sequence_network]


def original(network):
    """The model, and eight samples."""
    keras.utils.set_random_seed(1)
    model = network()
    samples = np.random.default_rng(2).standard_normal((8, *model.input_shape[1:]))
    return model, samples.astype(np.float32)


def optimized(network):
    """The optimised model, its original, and eight samples."""
    import tf_blockdnn as bd

    model, samples = original(network)
    return bd.optimize(model, options=bd.Options(deterministic=True)), model, samples


def results() -> dict[str, np.ndarray]:
    """What every network gives for every size of a batch."""
    results = {}
    for network in NETWORKS:
        fast, _, x = optimized(network)
        for batch in BATCHES:
            results[f"{network.__name__}_{batch}"] = np.asarray(fast(x[:batch]))
    return results


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(int(sys.argv[1]))
    np.savez(sys.argv[2], **results())
