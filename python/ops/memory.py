"""What memory an op takes for itself, asked without running it."""

import ctypes
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral

import tensorflow as tf

from ..native import CList, c_call, library
from ..threads import MOST_THREADS
from .conv.conv import conv
from .conv.conv_depthwise import conv_depthwise
from .conv.conv_transpose import conv_transpose
from .conv.conv_volume import conv_volume
from .movement.concat import concat
from .movement.reorder import reorder
from .movement.shuffle import shuffle, shuffle_grad
from .pixels.eltwise import eltwise
from .pixels.layer_norm import layer_norm
from .pixels.softmax import softmax
from .pixels.squeeze_excite import squeeze_excite
from .planes.pad import pad
from .planes.pool import global_pool, pool
from .planes.resize import resize
from .products.attention import attention
from .products.inner_product import inner_product
from .products.packed_matmul import packed_matmul
from .products.rnn import rnn

_OPS = {
    op.__name__: op
    for op in (
        attention,
        concat,
        conv,
        conv_depthwise,
        conv_transpose,
        conv_volume,
        eltwise,
        global_pool,
        inner_product,
        layer_norm,
        packed_matmul,
        pad,
        pool,
        reorder,
        resize,
        rnn,
        shuffle,
        shuffle_grad,
        softmax,
        squeeze_excite,
    )
}


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
      **arguments: all others of the op, by name, scratchpad_mode included; a tensor among them
        may be a tf.TensorSpec.

    Returns:
      The plan, which is also that of every execution on such shapes.

    Raises:
      ValueError: whatever the op itself refuses, in its words; an unknown op; a shape that is
        not fully known; threads out of range.

    Example:
      >>> plan = bd.ops.memory_plan("conv", (1, 4, 56, 56, 16), (3, 3, 64, 64), algorithm="direct")
      >>> plan.algorithm, list(plan.pieces)
      ('direct', ['strip'])
    """
    if op not in _OPS:
        raise ValueError(f"op must be one of {', '.join(sorted(_OPS))}, got {op!r}")
    if threads is None:
        threads = pool_threads()
    elif not isinstance(threads, Integral) or not 1 <= threads <= MOST_THREADS:
        raise ValueError(f"threads must be from 1 to {MOST_THREADS}, got {threads!r}")
    if args:
        arguments["args"] = [_spec(arg) for arg in args]
    node = _node(_OPS[op], [_spec(shape) for shape in shapes], arguments)
    return plan_node(node, [tensor.shape.as_list() for tensor in node.inputs], int(threads))


def scratchpad_size(op, *shapes, **arguments) -> int:
    """Returns the bytes of temporary memory that one execution of `op` takes, in either mode.

    Args and Raises: see `memory_plan`.

    Source: the scratchpad_desc() of oneDNN's primitives.

    Example:
        >>> bd.ops.scratchpad_size("conv", (1, 4, 56, 56, 16), (1, 1, 64, 64), algorithm="direct")
        0
    """
    return memory_plan(op, *shapes, **arguments).scratchpad


def memory_consumption(op, *shapes, **arguments) -> int:
    """Returns the bytes of scratchpad that `op` keeps for itself between executions.

    With scratchpad_mode="user" that is 0. With "library" it is `scratchpad_size` for each of the
    executions that ran at once, at most four of them; the function returns the bytes for one.
    Packed weights are not part of it: see `memory_plan`.

    Args and Raises: see `memory_plan`.

    Source: the memory_consumption_s64 query of oneDNN's primitives.

    Example:
        >>> shapes = (1, 4, 56, 56, 16), (3, 3, 64, 64)
        >>> bd.ops.memory_consumption("conv", *shapes, scratchpad_mode="user")
        0
        >>> size = bd.ops.scratchpad_size("conv", *shapes)
        >>> bd.ops.memory_consumption("conv", *shapes, scratchpad_mode="library") == size
        True
    """
    plan = memory_plan(op, *shapes, **arguments)
    return plan.scratchpad if plan.scratchpad_mode == "library" else 0


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
