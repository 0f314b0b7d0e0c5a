"""Data types of a graph's tensors, from the definitions of their ops."""

from tensorflow.core.framework import types_pb2

from ..tensorflow_private import dtypes, op_def_registry
from .view import GraphView, Node, Ref


def outputs(node: Node) -> list[tuple[str, int]]:
    """("output:index", data type) of each output, as FunctionDefs call them."""
    found = []
    op_def = op_def_registry.get(node.op)
    if op_def is None:  # a call of a function by its name
        return found
    for arg in op_def.output_arg:
        if arg.type_list_attr:
            types = _attribute(node, op_def, arg.type_list_attr).list.type
        else:
            types = [arg.type or _attribute(node, op_def, arg.type_attr).type]
        if arg.number_attr:
            types *= _attribute(node, op_def, arg.number_attr).i
        found += [(f"{arg.name}:{i}", dtype) for i, dtype in enumerate(types)]
    return found


def dtype(view: GraphView, ref: Ref) -> int:
    """The data type of a tensor; DT_INVALID where nobody knows."""
    node = view.producer(ref)
    if node.payload is not None:
        return types_pb2.DT_FLOAT
    found = outputs(node)
    return found[ref.port][1] if ref.port < len(found) else types_pb2.DT_INVALID


def is_float32(view: GraphView, ref: Ref) -> bool:
    """Whether the tensor is one that our ops take."""
    return dtype(view, ref) == types_pb2.DT_FLOAT


def dtype_name(dtype: int) -> str:
    """What people call it: "float64", "string"."""
    return dtypes.as_dtype(dtype).name


def _attribute(node: Node, op_def, name: str):
    if name in node.attr:
        return node.attr[name]
    return next(attr.default_value for attr in op_def.attr if attr.name == name)
