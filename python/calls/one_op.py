"""Calls of a rewritten function without TensorFlow's executor."""

import weakref
from collections.abc import Callable

import tensorflow as tf

from ..native import c_library, library

# What may stand between converted ops: cheap enough that neither graph optimisers nor
# another thread would make up for the executor. Whatever else is left in a graph (a
# convolution that was declined, control flow, side effects) keeps the usual way.
_LIGHT_OPS = frozenset(
    "Abs Add AddV2 ArgMax BiasAdd Cast ConcatV2 Const Div DivNoNan Elu Equal Erf Exp ExpandDims "
    "Fill Floor FloorDiv GatherV2 Greater Identity IdentityN LeakyRelu Less Log LogSoftmax Max "
    "Maximum Mean Min Minimum Mul Neg NoOp Pack Pad PadV2 Placeholder Pow Prod Rank ReadVariableOp "
    "RealDiv Relu Relu6 Reshape Round Rsqrt SelectV2 Selu Shape Sigmoid Size Slice Softmax "
    "Softplus Split Sqrt Square SquaredDifference Squeeze StopGradient StridedSlice Sub Sum Tanh "
    "TopKV2 Transpose Unpack".split()
)


def inline_call(concrete, keeps_memory: bool = True) -> Callable | None:
    """The function as one op that runs its body's ops in the calling thread.

    Through the executor a call costs about 0.13 ms before its first op, this way 0.015
    (a function of one cheap op, 2 cores).

    Args:
        concrete: a ConcreteFunction, kept alive by the caller: with it goes what calls hold.
        keeps_memory: whether the memory of intermediate tensors, at most that of one call, may
            be kept between calls.

    Returns:
        Flat eager inputs, captures last -> list of outputs; None if the body holds an op
        that gains from the executor or from TensorFlow's graph optimisers.
    """
    ops = {op.type for op in concrete.graph.get_operations()}
    if not all(op in _LIGHT_OPS or op.startswith("Blockdnn") for op in ops):
        return None
    name = tf.compat.as_str(concrete.name)
    types = [output.dtype for output in concrete.outputs]
    call = library().blockdnn_call
    release = weakref.finalize(concrete, c_library().BlockdnnReleaseCalls, name.encode())
    release.atexit = False
    return lambda inputs: call(inputs, Tout=types, f=name, keeps_memory=keeps_memory)
