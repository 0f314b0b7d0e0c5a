"""An optimised Keras model: a keras.Model again, of the Keras that the original came from."""

import functools
import os

import tensorflow as tf

from ..tensorflow_private import EagerTensor, unconverted

_FOR_INFERENCE = (
    "an optimised model is for inference: train the original, then call tf_blockdnn.optimize again"
)


@functools.cache
def model_class(base: type) -> type:
    """OptimizedKerasModel, derived from the keras.Model of Keras 3 or of Keras 2 (`base`)."""

    class OptimizedKerasModel(base):
        """A keras.Model that runs a rewritten function.

        `fast(x)`, `predict`, `evaluate` and `export` work as for the original; it may be a layer of
        another model. It infers whatever `training` says, and has no weights of its own to train.

        Attributes:
            report: what was converted, what was declined and why.
            concrete: the rewritten ConcreteFunction.
            trackables: the variables and tables it captures.
        """

        def __init__(self, function, structure, name):
            super().__init__(name=name, trainable=False)
            self.supports_jit = False  # XLA does not know our ops.
            # Out of the sight of Keras and of TensorFlow, which would track what is in there.
            self.__dict__["_fast"] = function
            self.__dict__["_structure"] = structure
            self.built = True

        @property
        def report(self):
            return self._fast.report

        @property
        def concrete(self):
            return self._fast.concrete

        @property
        def trackables(self):
            return self._fast.trackables

        def __call__(self, *args, **kwargs):
            # Keras's own __call__ takes as long as a small network: only symbolic tensors need it.
            if len(args) == 1 and not kwargs and type(args[0]) is EagerTensor:
                return self._fast(args[0])
            kwargs.pop("training", None)  # It infers, as frozen layers do.
            if not kwargs and all(map(_is_value, tf.nest.flatten(args))):
                return self.call(*args)
            return super().__call__(*args, **kwargs)

        @unconverted
        def call(self, *args):
            """The rewritten function on inputs that are structured like the original's, or flat."""
            if len(args) != 1 or len(self._structure) != 1:
                return self._fast(*args)
            given, structure = args[0], self._structure[0]
            flat = tf.nest.flatten(given)
            if len(flat) != len(tf.nest.flatten(structure)):
                return self._fast(given)
            if isinstance(given, dict) and isinstance(structure, dict):
                return self._fast({name: given[name] for name in structure})
            return self._fast(tf.nest.pack_sequence_as(structure, flat))

        def train_step(self, *args, **kwargs):
            raise ValueError(_FOR_INFERENCE)

        def save(self, filepath: str | os.PathLike, *args, **kwargs) -> None:
            """Writes a SavedModel whose signature is named "serving_default".

            Raises:
                ValueError: the name of a Keras file: that format holds layers, not functions.
            """
            del args, kwargs
            self._fast.save(filepath)

        def export(self, filepath: str | os.PathLike, *args, **kwargs) -> None:
            """As `save`."""
            del args, kwargs
            self._fast.save(filepath)

    return OptimizedKerasModel


def wrap(original, function, structure):
    """The optimised function of a Keras model as a model of the same Keras.

    Loss and metrics are those that the original was compiled with.

    Args:
        original: the model; not kept.
        function: the OptimizedFunction.
        structure: the TensorSpecs it was traced with, one a parameter.
    """
    base = next(
        c for c in type(original).__mro__ if c.__name__ == "Model" and "keras" in c.__module__
    )
    fast = model_class(base)(function, structure, f"{original.name}_optimized")
    config = getattr(original, "_compile_config", None)
    if config is not None:
        given = dict(config.config)
        fast.compile(**{k: given[k] for k in _COMPILED if k in given}, jit_compile=False)
    return fast


_COMPILED = (
    "loss",
    "loss_weights",
    "metrics",
    "weighted_metrics",
    "run_eagerly",
    "steps_per_execution",
)


def _is_value(value) -> bool:
    """Whether it holds numbers now: no tensor of a graph, no symbolic one of Keras."""
    return (
        isinstance(value, EagerTensor)
        or not isinstance(value, tf.Tensor)
        and hasattr(value, "__array__")
        and not hasattr(value, "_keras_history")
    )
