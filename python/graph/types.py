"""Data types of a graph's tensors, from the definitions of their ops."""

from tensorflow.core.framework import types_pb2

from ..tensorflow_private import dtypes, op_def_registry
from .view import GraphView, Node, Ref


def outputs(node) -> list[tuple[str, int]]:
    """("output:index", data type) of each output of a Node or NodeDef, as FunctionDefs say."""
    found = []
    op_def = op_def_registry.get(node.op)
    if op_def is None:  # a call of a function by its name
        return found
    for arg in op_def.output_arg:
        types = _types(node, op_def, arg)
        found += [(f"{arg.name}:{i}", dtype) for i, dtype in enumerate(types)]
    return found


def output_dtypes(node: Node) -> list[int]:
    """The data type of each output; none of a call of a function by its name."""
    if node.payload is not None:
        return [node.payload.dtype]
    if node.dtypes is None:
        node.dtypes = [kind for _, kind in outputs(node)]
    return node.dtypes


def input_dtypes(node: Node) -> list[int]:
    """The data type that one of TensorFlow's nodes wants of each input; none as above."""
    op_def = op_def_registry.get(node.op)
    args = op_def.input_arg if op_def is not None else ()
    return [kind for arg in args for kind in _types(node, op_def, arg)]


def dtype(view: GraphView, ref: Ref) -> int:
    """The data type of a tensor; DT_INVALID where nobody knows."""
    found = output_dtypes(view.producer(ref))
    return found[ref.port] if ref.port < len(found) else types_pb2.DT_INVALID


def is_float32(view: GraphView, ref: Ref) -> bool:
    """Whether the tensor is one that our ops take."""
    return dtype(view, ref) == types_pb2.DT_FLOAT


def dtype_name(dtype: int) -> str:
    """What people call it: "float64", "string"."""
    return dtypes.as_dtype(dtype).name


def _types(node: Node, op_def, arg) -> list[int]:
    """The data types of the tensors that an argument of the definition stands for."""
    if arg.type_list_attr:
        return list(_attribute(node, op_def, arg.type_list_attr).list.type)
    kind = arg.type or _attribute(node, op_def, arg.type_attr).type
    return [kind] * (_attribute(node, op_def, arg.number_attr).i if arg.number_attr else 1)


def _attribute(node: Node, op_def, name: str):
    if name in node.attr:
        return node.attr[name]
    return next(attr.default_value for attr in op_def.attr if attr.name == name)
