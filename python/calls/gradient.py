"""Gradients through an optimised function: they run through the original."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from ..tensorflow_private import context, handle_data_util, ops, record, tape

NOTE = "gradients with respect to inputs run through the original function, at TensorFlow's speed"
_GONE = (
    "the gradient of an optimised function runs through the original, which is gone: keep a "
    "reference to the model or function that was given to tf_blockdnn.optimize"
)
_BY_WEIGHTS = (
    "an optimised function has no gradient by the original's weights, of which it has copies: "
    'train the original, then call tf_blockdnn.optimize again, or once with weights="live"'
)


def with_gradient(run: Callable, original: Callable, weights: Sequence = ()) -> Callable:
    """`run` with the gradient of the original function, which it computes faster.

    Weights of the result are a snapshot, so only inputs have gradients; one by a weight of the
    original raises an error where somebody uses it.

    Args:
        run: flat tensors -> list of tensors.
        original: () -> the original ConcreteFunction, or None where it is gone.
        weights: weak references to the original's trainable variables.

    Returns:
        As `run`, to be called under tapes and in graphs.
    """

    def call(inputs):
        with record.stop_recording():
            outputs = run(list(inputs))
            if not context.executing_eagerly():
                outputs = _in_graph(outputs, inputs, original)
        return _on_tapes(outputs, inputs, original, weights)

    return call


def _in_graph(outputs: list, inputs: list, original: Callable) -> list:
    """The outputs with a gradient that TensorFlow finds in their graph.

    tf.custom_gradient registers one for good, which keeps the graph as long as the process runs.
    """
    count = len(outputs)

    def gradient(op, *upstream):
        return [None] * count + _gradient(original, list(op.inputs)[count:], upstream[:count])

    with ops.get_default_graph()._override_gradient_function({"IdentityN": gradient}):
        results = tf.identity_n(outputs + inputs)[:count]
    for output, result in zip(outputs, results, strict=True):
        handle_data_util.copy_handle_data(output, result)
    return results


def _on_tapes(outputs: list, inputs: list, original: Callable, weights: Sequence) -> list:
    """The outputs, which for tapes come from the inputs and from the original's weights."""
    is_wanted = record.should_record_backprop(inputs)
    tokens = _tokens(weights) if record.could_possibly_record() else []

    def gradient(*upstream):
        given = _gradient(original, inputs, upstream) if is_wanted else [None] * len(inputs)
        return [*given, *tokens]

    record.record_operation("BlockdnnFunction", outputs, inputs + tokens, gradient)
    return outputs


def _tokens(weights: Sequence) -> list:
    """A zero for each weight, which for tapes comes from that.

    Gradients of several calls are added up here, so that one error comes where it is read, and
    none where a tape adds up what nobody reads.
    """
    variables = [variable for weight in weights if (variable := weight()) is not None]
    for variable in variables:
        tape.variable_accessed(variable)
        if not hasattr(variable, "_blockdnn_token"):
            with tf.init_scope():
                variable._blockdnn_token = tf.zeros([])
    tokens = [variable._blockdnn_token for variable in variables]
    handles = [variable.handle for variable in variables]
    refused = [_RefusedGradient() for _ in variables]
    record.record_operation("BlockdnnWeights", tokens, handles, lambda *upstream: refused)
    return tokens


class _RefusedGradient(tf.IndexedSlices):
    """What a tape has as the gradient by a weight: an error for whoever reads it.

    A tape asks for the gradients by everything that it watches, wanted or not, so that the error
    may not come before.
    """

    def __init__(self):
        pass

    def _refuse(self, *args, **kwargs):
        raise NotImplementedError(_BY_WEIGHTS)

    values = indices = dense_shape = shape = dtype = property(_refuse)
    __array__ = __neg__ = __repr__ = __str__ = _refuse


def _gradient(original: Callable, inputs: Sequence, upstream: Sequence) -> list:
    function = original()
    if function is None:
        raise LookupError(_GONE)
    floating = [x for x in inputs if x.dtype.is_floating]
    with tf.GradientTape() as inner:
        inner.watch(floating)
        outputs = function._call_flat(list(inputs), function.captured_inputs)
        flat = [y for y in tf.nest.flatten(outputs, expand_composites=True) if y is not None]
    given = [(y, dy) for y, dy in zip(flat, upstream, strict=True) if y.dtype.is_floating]
    targets = [y for y, _ in given]
    found = iter(inner.gradient(targets, floating, [dy for _, dy in given]))
    return [next(found) if x.dtype.is_floating else None for x in inputs]
