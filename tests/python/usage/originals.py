"""Originals of every kind that `bd.optimize` takes, small, with a convolution each.

`make` builds an original anew with the same weights each time, so two calls give twins. `calls` are
the ways to hand an image [N, 8, 8, 3] to it, which is what users write between the parentheses.
"""

import collections
import dataclasses
import functools
import tempfile
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf
import tf_keras

import tf_blockdnn as bd

SIZE = 8
IMAGE = tf.TensorSpec([None, SIZE, SIZE, 3], tf.float32, name="image")
Pair = collections.namedtuple("Pair", ["scores", "mean"])


@dataclasses.dataclass
class Original:
    """Something to optimise, and what a test may do with it."""

    target: Any  # what bd.optimize takes
    weights: list = ()  # the variables that training changes
    state: list = ()  # the variables that a call assigns
    save: Callable = tf.saved_model.save  # (target, folder)
    entry: Callable = lambda target: target  # target or result -> what is called


@dataclasses.dataclass
class Kind:
    """`calls`: name -> function from an image to (args, kwargs); `twin` makes what it must equal.

    `without` names ways that TensorFlow or Keras has none of; what `forks` is one region.
    """

    make: Callable[[], Original]
    calls: dict[str, Callable]
    twin: Callable[[], Original] | None = None
    without: tuple = ()
    forks: bool = False


def by_name(name, **more):
    """The image by position and by its name, alone and with further arguments."""
    return {
        "position": lambda x: ((x,), {}),
        "keyword": lambda x: ((), {name: x}),
        **{key: (lambda x, kwargs=kwargs: ((x,), kwargs)) for key, kwargs in more.items()},
    }


def draw(*shape, seed=0):
    """Normal values whose products over a window stay near 1."""
    values = np.random.default_rng(seed).standard_normal(shape) / max(1, np.prod(shape[:-1])) ** 0.5
    return values.astype(np.float32)


def fill(variables, seed=0):
    """Gives weights values that depend on the seed alone; variances stay positive."""
    for index, variable in enumerate(variables):
        values = draw(*variable.shape, seed=seed * 1000 + index)
        variable.assign(np.abs(values) + 0.5 if "variance" in variable.name else values)


# Keras


def _save(model, folder):
    """As users of that Keras do; Keras 2 names results after their layers."""
    if isinstance(model, keras.Model):
        model.export(folder, verbose=False)
    else:
        model.save(folder, save_format="tf")


def _keras_original(model):
    floats = [v for v in model.weights if "float" in str(v.dtype)]
    fill(floats)
    return Original(model, floats, save=_save)


def _body(layers, x):
    x = layers.Conv2D(16, 3, padding="same", use_bias=False)(x)
    x = layers.Activation("swish")(layers.BatchNormalization()(x))
    return layers.Conv2D(20, 3, activation="tanh")(x)


def functional(library):
    layers, x = library.layers, library.Input([SIZE, SIZE, 3], name="image")
    y = layers.GlobalAveragePooling2D()(_body(layers, x))
    rate = 0.5 if library is keras else 0.0  # Keras 2 draws differently for twins.
    y = layers.Dense(4, name="scores")(layers.Dropout(rate, seed=3)(y))
    return _keras_original(library.Model(x, y))


def open_sizes():
    """Heights and widths are open; two inputs in a dict, two outputs in another."""
    layers, x = keras.layers, keras.Input([None, None, 3], name="image")
    gain = keras.Input([4], name="gain")
    y = layers.GlobalAveragePooling2D()(_body(layers, x))
    scores = layers.Multiply()([layers.Dense(4)(y), gain])
    outputs = {"scores": scores, "more": [layers.Activation("sigmoid")(scores)]}
    return _keras_original(keras.Model({"image": x, "gain": gain}, outputs))


def sequential():
    layers = keras.layers
    model = keras.Sequential([keras.Input([SIZE, SIZE, 3], name="image")])
    model.add(layers.Conv2D(16, 3, strides=2, activation="swish"))
    model.add(layers.DepthwiseConv2D(3))
    model.add(layers.Flatten())
    model.add(layers.Dense(4, activation="softmax"))
    return _keras_original(model)


class Subclassed(keras.Model):
    """Takes numbers, containers and flags, whose emptiness and type change the answer."""

    def __init__(self, report=0.5, **kwargs):
        super().__init__(**kwargs)
        self.conv = keras.layers.Conv2D(16, 3, activation="swish")
        self.dense = keras.layers.Dense(4)
        self.report_gain = report

    def call(self, image, gain=1.0, parts=None, flip=False, training=False):
        y = self.dense(tf.reduce_mean(self.conv(image), [1, 2])) * gain
        if parts is not None:
            y = y + self.report_gain + float(len(parts))
            for part in tf.nest.flatten(parts):
                y = y + tf.cast(part, tf.float32)
        return {"scores": -y if flip else y, "nest": (y * 2.0, [], None)}


def subclassed():
    model = Subclassed()
    model(np.zeros([1, SIZE, SIZE, 3], np.float32))
    return _keras_original(model)


_MANY = {
    "gain": {"gain": 2.0},
    "gain of NumPy": {"gain": np.float32(2.0)},
    "an int": {"gain": 2},
    "flag": {"flip": True},
    "empty list": {"parts": []},
    "empty tuple": {"parts": ()},
    "empty dict": {"parts": {}},
    "nest": {"parts": {"a": [np.float32(1.0), (np.float32(2.0),)], "b": []}},
}


def masked():
    """Tokens made of the image's rows; the padded ones are masked, and the mask goes on."""
    layers, x = keras.layers, keras.Input([SIZE, SIZE, 3], name="image")
    rows = layers.Reshape([SIZE, SIZE * 3])(layers.Conv2D(3, 3, padding="same")(x))
    tokens = layers.Masking()(rows)
    attention = layers.MultiHeadAttention(2, 4)
    return _keras_original(keras.Model(x, attention(tokens, tokens)))


def recurrent():
    layers, x = keras.layers, keras.Input([SIZE, SIZE, 3], name="image")
    rows = layers.Reshape([SIZE, SIZE * 3])(layers.Conv2D(3, 3, padding="same")(x))
    return _keras_original(keras.Model(x, layers.LSTM(5)(rows)))


def converted():
    """The same functional model of blocked layers; its twin has Keras's (`machine.py`)."""
    made = functional(keras)
    return _keras_original(bd.layers.convert(made.target))


# Functions


class Network(tf.Module):
    """Weights, a counter, a table and a generator, for functions and modules to use."""

    def __init__(self):
        super().__init__()
        self.filter = tf.Variable(draw(3, 3, 3, 16), name="filter")
        self.bias = tf.Variable(draw(16, seed=1), name="bias")
        self.count = tf.Variable(0.0, trainable=False, name="count")
        self.random = tf.random.Generator.from_seed(7)
        keys, values = tf.constant(["cat", "dog"]), tf.constant([1.0, 2.0])
        pairs = tf.lookup.KeyValueTensorInitializer(keys, values)
        self.table = tf.lookup.StaticHashTable(pairs, default_value=-1.0)

    def see(self, image):
        y = tf.nn.conv2d(image, self.filter, 1, "SAME")
        return tf.nn.silu(tf.nn.bias_add(y, self.bias))

    @tf.function(input_signature=[IMAGE])
    def __call__(self, image):
        return tf.reduce_mean(self.see(image), [1, 2])

    @tf.function(input_signature=[IMAGE, tf.TensorSpec([], tf.float32, name="gain")])
    def scaled(self, image, gain):
        return {"scaled": self(image) * gain}


def _of_network(define, entry=lambda target: target, state=lambda network: []):
    """An original whose target is what `define` makes of a network."""
    network = Network()

    def save(target, folder):
        module = tf.Module()
        module.network, module.call = network, target
        tf.saved_model.save(module, folder, signatures=target)

    weights = [network.filter, network.bias]
    return Original(define(network), weights, state(network), save, entry)


def with_signature():
    def define(network):
        @tf.function(input_signature=[IMAGE])
        def see(image):
            y = network.see(image)
            return Pair(tf.reduce_mean(y, [1, 2]), [tf.reduce_max(y, [1, 2])])

        return see

    return _of_network(define)


def without_signature():
    def define(network):
        gain = np.float32(1.0)

        @tf.function
        def see(image, gain=gain, parts=None, *, flip=False):
            y = tf.reduce_mean(network.see(image), [1, 2]) * gain
            if parts is not None:
                y = y + 0.5 + float(len(parts))
                for part in tf.nest.flatten(parts):
                    y = y + tf.cast(part, tf.float32)
            return {"scores": -y if flip else y, "nest": (y * 2.0, [], None)}

        return see

    return _of_network(define)


def concrete():
    return _of_network(lambda n: tf.function(n.see).get_concrete_function(IMAGE))


def counting():
    """Counts its calls, and answers by the count."""

    def define(network):
        @tf.function(input_signature=[IMAGE])
        def see(image):
            network.count.assign_add(1.0)
            return tf.reduce_mean(network.see(image), [1, 2]) + network.count

        return see

    return _of_network(define, state=lambda network: [network.count])


def drawing():
    """Adds random numbers, of a generator and of a seed."""

    def define(network):
        @tf.function(input_signature=[IMAGE])
        def see(image):
            y = tf.reduce_mean(network.see(image), [1, 2])
            noise = tf.random.stateless_normal(tf.shape(y), seed=[3, 4])
            return y + noise + network.random.normal([16])

        return see

    return _of_network(define, state=lambda network: [network.random.state])


def looking_up():
    """Looks words up in a table that only a closure reaches."""

    def define(network):
        def value_of(words):
            return network.table.lookup(words)

        words = tf.TensorSpec([None], tf.string, name="words")

        @tf.function(input_signature=[IMAGE, words])
        def see(image, words=("cat", "dog", "bird")):
            y = tf.reduce_mean(network.see(image), [1, 2])
            return y[:, :1] * value_of(words)

        return see

    return _of_network(define)


def module():
    def save(target, folder):
        tf.saved_model.save(target, folder, signatures=target.__call__)

    return dataclasses.replace(_of_network(lambda network: network), save=save)


@functools.cache
def _saved_network():
    folder = tempfile.mkdtemp()
    network = Network()
    signatures = {"serving_default": network.__call__, "scaled": network.scaled}
    tf.saved_model.save(network, folder, signatures=signatures)
    return folder


def saved_model():
    target = tf.saved_model.load(_saved_network())
    save = lambda target, folder: tf.saved_model.save(  # noqa: E731
        target, folder, signatures=dict(target.signatures)
    )
    entry = lambda target: target.signatures["serving_default"]  # noqa: E731
    return Original(target, [target.filter, target.bias], save=save, entry=entry)


_IMAGE = by_name("image")
_GAIN = np.float32([[1.0, 2.0, 3.0, 4.0]])


def gains(x):
    """[N, 4], a tensor where the image is one."""
    return tf.repeat(_GAIN, tf.shape(x)[0], 0) if tf.is_tensor(x) else np.repeat(_GAIN, len(x), 0)


KINDS = {
    "keras functional": Kind(
        lambda: functional(keras), {"position": _IMAGE["position"]}, forks=True
    ),
    "keras open sizes": Kind(
        open_sizes,
        {
            "dict": lambda x: (({"image": x, "gain": gains(x)},), {}),
            "other order": lambda x: (({"gain": gains(x), "image": x},), {}),
        },
        without=("as_a_layer",),
    ),
    "keras sequential": Kind(sequential, {"position": _IMAGE["position"]}),
    "keras subclassed": Kind(  # Keras refuses None there.
        subclassed, by_name("image", **_MANY), without=("as_a_layer", "predict", "predict_on_batch")
    ),
    "keras masked": Kind(masked, {"position": _IMAGE["position"]}, without=("jacobian",)),
    "keras recurrent": Kind(recurrent, {"position": _IMAGE["position"]}),
    "keras converted": Kind(converted, {"position": _IMAGE["position"]}, lambda: functional(keras)),
    "keras 2 functional": Kind(lambda: functional(tf_keras), {"position": _IMAGE["position"]}),
    "function with signature": Kind(with_signature, _IMAGE, forks=True),
    "function without signature": Kind(without_signature, by_name("image", **_MANY)),
    "concrete function": Kind(concrete, _IMAGE),
    "counting function": Kind(counting, _IMAGE),
    "drawing function": Kind(drawing, _IMAGE),
    "function with a table": Kind(
        looking_up, by_name("image", words={"words": tf.constant(["dog", "dog", "cow"])})
    ),
    "module": Kind(module, _IMAGE),
    "saved model": Kind(saved_model, {"keyword": _IMAGE["keyword"]}),
}
