"""An optimised Keras model: a keras.Model again, of the Keras that the original came from.

Of a functional or sequential model it is a functional model of one layer, which runs the rewritten
functions: Keras matches and casts inputs, knows shapes and hands masks on as it does for the
original. Of any other it is a model of the same class whose `call` runs them.
"""

import functools
import inspect
import os

import numpy as np
import tensorflow as tf

from ..tensorflow_private import EagerTensor, unconverted
from .keras_input import (
    arguments,
    has_own_call,
    is_empty,
    is_own,
    library_of,
    plain,
    signature_of_call,
    symbolic,
)
from .save import save_functions

_NO_LAYERS = (
    "an optimised model has no layers to quantize: quantize the original, and optimise that, or "
    'give bd.optimize precision="int8"'
)
_FOR_INFERENCE = (
    "an optimised model is for inference: train the original, then call tf_blockdnn.optimize "
    'again, or once with weights="live"'
)
_NO_CONFIG = (
    "an optimised model is a function, not layers, and has no config to copy, pickle or write to a "
    ".keras or .h5 file: do that with the original and call tf_blockdnn.optimize on what it gives, "
    "or write a SavedModel, of a model around it with export(folder)"
)
_NO_WEIGHTS = (
    "an optimised model has no weights to load, set or save: do that with the original, then call "
    'tf_blockdnn.optimize again, or once with weights="live"'
)
_MOST_SHAPES = 64  # that are noted as those of one function; a server may meet any number
_COMPILED = (
    "loss",
    "loss_weights",
    "metrics",
    "weighted_metrics",
    "run_eagerly",
    "steps_per_execution",
)


class OptimizedKerasModel:
    """What an optimised model has beside what a keras.Model of its class has.

    `fast(x)`, `predict`, `evaluate` and `export` work as for the original, with all that its class
    adds to them; it may be a layer of another model. It infers whatever `training` says, and has no
    weights of its own to train.

    Attributes:
        report: what was converted, what was declined and why.
        concrete: the rewritten ConcreteFunction.
        trackables: the variables and tables it captures.
    """

    @property
    def report(self):
        return self._fast.report

    @property
    def concrete(self):
        return self._signature().concrete

    @property
    def trackables(self):
        return self._fast.trackables

    def __call__(self, *args, **kwargs):
        # Keras's own __call__ takes as long as a small network: what needs nothing of it passes by.
        kwargs.pop("training", None)  # It infers, as frozen layers do.
        if len(args) == 1 and not kwargs and _is_plain(args[0], self._plain):
            if type(args[0]) is EagerTensor and args[0]._shape_tuple() in self._fitting:
                return self._first(args[0])
            return self._call_plain(args[0])
        return self._keras_call(*args, **kwargs)  # The class's own is part of the function.

    def _call_plain(self, value):
        """A call that needs nothing of Keras; one that the first function takes is noted."""
        fits = self._first is not None and type(value) is EagerTensor
        if fits and self._plain.shape.is_compatible_with(value.shape):
            if len(self._fitting) >= _MOST_SHAPES:
                self._fitting.clear()
            self._fitting.add(value._shape_tuple())
            return self._first(value)
        return self._fast(value)

    def __getattr__(self, name):
        """What the user's class keeps on the original, which its methods use."""
        original = self.__dict__.get("_original")
        if original is None or name not in vars(original):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = vars(original)[name]
        if hasattr(value, "update_state"):  # A metric counts for one of the two.
            value = self.__dict__[name] = _fresh(value)
            setattr(self, name, value)  # Keras lists it and resets it.
        return value

    def compile(self, *args, **kwargs):
        super().compile(*args, **kwargs)
        self.jit_compile = False  # XLA does not know our ops.

    def make_predict_function(self, force=False):
        # Where each size has a function of its own, batches come to it with their sizes.
        force = self._runs_others("predict") or force
        eagerly, self.run_eagerly = self.run_eagerly, self.run_eagerly or self._first is None
        try:
            return super().make_predict_function(force)
        finally:
            self.run_eagerly = eagerly

    def make_test_function(self, force=False):
        return super().make_test_function(self._runs_others("test") or force)

    def _runs_others(self, step: str) -> bool:
        """Whether live weights have made other functions than Keras's function of `step` calls."""
        now = self._fast.follow()
        was = self._traced.get(step, now)
        self._traced[step] = now
        return any(a != b for a, b in zip(was, now, strict=False))

    def fit(self, *args, **kwargs):
        raise ValueError(_FOR_INFERENCE)

    train_on_batch = train_step = fit

    def quantize(self, *args, **kwargs):
        raise ValueError(_NO_LAYERS)

    def load_weights(self, *args, **kwargs):
        raise ValueError(_NO_WEIGHTS)

    set_weights = save_weights = load_weights

    def get_config(self):
        raise NotImplementedError(_NO_CONFIG)

    def to_json(self, **kwargs):
        raise NotImplementedError(_NO_CONFIG)

    def __deepcopy__(self, memo):
        raise NotImplementedError(_NO_CONFIG)

    def __reduce__(self):
        raise NotImplementedError(_NO_CONFIG)

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        children = super()._trackable_children(save_type, **kwargs)
        return _with_captured(children, save_type, self._fast)

    def save(self, filepath: str | os.PathLike, overwrite: bool = True, **kwargs) -> None:
        """Writes a SavedModel whose signature is named "serving_default".

        Raises:
            ValueError: the name of a Keras file: that format holds layers, not functions.
            FileExistsError: it is there, and must not be overwritten.
        """
        if not overwrite and os.path.exists(filepath):
            raise FileExistsError(f"{os.fspath(filepath)} exists: give overwrite=True")
        self._signature().save(filepath)

    def export(self, filepath: str | os.PathLike, format: str = "tf_saved_model", **kwargs) -> None:
        """Writes a SavedModel with Keras's endpoint `serve`, its only format here.

        Raises:
            ValueError: another format, or a signature of its own.
        """
        if format not in (None, "tf_saved_model"):
            raise ValueError(f"an optimised model is exported as a tf_saved_model, not as {format}")
        if kwargs.get("input_signature") is not None:
            raise ValueError("give input_signature to tf_blockdnn.optimize, not to export")
        save_functions(dict.fromkeys(("serve", "serving_default"), self._signature()), filepath)

    def _signature(self):
        return self._first or self._fast.only()


def wrap(original, function, first, specs, of_function):
    """The optimised function of a Keras model as a model of the same Keras.

    Loss and metrics are those that the original was compiled with.

    Args:
        original: the model; kept if its class is the user's, whose methods may want what it holds.
        function: the PolymorphicFunction.
        first: the OptimizedFunction of `specs`; None where each size has one of its own.
        specs: what plain calls give, (args, kwargs).
        of_function: makes the optimised function of a tf.function.
    """
    library, found = library_of(type(original)), symbolic(original)
    own = next((base for base in type(original).__mro__ if is_own(base)), object)
    is_own_model = issubclass(own, library.Model)
    members = {"_keras_call": library.Model.__call__}
    if hasattr(own, "make_generate_function"):
        members["make_generate_function"] = _generate_by(of_function)
    if has_own_call(original):
        members["call"] = _call_like(original)
    base = own if is_own_model else library.Model
    kind = type(OptimizedKerasModel.__name__, (OptimizedKerasModel, base), members)
    fast = kind.__new__(kind)
    # Out of the sight of Keras and of TensorFlow, which would track what is in there.
    fast.__dict__["_fast"], fast.__dict__["_first"] = function, first
    fast.__dict__["_fitting"], fast.__dict__["_traced"] = set(), {}
    fast.__dict__["_plain"] = specs[0][0] if len(specs[0]) == 1 and not specs[1] else None
    name = f"{original.name}_optimized"
    if found:
        inputs = tf.nest.map_structure(_another_input, plain(found[0]))
        layer = _layer_class(library)(function, found, f"{original.name}_rewritten")
        _functional(library, kind).__init__(fast, inputs=inputs, outputs=layer(inputs), name=name)
    else:
        autocast = getattr(original, "autocast", getattr(original, "_autocast", True))
        policy = original.dtype_policy
        library.Model.__init__(fast, name=name, dtype=policy, autocast=autocast)
        fast.built = True
    fast.trainable = False
    fast.supports_jit = False
    if is_own_model:
        fast.__dict__["_original"] = vars(original).get("_original") or original
    config = getattr(original, "_compile_config", None)
    if config is not None:
        given = {k: v for k, v in dict(config.config).items() if k in _COMPILED}
        for key in ("metrics", "weighted_metrics"):
            if key in given:
                given[key] = tf.nest.map_structure(_fresh, given[key])
        library.Model.compile(fast, **given)
        fast.jit_compile = False
    return fast


def _generate_by(of_function):
    """`make_generate_function` of a KerasHub task, whose function is optimised, too."""

    def make_generate_function(self):
        if self.__dict__.get("generate_function") is None:
            self.generate_function = None  # not that of the original
            made = super(OptimizedKerasModel, self).make_generate_function()
            if isinstance(made, tf.types.experimental.PolymorphicFunction):
                made = of_function(made)
            self.generate_function = made
        return self.generate_function

    return make_generate_function


@functools.cache
def _layer_class(library):
    """The layer that runs a function inside a functional model."""

    class Rewritten(library.layers.Layer):
        def __init__(self, function, symbolic, name):
            super().__init__(name=name, trainable=False, autocast=False)
            self.__dict__["_fast"] = function
            self.__dict__["_shapes"] = tf.nest.map_structure(_spec, [plain(s) for s in symbolic])
            self.supports_masking = True
            self._compute_output_and_mask_jointly = True  # Keras 2: results have their masks.
            self.built = True

        @unconverted
        def call(self, inputs, mask=None):
            return self._fast(inputs) if is_empty(mask) else self._fast(inputs, mask=mask)

        def compute_mask(self, inputs, previous_mask=None):
            return None  # Results have their masks.

        def compute_output_spec(self, inputs, mask=None):
            wanted, outputs = self._shapes
            given = tf.nest.map_structure(_spec, plain(inputs))
            if tf.nest.flatten(given) != tf.nest.flatten(wanted):
                traced = tf.function(self._fast, autograph=False).get_concrete_function(given)
                outputs = _of_batch(tf.nest.flatten(given)[0], traced.structured_outputs)
            return tf.nest.map_structure(lambda y: library.KerasTensor(y.shape, y.dtype), outputs)

        def compute_output_shape(self, input_shape):  # Keras 2
            shapes = super().compute_output_shape(input_shape)
            return _of_batch(tf.TensorSpec(tf.nest.flatten(input_shape)[0]), shapes)

        def get_config(self):
            raise NotImplementedError(_NO_CONFIG)

        def _trackable_children(self, save_type="checkpoint", **kwargs):
            children = super()._trackable_children(save_type, **kwargs)
            return _with_captured(children, save_type, self._fast)

    return Rewritten


def _functional(library, kind: type) -> type:
    """The class with the constructor of functional models, which `kind` may be derived from."""
    found = (base for base in kind.__mro__ if base.__name__ == "Functional" and not is_own(base))
    return next(found, library.Model)


def _call_like(original):
    """`call` with the signature of the original's, by which Keras hands arguments on."""
    signature = signature_of_call(original)

    @unconverted
    def call(self, *args, **kwargs):
        args, kwargs = arguments(signature, args, kwargs)
        return self._fast(*args, **kwargs)

    call.__signature__ = inspect.signature(type(original).call)
    return call


def _is_plain(value, spec) -> bool:
    """Whether a value is what Keras would make of it: the signature's nest, dtypes and ranks."""
    if type(value) is EagerTensor:  # hasattr of a tensor takes as long as all the rest.
        same = type(spec) is tf.TensorSpec and value.dtype is spec.dtype
        return same and value._rank() == spec.shape.rank and "_keras_mask" not in value.__dict__
    if type(value) is np.ndarray:
        same = type(spec) is tf.TensorSpec and value.dtype == spec.dtype
        return same and value.ndim == spec.shape.rank
    if isinstance(spec, dict):
        same = isinstance(value, dict) and value.keys() == spec.keys()
        return same and all(_is_plain(value[name], spec[name]) for name in spec)
    if isinstance(spec, (list, tuple)):
        same = type(value) is type(spec) and len(value) == len(spec)
        return same and all(map(_is_plain, value, spec))
    return False


def _another_input(x):
    """A symbolic input like another one, which does not lead to that one's layers."""
    history = x._keras_history
    layer = getattr(history, "operation", None) or history.layer
    return type(layer).from_config(layer.get_config()).output


def _spec(x) -> tf.TensorSpec:
    return tf.TensorSpec(x.shape, x.dtype)


def _of_batch(given: tf.TensorSpec, outputs):
    """Shapes, or what has some, whose unknown first sizes are those of the first input."""
    batch = given.shape[0] if given.shape.rank else None

    def known(shape):
        shape = tf.TensorShape(shape)
        return shape if not shape.rank else tf.TensorShape([batch, *shape[1:]])

    def known_of(y):
        return known(y) if isinstance(y, tf.TensorShape) else tf.TensorSpec(known(y.shape), y.dtype)

    return tf.nest.map_structure(known_of, outputs)


def _with_captured(children: dict, save_type: str, function) -> dict:
    """What TensorFlow writes into a SavedModel of an enclosing model: also what we capture."""
    if save_type != "savedmodel":
        return children
    return {**children, **{f"captured_{i}": t for i, t in enumerate(function.trackables)}}


def _fresh(metric):
    """A metric of its own, in place of one that counts for the original; names stay names."""
    if hasattr(metric, "update_state"):
        return type(metric).from_config(metric.get_config())
    return metric
