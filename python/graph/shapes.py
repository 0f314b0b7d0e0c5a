"""Shapes with symbolic sizes, and the values of small integer tensors computed from them.

TensorFlow's static shapes say `None` where a size depends on the input. Here
every such size is an expression (`symbolic.Expr`) over the input's unknown sizes,
so that two branches of a residual block are proven equal for any image size.
"""

import copy
import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from tensorflow.core.framework import graph_pb2, tensor_shape_pb2, types_pb2

from ..tensorflow_private import dtypes, tensor_util
from . import shape_rules, value_rules
from .families import BINARY, COMPARISONS, UNARY
from .symbolic import Size, estimate, unknown
from .types import dtype
from .view import GraphView, Node, Ref

Shape = tuple[Size, ...]
StaticShape = tuple[int | None, ...] | None
# What TensorFlow's shape functions say of a node's outputs. It gets a graph of this node and of
# what that needs, and data type and shape of each of the graph's placeholders.
AskStatic = Callable[
    [graph_pb2.GraphDef, Mapping[str, tuple[int, StaticShape]]], Mapping[str, Sequence[StaticShape]]
]

# Of these TensorFlow knows more than a shape: what they hold.
_HANDLES = (types_pb2.DT_INVALID, types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT)
_JOINS = ("ConcatV2", "Pack")  # Of shapes some sizes of which are known.
_INTEGERS = (types_pb2.DT_INT32, types_pb2.DT_INT64)
_NOBODY_ASKED = object()
# Of these TensorFlow tells no more than the rules here.
_BROADCAST = BINARY | COMPARISONS | UNARY
# What these say of their outputs is all that TensorFlow tells.
_SAY_SHAPES = frozenset({"Case", "If", "StatelessCase", "StatelessIf", "StatelessWhile", "While"})
_FEW = 1024  # elements of a constant that may say a shape


class Shapes:
    """Symbolic shapes of all tensors of a view, those of nodes that are added later included.

    Args:
      view: the graph.
      known: node name -> shape of output 0, for inputs and variables.
      values: node name -> elements of output 0, for inputs of which they are known.
      static: TensorFlow's static shapes (None: unknown rank) of one node, whose op has no rule
        here: called once for each, with a graph that holds no more than it.
      scope: tells the unknown sizes of this graph from those of others.
      stated: static shapes of a tensor that whoever built the graph stated, which no op tells.
    """

    def __init__(
        self,
        view: GraphView,
        known: Mapping[str, StaticShape],
        static: AskStatic,
        values: Mapping[str, np.ndarray] | None = None,
        scope: str = "",
        stated: Callable[[Ref], Iterable[StaticShape]] = lambda ref: (),
    ):
        self.view, self._known, self._scope, self._stated = view, known, scope, stated
        self._shapes: dict[Ref, Shape | None] = {}
        self._values = {Ref(name): value for name, value in (values or {}).items()}
        self._ask_static = static
        self._static: dict[str, Sequence[StaticShape]] = {}
        for node in view.topological():
            self._shapes[node.ref] = self._infer(node)

    def on(self, view: GraphView) -> "Shapes":
        """The same shapes and values, for a copy of the view."""
        other = copy.copy(self)
        other.view = view
        other._shapes, other._values = dict(self._shapes), dict(self._values)
        other._static = dict(self._static)
        return other

    def _infer(self, node: Node) -> Shape | None:
        if node.payload is not None:
            return node.payload.shape(node, self)
        if node.name in self._known:
            return self._merge(node.ref, self._known[node.name], None)
        value = value_rules.infer(node, self)
        if value is not None:
            self._values[node.ref] = value
            return value.shape
        inferred = shape_rules.infer(node, self)
        return self._complete(node.ref, inferred)

    def _complete(self, ref: Ref, inferred: Shape | None) -> Shape | None:
        """With the sizes that no rule tells."""
        is_complete = inferred is not None and None not in inferred
        if is_complete and all(isinstance(size, int) for size in inferred[1:]):
            return inferred  # Nobody has to state the batch.
        static = functools.reduce(_join, self._stated(ref), None)
        if not is_complete:
            static = _join(static, self._static_shape(ref))
        return inferred if is_complete and static is None else self._merge(ref, static, inferred)

    def _static_shape(self, ref: Ref) -> StaticShape:
        if ref.node not in self._static:
            node = self.view.producer(ref)
            if node.payload is not None or node.op in _BROADCAST:
                return None
            said = node.attr["output_shapes"].list.shape if node.op in _SAY_SHAPES else ()
            self._static[ref.node] = list(map(_as_tuple, said)) or self._asked(node)
        outputs = self._static[ref.node]
        return outputs[ref.port] if ref.port < len(outputs) else None

    def _asked(self, node: Node) -> Sequence[StaticShape]:
        alone = _Alone(node, self)
        return self._ask_static(alone.graph, alone.placeholders)[node.name]

    def shape(self, ref: Ref) -> Shape | None:
        """The shape, or None where the rank is unknown."""
        known = self._shapes.get(ref, _NOBODY_ASKED)
        if known is not _NOBODY_ASKED:
            return known
        if ref.node in self.view:
            if ref.port:
                inferred = shape_rules.infer_port(self.view.node(ref.node), ref.port, self)
                self._shapes[ref] = self._complete(ref, inferred)
            else:
                self._shapes[ref] = None  # what a loop of version 1 that leads back here sees
                self._shapes[ref] = self._infer(self.view.node(ref.node))
        return self._shapes.get(ref)

    def put(self, ref: Ref, shape: Shape) -> None:
        """States the shape of a tensor that was added, where more is known than rules can tell."""
        self._shapes[ref] = shape

    def contradiction(self, node: Node) -> Shape | None:
        """What the rules say of a node, where it cannot be what is known of the tensor."""
        known = self.shape(node.ref)
        if node.payload is not None:
            payloads = (self.view.producer(ref).payload for ref in node.inputs)
            if any(payload is not None and payload.dst_part is not None for payload in payloads):
                return None  # Known of a part is the shape of the part, not of the tensor it is in.
            inferred = node.payload.shape(node, self)
        elif node.name in self._known:
            return None
        else:
            value = value_rules.infer(node, self)
            inferred = shape_rules.infer(node, self) if value is None else value.shape
        if known is None or inferred is None:
            return None
        same = len(known) == len(inferred) and all(
            a == b or not (isinstance(a, int) and isinstance(b, int))
            for a, b in zip(known, inferred, strict=True)
        )
        return None if same else inferred

    def value(self, ref: Ref) -> np.ndarray | None:
        """An integer tensor's elements as an object array of sizes, where they are known."""
        self.shape(ref)
        return self._values.get(ref)

    def numbers(self, ref: Ref) -> list[int] | None:
        """The same as a flat list, where all of them are numbers."""
        value = self.value(ref)
        if value is None or not all(isinstance(size, int) for size in value.flat):
            return None
        return [int(size) for size in value.flat]

    def number(self, ref: Ref) -> int | None:
        """The only element, where it is a number."""
        numbers = self.numbers(ref)
        return numbers[0] if numbers is not None and len(numbers) == 1 else None

    def rank(self, ref: Ref) -> int | None:
        shape = self.shape(ref)
        return None if shape is None else len(shape)

    def channels(self, ref: Ref) -> int | None:
        """The last size of a rank-4 tensor, where it is a known number, not zero."""
        return self.features(ref, ranks=(4,))

    def features(self, ref: Ref, ranks: Sequence[int] = (2, 3, 4)) -> int | None:
        """The last size of a tensor [N, C], [N, W, C] or [N, H, W, C], if known and not zero."""
        shape = self.shape(ref)
        known = shape and len(shape) in ranks and isinstance(shape[-1], int)
        return shape[-1] or None if known else None

    def elements(self, ref: Ref, nominal: int = 64) -> int:
        """About how many elements a tensor has, unknown sizes taken as `nominal`."""
        return math.prod(estimate(size, nominal) for size in self.shape(ref) or ())

    def equal(self, a: Ref, b: Ref) -> bool:
        """Whether two tensors are proven to have the same shape, for any input."""
        first, second = self.shape(a), self.shape(b)
        return first is not None and first == second

    def _merge(self, ref: Ref, static: StaticShape, inferred: Shape | None) -> Shape | None:
        if static is None:  # of nodes that were added
            if inferred is None:
                return None
            static = (None,) * len(inferred)
        if inferred is None or len(inferred) != len(static):
            inferred = (None,) * len(static)
        named = unknown if not self._scope else functools.partial(unknown, self._scope)
        return tuple(
            known if known is not None else size if size is not None else named("dim", ref, axis)
            for axis, (known, size) in enumerate(zip(static, inferred, strict=True))
        )


def _as_tuple(shape: tensor_shape_pb2.TensorShapeProto) -> StaticShape:
    sizes = tuple(None if dim.size < 0 else dim.size for dim in shape.dim)
    return None if shape.unknown_rank else sizes


def _join(a: StaticShape, b: StaticShape) -> StaticShape:
    """What two shapes of one tensor tell together."""
    if a is None or b is None or len(a) != len(b):
        return b if a is None else a
    return tuple(y if x is None else x for x, y in zip(a, b, strict=True))


class _Alone:
    """A graph of a node, of constants that it reads, and of placeholders for all else.

    Handles come with all that produces them, sizes that are not all known as a Pack of them. The
    names of what stands for other nodes are none of the view's.

    Attributes:
        graph: it.
        placeholders: placeholder -> data type and shape.
    """

    def __init__(self, node: Node, shapes: Shapes):
        self._view, self._shapes = shapes.view, shapes
        self.graph = graph_pb2.GraphDef(versions=shapes.view.versions)
        self.placeholders: dict[str, tuple[int, StaticShape]] = {}
        self._wanted, texts, added = [node], {}, set()
        while self._wanted:
            node = self._wanted.pop()
            if node.name in added:
                continue
            added.add(node.name)
            texts.update((ref, self._tensor(ref)) for ref in node.inputs if ref not in texts)
            proto = node.to_proto()
            proto.input[:] = [texts[ref] for ref in node.inputs]
            self.graph.node.append(proto)

    def _tensor(self, ref: Ref) -> str:
        """What is read in the place of a tensor."""
        producer, kind = self._view.producer(ref), dtype(self._view, ref)
        sizes = self._shapes.value(ref)
        joins = producer.op in _JOINS and kind in _INTEGERS and sizes is None
        is_constant = producer.op == "Const" and self._shapes.elements(ref) <= _FEW
        if producer.payload is None and (kind in _HANDLES or is_constant or joins):
            self._wanted.append(producer)
            return str(ref)
        name = self._view.unique_name(f"{ref.node}/{ref.port}")
        if sizes is not None and sizes.ndim < 2:
            return self._numbers(name, sizes, kind)
        shape = self._shapes.shape(ref)
        known = shape and tuple(size if isinstance(size, int) else None for size in shape)
        return self._placeholder(name, kind, known)

    def _numbers(self, name: str, sizes: np.ndarray, kind: int) -> str:
        if all(isinstance(size, int) for size in sizes.flat):
            array = sizes.astype(dtypes.as_dtype(kind).as_numpy_dtype)
            proto = self.graph.node.add(name=name, op="Const")
            proto.attr["dtype"].type = kind
            proto.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(array))
        elif not sizes.ndim:
            self._placeholder(name, kind, ())
        else:
            names = [self._view.unique_name(f"{name}/{i}") for i in range(len(sizes))]
            parts = zip(names, sizes, strict=True)
            names = [self._numbers(part, np.array(size, object), kind) for part, size in parts]
            proto = self.graph.node.add(name=name, op="Pack", input=names)
            proto.attr["T"].type, proto.attr["N"].i = kind, len(names)
        return name

    def _placeholder(self, name: str, kind: int, shape: StaticShape) -> str:
        self.graph.node.add(name=name, op="Placeholder").attr["dtype"].type = kind
        self.placeholders[name] = kind, shape
        return name
