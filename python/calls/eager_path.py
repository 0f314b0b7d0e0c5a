"""Calls of a rewritten function without TensorFlow's eager dispatch."""

import ctypes
import weakref
from collections.abc import Callable

import tensorflow as tf

from .. import tensorflow_private
from ..native import CEager, c_library
from ..tensorflow_private import EagerTensor, context
from ..tensorflow_private import has_no_tape as _has_no_tape


def direct_call(concrete, pack: Callable) -> Callable:
    """The function on eager tensors, run by this library from the first kernel to the last.

    TensorFlow turns each eager op into a function, looks that up and takes it to an
    executor: 0.1 to 0.2 ms between the calls of a network, whose tensors drive all this
    code out of the caches, and time enough for a thread pool to fall asleep. For the same
    reason results are made and packed before the first kernel, while what that touches is
    still warm from the call before; the kernels fill them.

    Args:
        concrete: a ConcreteFunction that has an `inline_call`, kept alive by the caller.
        pack: list of eager tensors -> what a call returns.

    Returns:
        Eager tensors -> what `pack` returned, or NotImplemented where TensorFlow has to
        dispatch: on arguments that are no eager tensors, or of shapes and dtypes that no call
        through it has seen yet, inside functions, under tapes, op callbacks and asynchronous
        executors, on custom devices, and for whatever fails, which fails again there with
        TensorFlow's message.
    """
    missing, addresses, wrap = tensorflow_private.eager_functions()
    if missing:
        return lambda tensors: NotImplemented
    eager = CEager(context=tensorflow_private.eager_context_address(), **addresses)
    captured = concrete.captured_inputs
    library = c_library()
    call = library.BlockdnnMakeDirectCall(
        tf.compat.as_bytes(concrete.name),
        ctypes.byref(eager),
        (ctypes.py_object * len(captured))(*captured),
        len(captured),
    )
    if not call:
        return lambda tensors: NotImplemented
    drop = weakref.finalize(concrete, library.BlockdnnDropDirectCall, call)
    drop.atexit = False
    ctx, start = context.context(), library.BlockdnnStartDirectCall
    finish, abandon = library.BlockdnnFinishDirectCall, library.BlockdnnAbandonDirectCall
    # Between two calls of a network this is out of the caches: each line of it counts.
    thread, has_no_tape, current = ctx._thread_local_data, _has_no_tape, context.context_safe
    count = len(concrete.inputs) - len(captured)
    arguments = ctypes.py_object * count
    handles = ctypes.c_void_p * len(concrete.outputs)

    def direct(tensors):
        if not thread.is_eager or thread.op_callbacks or not has_no_tape():
            return NotImplemented
        if current() is not ctx or any(type(tensor) is not EagerTensor for tensor in tensors):
            return NotImplemented
        results = handles()
        started = start(call, arguments(*tensors), count, results)
        if started is None:
            return NotImplemented
        try:
            packed = pack([wrap(handle, False) for handle in results])
        except BaseException:
            abandon(started)
            raise
        return packed if finish(started) else NotImplemented

    return direct


def unavailable() -> str:
    """Why no call goes past TensorFlow's dispatch in this process; empty where they do."""
    missing = tensorflow_private.eager_functions().missing
    return missing and f"this TensorFlow has no {missing}"
