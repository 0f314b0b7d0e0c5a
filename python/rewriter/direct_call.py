"""Calls of a rewritten function without TensorFlow's eager dispatch."""

import ctypes
import functools
import os
import weakref
from collections.abc import Callable
from pathlib import Path

import tensorflow as tf
from tensorflow.python.eager import context
from tensorflow.python.framework.ops import EagerTensor
from tensorflow.python.pywrap_tfe import TFE_Py_TapeSetIsEmpty as _has_no_tape

from .._native import CEager, c_library


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
    eager, wrap = _eager_functions(context.context())
    captured = concrete.captured_inputs
    library = c_library()
    call = eager and library.BlockdnnMakeDirectCall(
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


@functools.lru_cache(maxsize=1)
def _eager_functions(ctx):
    """What the library needs of TensorFlow's Python side, and handle -> eager tensor.

    None, None if this TensorFlow does not have it: its names are not public.
    """
    folder = Path(tf.__file__).parent
    names = {
        "handle_of": "_Z18EagerTensor_HandlePK7_object",
        "executor_of_thread": "TFE_ContextGetExecutorForThread",
        "executor_is_async": "TFE_ExecutorIsAsync",
        "delete_executor": "TFE_DeleteExecutor",
    }
    try:
        python = ctypes.PyDLL(os.fspath(folder / "python" / "lib_pywrap_tensorflow_common.so"))
        core = ctypes.CDLL(os.fspath(folder / "libtensorflow_cc.so.2"))
        wrap = python["_Z21EagerTensorFromHandleP16TFE_TensorHandleb"]
        found = {
            field: ctypes.cast((python if name[0] == "_" else core)[name], ctypes.c_void_p)
            for field, name in names.items()
        }
    except (OSError, AttributeError):
        return None, None
    wrap.restype, wrap.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_bool]
    ctx.ensure_initialized()
    capsule = ctypes.py_object(ctx._handle)
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return CEager(context=pointer(capsule, name(capsule)), **found), wrap
