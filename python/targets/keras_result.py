"""An optimised Keras model: a keras.Model again, of the Keras that the original came from.

Of a functional or sequential model it is a functional model of one layer, which runs the rewritten
functions: Keras matches and casts inputs, knows shapes and hands masks on as it does for the
original. Of any other it is a model of the same class whose `call` runs them.
"""

import contextlib
import functools
import importlib
import inspect
import os
import re
import sys
import tempfile
from collections.abc import Callable
from typing import TYPE_CHECKING

import tensorflow as tf

from ..keras_private import (
    MASK,
    casts_inputs,
    compile_arguments,
    layer_of,
    set_save_spec,
    symbolic,
)
from ..tensorflow_private import EagerTensor, context, record, unconverted
from .keras_function import FUNCTIONS, NO_WEIGHTS, KerasFunction
from .keras_inputs import (
    arguments,
    has_own_call,
    is_empty,
    is_own,
    library_of,
    name_results,
    plain,
    signature_of_call,
)
from .result import OptimizedFunction
from .save import save_functions

_NO_LAYERS = (
    "an optimised model has no layers to quantize: quantize the original, and optimise that, or "
    'give bd.optimize precision="int8"'
)
_FOR_INFERENCE = (
    "an optimised model is for inference: train the original, then call tf_blockdnn.optimize "
    'again, or once with weights="live"'
)
_NO_H5 = (
    "an optimised model has no layers, of whose weights a .h5 file consists: write a .keras file, "
    "or a SavedModel, of a model around it with export(folder)"
)
_NO_LAYER = "a layer of an optimised model is no layer by itself: take the model"
_INFERS = (
    "an optimised model infers, dropout and the like are off: call the original for what it does "
    "with training=True"
)
_OURS = frozenset({"optimized", "report", "concrete", "trackables"})
_COMPILED = (
    "loss",
    "loss_weights",
    "metrics",
    "weighted_metrics",
    "run_eagerly",
    "steps_per_execution",
)


def _refuse(error: type[Exception], text: str) -> Callable:
    """A method of Keras's that an optimised model does not have."""

    def method(self, *args, **kwargs):
        raise error(text)

    return method


if TYPE_CHECKING:
    from keras import Model as _Model
else:
    _Model = object  # A class is created for each model.


class OptimizedKerasModel(_Model):
    """What an optimised model has beside what a keras.Model of the class has.

    `fast(x)`, `predict`, `evaluate` and `export` work as for the original, with all that its class
    adds to them; it may be a layer of another model. It infers whatever `training` says, and has no
    weights of its own to train.

    Attributes:
        optimized: the rewritten functions, with `report`, `concrete` and `trackables`, which the
            model has, too, where its class has nothing of these names.
    """

    def __init__(self, function):
        """Nobody's to call: as it is not the constructor of a functional model, Keras clones one as
        a plain model of its layer."""
        raise TypeError("tf_blockdnn.optimize makes an optimised model")

    def __call__(self, *args, **kwargs):
        # Keras's own __call__ takes as long as a small network: what needs nothing of it passes by.
        if kwargs and kwargs.pop("training", None):
            # A model around this one may be training, of which it is then a frozen layer.
            if context.executing_eagerly() and not record.could_possibly_record():
                raise ValueError(_INFERS)
        optimized = self.__dict__["_blockdnn"]
        if len(args) == 1 and not kwargs and type(args[0]) is EagerTensor:
            x = args[0]
            run = optimized.runs.get((x.dtype, x._shape_tuple()))
            if run is not None and x.__dict__.get(MASK) is None:
                return run(args)
        return optimized.call(self, args, kwargs)

    def __getattr__(self, name):
        """What the user's class keeps on the original, which methods use; then what is ours."""
        optimized = self.__dict__.get("_blockdnn")
        original = optimized and optimized.original
        if original is None or name not in vars(original):
            if optimized is not None and name in _OURS:
                return optimized if name == "optimized" else getattr(optimized, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = vars(original)[name]
        if hasattr(value, "update_state"):  # A metric counts for one of the two.
            value = self.__dict__[name] = _fresh(value)
            setattr(self, name, value)  # Keras lists it and resets it.
        return value

    def __repr__(self) -> str:
        what = self.__dict__["_blockdnn"].report.summary().partition("\n")[0]
        return f"<optimized Keras model {self.name}: {what}>"

    def compile(self, *args, **kwargs):
        super().compile(*args, **kwargs)
        self.jit_compile = False  # XLA does not know our ops.

    def make_predict_function(self, force=False):
        # An eager call is the fastest, and comes to functions of one size with that size; a step
        # that somebody wrote runs in a function, as Keras runs it.
        force = self._runs_others("predict") or force
        is_keras = type(self).predict_step is library_of(type(self)).Model.predict_step
        is_eager = is_keras or self.__dict__["_blockdnn"].remark is not None
        eagerly, self.run_eagerly = self.run_eagerly, self.run_eagerly or is_eager
        try:
            return super().make_predict_function(force)
        finally:
            self.run_eagerly = eagerly

    def make_test_function(self, force=False):
        return super().make_test_function(self._runs_others("test") or force)

    def _runs_others(self, step: str) -> bool:
        """Whether Keras's function of `step` calls functions that new weights have replaced."""
        optimized = self.__dict__["_blockdnn"]
        now = optimized.follow()
        was = optimized.traced.get(step, now)
        optimized.traced[step] = now
        return any(a != b for a, b in zip(was, now, strict=False))

    fit = train_on_batch = train_step = _refuse(ValueError, _FOR_INFERENCE)
    quantize = _refuse(ValueError, _NO_LAYERS)
    load_weights = set_weights = save_weights = _refuse(ValueError, NO_WEIGHTS)

    def get_config(self) -> dict:
        """The original without its weights, and how it was optimised.

        Raises:
            NotImplementedError: the original is gone, there are calibration data, or it would
                become a file that can hold no weights of it.
        """
        if _is_asked_by("h5_format|hdf5_format|saved_model"):
            raise NotImplementedError(_NO_H5)
        function = self.__dict__["_blockdnn"]
        return {"name": self.name, "key": function.key, **function.inference.config()}

    @classmethod
    def from_config(cls, config, custom_objects=None):
        """A model of the same functions, or without weights where there are none in this process;
        other weights are those that are loaded."""
        from .keras import restore  # which is above

        return restore(config, FUNCTIONS.get(config["key"]))

    def save_own_variables(self, store) -> None:
        with contextlib.suppress(NotImplementedError):  # A file of weights may do without.
            for place, value in enumerate(self.__dict__["_blockdnn"].inference.values()):
                store[str(place)] = value

    def load_own_variables(self, store) -> None:
        values = [store[str(place)][...] for place in range(len(store.keys()))]
        self.__dict__["_blockdnn"].load(values)

    def __reduce__(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.keras")
            self.save(path)
            with open(path, "rb") as file:
                return _unpickle, (library_of(type(self)).__name__, file.read())

    def __copy__(self):
        """Another model of the same functions, to be compiled by itself."""
        function = self.__dict__["_blockdnn"]
        return wrap(self, function, self.name)

    def __deepcopy__(self, memo):
        return self.__copy__()

    def _trackable_children(self, save_type="checkpoint", **kwargs):
        children = super()._trackable_children(save_type, **kwargs)
        return _with_captured(children, save_type, self.__dict__["_blockdnn"])

    def save(self, filepath: str | os.PathLike, overwrite: bool = True, **kwargs) -> None:
        """Writes a SavedModel whose signature is named "serving_default".

        A name that ends with .keras is that of a file with the original, the weights that this
        model has, and its options; tf_blockdnn.load optimises it again.

        Raises:
            ValueError: the name of a .h5 file, which holds layers.
            NotImplementedError: a .keras file, where the original is gone or there are calibration
                data.
            FileExistsError: it is there, and must not be overwritten.
        """
        if os.fspath(filepath).endswith(".keras"):
            return super().save(filepath, overwrite=overwrite, **kwargs)
        if not overwrite and os.path.exists(filepath):
            raise FileExistsError(f"{os.fspath(filepath)} exists: give overwrite=True")
        self.__dict__["_blockdnn"].save(filepath)

    def export(self, filepath: str | os.PathLike, format: str = "tf_saved_model", **kwargs) -> None:
        """Writes a SavedModel with Keras's endpoint `serve`, its only format here.

        Raises:
            ValueError: another format, or a signature of its own.
        """
        if format not in (None, "tf_saved_model"):
            raise ValueError(f"an optimised model is exported as a tf_saved_model, not as {format}")
        if kwargs.get("input_signature") is not None:
            raise ValueError("give input_signature to tf_blockdnn.optimize, not to export")
        saved = OptimizedFunction(self.__dict__["_blockdnn"].only())
        save_functions(
            dict.fromkeys(("serve", "serving_default"), saved), filepath, {"serve": saved}
        )


def register(library) -> None:
    """Has a Keras know results in its files."""
    library.saving.get_custom_objects()[OptimizedKerasModel.__name__] = OptimizedKerasModel


def wrap(original, function: KerasFunction, name: str):
    """The optimised function of a Keras model as a model of the same Keras.

    Loss and metrics are those that the original was compiled with.

    Args:
        original: the model; kept if the class is the user's, whose methods may want what it holds.
        function: makes and has the rewritten functions.
        name: that of the result.
    """
    library, tensors = library_of(type(original)), symbolic(original)
    users = next((base for base in type(original).__mro__ if is_own(base)), object)
    is_own_model = issubclass(users, library.Model)
    base = users if is_own_model else library.Model
    functional = _functional(library, base) if tensors else None
    members = {}
    if hasattr(users, "make_generate_function"):
        members["make_generate_function"] = _generate_by(function.of_function)
    if has_own_call(original) or functional is None:
        members["call"] = _call_like(original)
    kind = type(OptimizedKerasModel.__name__, (OptimizedKerasModel, base), members)
    register(library)
    fast = kind.__new__(kind)
    before = vars(original).get("_blockdnn")  # of one that is optimised again
    kept = (before and before.original) or original
    # Out of the sight of Keras and of TensorFlow, which would track what is in there.
    fast.__dict__["_blockdnn"] = function
    if functional is not None:
        inputs = tf.nest.map_structure(_another_input, plain(tensors[0]))
        shapes = tf.nest.map_structure(_spec_of, [plain(s) for s in tensors])
        layer = _layer_class(library)(function, shapes, f"{original.name}_rewritten")
        functional.__init__(fast, inputs=inputs, outputs=layer(inputs), name=name)
    else:
        policy, autocast = original.dtype_policy, casts_inputs(original)
        library.Model.__init__(fast, name=name, dtype=policy, autocast=autocast)
        fast.built = True
    names = getattr(original, "output_names", None)
    if names is not None:
        fast.output_names = list(names)  # losses, metrics and signatures go by them
    if hasattr(original, "save_spec"):  # Keras 2
        if functional is None and (specs := original.save_spec()):
            (inputs, *others), named = specs
            set_save_spec(fast, inputs, others, named)
        function.name_results = name_results(original)
    fast.trainable = False
    fast.supports_jit = False
    if is_own_model:  # Not before: Keras would write into lists of the original's.
        function.original = kept
    arguments = compile_arguments(original)
    if arguments is not None:
        compiled = {k: v for k, v in arguments.items() if k in _COMPILED}
        for key in ("metrics", "weighted_metrics"):
            if key in compiled:
                compiled[key] = tf.nest.map_structure(_fresh, compiled[key])
        library.Model.compile(fast, **compiled)
        fast.jit_compile = False
    return fast


@functools.cache
def _layer_class(library):
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
            specs = tf.nest.map_structure(_spec_of, plain(inputs))
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
            if not _is_asked_by("cloning"):
                raise NotImplementedError(_NO_LAYER)
            return {"name": self.name, "key": self._optimized.key}

        @classmethod
        def from_config(cls, config):
            optimized = FUNCTIONS[config["key"]]
            return cls(optimized, optimized.shapes, config["name"])

        def _trackable_children(self, save_type="checkpoint", **kwargs):
            children = super()._trackable_children(save_type, **kwargs)
            return _with_captured(children, save_type, self._optimized)

    return Rewritten


def _is_asked_by(modules: str) -> bool:
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


def _with_captured(children: dict, save_type: str, function) -> dict:
    """What TensorFlow writes into a SavedModel of an enclosing model: also what we capture."""
    if save_type != "savedmodel":
        return children
    return {**children, **{f"captured_{i}": t for i, t in enumerate(function.trackables)}}


def _spec_of(x) -> tf.TensorSpec:
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


def _unpickle(library: str, data: bytes):
    register(importlib.import_module(library))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.keras")
        with open(path, "wb") as file:
            file.write(data)
        return sys.modules[library].models.load_model(path, safe_mode=False)


def _generate_by(of_function):
    """`make_generate_function` of a KerasHub task, whose function is optimised, too."""

    def make_generate_function(self):
        if self.__dict__.get("generate_function") is None:
            self.generate_function = None  # not that of the original
            function = super(OptimizedKerasModel, self).make_generate_function()
            if isinstance(function, tf.types.experimental.PolymorphicFunction):
                function = of_function(function)
            self.generate_function = function
        return self.generate_function

    return make_generate_function


def _functional(library, kind: type) -> type | None:
    """The class with the constructor of functional models, if `kind` can be one.

    Sequential is one of Keras 2's functional models, and none of Keras 3's.
    """
    bases = (base for base in kind.__mro__ if base.__name__ == "Functional" and not is_own(base))
    return next(bases, None if issubclass(kind, library.Sequential) else library.Model)


def _call_like(original):
    """`call` with the signature of the original's, by which Keras hands arguments on."""
    signature = signature_of_call(original)

    @unconverted
    def call(self, *args, **kwargs):
        if "mask" not in signature.parameters and is_empty(kwargs.get("mask")):
            kwargs.pop("mask", None)  # Keras 2 hands one on to whatever takes it.
        args, kwargs = arguments(signature, args, kwargs)
        return self.__dict__["_blockdnn"].run(*args, **kwargs)

    call.__signature__ = inspect.signature(type(original).call)
    return call


def _another_input(x):
    """A symbolic input like another one, which does not lead to that one's layers."""
    layer = layer_of(x)
    return type(layer).from_config(layer.get_config()).output


def _fresh(metric):
    """A new metric, in place of one that counts for the original; names stay names."""
    if hasattr(metric, "update_state"):
        return type(metric).from_config(metric.get_config())
    return metric
