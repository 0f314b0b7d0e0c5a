"""Nodes from Python values: the definition of an op says of which type each attribute is."""

import functools
from collections.abc import Iterable, Mapping

import numpy as np
from tensorflow.core.framework import (
    attr_value_pb2,
    node_def_pb2,
    tensor_pb2,
    types_pb2,
)

from ..tensorflow_private import dtypes, tensor_util, value_to_attr_value
from .shapes import Shapes
from .types import attribute_types, definition, dtype, value_of
from .view import GraphView, Node, Ref

FLOAT32, INT32, UINT8 = types_pb2.DT_FLOAT, types_pb2.DT_INT32, types_pb2.DT_UINT8


# What says nothing about the numbers of a result: hints, checks, and what training alone asks.
_HINTS = frozenset(
    "exponential_avg_factor grad_a grad_b grad_x grad_y parallel_iterations use_cudnn_on_gpu"
    " validate_indices".split()
)


@functools.cache
def _settings(op: str) -> Mapping[str, object]:
    """name -> default, or None, of each attribute that changes what an op computes."""
    known = definition(op)
    counts = {arg.number_attr for arg in (*known.input_arg, *known.output_arg)} | _HINTS
    return {
        attr.name: value_of(attr.default_value)
        for attr in known.attr
        if attr.name not in counts and "type" not in attr.type
    }


def unusual(node: Node, named: Iterable[str] = (), **wanted) -> str | None:
    """An attribute of one of TensorFlow's nodes that a pattern does not expect: "keep_dims=True".

    Args:
        named: attributes at which the pattern looks itself.
        wanted: the values of others; those that are left have their defaults.
    """
    for name, default in (dict.fromkeys(wanted) | _settings(node.op)).items():
        value = value_of(node.attr[name]) if name in node.attr else default
        if name not in named and value != wanted.get(name, default):
            return f"{name}={value}"
    return None


def make_node(
    name: str,
    op: str,
    inputs: Iterable[Ref | list[Ref]] = (),
    controls: Iterable[str] = (),
    device: str = "",
    **attributes,
) -> Node:
    """A node of any op.

    Args:
        inputs: in the order of the op; those that are lists as lists, whose lengths are counted.
        attributes: numbers, texts, shapes, functions by name, and lists of them; data types as
            DT_FLOAT or tf.float32. An AttrValue of another node is taken as it is. Those that are
            not given have their defaults.

    Raises:
        ValueError: the op has no attribute of that name.
    """
    proto = node_def_pb2.NodeDef(name=name, op=op, device=device)
    refs, lengths = [], []
    for operand in inputs:
        is_ref = isinstance(operand, Ref)
        refs += [operand] if is_ref else operand
        lengths += [] if is_ref else [len(operand)]
    counts = [arg.number_attr for arg in definition(op).input_arg if arg.number_attr]
    attributes = dict(zip(counts, lengths, strict=False)) | attributes
    types = attribute_types(op)
    for key, value in attributes.items():
        if key not in types:
            raise ValueError(f"{op} has no attribute {key!r}")
        _put(proto.attr[key], types[key], value)
    return Node(name, op, refs, controls, proto)


def constant_node(name: str, values, dtype: int = INT32) -> Node:
    """A Const of few numbers, integers where `dtype` does not say otherwise."""
    array = np.asarray(values, dtypes.as_dtype(dtype).as_numpy_dtype)
    return make_node(name, "Const", dtype=dtype, value=array)


class Writer:
    """Adds nodes under names that begin with that of another node, and that run where it does.

    Inputs are tensors, lists of them, and numbers, which become constants. Data types that are
    not given are those of the tensors; numbers that share no type with a tensor are int32.

    Args:
        view: the graph.
        name: of the node.
        shapes: of the graph's tensors.
    """

    def __init__(self, view: GraphView, name: str, shapes: Shapes | None = None):
        self._view, self._name, self._shapes = view, name, shapes
        proto = view.node(name).proto if name in view else None
        self._device = proto.device if proto is not None else ""

    def add(self, what: str, op: str, *inputs, shape=None, **attributes) -> Ref:
        """Adds a node; returns the first output.

        Args:
            what: comes after the name, if it is not empty.
            shape: of that output, where more is known than rules can tell.
            attributes: as `make_node` takes them.
        """
        name = f"{self._name}/{what}" if what else self._name
        ref = self._view.add(self._build(name, op, inputs, attributes)).ref
        if shape is not None:
            self._shapes.put(ref, tuple(shape))
        return ref

    def reshape(self, what: str, src: Ref, shape) -> Ref:
        """Adds a Reshape to a shape of which one size at most is unknown."""
        return self.add(what, "Reshape", src, open_sizes(shape), shape=shape)

    def cut(self, what: str, src: Ref, axis: int, begin: int, size: int) -> Ref:
        """Adds a Slice of `size` along an axis."""
        rank = self._shapes.rank(src)
        begins, sizes = [0] * rank, [-1] * rank
        begins[axis], sizes[axis] = begin, size
        return self.add(what, "Slice", src, begins, sizes)

    def plan(self, what: str, payload, inputs: Mapping[str, Ref], shape=None) -> Ref:
        """Adds a planned primitive that reads `inputs`, by role; others as of `add`."""
        name = f"{self._name}/{what}"
        ref = self._view.add(Node(name, payload.op, inputs, payload=payload)).ref
        if shape is not None:
            self._shapes.put(ref, shape)
        return ref

    def constant(self, what: str, values, dtype: int = INT32) -> Ref:
        """Adds a constant."""
        return self._view.add(constant_node(f"{self._name}/{what}", values, dtype)).ref

    def put(self, op: str, *inputs, **attributes) -> Node:
        """Puts a node in the place of that of the name, and removes what nothing needs any more."""
        old = self._view.node(self._name)
        node = self._build(self._name, op, inputs, attributes)
        node.controls = list(old.controls)
        self._view.replace(node)
        self._view.remove_dead([ref.node for ref in old.inputs])
        return node

    def _build(self, name: str, op: str, inputs, attributes) -> Node:
        args, types = definition(op).input_arg, {}
        for arg, value in zip(args, inputs, strict=True):
            tensors = value if arg.number_attr else [value]
            for ref in tensors if arg.type_attr else ():
                if isinstance(ref, Ref):
                    types[arg.type_attr] = dtype(self._view, ref)
        types |= attributes
        refs = []
        for arg, value in zip(args, inputs, strict=True):
            if not (isinstance(value, Ref) or arg.number_attr):
                kind = arg.type or types.setdefault(arg.type_attr, INT32)
                value = self._view.add(constant_node(f"{name}/{arg.name}", value, kind)).ref
            refs.append(value)
        return make_node(name, op, refs, device=self._device, **types)


def open_sizes(shape) -> list[int]:
    """Sizes as a Reshape takes them: -1 for one that is no number."""
    return [size if isinstance(size, int) else -1 for size in shape]


def _put(attribute: attr_value_pb2.AttrValue, kind: str, value) -> None:
    """Writes a value of the type `kind`."""
    if isinstance(value, attr_value_pb2.AttrValue):
        attribute.CopyFrom(value)
        return
    if kind == "tensor" and not isinstance(value, tensor_pb2.TensorProto):
        value = tensor_util.make_tensor_proto(value)
    if kind.startswith("list("):
        value = list(value)
        attribute.list.SetInParent()  # though it be empty
    attribute.MergeFrom(value_to_attr_value(bool(value) if kind == "bool" else value, kind, kind))
