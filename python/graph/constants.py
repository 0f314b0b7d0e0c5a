"""Values of subgraphs that depend on constants and never-assigned variables only.

Floating-point arithmetic is done in float64, whatever the graph's dtype, so that
a folded batch normalisation is rounded once.
"""

import functools
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from tensorflow.core.framework import tensor_pb2, types_pb2

from ..tensorflow_private import dtypes, tensor_util
from .quantized import QUANTIZING, evaluate
from .types import outputs
from .view import GraphView, Node, Ref

LOOPS = frozenset({"StatelessWhile", "While"})
_FEW = 64  # elements
# What may read a variable without making it assignable.
_READERS = frozenset(
    {"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape", "Identity"}
)


class Variable(NamedTuple):
    """A variable outside the graph: its shape (None: not known), how to read it as a tensor."""

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


def _wide(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float64) if value.dtype.kind == "f" else value


def _squeeze(node: Node, x: np.ndarray) -> np.ndarray:
    return np.squeeze(x, tuple(node.attr["squeeze_dims"].list.i) or None)


def _cast(node: Node, x: np.ndarray) -> np.ndarray:
    """Rounds to narrow types only: what is float64 here stays so for float32."""
    dtype = dtypes.as_dtype(node.attr["DstT"].type)
    stays = x.dtype.kind == "f" and x.dtype.itemsize >= 4 and dtype.size >= 4
    return x if stays and dtype.is_floating else x.astype(dtype.as_numpy_dtype)


def _arithmetic(function: Callable) -> Callable:
    """In float64; float16 is rounded after each step, as the graph does."""

    def evaluate(node: Node, *args) -> np.ndarray:
        with np.errstate(all="ignore"):  # infinities and NaN are values as others
            result = function(*map(_wide, args))
        return result.astype(np.float16) if args[0].dtype == np.float16 else result

    return evaluate


def taken(node: Node, begin, end, strides) -> tuple:
    """What a StridedSlice of these bounds takes, as NumPy's brackets say it."""

    def has(mask: str, i: int) -> bool:
        return bool(node.attr[f"{mask}_mask"].i >> i & 1)

    index: list = []
    for i, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        if has("ellipsis", i):
            index.append(Ellipsis)
        elif has("new_axis", i):
            index.append(np.newaxis)
        elif has("shrink_axis", i):
            index.append(first)
        else:
            start, stop = None if has("begin", i) else first, None if has("end", i) else last
            index.append(slice(start, stop, step))
    return tuple(index)


def _slice(node: Node, x: np.ndarray, begin, size) -> np.ndarray:
    pairs = zip(begin, size, strict=True)
    return x[tuple(slice(b, None if n < 0 else b + n) for b, n in pairs)]


def _reduce(function: Callable) -> Callable:
    def evaluate(node: Node, x: np.ndarray, axes) -> np.ndarray:
        axis = tuple(int(a) for a in np.ravel(axes))
        result = function(_wide(x), axis=axis, keepdims=node.attr["keep_dims"].b)
        return result if x.dtype.kind == "f" and x.dtype != np.float16 else result.astype(x.dtype)

    return evaluate


def _gather(node: Node, x: np.ndarray, indices: np.ndarray, axis=0) -> np.ndarray:
    """Raises IndexError where TensorFlow refuses an index."""
    size = x.shape[int(axis)]
    if indices.size and not 0 <= indices.min() <= indices.max() < size:
        raise IndexError(f"{node.name}: indices are not in [0, {size})")
    return np.take(x, indices, int(axis))


def _jumps(node: Node) -> bool:
    """Whether floats decide: what is rounded as float64 may fall on the other side of a bound."""
    source = node.attr["SrcT" if node.op == "Cast" else "T"].type
    if node.op not in ("Cast", "Less", "NotEqual") or not dtypes.as_dtype(source).is_floating:
        return False
    return node.op != "Cast" or not dtypes.as_dtype(node.attr["DstT"].type).is_floating


def _update_slice(node: Node, x: np.ndarray, update: np.ndarray, begin) -> np.ndarray:
    """XLA's: the slice begins so that it ends in x."""
    begin = np.clip(begin, 0, np.subtract(x.shape, update.shape))
    result = x.copy()
    result[tuple(slice(b, b + n) for b, n in zip(begin, update.shape, strict=True))] = update
    return result


def _softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# Moving data keeps the dtype: convolution weights stay as they are stored.
_MOVES: dict[str, Callable[..., np.ndarray]] = {
    "Identity": lambda node, x: x,
    "StopGradient": lambda node, x: x,
    "Reshape": lambda node, x, shape: x.reshape(shape),
    "Squeeze": _squeeze,
    "ExpandDims": lambda node, x, axis: np.expand_dims(x, int(axis)),
    "Transpose": lambda node, x, order: np.transpose(x, order),
    "Slice": _slice,
    "StridedSlice": lambda node, x, *bounds: x[taken(node, *bounds)],
}
_EVALUATORS: dict[str, Callable[..., np.ndarray]] = {
    **_MOVES,
    **dict.fromkeys(QUANTIZING, evaluate),
    "Cast": _cast,
    "Pack": lambda node, *values: np.stack(values, node.attr["axis"].i),
    "ConcatV2": lambda node, *values: np.concatenate(values[:-1], int(values[-1])),
    "Add": _arithmetic(np.add),
    "AddV2": _arithmetic(np.add),
    "Sub": _arithmetic(np.subtract),
    "Mul": _arithmetic(np.multiply),
    "RealDiv": _arithmetic(np.divide),
    "Maximum": _arithmetic(np.maximum),
    "Minimum": _arithmetic(np.minimum),
    "Neg": _arithmetic(np.negative),
    "Abs": _arithmetic(np.abs),
    "Exp": _arithmetic(np.exp),
    "Sqrt": _arithmetic(np.sqrt),
    "Square": _arithmetic(np.square),
    "Rsqrt": _arithmetic(lambda x: 1.0 / np.sqrt(x)),
    "Reciprocal": _arithmetic(lambda x: 1.0 / x),
    "Relu": _arithmetic(lambda x: np.maximum(x, 0.0)),
    "Sigmoid": _arithmetic(lambda x: 1.0 / (1.0 + np.exp(-x))),
    "Tanh": _arithmetic(np.tanh),
    "Softplus": _arithmetic(lambda x: np.logaddexp(x, 0.0)),
    "Softmax": _arithmetic(_softmax),
    "Log": _arithmetic(np.log),
    "Sum": _reduce(np.sum),
    "Mean": _reduce(np.mean),
    "Max": _reduce(np.max),
    "Min": _reduce(np.min),
    "Prod": _reduce(np.prod),
    "GatherV2": _gather,
    "SelectV2": lambda node, *values: np.where(*values),
    "Fill": lambda node, shape, x: np.full(shape, x),
    "XlaDynamicUpdateSlice": _update_slice,
    "Less": lambda node, x, y: np.less(x, y),
    "NotEqual": lambda node, x, y: np.not_equal(x, y),
}


class Constants:
    """Evaluates constant subgraphs of a view.

    Args:
      view: the graph.
      variables: resource placeholder name -> the variable behind it.
      live: whether values of variables may become others, so that nothing but numbers should be
        decided by them.
      outer: placeholder name -> where its value is known: the constants of the graph that calls
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
        self._values: dict[str, np.ndarray] = {}
        self._read_values: dict[str, np.ndarray] = {}
        self._read_tensors: dict[str, object] = {}
        self._read_only: dict[str, bool] = {}

    def on(self, view: GraphView) -> "Constants":
        """The same for a copy of the view; what was read and evaluated is shared."""
        other = Constants(view, self._variables, self._outer, self.live)
        other._constant, other._read_only = dict(self._constant), dict(self._read_only)
        other._values, other._read_values = dict(self._values), self._read_values
        other._read_tensors = self._read_tensors
        return other

    @property
    def read_tensors(self) -> dict[str, object]:
        """resource placeholder -> the tensor that was read of its variable, of all that were."""
        return self._read_tensors

    def variable_of(self, ref: Ref) -> Variable | None:
        """The variable whose handle `ref` is, where that is known."""
        return self._variables.get(self.origin(ref))

    def is_read_only(self, resource: str) -> bool:
        """Whether nothing, here or outside, can assign the variable behind this placeholder."""
        if resource not in self._read_only:
            readers = [(resource, Ref(resource))]
            known = True
            while readers and known:
                _, ref = readers.pop()
                known = resource in self._outer or not self._view.is_fetched(ref)
                for node, index in self._view.consumers(ref):
                    known = known and (node.op in _READERS or self._only_reads(node, index))
                    if node.op == "Identity":
                        readers.append((node.name, node.ref))
            if known and resource in self._outer:
                constants, ref = self._outer[resource]
                known = constants.is_read_only(constants.origin(ref))
            self._read_only[resource] = known
        return self._read_only[resource]

    def _only_reads(self, node: Node, index: int) -> bool:
        """Whether a loop, condition or call says that its functions do not assign this input.

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
        """Whether `value` would succeed; reads no variable."""
        if ref.port or ref.node not in self._view:
            return False
        name = ref.node
        if name not in self._constant:
            self._constant[name] = self._is_constant(self._view.node(name))
        return self._constant[name]

    def value(self, ref: Ref) -> np.ndarray | None:
        """The value as a read-only array, or None where it is not constant."""
        if not self.is_constant(ref):
            return None
        name = ref.node
        if name not in self._values:
            node = self._view.node(name)
            if node.op == "Const":
                value = array(node.attr["value"].tensor)
            elif node.op == "ReadVariableOp":
                value = self._read(self._resource(node))
            elif node.op == "ResourceGather":
                value = _gather(node, self._read(self._resource(node)), self.value(node.inputs[1]))
            elif node.op == "Placeholder":
                constants, source = self._outer[name]
                value = constants.value(source)
            else:
                value = _EVALUATORS[node.op](node, *(self.value(source) for source in node.inputs))
            self._values[name] = np.asarray(value)
        return self._values[name]

    def scalar(self, ref: Ref) -> float | None:
        """The value as a float where it is constant and has one element."""
        if not self.is_constant(ref):
            return None
        if not self._may_be_scalar(self._view.node(ref.node)):
            return None
        value = self.value(ref)
        return float(value.reshape(())) if value.size == 1 and value.dtype.kind in "fiu" else None

    def _read(self, resource: str) -> np.ndarray:
        """A variable's value; all its readers, in all graphs of a function, share one array."""
        if resource in self._outer:
            constants, ref = self._outer[resource]
            return constants._read(constants.origin(ref))
        if resource not in self._read_values:
            tensor = self._read_tensors[resource] = self._variables[resource].read()
            self._read_values[resource] = np.asarray(tensor)
        return self._read_values[resource]

    def _may_be_scalar(self, node: Node) -> bool:
        """Looks before reading: no variable of several elements takes part."""
        if node.op == "Const":
            return all(dim.size == 1 for dim in node.attr["value"].tensor.tensor_shape.dim)
        if node.op == "ReadVariableOp":
            shape = self._variables[self._resource(node)].shape
            return shape is not None and all(size == 1 for size in shape)
        if node.op == "Placeholder":
            constants, source = self._outer[node.name]
            return constants._may_be_scalar(constants._view.node(source.node))
        if node.op == "ResourceGather":
            return False
        sources = node.inputs[:1] if node.op in _MOVES else node.inputs
        return all(self._may_be_scalar(self._view.node(ref.node)) for ref in sources)

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
        if node.attr["batch_dims"].i or _jumps(node):  # A gather of each sample has the first.
            return False
        if node.op == "ResourceGather":
            return self.reads_constant(node) and self.is_constant(node.inputs[1])
        return (
            node.op in _EVALUATORS and bool(node.inputs) and all(map(self.is_constant, node.inputs))
        )
