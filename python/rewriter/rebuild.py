"""Makes a ConcreteFunction of an edited graph, with the original's signature."""

import weakref

import tensorflow as tf

from ..graph import Module, describe_variables, has_gradients, restore_library
from ..graph.families import LOOPS
from ..tensorflow_private import (
    array_ops,
    call_signature,
    context,
    functions_of,
    handle_data_util,
    marked,
    name_inputs_as,
    ops,
    results_of,
    type_of,
    variable_behind,
)
from .capture import import_flat

# The graph brings ordering with it; TensorFlow's would tie loops of version 1 in knots.
_ATTRIBUTES = {"_disable_acd": True}


def rebuild(module: Module, captures: dict, no_gradient: str = ""):
    """A ConcreteFunction with the original's signature that computes the view's fetches.

    Args:
        captures: placeholder name -> outside tensor, for all placeholders but the inputs.
        no_gradient: why the function has none; empty where it has.
    """
    original, view = module.function, module.main.view
    graph_def, names = view.to_graph_def(), module.main.inputs
    restore_library(graph_def, module.functions)
    handles = dict(zip(names, original.inputs, strict=False)) | captures
    variables = {name: held for name, t in handles.items() if (held := variable_behind(t))}
    describe_variables(graph_def, variables, context.context().has_function)
    fetches = [f"{ref.node}:{ref.port}" for ref in view.fetches]
    (args, kwargs), function_type = _arguments(original, len(names))

    def body(*args, **kwargs):
        flat = args
        if function_type is not None:
            flat = function_type.unpack_inputs(function_type.bind(*args, **kwargs))
        for old, new in zip(original.inputs, flat, strict=False):
            handle_data_util.copy_handle_data(old, new)
        inputs = dict(zip(names, flat, strict=True))
        graph = ops.get_default_graph()
        outputs, effects = import_flat(graph, graph_def, inputs, captures, fetches, view.targets)
        graph.control_outputs.extend(effects)
        # Loops give handles as they take them: gradients of gradients ask for their kind.
        for op in (op for op in graph.get_operations() if op.type in LOOPS):
            for old, new in zip(op.inputs, op.outputs, strict=True):
                if old.dtype == tf.resource:
                    handle_data_util.copy_handle_data(old, new)
        for output, old in zip(outputs, results_of(original), strict=True):
            output.set_shape(old.shape)
        if no_gradient:
            outputs = [
                array_ops.prevent_gradient(y, no_gradient) if has_gradients(y.dtype) else y
                for y in outputs
            ]
        return _pack(original, outputs)

    body.__name__ = "optimized"
    if function_type is not None:
        body.__signature__ = call_signature(function_type)
    rewritten = traced(body, graph_def.library.function, *args, **kwargs)
    name_inputs_as(rewritten, original)
    return rewritten


def traced(body, functions, *args, **kwargs):
    """A ConcreteFunction of `body`, which imports a graph that calls `functions`.

    Eager calls know these as long as it lives. One that they know already is held once more:
    whoever brought it would take it along.
    """
    function = tf.function(body, autograph=False, experimental_attributes=_ATTRIBUTES)
    registered = []
    try:
        for definition in functions:
            context.context().add_function_def(definition)
            registered.append(definition.signature.name)
        concrete = function.get_concrete_function(*args, **kwargs)
    except BaseException:
        for name in registered:
            context.context().remove_function(name)
        raise
    # A graph that calls this one shares the Python objects of its library, and so keeps them.
    library = functions_of(concrete.graph)
    for name in registered:
        held = library.get(name, concrete.graph)
        weakref.finalize(held, context.context().remove_function, name).atexit = False
    return concrete


def _arguments(original, count: int):
    """The structured signature and the type of it; pruned graphs of version 1 only have tensors.

    Of variables, which TensorFlow does not hand to a function that is traced anew, so are handles.
    """
    signature = original.structured_input_signature
    has_handles = any(tensor.dtype == tf.resource for tensor in original.inputs[:count])
    if signature is not None and not has_handles:
        (args, kwargs), function_type = signature, type_of(original)
        bound = function_type.bind(*args, **kwargs)
        for name, parameter in function_type.parameters.items():
            if (held := marked(parameter.type_constraint)) is not None:
                bound.arguments[name] = held
        return (bound.args, bound.kwargs), function_type
    specs = [tf.TensorSpec(t.shape, t.dtype, name=t.op.name) for t in original.inputs[:count]]
    return (specs, {}), None


def _pack(original, outputs):
    """The flat outputs in the original's structure; None stays None."""
    remaining = iter(outputs)
    structure = original.graph.structured_outputs
    leaves = tf.nest.flatten(structure, expand_composites=True)
    flat = [None if leaf is None else next(remaining) for leaf in leaves]
    return tf.nest.pack_sequence_as(structure, flat, expand_composites=True)
