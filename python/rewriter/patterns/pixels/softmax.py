"""Softmax of what a converted op computes."""

from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, Ref, dtype_name
from ....ops.records import Softmax
from ...context import Context
from ..found import Found

ROOTS = ("Softmax",)
# What hands on the memory it reads.
_VIEWS = frozenset({"ExpandDims", "Identity", "Reshape", "Squeeze"})


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The softmax of `node`."""
    src = node.inputs[0]
    if node.attr["T"].type != types_pb2.DT_FLOAT:
        return f"dtype {dtype_name(node.attr['T'].type)}, only float32 is implemented"
    if not _is_computed_by_us(src, body):
        return "nothing converted computes what it reads: no gain"
    shape = body.shapes.shape(src)
    if not shape or not isinstance(shape[-1], int) or not shape[-1]:
        return "the number of channels is not known"
    return Found(Softmax(origin=node.name, channels=shape[-1]), {"src": src}, node.name)


def _is_computed_by_us(ref: Ref, body: Body) -> bool:
    return body.view.producer(body.view.origin(ref, _VIEWS)).payload is not None
