"""Every name of Keras's that is not public and that we use, in one place; Keras 3 and tf_keras.

A new Keras may move or drop any of them: whoever takes this package there starts here. Nearly all
are attributes of objects, which no import can look for: what is gone is named in one line where it
is first needed. What attention overrides stands in layers/attention.py, since it is a method.
"""

import sys

MASK = "_keras_mask"  # of a tensor, as Keras's layers set it
_LACKS = "Keras {} is not one that tf_blockdnn knows: {} has no {}"


def _of(owner, name: str):
    """The attribute; raises ImportError where Keras has no such name any more."""
    try:
        return getattr(owner, name)
    except AttributeError:
        package = type(owner).__module__.partition(".")[0]
        version = getattr(sys.modules.get(package), "__version__", "")
        raise ImportError(_LACKS.format(version, type(owner).__name__, name)) from None


def graph_of(model):
    """The functional model in a sequential one; any other model itself."""
    return getattr(model, "_functional", None) or model


def symbolic(model):
    """The nested symbolic inputs and outputs of a functional or sequential model, or None."""
    functional = graph_of(model)
    for inputs, outputs in (
        ("_inputs_struct", "_outputs_struct"),  # Keras 3
        ("_nested_inputs", "_nested_outputs"),
    ):
        if getattr(functional, inputs, None) is not None:
            return getattr(functional, inputs), _of(functional, outputs)
    return None


def has_nodes(model) -> bool:
    """Whether a model of Keras 3 consists of nodes."""
    return hasattr(model, "_nodes_by_depth")


def nodes_of(model) -> list:
    """The nodes, from those of the inputs on."""
    by_depth = _of(model, "_nodes_by_depth")
    return [node for depth in sorted(by_depth, reverse=True) for node in by_depth[depth]]


def layer_of(x):
    """The layer or operation whose result a symbolic tensor is."""
    history = _of(x, "_keras_history")
    return getattr(history, "operation", None) or _of(history, "layer")


def inputs_within_models(layer) -> list:
    """The first input of each of the layer's calls in a functional model; of Keras 3."""
    return [node.input_tensors[0] for node in _of(layer, "_inbound_nodes")]


def count_readers(layer) -> int:
    """The calls of layers in models that read this layer's result."""
    return len(_of(layer, "_outbound_nodes"))


def built_shapes(layer) -> dict:
    """Those that it was built for, by the names of arguments; of Keras 3."""
    return getattr(layer, "_build_shapes_dict", None) or {}


def built_shape(model):
    """The same of Keras 2: one shape, or a dict or a list of them, or None."""
    return getattr(model, "_build_input_shape", None)


def set_save_spec(model, *spec) -> None:
    """Tells a model of Keras 2 which inputs a SavedModel of it takes."""
    _of(model, "_set_save_spec")(*spec)


def compile_arguments(model) -> dict | None:
    """The arguments of `compile`."""
    config = getattr(model, "_compile_config", None)
    return config and dict(_of(config, "config"))


def casts_inputs(model) -> bool:
    return getattr(model, "autocast", getattr(model, "_autocast", True))


def layers_within(model) -> list:
    """All layers of it, and theirs."""
    return list(_of(model, "_flatten_layers")())


def added_losses(layer) -> list:
    """Those that the layer added in the last call."""
    return [*_of(layer, "_losses"), *getattr(layer, "_eager_losses", ())]


def lambda_shape(layer):
    """The argument output_shape of a Lambda layer."""
    return _of(layer, "_output_shape")


def owned_layers(layer) -> list:
    """The list of the layers that it holds, in the order of their weights, to be read and set."""
    return _of(layer, "_layers")


def tracker(layer):
    """What keeps account of them."""
    return _of(layer, "_tracker")


def names_of_results():
    """Keras 2's function from nested results to their names in a SavedModel."""
    from tf_keras.src.engine.compile_utils import create_pseudo_output_names

    return create_pseudo_output_names
