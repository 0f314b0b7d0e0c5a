"""Shapes with symbolic sizes, and the values of small integer tensors made from them.

TensorFlow's static shapes say `None` where a size depends on the input. Here
every such size is an expression (`symbolic.Expr`) over the input's unknown sizes,
so that two branches of a residual block are proven equal for any image size.
"""

import copy
import functools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from . import shape_rules, value_rules
from .symbolic import Size, estimate, unknown
from .view import GraphView, Node, Ref

Shape = tuple[Size, ...]
StaticShape = tuple[int | None, ...] | None


class Shapes:
    """Symbolic shapes of all tensors of a view, those of nodes that are added later included.

    Args:
      view: the graph.
      known: node name -> shape of output 0, for inputs and variables.
      values: node name -> elements of output 0, for inputs of which they are known.
      static: called at most once, and only where an op has no rule here: gives
        node name -> TensorFlow's static shape of each output (None: unknown rank).
      scope: tells the unknown sizes of this graph from those of others.
    """

    def __init__(
        self,
        view: GraphView,
        known: Mapping[str, StaticShape],
        static: Callable[[], Mapping[str, Sequence[StaticShape]]],
        values: Mapping[str, np.ndarray] | None = None,
        scope: str = "",
    ):
        self.view, self._known, self._scope = view, known, scope
        self._shapes: dict[Ref, Shape | None] = {}
        self._values = {Ref(name): value for name, value in (values or {}).items()}
        self._ask_static = static
        self._static: Mapping[str, Sequence[StaticShape]] | None = None
        for node in view.topological():
            self._shapes[node.ref] = self._infer(node)

    def on(self, view: GraphView) -> "Shapes":
        """The same shapes and values, for a copy of the view."""
        other = copy.copy(self)
        other.view = view
        other._shapes, other._values = dict(self._shapes), dict(self._values)
        return other

    def _infer(self, node: Node) -> Shape | None:
        if node.payload is not None:
            return node.payload.shape(node, self)
        if node.name in self._known:
            return self._merge(node.ref, self._known[node.name], None)
        if node.op == "Placeholder":  # a variable's handle
            return ()
        value = value_rules.infer(node, self)
        if value is not None:
            self._values[node.ref] = value
            return value.shape
        inferred = shape_rules.infer(node, self)
        if inferred is not None and None not in inferred:
            return inferred
        return self._merge(node.ref, self._static_shape(node.ref), inferred)

    def _static_shape(self, ref: Ref) -> StaticShape:
        if self._static is None:
            self._static = self._ask_static()
        outputs = self._static.get(ref.node, ())
        return outputs[ref.port] if ref.port < len(outputs) else None

    def shape(self, ref: Ref) -> Shape | None:
        """The shape, or None where the rank is unknown."""
        if ref not in self._shapes and ref.node in self.view:
            if ref.port:
                inferred = shape_rules.infer_port(self.view.node(ref.node), ref.port, self)
                if inferred is None or None in inferred:
                    inferred = self._merge(ref, self._static_shape(ref), inferred)
                self._shapes[ref] = inferred
            else:
                self._shapes[ref] = None  # what a loop of version 1 that leads back here sees
                self._shapes[ref] = self._infer(self.view.node(ref.node))
        return self._shapes.get(ref)

    def put(self, ref: Ref, shape: Shape) -> None:
        """States the shape of a tensor that was added, where more is known than rules can tell."""
        self._shapes[ref] = shape

    def contradiction(self, node: Node) -> Shape | None:
        """What the rules say of a node, where it cannot be what is known of its tensor."""
        known = self.shape(node.ref)
        if node.payload is not None:
            if any(self._is_part(ref) for ref in node.inputs):
                return None  # Known of a part is its own shape, not that of the tensor it is in.
            made = node.payload.shape(node, self)
        elif node.name in self._known:
            return None
        else:
            value = value_rules.infer(node, self)
            made = shape_rules.infer(node, self) if value is None else value.shape
        if known is None or made is None:
            return None
        same = len(known) == len(made) and all(
            a == b or not (isinstance(a, int) and isinstance(b, int))
            for a, b in zip(known, made, strict=True)
        )
        return None if same else made

    def _is_part(self, ref: Ref) -> bool:
        payload = self.view.producer(ref).payload
        return payload is not None and payload.dst_part is not None

    def value(self, ref: Ref) -> np.ndarray | None:
        """An integer tensor's elements as an object array of sizes, where they are known."""
        self.shape(ref)
        return self._values.get(ref)

    def numbers(self, ref: Ref) -> list[int] | None:
        """The same as a list, whatever its rank, where all of them are numbers."""
        value = self.value(ref)
        if value is None or not all(isinstance(size, int) for size in value.flat):
            return None
        return [int(size) for size in value.flat]

    def number(self, ref: Ref) -> int | None:
        """The only one of its elements, where it is a number."""
        found = self.numbers(ref)
        return found[0] if found is not None and len(found) == 1 else None

    def rank(self, ref: Ref) -> int | None:
        shape = self.shape(ref)
        return None if shape is None else len(shape)

    def channels(self, ref: Ref) -> int | None:
        """The last size of a rank-4 tensor, where it is a known number, not zero."""
        shape = self.shape(ref)
        known = shape and len(shape) == 4 and isinstance(shape[3], int)
        return shape[3] or None if known else None

    def features(self, ref: Ref) -> int | None:
        """The last size of a tensor [N, C], [N, W, C] or [N, H, W, C], if known and not zero."""
        shape = self.shape(ref)
        known = shape and len(shape) in (2, 3, 4) and isinstance(shape[-1], int)
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
        own = unknown if not self._scope else functools.partial(unknown, self._scope)
        return tuple(
            known if known is not None else size if size is not None else own("dim", ref, axis)
            for axis, (known, size) in enumerate(zip(static, inferred, strict=True))
        )
