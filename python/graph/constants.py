"""Values of subgraphs that depend on constants and never-assigned variables only.

What only moves elements keeps their type and, where NumPy can, their memory: convolution weights
stay as they are stored. All else TensorFlow computes itself: continuous functions in float64 where
the graph computes in float32, so that a folded batch normalisation is rounded once, and others,
with all that leads to them, as the graph does. A sign, a rounded number, a comparison or an index
that was computed from finer numbers could be another one.
"""

import contextlib
import copy
import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2, types_pb2

from ..tensorflow_private import context, dtypes, execute, op_def_registry, tensor_util
from .families import BINARY, FRAMES, LOOPS, PRODUCTS, READS, STEPS, UNARY
from .moves import MOVES, move, moved
from .types import definition, input_dtypes, output_dtypes, outputs, value_of
from .view import GraphView, Node, Ref, producers_first

_FEW = 64  # elements
# What may read a variable without making it assignable.
_READERS = READS | {"Identity"}
# Ops that mostly compute weights.
_CONTINUOUS = UNARY.union(
    BINARY,
    PRODUCTS,
    "AddN Cast Fill LogSoftmax Max Mean Min OnesLike Pad PadV2 Prod Select SelectV2 Softmax Sum "
    "XlaDynamicUpdateSlice ZerosLike".split(),
).difference(STEPS)
# Stateless, but their results are not those of their inputs alone.
_OF_FRAMES = FRAMES.union(
    (f"Ref{op}" for op in FRAMES),
    "LoopCond Placeholder PlaceholderV2 PlaceholderWithDefault".split(),
)


class Variable(NamedTuple):
    """A variable outside the graph: the shape (None: not known), how to read it as a tensor."""

    shape: tuple[int | None, ...] | None
    read: Callable


def array(tensor: tensor_pb2.TensorProto) -> np.ndarray:
    """The value of a Const; what few numbers come to is kept, as many nodes have the same."""
    size = math.prod(dim.size for dim in tensor.tensor_shape.dim)
    return _few(tensor.SerializeToString()) if size <= _FEW else tensor_util.MakeNdarray(tensor)


@functools.lru_cache(4096)
def _few(definition: bytes) -> np.ndarray:
    value = tensor_util.MakeNdarray(tensor_pb2.TensorProto.FromString(definition))
    value.flags.writeable = False
    return value


def _is_computed(node: Node) -> bool:
    """Whether the results follow from the inputs alone, and all of them are numbers."""
    if node.op in MOVES:
        return True
    if node.op in _OF_FRAMES or not _is_function(node.op):
        return False
    kinds = [*input_dtypes(node), *output_dtypes(node)]
    return all(map(_is_number, kinds))


@functools.cache
def _is_function(op: str) -> bool:
    """Whether nothing but inputs and numbers decides what an op of TensorFlow's does."""
    if op.startswith("Blockdnn") or (op_def := op_def_registry.get(op)) is None:
        return False
    calls = any("func" in attr.type for attr in op_def.attr)
    return not (op_def.is_stateful or calls) and bool(op_def.input_arg)


@functools.cache
def _is_number(kind: int) -> bool:
    kind = dtypes.as_dtype(kind)
    return kind.is_floating or kind.is_integer or kind.is_complex or kind.is_bool


def _is_continuous(node: Node) -> bool:
    """Whether finer arguments give finer results."""
    written = map(dtypes.as_dtype, output_dtypes(node))
    return node.op in MOVES or (node.op in _CONTINUOUS and all(k.is_floating for k in written))


def _evaluate(node: Node, values: Sequence[np.ndarray], exactly: bool) -> list[np.ndarray]:
    """What TensorFlow makes of the inputs; nothing where it raises.

    In float64 where the graph computes in float32; float16 is rounded after each step, as the graph
    does.

    Args:
        exactly: in the types of the graph alone.
    """
    for widens in [False] if exactly else [True, False]:
        fed = _widen(node) if widens else node
        with tf.init_scope(), tf.device("CPU:0"), contextlib.suppress(tf.errors.OpError):
            kinds = map(dtypes.as_dtype, input_dtypes(fed))
            pairs = zip(values, kinds, strict=True)
            tensors = [tf.constant(v.astype(kind.as_numpy_dtype)) for v, kind in pairs]
            attributes = [(k, value_of(v)) for k, v in fed.proto.attr.items() if k[0] != "_"]
            flat, count = tuple(itertools.chain(*attributes)), len(output_dtypes(fed))
            results = execute.execute(node.op, count, tensors, flat, context.context())
            return [result.numpy() for result in results]
    return []


def _widen(node: Node) -> Node:
    """The same op in float64, as far as it has that."""
    proto = node.to_proto()
    for attr in definition(node.op).attr:
        allowed = attr.allowed_values.list.type or (types_pb2.DT_DOUBLE,)
        if node.attr[attr.name].type == types_pb2.DT_FLOAT and types_pb2.DT_DOUBLE in allowed:
            proto.attr[attr.name].type = types_pb2.DT_DOUBLE
    return Node.from_proto(proto)


class Constants:
    """Evaluates constant subgraphs of a view.

    Args:
      view: the graph.
      variables: resource placeholder name -> the variable behind it.
      live: whether values of variables may become others, so that nothing but numbers should be
        decided by them.
      outer: placeholder name -> where the value is known: the constants of the graph that calls
        this one, and a tensor there. A resource has to be in `variables`, too.
    """

    def __init__(
        self,
        view: GraphView,
        variables: Mapping[str, Variable],
        outer: Mapping[str, tuple["Constants", Ref]] | None = None,
        live: bool = False,
    ):
        self._view, self.live = view, live
        self._outer = outer or {}
        self._variables = variables
        self._constant: dict[str, bool] = {}
        self._small: dict[str, bool] = {}
        self._values: dict[str, Sequence[np.ndarray]] = {}  # of the outputs of a node
        self._exact: dict[str, Sequence[np.ndarray]] = {}  # the same, as the graph computes them
        self._read_values: dict[str, np.ndarray] = {}
        self._read_tensors: dict[str, object] = {}
        self._read_only: dict[str, bool] = {}

    def on(self, view: GraphView) -> "Constants":
        """The same for a copy of the view; what was read and evaluated is shared."""
        other = copy.copy(self)
        other._view = view
        for table in ("_constant", "_small", "_values", "_exact", "_read_only"):
            setattr(other, table, dict(getattr(self, table)))
        return other

    @property
    def read_tensors(self) -> dict[str, object]:
        """resource placeholder -> the tensor that was read of the variable, of all that were."""
        return self._read_tensors

    def variable_of(self, ref: Ref) -> Variable | None:
        """The variable whose handle `ref` is, where that is known."""
        return self._variables.get(self.origin(ref))

    def is_read_only(self, resource: str) -> bool:
        """Whether nothing, here or outside, can assign the variable behind this placeholder."""
        if resource not in self._read_only:
            handles, known = [Ref(resource)], True
            while handles and known:
                ref = handles.pop()
                known = resource in self._outer or not self._view.is_fetched(ref)
                for node, index in self._view.consumers(ref):
                    known = known and (node.op in _READERS or self._only_reads(node, index))
                    if node.op == "Identity":
                        handles.append(node.ref)
            if known and resource in self._outer:
                constants, ref = self._outer[resource]
                known = constants.is_read_only(constants.origin(ref))
            self._read_only[resource] = known
        return self._read_only[resource]

    def _only_reads(self, node: Node, index: int) -> bool:
        """Whether a loop, condition or call says that no function of it assigns this input.

        Nobody may take it from there: a loop hands it on as the output of the same number, others
        as any output that is a handle.
        """
        if index not in node.attr["_read_only_resource_inputs"].list.i:
            return False
        kinds = enumerate(kind for _, kind in outputs(node))
        handles = [port for port, kind in kinds if kind == types_pb2.DT_RESOURCE]
        ports = [index] if node.op in LOOPS else handles
        return not any(self._view.use_count(Ref(node.name, port)) for port in ports)

    def reads_constant(self, node: Node) -> bool:
        """Whether the variable whose handle is the node's first input is known and not assigned."""
        resource = self._resource(node)
        return resource is not None and self.is_read_only(resource)

    def shape_of_read(self, node: Node) -> tuple[int | None, ...] | None:
        """The shape of the variable that a ReadVariableOp reads, where it is known."""
        resource = self._resource(node)
        return self._variables[resource].shape if resource is not None else None

    def value_of_variable(self, resource: str) -> np.ndarray | None:
        """What the variable behind this placeholder held; None where it is assigned, or none."""
        known = resource in self._variables and self.is_read_only(resource)
        return self._read(resource) if known else None

    def is_constant(self, ref: Ref) -> bool:
        """Whether `value` would succeed, unless TensorFlow raises; reads no variable."""
        is_one = ref.node in self._view and self._known(self._constant, self._is_constant, ref)
        return is_one and self._values.get(ref.node) != []  # which says that TensorFlow raised

    def value(self, ref: Ref, exactly: bool = False) -> np.ndarray | None:
        """The value as a read-only array; None where it is not constant, or an op that makes it
        raises, which it does in each call, too.

        Args:
          exactly: as the graph computes it, all of it in the types of the graph.
        """
        if not self.is_constant(ref):
            return None
        table = self._exact if exactly else self._values
        values = self._known(table, lambda node: self._outputs(node, exactly), ref)
        return values[ref.port] if values else None

    def _known(self, table: dict, decide: Callable, ref: Ref):
        """What `decide` says of the producer of a tensor, after the producers of the inputs."""
        if ref.node in table:
            return table[ref.node]
        if all(name in table for name in self._sources(ref.node, table)):
            table[ref.node] = decide(self._view.node(ref.node))
        else:
            for name in producers_first([ref.node], lambda name: self._sources(name, table)):
                if name not in table:
                    table[name] = decide(self._view.node(name))
        return table[ref.node]

    def _sources(self, name: str, table: dict) -> list[str]:
        """The nodes that have to be in the table before this one is."""
        node = self._view.node(name)
        ends = name in table or (table is self._values and not _is_continuous(node))
        operands = () if ends else _operands(node)
        return [ref.node for ref in operands if ref.node in self._view]

    def apply(self, node: Node, x: np.ndarray) -> np.ndarray | None:
        """What a node, all of whose other inputs are constant, makes of x as the first of them."""
        values = [x, *map(self.value, node.inputs[1:])]
        return (_evaluate(node, values, not _is_continuous(node)) or [None])[0]

    def _outputs(self, node: Node, exactly: bool) -> Sequence[np.ndarray]:
        """The values of a constant node's outputs; nothing where TensorFlow raises."""
        exactly = exactly or not _is_continuous(node)
        value = functools.partial(self.value, exactly=exactly)
        if node.op == "Const":
            return [array(node.attr["value"].tensor)]
        if node.op == "ReadVariableOp":
            return [self._read(self._resource(node))]
        if node.op == "Placeholder":
            constants, source = self._outer[node.name]
            return [constants.value(source, exactly)]
        if node.op == "ResourceGather":
            params, indices = self._read(self._resource(node)), value(node.inputs[1])
            fits = ((0 <= indices) & (indices < len(params))).all()
            return [params[indices]] if fits else []
        values = list(map(value, node.inputs))
        if any(each is None for each in values):
            return []
        arrays = map(value, moved(node)) if node.op in MOVES else ()
        return (arrays and move(node, [*arrays], value)) or _evaluate(node, values, exactly)

    def scalar(self, ref: Ref) -> float | None:
        """The value as a float where it is constant and has one element."""
        if not self.is_constant(ref) or not self._known(self._small, self._is_small, ref):
            return None
        value = self.value(ref)
        is_number = value is not None and value.size == 1 and value.dtype.kind in "fiu"
        return float(value.reshape(())) if is_number else None

    def _read(self, resource: str) -> np.ndarray:
        """A variable's value; all readers, in all graphs of a function, share one array."""
        if resource in self._outer:
            constants, ref = self._outer[resource]
            return constants._read(constants.origin(ref))
        if resource not in self._read_values:
            tensor = self._read_tensors[resource] = self._variables[resource].read()
            self._read_values[resource] = np.asarray(tensor)
        return self._read_values[resource]

    def _is_small(self, node: Node) -> bool:
        """Looks before reading: no variable of several elements takes part."""
        if node.op == "Const":
            return all(dim.size == 1 for dim in node.attr["value"].tensor.tensor_shape.dim)
        if node.op == "ReadVariableOp":
            shape = self._variables[self._resource(node)].shape
            return shape is not None and all(size == 1 for size in shape)
        if node.op == "Placeholder":
            constants, source = self._outer[node.name]
            return constants._known(constants._small, constants._is_small, source)
        if node.op == "ResourceGather":
            return False
        sources = moved(node) if node.op in MOVES else node.inputs
        return all(self._small[ref.node] for ref in sources)

    def _resource(self, node: Node) -> str | None:
        origin = self.origin(node.inputs[0])
        return origin if origin in self._variables else None

    def origin(self, ref: Ref) -> str:
        """The node that makes a handle, past identities."""
        return self._view.origin(ref, ("Identity",)).node

    def _is_constant(self, node: Node) -> bool:
        if node.op == "Const":
            return True
        if node.op == "ReadVariableOp":
            return self.reads_constant(node)
        if node.op == "Placeholder" and node.name in self._outer:
            constants, source = self._outer[node.name]
            return constants.is_constant(source)
        if node.op == "ResourceGather":
            if node.attr["batch_dims"].i or not self.reads_constant(node):
                return False  # `_outputs` reads rows of a variable.
        operands = _operands(node)
        return bool(operands) and all(map(self.is_constant, operands))


def _operands(node: Node) -> list[Ref]:
    """The tensors that have to be constant for the results to be; none if they never are."""
    if node.payload is not None:
        return []
    if node.op == "ResourceGather":
        return node.inputs[1:]
    return node.inputs if _is_computed(node) else []
