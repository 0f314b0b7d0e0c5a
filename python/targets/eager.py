"""Calls of a rewritten function without TensorFlow's eager dispatch."""

import ctypes
import weakref
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from .. import rewriter, tensorflow_private
from ..native import CArray, CEager, c_library
from ..tensorflow_private import EagerTensor, context
from ..tensorflow_private import has_no_tape as _has_no_tape

_AROUND_REGIONS = frozenset(
    "Bitcast Const Identity IdentityN NoOp Placeholder PreventGradient ReadVariableOp".split()
)
_HANDLES = (tf.resource, tf.variant)


class _Call:
    """A call of the library's, for as long as somebody holds this."""

    def __init__(self, address: int):
        self.address = address
        weakref.finalize(self, c_library().BlockdnnDropEagerCall, address).atexit = False


def eager_path(
    concrete, pack: Callable, keeps_memory: bool = True, ops: set[str] | None = None
) -> Callable:
    """The function on eager tensors, run by this library from the first kernel to the last.

    TensorFlow turns each eager op into a function, looks that up and takes it to an
    executor: 0.1 to 0.2 ms between the calls of a network, whose tensors drive all this
    code out of the caches, and time enough for a thread pool to fall asleep.

    Args:
        concrete: a ConcreteFunction.
        pack: list of eager tensors -> what a call returns.
        keeps_memory: whether the memory of intermediate tensors may be kept between calls.
        ops: that it runs; those of the graph by default.

    Returns:
        Eager tensors and NumPy arrays -> what `pack` returned, or NotImplemented where TensorFlow
        has to dispatch: where the function holds an op that gains from the executor or the graph
        optimisers, on arguments that have not the function's shapes and dtypes, inside functions,
        under tapes, op callbacks and asynchronous executors, on custom devices, and for whatever
        fails, which fails again there with TensorFlow's message.
    """
    if ops is None:
        ops = {op.type for op in concrete.graph.get_operations()}
    call = _make(concrete, keeps_memory) if are_light(ops) else None
    if call is None:
        return lambda values: NotImplemented
    wrap = tensorflow_private.eager_functions().wrap
    ctx, run = context.context(), c_library().BlockdnnRunEagerCall
    # Between two calls of a network this is out of the caches: each line of it counts.
    thread, has_no_tape, current = ctx._thread_local_data, _has_no_tape, context.context_safe
    count = len(concrete.inputs) - len(concrete.captured_inputs)
    # Handles have no arrays that may stand for them.
    kinds = (tensor.dtype for tensor in concrete.inputs[:count])
    dtypes = [None if k in _HANDLES else np.dtype(k.as_numpy_dtype) for k in kinds]
    arguments = ctypes.py_object * count
    handles = ctypes.c_void_p * len(concrete.outputs)

    def direct(values):
        if not thread.is_eager or thread.op_callbacks or not has_no_tape():
            return NotImplemented
        if current() is not ctx:
            return NotImplemented
        arrays = None
        if any(type(value) is not EagerTensor for value in values):
            arrays = _arrays(values, dtypes)
            if arrays is None:
                return NotImplemented
        results = handles()
        if not run(call.address, arguments(*values), arrays, results):
            return NotImplemented
        return pack([wrap(handle, False) for handle in results])

    return direct


def _arrays(values, dtypes: list[np.dtype | None]):
    """An entry for each value: where an array lies, or -1 dimensions for an eager tensor.

    None if a value is neither, or an array that has to be converted first.
    """
    arrays = (CArray * len(dtypes))()
    for array, value, dtype in zip(arrays, values, dtypes, strict=True):
        if type(value) is EagerTensor:
            array.rank = -1
            continue
        if dtype is None or type(value) is not np.ndarray or value.dtype != dtype:
            return None
        if dtype.kind not in "biuf":
            return None
        if value.ndim > len(array.dims) or not value.flags.c_contiguous:
            return None
        array.data, array.rank = value.ctypes.data, value.ndim
        array.dims[: value.ndim] = value.shape
    return arrays


def are_light(ops: set[str]) -> bool:
    """Whether none of the ops gains from TensorFlow's executor or graph optimisers."""
    others = {op for op in ops if not op.startswith("Blockdnn")} - _AROUND_REGIONS
    return not others or others <= rewriter.LIGHT_OPS


def _make(concrete, keeps_memory: bool) -> _Call | None:
    if why_unavailable():
        return None
    captured = concrete.captured_inputs
    address = ctypes.c_void_p()
    error = c_library().BlockdnnMakeEagerCall(
        tf.compat.as_bytes(concrete.name),
        ctypes.byref(c_eager()),
        (ctypes.py_object * len(captured))(*captured),
        len(captured),
        keeps_memory,
        ctypes.byref(address),
    )
    return None if error else _Call(address.value)


def c_eager() -> CEager:
    """TensorFlow's eager context, for the library; to be asked for where it is available."""
    addresses = tensorflow_private.eager_functions().addresses
    return CEager(context=tensorflow_private.eager_context_address(), **addresses)


def why_unavailable() -> str:
    """Why no call goes past TensorFlow's dispatch in this process; empty where they do."""
    missing = tensorflow_private.eager_functions().missing
    return missing and f"this TensorFlow has no {missing}"
