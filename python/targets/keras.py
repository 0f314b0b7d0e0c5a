"""Models of Keras 3 and Keras 2 as targets: the functions that infer with them."""

import dataclasses
import functools
import importlib
import weakref
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from ..errors import UserError
from ..keras_private import inputs_within_models, layers_within
from ..options import Options
from .call import MaskedCall
from .inputs import mapped
from .keras_inputs import (
    arguments,
    has_own_call,
    input_specs,
    is_model,
    is_own,
    knows_types,
    library_of,
    signature_of_call,
    trace_masks,
)
from .keras_result import KerasFunction, wrap
from .target import (
    Settings,
    Target,
    close_sizes,
    convert,
    describe,
    has_open_sizes,
    of_any_batch,
    time_trace,
)
from .tensorflow import Function

_GONE = (
    "the optimised model was not converted for such arguments ({arguments}), and the original, "
    "from which it would be, is gone: keep a reference to the original, or give "
    "tf_blockdnn.optimize(..., input_signature=[...])"
)
_NOT_KEPT = (
    "an optimised model is written as its original and its options, and the original is gone: keep "
    "a reference to it, or write a SavedModel, of a model around it with export(folder)"
)
_CALIBRATED = (
    "calibration data are no part of a configuration: write a SavedModel with save(folder), of a "
    "model around it with export(folder)"
)
# What Keras and TensorFlow raise where a layer wants to know a size in Python.
_CANNOT_TRACE = (TypeError, ValueError, AttributeError, tf.errors.OperatorNotAllowedInGraphError)


class Keras(Target):
    """A model of either Keras, of any kind."""

    TAKES = frozenset({"input_signature"})
    KIND = "a Keras model"

    def __init__(self, target, settings, read=None):
        """
        Args:
            read: () -> the model again, of one that came from a file.
        """
        super().__init__(target, settings)
        self._read = read

    @classmethod
    def takes(cls, target) -> bool:
        return is_model(target)

    def result(self):
        model, settings = self.target, self.settings
        find = self._read or weakref.ref(model)
        if is_own(type(model)):  # What it is called with decides, and methods.
            find = functools.partial(lambda model: model, model)
        make = Inference(find, settings, self.bundles)
        if not self._read:  # Without the original nothing is converted.
            self.hold(*model.weights)
            weakref.finalize(model, self.bundles.moment.clear).atexit = False

        function = self._function(make)
        self._convert_plain_calls(make, function)
        return wrap(model, function, f"{model.name}_optimized")

    def restored(self, name: str, stand_in: KerasFunction | None):
        """The result of that name, converted when the weights are loaded.

        Args:
            stand_in: another result, whose functions it has until then.
        """
        make = Inference(self._read, self.settings, self.bundles)
        function = self._function(make)
        function.wait(functools.partial(self._convert_plain_calls, make, function), stand_in)
        return wrap(self.target, function, name)

    def _function(self, make: "Inference") -> KerasFunction:
        plain = self.settings._replace(input_signature=None)
        call = library_of(type(self.target)).Model.__call__
        return KerasFunction(make, call, lambda function: Function(function, plain).result())

    def _convert_plain_calls(self, make: "Inference", function: KerasFunction) -> None:
        """Converts the function for what plain calls give; a remark says where these have to come.

        Where each size has a separate function, that of the example is the one that is saved.
        """
        model, signature = self.target, self.settings.input_signature
        specs = self._specs()
        if specs is None:
            function.remark = (
                f"converted at the first call of each signature, since the call of {model.name} "
                "takes more arguments than it was built for"
            )
            return
        try:
            make.convert(specs, model)
            function.main = function.add(*specs)
        except OpenSizesError as error:
            if signature:
                raise
            example = self.settings.example
            of_example = "" if example is None else "for the sizes of example, and "
            function.remark = (
                f"converted {of_example}at the first call of each height and width, since {error}"
            )
            if example is not None:
                make.settings = self.settings._replace(takes_example=True)
                function.main = function.add(*close_sizes(specs, example))
                make.settings = self.settings._replace(example=None)  # for other sizes
        except _CANNOT_TRACE:
            if signature or knows_types(model):
                raise
            function.remark = (
                "converted at the first call of each signature, since Keras does not know of what "
                f"type the inputs of {model.name} are"
            )

    def _specs(self):
        """(args, kwargs) of plain calls, with TensorSpecs for tensors; None where calls tell."""
        model, signature = self.target, self.settings.input_signature
        has_own, call = has_own_call(model), None
        if has_own:
            call = signature_of_call(model)
        if signature:
            specs = tuple(signature), {}
            if not has_own and len(signature) != 1:
                raise UserError(
                    f"input_signature has {len(signature)} entries; {model.name} takes one "
                    "argument, with all of its inputs"
                )
        else:
            try:
                specs = input_specs(model)
            except LookupError as error:
                if has_own and model.built:
                    return None
                raise UserError(str(error)) from None
        if not has_own:
            return specs
        try:
            return arguments(call, *specs)
        except TypeError as error:
            if signature:
                raise UserError(f"input_signature: {error}; call takes {call}") from None
            return None


def trace(model, specs: tuple) -> tuple:
    """(the inference, masks or None), and the seconds that tracing takes.

    Raises:
        OpenSizesError: Keras can trace it only with known sizes.
    """
    try:
        if has_open_sizes(specs) and _counts_steps(model):
            raise ValueError("TimeDistributed takes the batch for its unknown number of steps")
        return time_trace(trace_masks, model, *specs)
    except _CANNOT_TRACE as error:
        if not has_open_sizes(specs):
            raise
        reason = str(error).strip().partition("\n")[0]
        message = (
            f"Keras cannot trace {model.name} with unknown sizes ({describe(*specs)}): give it an "
            f"example, or an input_signature, of known height and width; Keras says: {reason}"
        )
        raise _as_it_is(OpenSizesError(message)) from error


def _counts_steps(model) -> bool:
    """Whether a TimeDistributed of Keras 3 may get a number of steps that the graph does not know.

    It then goes over as many as the batch has samples.
    """
    library = library_of(type(model))
    if library.__name__ != "keras":
        return False
    kind = library.layers.TimeDistributed
    layers = [layer for layer in layers_within(model) if isinstance(layer, kind)]
    # A model whose `call` is Python has no symbolic inputs.
    inputs = [inputs_within_models(layer) for layer in layers]
    return any(not calls or any(x.shape[1] is None for x in calls) for calls in inputs)


class OpenSizesError(UserError):
    """Keras can trace a model only with known sizes."""


def restore(config: dict, stand_in: KerasFunction | None):
    """The result that `Inference.config` describes, as `Keras.restored` makes it."""
    library = importlib.import_module(config["library"])
    read = library.saving.deserialize_keras_object
    model, signature, example = (
        read(config[k]) for k in ("original", "input_signature", "example")
    )
    if example is not None:
        example = tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), example)
    settings = Settings(Options(**config["options"]), signature, example=example)
    return Keras(model, settings, lambda: model).restored(config["name"], stand_in)


class Inference:
    """Makes the Calls of a model's OptimizedFunction."""

    def __init__(self, find: Callable, settings: Settings, bundles):
        """
        Args:
            find: () -> the model where it still is.
        """
        self.settings, self._find, self._bundles = settings, find, bundles
        self._first_settings = settings
        self._calls: list[tuple] = []

    def forget(self) -> None:
        """Makes all Calls anew."""
        self._calls.clear()

    @property
    def original(self):
        """The model.

        Raises:
            NotImplementedError: it is gone.
        """
        model = self._find()
        if model is None:
            raise NotImplementedError(_NOT_KEPT)
        return model

    def values(self) -> list[np.ndarray]:
        """The values of the original's weights that results compute with."""
        weights = self.original.weights
        moment = (self._bundles.moment.get(id(weight.handle)) for weight in weights)
        return [
            weight.numpy() if held is None else np.asarray(held[1])
            for weight, held in zip(weights, moment, strict=True)
        ]

    def config(self) -> dict:
        """The original without weights, and how it was optimised, as JSON takes them.

        Raises:
            NotImplementedError: the original is gone, or there are calibration data.
        """
        settings, original = self._first_settings, self.original
        if settings.calibration is not None:
            raise NotImplementedError(_CALIBRATED)
        library = library_of(type(original))
        example = settings.example
        if example is not None:
            example = tf.nest.map_structure(
                lambda x: tf.TensorSpec(np.shape(x), tf.as_dtype(np.asarray(x).dtype)), example
            )
        serialize = library.saving.serialize_keras_object
        return {
            "library": library.__name__,
            "original": {k: v for k, v in serialize(original).items() if k != "compile_config"},
            "options": dataclasses.asdict(settings.options),
            "input_signature": serialize(settings.input_signature),
            "example": serialize(example),
        }

    def __call__(self, args: tuple, kwargs: dict):
        """The Call for arguments of which tensors are TensorSpecs; of any batch, if it can be.

        Raises:
            LookupError: there is none yet, and the model is gone.
        """
        actual = mapped(_of_value, (tuple(args), kwargs))
        for specs, call in self._calls:
            if _covers(specs, actual):
                return call
        model = self._find()
        if model is None:
            raise _as_it_is(LookupError(_GONE.format(arguments=describe(*actual))))
        any_batch = mapped(of_any_batch, actual)
        try:
            functions, seconds = time_trace(trace_masks, model, *any_batch)
        except _CANNOT_TRACE:  # Some layers want to know the batch.
            return self.convert(actual, model)
        return self._convert(model, any_batch, functions, seconds)

    def convert(self, specs: tuple, model):
        """The Call of just these specs, (args, kwargs)."""
        return self._convert(model, specs, *trace(model, specs))

    def _convert(self, model, specs, functions, seconds: float):
        call, masks = (
            function and convert(function, self.settings, self._bundles, (model,), seconds)
            for function in functions
        )
        if masks is not None:
            call = MaskedCall(call, masks)
        self._calls.append((specs, call))
        return call


def _of_value(value):
    """The type of a variable's value, or of a ragged or sparse tensor; of all else itself."""
    if isinstance(value, tf.Variable):
        return tf.TensorSpec(value.shape, value.dtype)
    is_tensor = isinstance(value, tf.RaggedTensor | tf.SparseTensor | tf.IndexedSlices)
    return tf.type_spec_from_value(value) if is_tensor else value


def _as_it_is(error: Exception) -> Exception:
    """An error to whose one line Keras adds no list of arguments on the way out."""
    error._keras_call_info_injected = True
    return error


def _covers(specs, actual) -> bool:
    """Whether a function of `specs` takes arguments of the TensorSpecs `actual`."""
    try:
        tf.nest.assert_same_structure(specs, actual)
    except (TypeError, ValueError):
        return False
    return all(map(_covers_one, tf.nest.flatten(specs), tf.nest.flatten(actual)))


def _covers_one(spec, actual) -> bool:
    if isinstance(spec, tf.TensorSpec) and isinstance(actual, tf.TensorSpec):
        return spec.dtype == actual.dtype and actual.shape.is_subtype_of(spec.shape)
    if isinstance(spec, tf.TypeSpec):
        return isinstance(actual, tf.TypeSpec) and actual.is_subtype_of(spec)
    return spec is actual or (type(spec) is type(actual) and bool(np.all(spec == actual)))
