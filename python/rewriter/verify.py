"""Checks a rewritten function against the original."""

import contextlib
import weakref
from collections import Counter

import numpy as np
import tensorflow as tf

from ..errors import UserError, VerificationError
from ..graph import GraphView, Module, Ref, definitions, nodes_within
from ..measuring.difference import distances, largest_difference
from ..tensorflow_private import (
    call_flat,
    gen_resource_variable_ops,
    nest,
    results_of,
    variable_behind,
)
from . import ordering
from .capture import variables_of
from .regions import ops_of_ours
from .report import Report

# The difference that is allowed at least, by the precision; None is float32.
TOLERANCES = {
    None: 0.0,
    "bf16": 0.1,
    "int8": 0.25,
    "int8-dynamic": 0.25,
    "bf16-weights": 0.05,
    "int8-weights": 0.1,
    "int4-weights": 0.5,
}
_SIDE = 64  # of unknown sizes but the batch
_WRITES_VARIABLES = ("Assign", "Resource", "Rng", "Stateful")  # how the names of such ops begin
_ACTS: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # graph -> `effects` of it


def check_signature(original, rewritten) -> None:
    """Raises VerificationError unless inputs and outputs have kept dtypes and shapes."""
    for old, new in zip(results_of(original), results_of(rewritten), strict=True):
        if old.dtype != new.dtype or not old.shape.is_compatible_with(new.shape):
            raise VerificationError(
                f"output {old.name} was {old.dtype.name} {old.shape}, "
                f"became {new.dtype.name} {new.shape}"
            )
    count = len(original.inputs) - len(original.captured_inputs)
    if count != len(rewritten.inputs) - len(rewritten.captured_inputs):
        raise VerificationError("the number of inputs changed")


def check_written(report: Report, module: Module) -> None:
    """Raises VerificationError where the function lacks an op that the report names."""
    written = Counter(op for _, op in ops_of_ours(module))
    for op, count in report.counts().items():
        if op.startswith("Blockdnn") and written[op] < count:  # A plan may be one of TensorFlow's.
            lost = count - written[op]
            raise VerificationError(f"{lost} {op} of {count} in the report are not in the function")


def check_numbers(
    original, rewritten, *, tolerance: float, seed: int = 0, inputs: list | None = None
) -> float:
    """Runs both functions on one random input, or on `inputs`.

    Returns: the largest difference of a float output, relative to the output's magnitude.
    Raises:
        VerificationError: that is above `tolerance`, NaN or an infinity stands where the original
            has another value, or another output differs at all. It names the output and the
            element that is farthest off.
    """
    inputs = random_inputs(original, seed=seed) if inputs is None else inputs
    worst = 0.0
    wanted = outputs(original, inputs)
    got = outputs(rewritten, inputs)
    for (name, old), (_, new) in zip(wanted, got, strict=True):
        if old is None:
            continue
        old, new = old.numpy(), new.numpy()
        relative = difference(old, new)
        if not relative <= tolerance:
            raise VerificationError(
                f"output {name} differs by {relative:.3g} of its magnitude, {tolerance:.3g} is "
                f"allowed: {_where(old, new)}"
            )
        worst = max(worst, relative)
    return worst


def why_only_once(concrete) -> str:
    """What acts outside of the function, or draws, each time that it runs; empty if nothing."""
    acts = [f"{name} ({op})" for name, op, _ in effects(concrete) if not _writes_variable(op)]
    more = f" and {len(acts) - 1} more" if len(acts) > 1 else ""
    return f"{acts[0]}{more} would act outside of it or draw at random again" if acts else ""


def check_repeatable(concrete, what: str, remedy: str) -> None:
    """Raises UserError where `what`, for which the function runs again, would be noticed."""
    if reason := why_only_once(concrete):
        raise UserError(f"{what} runs the function more than once, and {reason}: {remedy}")


@contextlib.contextmanager
def unchanged(concrete, inputs=()):
    """Restores the variables that the function assigns meanwhile to their values.

    Args:
        inputs: the arguments, of which variables keep their values, too.
    """
    handles = [*concrete.captured_inputs, *(x.handle for x in inputs if isinstance(x, tf.Variable))]
    writes = any(_writes_variable(op) for _, op, _ in effects(concrete))
    captured = dict(enumerate(handles)) if writes else {}
    variables = variables_of(captured)
    held = {place: variable.read() for place, variable in variables.items()}
    try:
        yield
    finally:
        # What is held stays where it is: an assignment takes other memory.
        for place, value in held.items():
            if not _is_same_memory(value, variables[place].read()):
                gen_resource_variable_ops.assign_variable_op(captured[place], value)


def _is_same_memory(a, b) -> bool:
    try:
        return np.shares_memory(*(np.asarray(memoryview(x)) for x in (a, b)))
    except (BufferError, TypeError, ValueError):  # of types that NumPy has no buffers of
        return False


def _writes_variable(op: str) -> bool:
    return op.startswith(_WRITES_VARIABLES)


def effects(concrete) -> list[tuple[str, str, tf.DType | None]]:
    """(node, op, attribute dtype) of all that assigns, acts outside or draws."""
    graph = concrete.graph
    if graph not in _ACTS:
        fetches = [Ref.parse(tensor.name) for tensor in results_of(concrete)]
        graph_def = graph.as_graph_def()
        view = GraphView(graph_def, fetches, [op.name for op in graph.control_outputs])
        view.prune(keep_ops=())
        functions = definitions(graph_def)
        acting = [node for node in nodes_within(view, functions) if ordering.acts(node)]
        kinds = [node.attr["dtype"].type if "dtype" in node.attr else 0 for node in acting]
        _ACTS[graph] = [
            (node.name, node.op, tf.as_dtype(kind) if kind else None)
            for node, kind in zip(acting, kinds, strict=True)
        ]
    return _ACTS[graph]


def outputs(concrete, inputs) -> list[tuple]:
    """(name in the output's structure, value) for each output; None stays None.

    Variables that it assigns have the values that they had.
    """
    with unchanged(concrete, inputs):
        results = call_flat(concrete, inputs)
    flat = nest.flatten_with_joined_string_paths(results, expand_composites=True)
    return [(path or str(index), value) for index, (path, value) in enumerate(flat)]


def _where(wanted: np.ndarray, got: np.ndarray) -> str:
    """The element that is farthest off, with both values."""
    if wanted.shape != got.shape:
        return f"its shape was {wanted.shape}, became {got.shape}"
    by = distances(wanted, got) if wanted.dtype.kind in "fc" else wanted != got
    index = np.unravel_index(np.argmax(by), wanted.shape)
    place = f"at {[int(i) for i in index]} " if index else ""
    return f"{place}it was {wanted[index]}, became {got[index]}"


def random_inputs(concrete, *, batch: int = 2, seed: int = 0) -> list:
    """A random tensor for each argument, or a variable that holds one.

    An unknown first size is `batch`, others are 64.
    """
    rng = np.random.default_rng(seed)
    return [wrap(_random(dtype, shape, rng, batch)) for _, dtype, shape, wrap in _takes(concrete)]


def bind_example(concrete, example) -> list:
    """The arguments of `example`, a list or one tensor, as the function takes them.

    Raises:
        ValueError: another number of arguments, or shapes or dtypes that it does not take.
    """
    takes, values = _takes(concrete), tf.nest.flatten(example)
    if len(values) != len(takes):
        raise ValueError(
            f"example must hold {len(takes)} tensors, one for each argument, not {len(values)}"
        )
    inputs = []
    for (name, dtype, shape, wrap), value in zip(takes, values, strict=True):
        value = tf.convert_to_tensor(value, dtype)
        if not shape.is_compatible_with(value.shape):
            raise ValueError(f"example: {name} is {shape}, not {value.shape}")
        inputs.append(wrap(value))
    return inputs


def _takes(concrete) -> list[tuple]:
    """(name, data type, shape, `tf.Variable` where it takes one) of each argument."""
    takes = []
    for tensor in concrete.inputs[: len(concrete.inputs) - len(concrete.captured_inputs)]:
        if (variable := variable_behind(tensor)) is None:
            takes.append((tensor.name, tensor.dtype, tensor.shape, tf.identity))
        else:
            takes.append((tensor.name, *variable, tf.Variable))
    return takes


def difference(wanted: np.ndarray, got: np.ndarray) -> float:
    """max |wanted - got| / max |wanted| over finite values.

    Infinite where shapes or values that are not floats differ, and where NaN or an infinity stands
    against another value.
    """
    is_number = wanted.dtype.kind in "fc"
    if wanted.shape != got.shape or not (is_number or np.array_equal(wanted, got)):
        return np.inf
    return largest_difference([wanted], [got]).relative


def _random(dtype, shape, rng, batch: int) -> tf.Tensor:
    sizes = [
        (_SIDE if axis else batch) if size is None else size for axis, size in enumerate(shape)
    ]
    if dtype.is_floating:
        return tf.constant(rng.standard_normal(sizes), dtype)
    if dtype == tf.bool:
        return tf.constant(rng.integers(0, 2, sizes), tf.bool)
    if dtype == tf.string:
        return tf.fill(sizes, "")
    return tf.constant(rng.integers(0, 2, sizes), dtype)
