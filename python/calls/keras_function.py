"""The inference of a Keras model, rewritten once for each kind of call."""

import time
from collections.abc import Callable, Mapping

import numpy as np
import tensorflow as tf

from ..errors import UserError
from ..native import without_collection
from ..rewriter import Bundles
from ..tensorflow_private import unconverted
from . import keras_input

_GONE = (
    "the optimised model was not converted for such arguments ({given}), and the original, from "
    "which it would be, is gone: keep a reference to the original, or give "
    "tf_blockdnn.optimize(..., input_signature=[...])"
)

# What Keras and TensorFlow raise where a layer wants to know a size in Python.
CANNOT_TRACE = (TypeError, ValueError, AttributeError, tf.errors.OperatorNotAllowedInGraphError)


class Inference:
    """Makes the functions of a PolymorphicFunction from a Keras model."""

    def __init__(self, find: Callable, rewrite: Callable):
        """
        Args:
            find: () -> the model where it still is.
            rewrite: (ConcreteFunction, bundles, roots) -> OptimizedFunction.
        """
        self._find, self.rewrite, self._bundles = find, rewrite, Bundles()
        self._made: list[tuple] = []

    def __call__(self, args: tuple, kwargs: dict):
        """The function for arguments of which tensors are TensorSpecs; of any batch, if it can be.

        Raises:
            LookupError: there is none yet, and the model is gone.
        """
        given = (tuple(args), kwargs)
        for specs, function in self._made:
            if _covers(specs, given):
                return function
        model = self._find()
        if model is None:
            raise _as_it_is(LookupError(_GONE.format(given=_text(given))))
        any_batch = tf.nest.map_structure(of_any_batch, given)
        try:
            traced = timed_trace(keras_input.trace_masks, model, *any_batch)
            return self._convert(model, any_batch, *traced)
        except CANNOT_TRACE:  # Some layers want to know the batch.
            return self.convert(given, model)

    def convert(self, specs: tuple, model):
        """The function for just these specs, (args, kwargs)."""
        try:
            traced = timed_trace(keras_input.trace_masks, model, *specs)
        except CANNOT_TRACE as error:
            if not has_open_sizes(specs):
                raise
            reason = str(error).strip().partition("\n")[0]
            message = (
                f"Keras cannot trace {model.name} with unknown sizes ({_text(specs)}): give it "
                f"tensors, or an input_signature, of known height and width; Keras says: {reason}"
            )
            raise _as_it_is(ValueError(message)) from error
        return self._convert(model, specs, *traced)

    def _convert(self, model, specs, traced, seconds: float):
        def converted(place):
            return self.rewrite(traced[place], self._bundles, (model,))

        function = converted(0)
        function.report.tracing_seconds = seconds
        if traced[1] is not None:
            function = MaskedFunction(function, converted(1))
        self._made.append((specs, function))
        return function


@unconverted
class MaskedFunction:
    """An OptimizedFunction whose results carry masks for the layers and losses behind it."""

    def __init__(self, function, masks):
        """
        Args:
            masks: takes the same arguments, and gives place of the result -> mask.
        """
        self._function, self._masks = function, masks

    def __getattr__(self, name):
        return getattr(self.__dict__["_function"], name)

    @property
    def trackables(self) -> list:
        held = {id(t): t for t in self._function.trackables + self._masks.trackables}
        return list(held.values())

    def follow(self) -> tuple:
        return self._function.follow(), self._masks.follow()

    def __call__(self, *args, **kwargs):
        results = self._function(*args, **kwargs)
        flat = tf.nest.flatten(results)
        for place, mask in self._masks(*args, **kwargs).items():
            flat[int(place)]._keras_mask = mask
        return results


def timed_trace(trace: Callable, *args, **kwargs) -> tuple:
    """What the function traces, and the seconds that it takes."""
    start = time.perf_counter()
    with without_collection():
        traced = trace(*args, **kwargs)
    return traced, time.perf_counter() - start


def _as_it_is(error: Exception) -> Exception:
    """An error to whose one line Keras adds no list of arguments on its way out."""
    error._keras_call_info_injected = True
    return error


def has_open_sizes(specs) -> bool:
    """Whether a size other than the batch is unknown."""
    shapes = [s.shape for s in tf.nest.flatten(specs) if isinstance(s, tf.TensorSpec)]
    return any(shape.rank is None or None in shape.as_list()[1:] for shape in shapes)


def sized(specs, example):
    """The specs with the sizes of the tensors or arrays in `example`, one for each.

    Raises:
        ValueError: another number of them, other names, or shapes that the specs do not allow.
    """
    names = {spec.name for spec in tf.nest.flatten(specs) if spec.name}
    if isinstance(example, Mapping) and names and set(example) != names:
        raise UserError(f"example has {sorted(example)}, the arguments are {sorted(names)}")
    wanted, given = tf.nest.flatten(specs), tf.nest.flatten(example)
    if len(given) != len(wanted):
        raise UserError(
            f"example must hold {len(wanted)} tensors, one for each argument, not {len(given)}"
        )
    found = []
    for spec, value in zip(wanted, given, strict=True):
        shape = tf.TensorShape(np.shape(value))
        if not spec.shape.is_compatible_with(shape):
            raise UserError(f"example: {spec.name or 'an argument'} is {spec.shape}, not {shape}")
        found.append(tf.TensorSpec(shape, spec.dtype, spec.name))
    return tf.nest.pack_sequence_as(specs, found)


def of_any_batch(spec):
    """The spec with an unknown first size."""
    if isinstance(spec, tf.TensorSpec) and spec.shape.rank:
        return tf.TensorSpec([None, *spec.shape[1:]], spec.dtype, spec.name)
    return spec


def _covers(specs, given) -> bool:
    """Whether a function of `specs` takes arguments of the TensorSpecs `given`."""
    try:
        tf.nest.assert_same_structure(specs, given)
    except (TypeError, ValueError):
        return False
    return all(map(_covers_one, tf.nest.flatten(specs), tf.nest.flatten(given)))


def _covers_one(spec, given) -> bool:
    if isinstance(spec, tf.TensorSpec) and isinstance(given, tf.TensorSpec):
        return spec.is_compatible_with(given) and _is_known(given.shape, spec.shape)
    return type(spec) is type(given) and spec == given


def _is_known(shape, wanted) -> bool:
    """Whether a shape has every size that is wanted."""
    if wanted.rank is None or shape.rank is None:
        return wanted.rank is None
    return all(w is None or s is not None for s, w in zip(shape, wanted, strict=True))


def _text(given) -> str:
    """Specs in one line: "float32 (8, 16), training=True"."""
    leaves = tf.nest.flatten(given)
    return ", ".join(
        f"{x.dtype.name} {x.shape}" if isinstance(x, tf.TensorSpec) else repr(x) for x in leaves
    )
