"""Compares the outputs of whole networks with float64, in TensorFlow and optimised.

    python benchmarks/accuracy.py [--models ResNet50,VGG16]

Prints the largest error of the outputs before softmax, as a share of the largest magnitude.
Weights and the picture are random; statistics of batch normalisation are those of the picture.
"""

from __future__ import annotations

import argparse

import keras
import numpy as np
import tensorflow as tf

import tf_blockdnn as bd

NETWORKS = "ResNet50,MobileNetV2,VGG16,InceptionV3"


def main() -> None:
    """Parses the arguments, measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=lambda text: text.split(","), default=NETWORKS.split(","))
    for name in parser.parse_args().models:
        errors = measure(name)
        print(f"{name:14}", ", ".join(f"{who} {error:.1e}" for who, error in errors.items()))


def measure(name: str) -> dict[str, float]:
    """{who: largest error by the largest magnitude of the outputs}."""
    keras.utils.set_random_seed(1)
    model = _network(name, "float32")
    shape = (1, *model.input_shape[1:])
    picture = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    model(picture, training=True)
    precise = _network(name, "float64")
    precise.set_weights([weight.astype(np.float64) for weight in model.get_weights()])
    exact = tf.function(precise)(picture.astype(np.float64)).numpy()
    calls = {"TensorFlow": tf.function(model)}
    calls |= {
        choice: bd.optimize(model, options=bd.Options(algorithm=choice))
        for choice in ("auto", "direct")
    }
    largest = np.abs(exact).max()
    return {
        who: float(np.abs(call(tf.constant(picture)).numpy() - exact).max() / largest)
        for who, call in calls.items()
    }


def _network(name: str, dtype: str) -> keras.Model:
    keras.config.set_dtype_policy(dtype)
    return getattr(keras.applications, name)(weights=None, classifier_activation=None)


if __name__ == "__main__":
    main()
