"""The Keras layer that runs a rewritten function inside a functional model."""

import functools
import re
import sys

import tensorflow as tf

from ..tensorflow_private import unconverted
from .keras_function import FUNCTIONS
from .keras_inputs import is_empty, plain

_NO_LAYER = "a layer of an optimised model is no layer by itself: take the model"


@functools.cache
def layer_class(library):
    """The layer that runs a function inside a functional model."""

    class Rewritten(library.layers.Layer):
        def __init__(self, optimized, shapes, name):
            super().__init__(name=name, trainable=False, autocast=False)
            self.__dict__["_optimized"] = optimized
            self.__dict__["_shapes"] = optimized.shapes = shapes
            self.supports_masking, self.supports_jit = True, False
            self._compute_output_and_mask_jointly = True  # Keras 2: results have their masks.
            self.built = True

        @unconverted
        def call(self, inputs, mask=None):
            run = self._optimized.run
            return run(inputs) if is_empty(mask) else run(inputs, mask=mask)

        def compute_mask(self, inputs, previous_mask=None):
            return None  # Results have their masks.

        def compute_output_spec(self, inputs, mask=None):
            wanted, outputs = self._shapes
            specs = tf.nest.map_structure(spec_of, plain(inputs))
            if tf.nest.flatten(specs) != tf.nest.flatten(wanted):
                traced = tf.function(self._optimized.run, autograph=False).get_concrete_function(
                    specs
                )
                outputs = _of_batch(tf.nest.flatten(specs)[0], traced.structured_outputs)
            return tf.nest.map_structure(lambda y: library.KerasTensor(y.shape, y.dtype), outputs)

        def compute_output_shape(self, input_shape):  # Keras 2
            shapes = super().compute_output_shape(input_shape)
            return _of_batch(tf.TensorSpec(tf.nest.flatten(input_shape)[0]), shapes)

        def get_config(self) -> dict:
            if not is_asked_by("cloning"):
                raise NotImplementedError(_NO_LAYER)
            return {"name": self.name, "key": self._optimized.key}

        @classmethod
        def from_config(cls, config):
            optimized = FUNCTIONS[config["key"]]
            return cls(optimized, optimized.shapes, config["name"])

        def _trackable_children(self, save_type="checkpoint", **kwargs):
            children = super()._trackable_children(save_type, **kwargs)
            return with_captured(children, save_type, self._optimized)

    return Rewritten


def is_asked_by(modules: str) -> bool:
    """Whether the call comes from a module of Keras's of such a name.

    A .h5 file and a SavedModel have no place for our weights; a clone needs none.
    """
    frame = sys._getframe()
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith(("keras.", "tf_keras.")) and re.search(modules, name):
            return True
        frame = frame.f_back
    return False


def with_captured(children: dict, save_type: str, function) -> dict:
    """What TensorFlow writes into a SavedModel of an enclosing model: also what we capture."""
    if save_type != "savedmodel":
        return children
    return {**children, **{f"captured_{i}": t for i, t in enumerate(function.trackables)}}


def spec_of(x) -> tf.TensorSpec:
    return tf.TensorSpec(x.shape, x.dtype)


def _of_batch(spec: tf.TensorSpec, outputs):
    """Shapes, or what has some, whose unknown first sizes are those of the first input."""
    batch = spec.shape[0] if spec.shape.rank else None

    def known(shape):
        shape = tf.TensorShape(shape)
        return shape if not shape.rank else tf.TensorShape([batch, *shape[1:]])

    def known_of(y):
        return known(y) if isinstance(y, tf.TensorShape) else tf.TensorSpec(known(y.shape), y.dtype)

    return tf.nest.map_structure(known_of, outputs)
