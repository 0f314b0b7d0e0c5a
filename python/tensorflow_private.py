"""Every name of TensorFlow's that is not public and that we use, in one place.

A new TensorFlow minor may move or drop any of them: whoever takes this package there starts here.
What is gone is named in one line when this is imported. The C++ symbols at the end are
looked up when they are wanted, and `missing` says which is not there; without them calls take
TensorFlow's own dispatch.
"""

import contextlib
import ctypes
import functools
import inspect
import os
import threading
import weakref
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

_LACKS = "TensorFlow {} is not one that tf_blockdnn knows, install one of its versions: {}"

try:
    from tensorflow.core.framework import op_def_pb2
    from tensorflow.core.function import trace_type
    from tensorflow.core.function.polymorphism import function_type
    from tensorflow.core.function.trace_type import default_types
    from tensorflow.python.checkpoint import graph_view
    from tensorflow.python.client import pywrap_tf_session
    from tensorflow.python.distribute import distribute_utils
    from tensorflow.python.eager import context, core, def_function, execute, record, tape
    from tensorflow.python.eager.polymorphic_function import concrete_function
    from tensorflow.python.framework import (
        auto_control_deps_utils,
        convert_to_constants,
        dtypes,
        func_graph,
        importer,
        kernels,
        op_callbacks,
        op_def_registry,
        ops,
        tensor_shape,
        tensor_util,
    )
    from tensorflow.python.framework._pywrap_python_op_gen import GetPythonWrappers
    from tensorflow.python.framework.op_def_library import value_to_attr_value
    from tensorflow.python.framework.ops import EagerTensor
    from tensorflow.python.grappler import tf_optimizer
    from tensorflow.python.ops import (
        array_ops,
        control_flow_util,
        gen_resource_variable_ops,
        handle_data_util,
        resource_variable_ops,
    )
    from tensorflow.python.pywrap_tfe import TFE_Py_FastPathExecute as fast_path
    from tensorflow.python.pywrap_tfe import TFE_Py_TapeSetIsEmpty as has_no_tape
    from tensorflow.python.saved_model.signature_serialization import canonicalize_signatures
    from tensorflow.python.trackable import asset, base, resource
    from tensorflow.python.trackable.autotrackable import AutoTrackable
    from tensorflow.python.util import nest
    from tensorflow.python.util._pywrap_util_port import IsMklEnabled as is_onednn_on
except ImportError as error:
    raise ImportError(_LACKS.format(tf.__version__, error)) from error


def _check(names: dict) -> None:
    """Raises ImportError where an object lacks one of the names that belong to it."""
    for owner, listed in names.items():
        for name in listed.split():
            if not hasattr(owner, name):
                kind = owner if isinstance(owner, type) else type(owner)
                what = f"{kind.__module__}.{kind.__qualname__} has no {name}"
                raise ImportError(_LACKS.format(tf.__version__, what))


_check(
    {
        EagerTensor: "_handle_data _shape_tuple",
        concrete_function.ConcreteFunction: "_call_flat captured_inputs function_type",
        record: "could_possibly_record",
        context.Context: "add_function_def get_function_def has_function remove_function",
        default_types.Weakref(weakref.ref(EagerTensor)): "_ref",
        func_graph.FuncGraph("checked"): "_add_new_tf_operations _create_op_from_tf_operation "
        "_functions _get_operation_by_name _nodes_by_name new_operations",
    }
)


def lite_schema():
    """The module with the classes of LiteRT's flatbuffers; it takes some time to import."""
    from tensorflow.lite.python import schema_py_generated

    return schema_py_generated


def call_flat(function, inputs) -> object:
    """What a ConcreteFunction makes of a tensor or a variable for each flat argument."""
    flat = [x.handle if isinstance(x, tf.Variable) else x for x in inputs]
    with as_they_are():
        return function._call_flat(flat, function.captured_inputs)


_CALL_FLAT = concrete_function.ConcreteFunction._call_flat
_hook: Callable | None = None
_here = threading.local()


@contextlib.contextmanager
def as_they_are():
    """In this thread, calls of ConcreteFunctions meanwhile run them and nothing else."""
    before, _here.passes = getattr(_here, "passes", False), True
    try:
        yield
    finally:
        _here.passes = before


def _hooked_call_flat(self, tensor_inputs, captured_inputs):
    hook = _hook
    if (
        hook is None
        or not context.executing_eagerly()
        or record.could_possibly_record()
        or getattr(_here, "passes", False)
    ):
        return _CALL_FLAT(self, tensor_inputs, captured_inputs)
    return hook(_CALL_FLAT, self, tensor_inputs, captured_inputs)


def hook_calls(hook: Callable | None) -> None:
    """Has each eager call of a ConcreteFunction that no tape could record run what `hook` returns.

    Every traced function is called by this one method: those of a tf.function, of Keras, and
    of a loaded SavedModel.

    Args:
        hook: (TensorFlow's own method, function, flat inputs, captured inputs) -> results; None has
            all calls run as before.
    """
    global _hook
    _hook = hook
    kind = concrete_function.ConcreteFunction
    if hook is not None:
        kind._call_flat = _hooked_call_flat
    elif kind._call_flat is _hooked_call_flat:  # Nobody has put something over it.
        kind._call_flat = _CALL_FLAT


def functions_of(graph) -> dict:
    """name -> what holds the definition, of each function that a graph calls."""
    return {tf.compat.as_str(name): held for name, held in graph._functions.items()}


@functools.cache
def runs_on_cpu(op: str) -> bool:
    """Whether TensorFlow has a kernel of that op for CPUs: some are XLA's alone."""
    registered = kernels.get_registered_kernels_for_op(op).kernel
    return any(kernel.device_type in ("CPU", "DEFAULT") for kernel in registered)


def operation_of(graph, name: str):
    """The operation of that name; None where there is none."""
    try:
        return graph.get_operation_by_name(name)
    except KeyError:
        return None


def variable_behind(handle) -> tuple | None:
    """(data type, shape) of the variable whose handle a tensor is; None where it is none."""
    data = getattr(handle, "_handle_data", None) if handle.dtype == dtypes.resource else None
    if data is None and handle.dtype == dtypes.resource and hasattr(handle, "op"):
        data = handle_data_util.get_resource_handle_data(handle)  # of an argument of a function
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return None
    (held,) = data.shape_and_type
    return dtypes.as_dtype(held.dtype), tensor_shape.TensorShape(held.shape)


def has_distributed_variables(function) -> bool:
    """Whether a ConcreteFunction reads variables of a distribution strategy."""
    copies = (hasattr(tensor, "_distributed_container") for tensor in function._captured_inputs)
    return any(copies) or any(map(distribute_utils.is_distributed_variable, function.variables))


def marked(kind) -> object:
    """The Python object in whose place a function's type has a mark; None where it is none."""
    return kind._ref() if isinstance(kind, default_types.Weakref) else None


def frozen(function):
    """A ConcreteFunction with constants in the place of variables."""
    return convert_to_constants.convert_variables_to_constants_v2(function)


def type_of(function):
    """The type of a ConcreteFunction's arguments.

    TensorFlow 2.18 leaves it empty for signatures of graphs of version 1, which state it
    separately.
    """
    kind, signature = function.function_type, function.structured_input_signature
    if signature is None:  # of what prunes such a graph, which is called by tensors
        inputs = function.inputs[: len(function.inputs) - len(function.captured_inputs)]
        signature = (tuple(tf.TensorSpec(x.shape, x.dtype) for x in inputs), {})
    if kind.parameters or not any(signature):
        return kind
    return function_type.from_structured_signature(signature)


def results_of(function) -> list:
    """The tensors that a ConcreteFunction returns, flat.

    Once it has been differentiated, `outputs` go on with what the gradient reads.
    """
    leaves = nest.flatten(function.graph.structured_outputs, expand_composites=True)
    return function.outputs[: sum(leaf is not None for leaf in leaves)]


def call_signature(kind, defaults: Mapping = {}) -> inspect.Signature:
    """The parameter names, kinds and defaults; exported signatures take their names from here."""

    def parameter(p) -> inspect.Parameter:
        default = inspect.Parameter.empty
        if p.optional:  # a Python value that the function was traced with, or TensorFlow's mark
            default = defaults.get(p.name, getattr(p.type_constraint, "value", p.default))
        return inspect.Parameter(p.name, p.kind, default=default)

    return inspect.Signature(map(parameter, kind.parameters.values()))


def bind(
    kind, args: tuple, kwargs: Mapping, defaults: Mapping, keywords: frozenset[str] = frozenset()
) -> list:
    """The flat inputs of a function of that type, matched and cast as TensorFlow does.

    Args:
        defaults: of arguments that are absent; Python values that it was traced with need none.
        keywords: names of arguments that may be given by name, whatever the type says.

    Raises:
        TypeError, ValueError: not the arguments of such a function.
    """
    named = {function_type.sanitize_arg_name(name): value for name, value in kwargs.items()}
    named_anyway = {}  # what the type calls positional only
    if named and keywords:
        parameters = kind.parameters.values()
        left = [p.name for p in parameters if p.kind is p.POSITIONAL_ONLY][len(args) :]
        named_anyway = {name: named.pop(name) for name in keywords.intersection(named, left)}
    values, bound = kind.bind_partial(*args, **named).arguments | named_anyway, {}
    for name, parameter in kind.parameters.items():
        constraint = parameter.type_constraint
        if name in values:
            value = values[name]
        elif isinstance(constraint, default_types.Literal):
            value = constraint.value
        elif isinstance(constraint, default_types.Weakref):
            value = marked(constraint)
        elif name in defaults:
            value = defaults[name]
        else:
            raise TypeError(f"missing a required argument: {name!r}")
        bound[name] = constraint.cast(value, trace_type.InternalCastContext(allow_specs=True))
    return kind.unpack_inputs(inspect.BoundArguments(kind, bound))


def bind_by_names(function, args: tuple, kwargs: Mapping) -> list:
    """The flat inputs of a ConcreteFunction that is called by the names of tensors.

    Raises:
        TypeError: other names, another number of inputs, or a mapping.
    """
    sanitized = function_type.sanitize_arg_name
    named = {sanitized(name): value for name, value in kwargs.items()}
    keywords = [sanitized(tensor_name) for tensor_name in function._arg_keywords or ()]
    left = keywords[len(args) :]
    if len(args) > function._num_positional_args or named.keys() != {*left}:
        raise TypeError("not the names of its tensors")
    inputs = [*args, *(named[name] for name in left)]
    if any(isinstance(value, Mapping) for value in inputs):
        raise TypeError("a mapping is no tensor")
    return inputs


def name_inputs_as(function, original) -> None:
    """Gives the tensors of a ConcreteFunction the names of another's in calls and signatures.

    Tracing anew takes those of the other's specs, which differ where arguments are containers.
    """
    names = original._arg_keywords
    if names is not None and len(names) == len(function._arg_keywords):
        function._arg_keywords = list(names)


def binding_of(function) -> dict:
    """What a tf.function knows of its arguments and a trace of it does not, as `bind` takes it.

    The type of a trace has no defaults of tensors and structures, and calls arguments positional
    only where the function also takes *args.
    """
    parameters = function.function_type.parameters.values()
    keywords = frozenset(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    return {"defaults": defaults_of(function), "keywords": keywords}


def defaults_of(function) -> dict:
    """name -> default of the arguments of a tf.function."""
    return dict(function._default_values)


def read_only_inputs(graph) -> list[int]:
    """The places of a function's inputs that are resources which it only reads."""
    return auto_control_deps_utils.get_read_only_resource_input_indices_graph(graph)


def is_in_xla() -> bool:
    """Whether a function is being traced that XLA will compile."""
    graph = None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()
    return graph is not None and control_flow_util.GraphOrParentsInXlaContext(graph)


def unconverted(function: Callable) -> Callable:
    """Marks code that AutoGraph is to run as it stands, without the cost of a decorator."""
    function.autograph_info__ = {}
    return function


def run_op(op: str, inputs: tuple, attributes: dict, name, generated: Callable):
    """What an op makes of the inputs, as the function that TensorFlow generates for it calls it.

    Attributes that have their defaults may be left out, which saves a third of the time.

    Args:
        generated: op -> that function, which knows what to do in graphs and with inputs of other
            kinds.
    """
    ctx = context.context()
    if ctx.executing_eagerly():
        try:
            return fast_path(ctx, op, name, *inputs, *chain.from_iterable(attributes.items()))
        except core._NotOkStatusException as error:
            ops.raise_from_not_ok_status(error, name)
        except core._FallbackException:
            pass
    return generated(op)(*inputs, **attributes, name=name)


def registered_ops(prefix: str) -> list[str]:
    """The registered ops whose names begin so, in the order of their names."""
    registered = op_def_pb2.OpList()
    registered.ParseFromString(pywrap_tf_session.TF_GetBuffer(pywrap_tf_session.TF_GetAllOpList()))
    return sorted(op.name for op in registered.op if op.name.startswith(prefix))


def source_of_function(op: str) -> bytes | None:
    """The Python source of an op's function; None where no such op is registered."""
    definition = op_def_registry.get(op)
    return definition and GetPythonWrappers(op_def_pb2.OpList(op=[definition]).SerializeToString())


class ImportedGraph(func_graph.FuncGraph):
    """A graph whose imported nodes become Python objects when somebody asks for them.

    TensorFlow makes an object of each, which takes much longer than the import itself.
    """

    def __init__(self, name: str):
        super().__init__(name)
        self._waiting: dict[str, object] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._waiting or name in self._nodes_by_name

    def _add_new_tf_operations(self, compute_devices: bool = True) -> list:
        waiting = ((pywrap_tf_session.TF_OperationName(op), op) for op in self.new_operations())
        self._waiting.update(waiting)
        return []

    def _get_operation_by_name(self, name: str):
        if name in self._waiting:
            self._create_op_from_tf_operation(self._waiting.pop(name), compute_device=False)
        return super()._get_operation_by_name(name)


class EagerFunctions(NamedTuple):
    """TensorFlow's C functions behind eager tensors.

    Attributes:
        missing: the first name that this TensorFlow lacks, or empty; then the rest is empty, too.
        addresses: what it is for -> the address of the function.
        wrap: (address of a tensor handle, False) -> eager tensor.
    """

    missing: str
    addresses: dict[str, ctypes.c_void_p]
    wrap: Callable | None


@functools.cache
def eager_functions() -> EagerFunctions:
    """Looks the functions up in the libraries that TensorFlow has loaded."""
    folder = Path(tf.__file__).parent
    python_names = {"handle_of": "_Z18EagerTensor_HandlePK7_object"}
    core_names = {
        "executor_of_thread": "TFE_ContextGetExecutorForThread",
        "executor_is_async": "TFE_ExecutorIsAsync",
        "delete_executor": "TFE_DeleteExecutor",
    }
    python_library = folder / "python" / "lib_pywrap_tensorflow_common.so"
    if not python_library.exists():  # Before 2.20.
        python_library = python_library.with_name("_pywrap_tensorflow_internal.so")
    try:
        python = ctypes.PyDLL(os.fspath(python_library))
        core = ctypes.CDLL(os.fspath(folder / "libtensorflow_cc.so.2"))
        wrap = python["_Z21EagerTensorFromHandleP16TFE_TensorHandleb"]
        functions = {
            use: ctypes.cast(library[name], ctypes.c_void_p)
            for library, names in ((python, python_names), (core, core_names))
            for use, name in names.items()
        }
    except (OSError, AttributeError) as error:
        return EagerFunctions(str(error).strip() or type(error).__name__, {}, None)
    wrap.restype, wrap.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_bool]
    return EagerFunctions("", functions, wrap)


def eager_context_address() -> int:
    """The address of the TFE_Context of this process."""
    ctx = context.context()
    ctx.ensure_initialized()
    capsule = ctypes.py_object(ctx._handle)
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name(capsule))
