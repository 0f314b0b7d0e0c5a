"""What the definitions of ops say: their attributes and defaults, and data types of tensors."""

import functools
from collections.abc import Mapping
from typing import NamedTuple

from tensorflow.core.framework import attr_value_pb2, op_def_pb2, types_pb2

from ..tensorflow_private import dtypes, op_def_registry
from .view import GraphView, Node, Ref


@functools.cache
def definition(op: str) -> op_def_pb2.OpDef:
    """What is registered of an op: inputs, attributes, types and defaults.

    Raises:
      ValueError: it is not registered.
    """
    op_def = op_def_registry.get(op)
    if op_def is None:
        raise ValueError(f"there is no op {op!r}")
    return op_def


@functools.cache
def attribute_types(op: str) -> Mapping[str, str]:
    """name -> "int", "list(int)", "type", ... of each attribute."""
    return {attr.name: attr.type for attr in definition(op).attr}


@functools.cache
def defaults(op: str) -> Mapping[str, object]:
    """name -> value of each attribute that has a default, but for data types: an eager call has to
    name those that the inputs do not tell."""
    return {
        attr.name: value_of(attr.default_value)
        for attr in definition(op).attr
        if attr.HasField("default_value") and attr.type != "type"
    }


def value_of(attribute: attr_value_pb2.AttrValue):
    """The Python value of a number, text, data type or list of these; other kinds as they are."""
    kind = attribute.WhichOneof("value")
    if kind == "list":
        fields = attribute.list.ListFields()
        return [_decode(item) for item in fields[0][1]] if fields else []
    return None if kind is None else _decode(getattr(attribute, kind))


def _decode(value):
    return value.decode() if isinstance(value, bytes) else value


class _Argument(NamedTuple):
    """An input or output of an op's definition: a type, or the attributes that say it."""

    name: str
    type: int
    type_attr: str
    list_attr: str
    number_attr: str


@functools.cache
def _arguments(op: str) -> tuple[tuple[_Argument, ...], tuple[_Argument, ...], dict]:
    """The inputs, outputs and defaults of an op; none of a call of a function by its name."""
    op_def = op_def_registry.get(op)
    if op_def is None:
        return (), (), {}
    inputs, results = (
        tuple(
            _Argument(arg.name, arg.type, arg.type_attr, arg.type_list_attr, arg.number_attr)
            for arg in args
        )
        for args in (op_def.input_arg, op_def.output_arg)
    )
    return inputs, results, {attr.name: attr.default_value for attr in op_def.attr}


def outputs(node) -> list[tuple[str, int]]:
    """("output:index", data type) of each output of a Node or NodeDef, as FunctionDefs say."""
    _, results, defaults = _arguments(node.op)
    pairs = []
    for arg in results:
        types = _types(node.attr, arg, defaults)
        pairs += [(f"{arg.name}:{i}", dtype) for i, dtype in enumerate(types)]
    return pairs


def output_dtypes(node: Node) -> list[int]:
    """The data type of each output; none of a call of a function by its name."""
    if node.payload is not None:
        return [node.payload.dtype]
    if node.dtypes is None:
        node.dtypes = [kind for _, kind in outputs(node)]
    return node.dtypes


def input_dtypes(node: Node) -> list[int]:
    """The data type that one of TensorFlow's nodes wants of each input; none as above."""
    inputs, _, defaults = _arguments(node.op)
    attr = node.attr
    return [kind for arg in inputs for kind in _types(attr, arg, defaults)]


def dtype(view: GraphView, ref: Ref) -> int:
    """The data type of a tensor; DT_INVALID where nobody knows."""
    kinds = output_dtypes(view.producer(ref))
    return kinds[ref.port] if ref.port < len(kinds) else types_pb2.DT_INVALID


def is_float32(view: GraphView, ref: Ref) -> bool:
    """Whether the tensor is one that our ops take."""
    return dtype(view, ref) == types_pb2.DT_FLOAT


def has_gradients(dtype) -> bool:
    """Whether tensors of this type have gradients, as TensorFlow has it: a tf.DType."""
    return dtype.is_floating or dtype.is_complex


def dtype_name(dtype: int) -> str:
    """What people call it: "float64", "string"."""
    return dtypes.as_dtype(dtype).name


def _types(attr, arg: _Argument, defaults) -> list[int]:
    """The data types of the tensors that an argument of the definition stands for."""

    def stated(name: str):
        return attr[name] if name in attr else defaults[name]

    if arg.list_attr:
        return list(stated(arg.list_attr).list.type)
    kind = arg.type or stated(arg.type_attr).type
    return [kind] * (stated(arg.number_attr).i if arg.number_attr else 1)
