"""Softmax behind a planned primitive: NodeDef -> planned Softmax, or the reason why not."""

from tensorflow.core.framework import types_pb2

from ...graph import Node, Ref
from ..plan import Softmax
from .idiom import Graph

ROOTS = ("Softmax",)
# What hands on the memory it reads.
_VIEWS = frozenset({"ExpandDims", "Identity", "Reshape", "Squeeze"})


def plan(node: Node, graph: Graph) -> Softmax | str:
    """The planned softmax, or one line that says why TensorFlow keeps it."""
    src = node.inputs[0]
    if node.attr["T"].type != types_pb2.DT_FLOAT:
        dtype = types_pb2.DataType.Name(node.attr["T"].type)[3:].lower()
        return f"dtype {dtype}, only float32 is implemented"
    if not _is_computed_by_us(src, graph):
        return "nothing converted computes what it reads: no gain"
    shape = graph.shapes.shape(src)
    if not shape or not isinstance(shape[-1], int):
        return "the number of channels is not known"
    return Softmax(origin=node.name, channels=shape[-1])


def _is_computed_by_us(ref: Ref, graph: Graph) -> bool:
    node = graph.view.producer(ref)
    while node.op in _VIEWS:
        node = graph.view.producer(node.inputs[0])
    return node.payload is not None
