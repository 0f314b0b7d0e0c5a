"""The table of gradients, and the chain rule through several ops, as those of a region are."""

from collections.abc import Callable

import tensorflow as tf

from ..graph import flatten, has_gradients
from ..ops.arguments import invalid
from ..ops.call import Called
from ..tensorflow_private import context

# What no gradient takes but those of the ops that move any element.
_LOW_PRECISION = (tf.uint8, tf.int8, tf.bfloat16, tf.float16)
GRADIENTS: dict[str, Callable] = {}  # op -> the gradient, as TensorFlow calls one


def gradient_of(op: str, any_type: bool = False, sources: tuple = ()) -> Callable:
    """Makes a function of (what was called, the gradients of its results) that of an op of ours.

    Args:
        any_type: whether it takes types other than float32.
        sources: types other than float32 that the first input may have.
    """

    def register(function: Callable) -> Callable:
        def gradient(op, *upstream):
            called = Called(op)
            if not any_type:
                _refuse_low_precision(op, called, sources)
            return function(called, *upstream)

        GRADIENTS[f"Blockdnn{op}"] = gradient
        return function

    return register


def _refuse_low_precision(op, called: Called, sources: tuple) -> None:
    """Raises InvalidArgument if the op reads or writes what is not float32."""
    first, *others = op.inputs
    allowed = first is not None and first.dtype in sources
    for tensor in (*([] if allowed else [first]), *others, called.dst):
        if tensor is not None and tensor.dtype in _LOW_PRECISION:
            raise invalid(
                f"{op.type} of {tensor.dtype.name} has no gradient; train it in float32, or put "
                "tf.stop_gradient after it"
            )


def vjp(function, inputs, dy) -> list:
    """The gradients of `function(*inputs)` for `dy`, zeros where it does not depend on an input.

    Each input gets the share of that argument, also where one tensor is passed twice. In a graph
    no tape is asked: TensorFlow stops all of them while it makes a function's forward mode.
    """
    zero = tf.UnconnectedGradients.ZERO
    if not tf.executing_eagerly():
        copies = [tf.identity(x) for x in inputs]
        return tf.gradients(function(*copies), copies, dy, unconnected_gradients=zero)
    with tf.GradientTape() as tape:
        copies = [tf.identity(x) for x in inputs]
        tape.watch(copies)
        y = function(*copies)
    return tape.gradient(y, copies, output_gradients=dy, unconnected_gradients=zero)


def _region(op, *upstream):
    """The gradient of a region, as optimised SavedModels have: that of the ops in it.

    They are computed again, one by one, in the graph in which this stands.
    """
    body = flatten(context.context().get_function_def(op.get_attr("f").name))
    arguments = [node for node in body.graph_def.node if node.name in body.inputs]
    for node in arguments:
        body.graph_def.node.remove(node)
    inputs = [tf.identity(x) for x in op.inputs]
    sources = [x for x in inputs if has_gradients(x.dtype)]
    results = tf.graph_util.import_graph_def(
        body.graph_def,
        input_map={f"{name}:0": x for name, x in zip(body.inputs, inputs, strict=True)},
        return_elements=[f"{ref.node}:{ref.port}" for ref in body.fetches],
        name="",
    )
    pairs = [(y, dy) for y, dy in zip(results, upstream, strict=True) if has_gradients(y.dtype)]
    grads = iter(tf.gradients([y for y, _ in pairs], sources, [dy for _, dy in pairs]))
    return [next(grads) if has_gradients(x.dtype) else None for x in inputs]


GRADIENTS["BlockdnnRegion"] = _region
