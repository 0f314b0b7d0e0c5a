"""Gradients through an optimised function: they run through the original."""

from collections.abc import Callable, Sequence

import tensorflow as tf

from ..tensorflow_private import record, save_context

NOTE = "gradients with respect to inputs run through the original function, at TensorFlow's speed"
_GONE = (
    "the gradient of an optimised function runs through the original, which is gone: keep a "
    "reference to the model or function that was given to tf_blockdnn.optimize"
)


def with_gradient(run: Callable, original: Callable) -> Callable:
    """`run` with the gradient of the original function, which it computes faster.

    Weights of the result are a snapshot, so only inputs have gradients.

    Args:
        run: flat tensors -> list of tensors.
        original: () -> the original ConcreteFunction, or None where it is gone.

    Returns:
        As `run`, to be called under tapes and in graphs.
    """

    @tf.custom_gradient
    def call(*inputs):
        with record.stop_recording():
            outputs = run(list(inputs))

        def gradient(*upstream):
            return _gradient(original, inputs, upstream)

        return outputs, gradient

    return lambda inputs: list(call(*inputs))


def _gradient(original: Callable, inputs: Sequence, upstream: Sequence) -> list:
    if save_context.in_save_context():  # It would need the original's graph and its weights.
        return _refuse(inputs)
    function = original()
    if function is None:
        raise LookupError(_GONE)
    floating = [x for x in inputs if x.dtype.is_floating]
    with tf.GradientTape() as tape:
        tape.watch(floating)
        outputs = function._call_flat(list(inputs), function.captured_inputs)
        flat = [y for y in tf.nest.flatten(outputs, expand_composites=True) if y is not None]
    given = [(y, dy) for y, dy in zip(flat, upstream, strict=True) if y.dtype.is_floating]
    targets = [y for y, _ in given]
    found = iter(tape.gradient(targets, floating, [dy for _, dy in given]))
    return [next(found) if x.dtype.is_floating else None for x in inputs]


def _refuse(inputs: Sequence) -> list:
    """The gradient in a SavedModel: whoever asks for it is told that it is not there."""
    refusal = tf.debugging.Assert(False, ["a SavedModel of an optimised function has no gradient"])
    with tf.control_dependencies([refusal]):
        return [tf.zeros_like(x) if x.dtype.is_floating else None for x in inputs]
