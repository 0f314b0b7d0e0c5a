"""Tiny SavedModels for the tests of files and of the command line."""

import pathlib

import numpy as np
import tensorflow as tf

IMAGE = tf.TensorSpec([None, None, None, 3], tf.float32, name="image")
WORDS = tf.TensorSpec([None], tf.string, name="words")


def draw_image(batch=1, height=9, width=12):
    """Standard normal float32 [batch, height, width, 3]."""
    return np.random.default_rng(3).standard_normal((batch, height, width, 3)).astype(np.float32)


class TinyNetwork(tf.Module):
    """Two convolutions, a lookup table whose words lie in an asset, three signatures."""

    def __init__(self, vocabulary: pathlib.Path):
        super().__init__()
        random = np.random.default_rng(5)
        self.first = tf.Variable(random.normal(0, 0.2, [3, 3, 3, 24]).astype(np.float32))
        self.bias = tf.Variable(random.normal(0, 0.2, [24]).astype(np.float32))
        self.second = tf.Variable(random.normal(0, 0.2, [3, 3, 24, 20]).astype(np.float32))
        index = tf.lookup.TextFileIndex
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                str(vocabulary), tf.string, index.WHOLE_LINE, tf.int64, index.LINE_NUMBER
            ),
            default_value=-1,
        )

    def features(self, image):
        hidden = tf.nn.conv2d(image, self.first, 1, "SAME")
        hidden = tf.nn.relu(tf.nn.bias_add(hidden, self.bias))
        return tf.nn.conv2d(hidden, self.second, 2, "SAME")

    @tf.function(input_signature=[IMAGE])
    def see(self, image):
        return {"features": self.features(image)}

    @tf.function(input_signature=[IMAGE, WORDS])
    def see_and_read(self, image, words):
        mean = tf.reduce_mean(self.features(image), [1, 2])
        return {"mean": mean, "ids": self.table.lookup(words)}


def save_tiny(folder: pathlib.Path) -> pathlib.Path:
    """Writes TinyNetwork: `serving_default` and `serve` are one function, `read` has the table."""
    vocabulary = folder.with_name("words.txt")
    vocabulary.write_text("ant\nbee\n")
    network = TinyNetwork(vocabulary)
    signatures = {
        "serving_default": network.see,
        "serve": network.see,
        "read": network.see_and_read,
    }
    tf.saved_model.save(network, str(folder), signatures=signatures)
    vocabulary.unlink()  # Only the asset inside the SavedModel is left.
    return folder
