"""Gradients through an optimised function: TensorFlow's, of the function that ran.

Its weights are a snapshot, so it has none by the original's. Whoever takes one gets an error, where
TensorFlow would say None and an optimizer would leave it out.
"""

import concurrent.futures
import sys
import weakref
from collections.abc import Callable, Sequence

import tensorflow as tf

from ..tensorflow_private import record, tape

_BY_WEIGHTS = (
    "an optimised function has no gradient by the original's weights, of which it has copies: "
    'train the original, then call tf_blockdnn.optimize again, or once with weights="live"; where '
    "its results are to be taken as they are, put tf.stop_gradient around them"
)


def why_none(concrete) -> str:
    """Why a rewritten function has no gradient; empty where it has."""
    ops = (output.op for output in concrete.outputs)
    reasons = (op.get_attr("message").decode() for op in ops if op.type == "PreventGradient")
    return next(reasons, "")


def with_refusals(run: Callable, inputs: list, weights: Sequence, why: str) -> list:
    """What `run` makes of the inputs, and on tapes errors in the place of gradients it has not.

    Args:
        run: inputs -> list of tensors.
        weights: weak references to the original's trainable variables.
        why: why there is no gradient by the inputs either; empty where there is.
    """
    if not record.could_possibly_record():
        return run(inputs)
    if why:  # TensorFlow would look for the gradient before it runs, wanted or not.

        def refuse(*upstream):
            raise NotImplementedError(why)

        with record.stop_recording():
            results = run(inputs)
        record.record_operation("BlockdnnFunction", results, inputs, refuse)
    else:
        results = run(inputs)
    places = [
        i for i, result in enumerate(results) if result.dtype.is_floating or result.dtype.is_complex
    ]
    tokens = _tokens(weights) if places else []
    if tokens:
        copied = [results[i] for i in places]
        with record.stop_recording():
            copies = list(map(tf.identity, copied))
        record.record_operation(
            "BlockdnnFunction", copies, copied + tokens, lambda *upstream: [*upstream, *tokens]
        )
        for place, copy in zip(places, copies, strict=True):
            results[place] = copy
    return results


def run_unwatched(run: Callable, *args):
    """What `run` gives, in another thread where the variables that this one reads are gathered.

    `tf.custom_gradient` does so, and `tf.recompute_grad` then takes the gradient by them: those of
    an original that is traced are none of its result's.
    """
    frame = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") != tf.custom_gradient.__module__:
        frame = frame.f_back
    if frame is None:
        return run(*args)
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        return thread.submit(run, *args).result()


# The address of a variable -> a zero which, for tapes, comes from that variable.
_TOKENS: dict[int, tf.Tensor] = {}


def _tokens(weights: Sequence) -> list:
    """The token of each weight, recorded on the tapes that watch it.

    Gradients of several calls are added up at the token, which is the variable's for good, so that
    one error comes where it is read, and none where a tape adds up what nobody reads.
    """
    variables = [variable for weight in weights if (variable := weight()) is not None]
    for variable in variables:
        tape.variable_accessed(variable)
        if id(variable) not in _TOKENS:
            with tf.init_scope():
                _TOKENS[id(variable)] = tf.zeros([])
            weakref.finalize(variable, _TOKENS.pop, id(variable)).atexit = False
    handles = [variable.handle for variable in variables]
    if not record.should_record_backprop(handles):
        return []
    tokens = [_TOKENS[id(variable)] for variable in variables]
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
