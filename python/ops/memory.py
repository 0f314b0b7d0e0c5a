"""What memory an op takes for itself, asked without running it."""

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral

import tensorflow as tf

from ..native import CList, c_call, library
from ..threads import MOST_THREADS
from .records import RECORDS


@dataclass(frozen=True)
class ScratchpadPiece:
    """A named part of a scratchpad.

    Attributes:
      copies: arrays of that name: one for each thread, or 1.
      bytes: of all of them, each rounded up to cache lines of 64 bytes.
    """

    copies: int
    bytes: int


@dataclass(frozen=True)
class MemoryPlan:
    """What an op would do for some shapes, and the memory that takes.

    Attributes:
      algorithm: as in the verbose log, "direct" for example; "" if the op has only one.
      threads: what it was planned for.
      scratchpad_mode: "user" or "library"; "" if the op has no choice: it never takes a
        scratchpad, or has it from TensorFlow's allocator for each execution (packed_matmul, rnn).
      scratchpad: bytes of temporary memory an execution takes; 0 is common.
      packed_weights: bytes of the copy of the weights that the kernel keeps in the order it
        reads them; 0 if it reads them where they are. Kernels share equal copies.
      pieces: name -> ScratchpadPiece; they add up to `scratchpad`.
      blocking: name -> the sizes that planning chose and that `pieces` depend on.
    """

    algorithm: str
    threads: int
    scratchpad_mode: str
    scratchpad: int
    packed_weights: int
    pieces: Mapping[str, ScratchpadPiece]
    blocking: Mapping[str, int]

    @property
    def kept(self) -> int:
        """Bytes of scratchpad that the op keeps between executions: 0 in the mode "user".

        With "library" it keeps them for each of the executions that ran at once, at most four;
        these are the bytes for one.
        """
        return self.scratchpad if self.scratchpad_mode == "library" else 0


def memory_plan(op, *shapes, threads: int | None = None, args=(), **arguments) -> MemoryPlan:
    """Plans `op` as its execution would, without running it.

    Args:
      op: "conv", "inner_product", ...: the name of a function of `bd.ops`.
      *shapes: the tensors of the op, in its order, each given by its shape: a sequence of
        integers, or anything that has a `.shape` (a tensor, a tf.TensorSpec); a list of them
        where the op takes a list.
      threads: to plan for, 1 to 1024; default: those of the pool that ops run on. TensorFlow
        starts with that question if it has not yet, and refuses to change its thread settings
        from then on, so the answer holds for every later execution.
      args: as `shapes`, for the operands of post-ops.
      **arguments: all others of the op, by name, `how` included; a tensor among them
        may be a tf.TensorSpec.

    Returns:
      The plan, which is also that of every execution on such shapes.

    Raises:
      ValueError: whatever the op itself refuses, in its words; an unknown op; a shape that is
        not fully known; threads out of range.

    Example:
      >>> shapes, options = [(1, 4, 56, 56, 16), (3, 3, 64, 64)], {"padding": "SAME"}
      >>> plan = bd.ops.memory_plan("conv", *shapes, how="direct", **options)
      >>> plan.algorithm, list(plan.pieces)
      ('direct', ['strip'])
    """
    functions = {
        record.function.__name__: record.function
        for record in RECORDS.values()
        if hasattr(record, "function")
    }
    if op not in functions:
        raise ValueError(f"op must be one of {', '.join(sorted(functions))}, got {op!r}")
    if threads is None:
        threads = pool_threads()
    elif not isinstance(threads, Integral) or not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"threads must be from 1 to {MOST_THREADS}, got {threads!r}")
    if args:
        arguments["args"] = [_spec(arg) for arg in args]
    node = _node(functions[op], [_spec(shape) for shape in shapes], arguments)
    return plan_node(node, [tensor.shape.as_list() for tensor in node.inputs], int(threads))


def pool_threads() -> int:
    """The threads that ops run on, from where they take them themselves."""
    with tf.init_scope():
        return int(library().blockdnn_threads())


def _spec(like):
    """The tf.TensorSpec of a shape or of what has one; a list of them for a list."""
    if isinstance(like, str):
        raise ValueError(f"{like!r} is not a shape; give arguments other than tensors by name")
    if isinstance(like, Sequence) and any(not isinstance(d, Integral | None) for d in like):
        return [_spec(each) for each in like]
    shape = tf.TensorShape(getattr(like, "shape", like))
    if not shape.is_fully_defined():
        raise ValueError(f"the shape {shape} is not fully known, and sizes depend on all of it")
    return tf.TensorSpec(shape, getattr(like, "dtype", tf.float32))


def _node(function, specs: list, arguments: dict) -> tf.Operation:
    """The op whose result `function` returns for tensors of `specs`, in a graph of its own."""

    def placeholder(value):
        is_spec = isinstance(value, tf.TensorSpec)
        return tf.compat.v1.placeholder(value.dtype, value.shape) if is_spec else value

    with tf.Graph().as_default():
        specs, arguments = tf.nest.map_structure(placeholder, (specs, arguments))
        result = function(*specs, **arguments)
        return getattr(result, "dst", result).op


def plan_node(node: tf.Operation, shapes: Sequence[Sequence[int]], threads: int) -> MemoryPlan:
    """What the library answers about a node of a graph whose inputs have these shapes."""
    definition = node.node_def.SerializeToString()
    text = ctypes.c_char_p()
    c_call(
        "BlockdnnMemoryPlan",
        definition,
        len(definition),
        CList.of(size for shape in shapes for size in shape),
        CList.of(map(len, shapes)),
        threads,
        text,
    )
    answer = json.loads(text.value)
    mode = node.node_def.attr["scratchpad_mode"].s.decode()
    pieces = {name: ScratchpadPiece(**piece) for name, piece in answer.pop("pieces").items()}
    return MemoryPlan(threads=threads, scratchpad_mode=mode, pieces=pieces, **answer)
