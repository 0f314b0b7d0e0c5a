"""The inputs of a Keras model, and the function that infers with it; Keras 3 and Keras 2."""

import inspect
import sys
from collections.abc import Callable

import tensorflow as tf

from ..keras_private import MASK, built_shape, built_shapes, names_of_results, symbolic
from .inputs import like

_LIBRARIES = ("keras", "tf_keras")


def is_model(target) -> bool:
    """Whether it is a model of either Keras. Looks without importing: whoever has a model has."""
    loaded = (sys.modules.get(name) for name in _LIBRARIES)
    return any(isinstance(target, library.Model) for library in loaded if library is not None)


def plain(structure):
    """A nest without the classes that Keras wraps around lists and dicts."""
    if isinstance(structure, dict):
        return {name: plain(inner) for name, inner in structure.items()}
    if isinstance(structure, (list, tuple)) and not hasattr(structure, "_fields"):
        kind = list if isinstance(structure, list) else tuple
        return kind(map(plain, structure))
    return structure


def has_own_call(model) -> bool:
    """Whether the user's class decides what becomes of arguments."""
    if symbolic(model) is None:
        return True
    owners = (
        next(base for base in type(model).__mro__ if name in vars(base))
        for name in ("call", "__call__")
    )
    return any(map(is_own, owners))


def arguments(signature: inspect.Signature, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """Arguments of `call` in one form for all that mean the same: names, and no defaults.

    Args:
        signature: that of `call`, without `self`; `training` is left out.

    Raises:
        TypeError: not the arguments of `call`.
    """
    bound = signature.bind(*args, **kwargs)
    bound.arguments.pop("training", None)
    named = {}
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            return bound.args, bound.kwargs
        if parameter.kind is parameter.VAR_KEYWORD:
            named.update((key, argument) for key, argument in value.items() if key != "training")
        elif value is not parameter.default and not (parameter.default is None and is_empty(value)):
            named[name] = value
    places = (p for p in signature.parameters.values() if p.kind is not p.KEYWORD_ONLY)
    first = next((p.name for p in places), None)
    return ((named.pop(first),) if first in named else ()), named


def is_empty(nest) -> bool:
    """Whether there is nothing but None in a nest, such as one of masks; [] is something."""
    leaves = tf.nest.flatten(nest)
    return bool(leaves) and all(leaf is None for leaf in leaves)


def signature_of_call(model) -> inspect.Signature:
    """The signature of the model's `call`, without `self`."""
    signature = inspect.signature(type(model).call)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def is_own(kind: type) -> bool:
    """Whether a class is neither Keras's nor what `optimize` makes, but the user's."""
    package = kind.__module__.partition(".")[0]
    return package not in (*_LIBRARIES, __name__.partition(".")[0])


def library_of(kind: type):
    """The module of Keras 3 or of Keras 2 that a model's class is derived from."""
    packages = (base.__module__.partition(".")[0] for base in kind.__mro__)
    return next(sys.modules[package] for package in packages if package in _LIBRARIES)


def input_specs(model) -> tuple[tuple, dict]:
    """TensorSpecs, or structures of them, in the place of the model's arguments.

    Raises:
        LookupError: nobody knows the shapes.
    """
    if specs := _symbolic(model) or _keras_2(model) or _built(model):
        args, kwargs = specs
        return tuple(map(_without_list_of_one, args)), kwargs
    raise LookupError(
        f"the shapes of {model.name}'s inputs are not known: call the model or build it first, "
        "or give input_signature=[tf.TensorSpec(...)]"
    )


def knows_types(model) -> bool:
    """Whether the dtypes of `input_specs` are Keras's, and not just the shapes."""
    return symbolic(model) is not None or bool(_keras_2(model))


def name_results(model) -> Callable | None:
    """Nested results -> what Keras 2 calls them in a SavedModel; None: what TensorFlow does.

    They have the names of their layers, or tell their places where there are none.
    """
    if not hasattr(model, "save_spec"):
        return None
    names = getattr(model, "output_names", None)
    if names is not None:
        names = list(names)
        return lambda results: names
    return names_of_results()


def with_names(concrete, names: Callable | None):
    """The function as a signature has it, whose results are named so."""
    if names is None:
        return concrete

    @tf.function(autograph=False)
    def named(*args, **kwargs):
        results = concrete(*args, **kwargs)
        return dict(zip(names(results), tf.nest.flatten(results), strict=True))

    args, kwargs = concrete.structured_input_signature
    return named.get_concrete_function(*args, **kwargs)


def trace_masks(model, args, kwargs):
    """The inference, and where results carry masks these, {place: mask}; otherwise None.

    Keras keeps masks as attributes of tensors, which end with the trace: they have a function of
    their own.
    """
    masks = {}

    def results(y):
        masks.update(_masks_of(y))
        return y

    def trace(take):
        @tf.function(autograph=False)
        def inference(*args, **named):
            return take(model(*args, training=False, **named))

        return inference.get_concrete_function(*args, **kwargs)

    return trace(results), trace(_masks_of) if masks else None


def _masks_of(results) -> dict:
    masks = [getattr(result, MASK, None) for result in tf.nest.flatten(results)]
    return {str(place): mask for place, mask in enumerate(masks) if mask is not None}


def _without_list_of_one(spec):
    """A Keras model with a list of one input takes that by itself as well."""
    is_list = isinstance(spec, (list, tuple)) and len(spec) == 1
    return spec[0] if is_list and isinstance(spec[0], tf.TensorSpec) else spec


def _symbolic(model):
    """Functional and sequential models."""
    inputs = symbolic(model)
    if inputs is None:
        return None
    return [tf.nest.map_structure(_spec_of, plain(inputs[0]))], {}


def _spec_of(x):
    """The TypeSpec of a symbolic input."""
    if getattr(x, "sparse", False):
        return tf.SparseTensorSpec(x.shape, x.dtype)
    spec = getattr(x, "type_spec", None)  # Keras 2
    if spec is not None and not isinstance(spec, tf.TensorSpec):
        return spec
    return tf.TensorSpec(x.shape, x.dtype, name=x.name.split(":")[0])


def _keras_2(model):
    """What Keras 2 writes into a SavedModel: of symbolic inputs, or of the first call."""
    if not hasattr(model, "save_spec"):
        return None
    saved = model.save_spec(dynamic_batch=True)
    return saved and (list(saved[0]), saved[1])


def _built(model):
    """Subclassed models, from the shapes they were built for; any batch."""
    if shapes := built_shapes(model):
        shapes = [shape for shape in shapes.values() if shape is not None]
        return [_specs(shape, model.input_dtype) for shape in shapes], {}
    shape = built_shape(model)
    return ([_specs(shape, model.compute_dtype)], {}) if shape else None


def _specs(shape, dtype):
    if isinstance(shape, dict):
        return {name: _specs(inner, dtype) for name, inner in shape.items()}
    if all(size is None or isinstance(size, int) for size in shape):
        return tf.TensorSpec((None, *shape[1:]) if shape else (), dtype)
    return like(shape, [_specs(inner, dtype) for inner in shape])
