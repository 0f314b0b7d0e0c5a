"""The inputs of a Keras model, and the function that infers with it; Keras 3 and Keras 2."""

import sys

import tensorflow as tf

_LIBRARIES = ("keras", "tf_keras")


def is_model(target) -> bool:
    """Whether it is a model of either Keras. Looks without importing: whoever has a model has."""
    loaded = (sys.modules.get(name) for name in _LIBRARIES)
    return any(isinstance(target, library.Model) for library in loaded if library is not None)


def is_symbolic(model) -> bool:
    """Whether Keras knows its inputs as symbolic tensors, to whose dtypes it casts every value."""
    return _symbolic(model) is not None or bool(getattr(model, "_is_graph_network", False))


def input_specs(model) -> list:
    """One TensorSpec, or structure of them, for each positional input of the model.

    Raises:
        ValueError: the model was neither called nor built, so that nobody knows its shapes.
    """
    for find in (_optimized, _symbolic, _keras_2, _built):
        if specs := find(model):
            return [_without_list_of_one(spec) for spec in specs]
    raise ValueError(
        f"the shapes of {model.name}'s inputs are not known: call the model or build it first, "
        "or give input_signature=[tf.TensorSpec(...)]"
    )


def trace(model, specs):
    """The ConcreteFunction of the model's inference."""

    @tf.function(autograph=False)
    def inference(*inputs):
        return model(*inputs, training=False)

    return inference.get_concrete_function(*specs)


def _without_list_of_one(spec):
    """A Keras model with a list of one input takes that by itself as well."""
    is_list = isinstance(spec, (list, tuple)) and len(spec) == 1
    return spec[0] if is_list and isinstance(spec[0], tf.TensorSpec) else spec


def _optimized(model):
    """What `optimize` made of a model: the signature that it was traced with."""
    return vars(model).get("_structure") if hasattr(model, "_fast") else None


def _symbolic(model):
    """Functional and Sequential models of Keras 3."""
    functional = getattr(model, "_functional", None) or model
    structure = getattr(functional, "_inputs_struct", None)
    if structure is None:
        return None

    def spec(x):
        return tf.TensorSpec(x.shape, x.dtype, name=x.name.split(":")[0])

    return [tf.nest.map_structure(spec, structure)]


def _keras_2(model):
    """What Keras 2 writes into a SavedModel: of its symbolic inputs, or of the first call."""
    if not hasattr(model, "save_spec"):
        return None
    found = model.save_spec(dynamic_batch=True)
    return list(found[0]) if found else None


def _built(model):
    """Subclassed models, from the shapes they were built for; any batch."""
    shapes = getattr(model, "_build_shapes_dict", None)
    if shapes:
        return [_specs(shape, model.input_dtype) for shape in shapes.values()]
    shape = getattr(model, "_build_input_shape", None)  # Keras 2; also of a dict or list of inputs
    return [_specs(shape, model.compute_dtype)] if shape else None


def _specs(shape, dtype):
    if isinstance(shape, dict):
        return {name: _specs(inner, dtype) for name, inner in shape.items()}
    if all(size is None or isinstance(size, int) for size in shape):
        return tf.TensorSpec((None, *shape[1:]), dtype)
    return type(shape)(_specs(inner, dtype) for inner in shape)
