"""An optimised Keras model: a keras.Model again, of the Keras that the original came from."""

import functools
import os
import sys

import tensorflow as tf

from ..tensorflow_private import EagerTensor, unconverted
from .keras_input import is_symbolic

_FOR_INFERENCE = (
    "an optimised model is for inference: train the original, then call tf_blockdnn.optimize again"
)
_NO_CONFIG = (
    "an optimised model is a function, not layers, and has no config to copy, pickle or write to a "
    ".keras file: do that with the original and call tf_blockdnn.optimize on what it gives, or "
    "write the optimised one as a SavedModel with save(folder)"
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

        def __init__(self, function, structure, name, casts, lost):
            super().__init__(name=name, trainable=False)
            for attribute in ("inputs", "outputs"):  # None in Keras 2; they are properties here.
                self.__dict__.pop(attribute, None)
            self.supports_jit = False  # XLA does not know our ops.
            # Out of the sight of Keras and of TensorFlow, which would track what is in there.
            self.__dict__["_fast"] = function
            self.__dict__["_structure"] = structure
            self.__dict__["_casts"] = casts
            self.__dict__["_lost"] = dict(lost)
            single = len(structure) == 1 and isinstance(structure[0], tf.TensorSpec)
            spec = structure[0] if single else None
            self.__dict__["_dtype"] = spec and spec.dtype
            self.__dict__["_rank"] = spec and spec.shape.rank
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
                if args[0].dtype is self._dtype and args[0]._rank() == self._rank:
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
            return self._fast(_matched(args[0], self._structure[0], self._casts))

        @functools.cached_property
        def inputs(self) -> list:
            """The symbolic inputs, flat, as those of a functional model."""
            make = _keras_of(base).Input
            specs = tf.nest.flatten(self._structure)
            return [make(batch_shape=s.shape, dtype=s.dtype.name, name=s.name) for s in specs]

        @functools.cached_property
        def outputs(self) -> list:
            """The symbolic outputs, flat."""
            args = tf.nest.pack_sequence_as(list(self._structure), self.inputs)
            return tf.nest.flatten(self(*args))

        @property
        def input_shape(self):
            """The shape of the input, or a list of them, flat."""
            return _shape_of(self.inputs)

        @property
        def output_shape(self):
            """The shape of the output, or a list of them, flat."""
            return _shape_of(self.outputs)

        def compute_output_shape(self, input_shape):
            """The shape, or nested shapes, of the result for that of the input."""
            structure = self._structure
            shapes = _flat_shapes(structure, input_shape if len(structure) > 1 else [input_shape])
            flat = [
                tf.TensorSpec(shape, spec.dtype)
                for spec, shape in zip(tf.nest.flatten(structure), shapes, strict=True)
            ]
            specs = tf.nest.pack_sequence_as(list(structure), flat)
            traced = tf.function(self.call, autograph=False).get_concrete_function(*specs)
            batch = shapes[0][0] if shapes[0].rank else None  # Keras's first dimension of all.
            return tf.nest.map_structure(
                lambda y: tuple(
                    batch if i == 0 and n is None else n for i, n in enumerate(y.shape)
                ),
                traced.structured_outputs,
            )

        # Keras 3 is to trace the call of symbolic tensors, which gives dtypes, too.
        compute_output_shape._is_default = True

        def get_config(self):
            raise NotImplementedError(_NO_CONFIG)

        def __deepcopy__(self, memo):
            raise NotImplementedError(_NO_CONFIG)

        def __reduce__(self):
            raise NotImplementedError(_NO_CONFIG)

        def _trackable_children(self, save_type="checkpoint", **kwargs):
            # An enclosing model's SavedModel holds what our function captures.
            children = super()._trackable_children(save_type, **kwargs)
            if save_type != "savedmodel":
                return children
            return {**children, **{f"captured_{i}": t for i, t in enumerate(self.trackables)}}

        def predict(self, *args, **kwargs):
            self._check_kept("predict")
            return super().predict(*args, **kwargs)

        def predict_on_batch(self, *args, **kwargs):
            self._check_kept("predict")
            return super().predict_on_batch(*args, **kwargs)

        def evaluate(self, *args, **kwargs):
            self._check_kept("evaluate")
            return super().evaluate(*args, **kwargs)

        def test_on_batch(self, *args, **kwargs):
            self._check_kept("evaluate")
            return super().test_on_batch(*args, **kwargs)

        def _check_kept(self, method):
            if reason := self._lost.get(method):
                raise NotImplementedError(reason)

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


def _keras_of(base: type):
    """The module of Keras 3 or of Keras 2."""
    return sys.modules[base.__module__.partition(".")[0]]


def _flat_shapes(structure, shapes) -> list:
    """`shapes`, nested as the TensorSpecs of `structure`, in the order of tf.nest.flatten."""
    if isinstance(structure, tf.TensorSpec):
        return [tf.TensorShape(shapes)]
    keys = sorted(structure) if isinstance(structure, dict) else range(len(structure))
    return [shape for key in keys for shape in _flat_shapes(structure[key], shapes[key])]


def _shape_of(tensors):
    shapes = [tuple(tensor.shape) for tensor in tensors]
    return shapes[0] if len(shapes) == 1 else shapes


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
    casts = vars(original).get("_casts", False) or is_symbolic(original)
    name = f"{original.name}_optimized"
    fast = model_class(base)(function, structure, name, casts, _lost(original))
    config = getattr(original, "_compile_config", None)
    if config is not None:
        given = {k: v for k, v in dict(config.config).items() if k in _COMPILED}
        for key in ("metrics", "weighted_metrics"):
            if key in given:
                given[key] = tf.nest.map_structure(_fresh, given[key])
        fast.compile(**given, jit_compile=False)
    return fast


def _fresh(metric):
    """A metric of its own, in place of one that counts for the original; names stay names."""
    if hasattr(metric, "update_state"):
        return type(metric).from_config(metric.get_config())
    return metric


# Methods of the user's class that decide what the method on the left returns.
_HOOKS = {
    "predict": ("predict", "predict_on_batch", "predict_step", "make_predict_function"),
    "evaluate": (
        *("evaluate", "test_on_batch", "test_step", "make_test_function"),
        *("compute_loss", "compute_metrics", "get_metrics_result"),
    ),
}


def _lost(original) -> dict[str, str]:
    """Method -> why the result refuses it: the original's class has code of its own for it."""
    reasons = dict(vars(original).get("_lost", {}))  # Of one that is optimised once more.
    for method, hooks in _HOOKS.items():
        for hook in hooks:
            owner = next((c for c in type(original).__mro__ if hook in vars(c)), None)
            if owner is None or owner.__module__ == __name__:
                continue
            if owner.__module__.split(".")[0] not in ("keras", "tf_keras"):
                reasons[method] = (
                    f"{type(original).__name__} has a {hook} of its own, which an optimised model "
                    f"has not: call fast(x) in its place, or {method} of the original"
                )
                break
    return reasons


def _matched(given, structure, casts: bool):
    """What a caller gave in the structure, dtypes and ranks of the signature, as Keras does it.

    Args:
        casts: whether all dtypes are cast, as symbolic inputs do; otherwise floats only.
    """
    if isinstance(given, dict) and not isinstance(structure, dict):
        names = [spec.name for spec in tf.nest.flatten(structure)]
        if not set(names) <= set(given):
            raise ValueError(f"inputs must be named {names}, got {list(given)}")
        given = [given[name] for name in names]
    elif isinstance(given, dict):
        if set(given) != set(structure):
            raise ValueError(f"inputs must be named {list(structure)}, got {list(given)}")
        return {name: _matched(given[name], structure[name], casts) for name in structure}
    elif isinstance(structure, dict) and list(structure) != sorted(structure):
        raise ValueError(f"inputs must be a dict with the names {list(structure)}")
    flat, specs = tf.nest.flatten(given), tf.nest.flatten(structure)
    if len(flat) != len(specs):
        return given
    cast = [_cast(value, spec, casts) for value, spec in zip(flat, specs, strict=True)]
    return tf.nest.pack_sequence_as(structure, cast)


def _cast(value, spec, casts: bool):
    if not hasattr(value, "dtype"):
        return value
    dtype = tf.as_dtype(value.dtype)
    if dtype != spec.dtype and dtype != tf.string:
        if not casts and not (dtype.is_floating and spec.dtype.is_floating):
            return value
        value = tf.cast(value, spec.dtype)
    rank, wanted = len(value.shape), spec.shape.rank
    if not casts or rank == wanted or wanted is None:
        return value
    if rank == wanted + 1 and value.shape[-1] == 1:
        return tf.squeeze(value, -1)
    if rank == wanted - 1 and spec.shape[-1] == 1:
        return tf.expand_dims(value, -1)
    return value


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
