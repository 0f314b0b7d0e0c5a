"""The functions of a loop as graphs, and how they are read.

Patterns are tuples: an op and its inputs. A string stands for a tensor, the same wherever it
stands; a number for a constant. ("split", k, n, x) is part k of n of the columns of x, however it
is cut, and ("part", k, n, x) of a vector; ("gates", k, n, x) are the columns of gates k to n, of
three, of a slice; ("row", k, x) is row k of two; ("act", name, x) is an activation, of one kind for
each name, or x itself: "linear".
"""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.message import Message

from ....graph import GraphView, Node, Ref
from ....tensorflow_private import function_def_to_graph, tensor_util

_ACTIVATIONS = {"Tanh": "tanh", "Relu": "relu", "Sigmoid": "sigmoid"}
_SUMS = ("AddV2", "Add", "BiasAdd")
_COMMUTATIVE = frozenset({"AddV2", "Add", "Mul"})


class LoopFunction:
    """A function's body as a graph, its arguments and results."""

    def __init__(self, definition: Message):
        graph_def, names = function_def_to_graph.function_def_to_graph_def(definition)
        self.arguments = [a.name for a in definition.signature.input_arg]
        self.results = []
        for result in definition.signature.output_arg:
            self.results.append(Ref.parse(names[definition.ret[result.name]]))
        self.view = GraphView(graph_def, self.results)
        self.has_effects = any(
            n.op.startswith(("Assign", "Print", "Assert")) for n in definition.node_def
        )

    def strip(self, ref: Ref) -> Ref:
        """What an Identity hands on."""
        while (node := self.view.producer(ref)).op in ("Identity", "StopGradient"):
            ref = node.inputs[0]
        return ref

    def argument(self, ref: Ref) -> int | None:
        """The position of the argument that `ref` is."""
        ref = self.strip(ref)
        return self.arguments.index(ref.node) if ref.node in self.arguments else None

    def variable(self, ref: Ref) -> int | None:
        """The argument whose value `ref` is: a tensor, or what a variable holds."""
        node = self.view.producer(self.strip(ref))
        return self.argument(node.inputs[0] if node.op == "ReadVariableOp" else node.ref)

    def constant(self, ref: Ref):
        node = self.view.producer(self.strip(ref))
        if node.op != "Const":
            return None
        return tensor_util.MakeNdarray(node.attr["value"].tensor)

    def match(self, pattern, ref: Ref, bound: dict) -> Iterator[dict]:
        """All ways to read `ref` as `pattern`, as what they bind on top of `bound`."""
        ref = self.strip(ref)
        if isinstance(pattern, str):
            if (position := self.variable(ref)) is not None:
                ref = Ref(self.arguments[position])  # every read of a variable is the same
            if bound.get(pattern, ref) == ref:
                yield {**bound, pattern: ref}
            return
        if isinstance(pattern, Ref):
            if self.strip(pattern) == ref:
                yield bound
            return
        if isinstance(pattern, float):
            value = self.constant(ref)
            if value is not None and value.size == 1 and value.item() == pattern:
                yield bound
            return
        if pattern[0] in ("split", "part", "row", "gates"):
            yield from self._match_part(pattern, ref, bound)
            return
        node = self.view.producer(ref)
        if pattern[0] == "act":
            for name, inner in self._activations(ref):
                if bound.get(pattern[1], name) == name:
                    yield from self.match(pattern[2], inner, {**bound, pattern[1]: name})
            return
        ops = _SUMS if pattern[0] == "sum" else (pattern[0],)
        if node.op not in ops or len(node.inputs) != len(pattern) - 1 or ref.port != 0:
            return
        if node.op == "MatMul" and any(
            node.attr[f"{key}_{side}"].b for key in ("transpose", "adj") for side in "ab"
        ):
            return
        orders = [node.inputs]
        if node.op == "BiasAdd":
            orders = [[node.inputs[0], self._one_row(node.inputs[1])]]
        if node.op in _COMMUTATIVE:
            orders.append(node.inputs[::-1])
        for inputs in orders:
            yield from self.match_all(list(zip(pattern[1:], inputs, strict=True)), bound)

    def _one_row(self, ref: Ref) -> Ref:
        """What a bias is the only row of: Keras adds products of one row so. Or itself."""
        node = self.view.producer(self.strip(ref))
        if node.op != "Squeeze" or list(node.attr["squeeze_dims"].list.i) not in ([], [0]):
            return ref
        product = self.strip(node.inputs[0])
        return product if self.view.producer(product).op == "MatMul" else ref

    def match_all(self, pairs, bound):
        if not pairs:
            yield bound
            return
        (pattern, ref), *rest = pairs
        for more in self.match(pattern, ref, bound):
            yield from self.match_all(rest, more)

    def _activations(self, ref: Ref) -> Iterator[tuple[str, Ref]]:
        """What a tensor may be: an activation, and of what."""
        node = self.view.producer(ref)
        if (name := _ACTIVATIONS.get(node.op)) is not None:
            yield name, node.inputs[0]
        hard = ("RealDiv", ("Relu6", ("sum", "?inner", 3.0)), 6.0)
        for found in self.match(hard, ref, {}):
            yield "hard_sigmoid", found["?inner"]
        yield "linear", ref

    def _match_part(self, pattern, ref, bound):
        if pattern[0] == "row":
            yield from self._match_row(*pattern[1:], ref, bound)
            return
        kind, k, n, inner = pattern
        axes = (0, -1) if kind == "part" else (1, -1)
        node, units = self.view.producer(ref), bound.get("units")
        if node.op == "Split" and kind != "gates":
            axis = self.constant(node.inputs[0])
            if node.attr["num_split"].i == n and ref.port == k and axis.item() in axes:
                yield from self.match(inner, node.inputs[1], bound)
        elif node.op == "SplitV" and kind != "gates" and units:
            sizes, axis = (self.constant(i) for i in node.inputs[1:])
            if sizes is None or axis.item() not in axes or ref.port != k or k >= n:
                return
            # The rest is a part of its own, be it empty.
            is_rest = k == n - 1 and k == sizes.size - 1 and sizes[k] == -1
            if (sizes[:k] == units).all() and (sizes[k] == units or is_rest):
                yield from self.match(inner, node.inputs[0], bound)
        elif node.op == "StridedSlice" and units:
            if (cut := self._columns(node, rank=1 if kind == "part" else 2)) is None:
                return
            begin, last = (k, n) if kind == "gates" else (k, k + 1)
            ends = {last * units, None} if last == (3 if kind == "gates" else n) else {last * units}
            if cut[0] == begin * units and cut[1] in ends:
                yield from self.match(inner, node.inputs[0], bound)

    def _match_row(self, k, inner, ref, bound):
        node = self.view.producer(ref)
        if node.op == "Unpack" and node.attr["axis"].i == 0 and node.attr["num"].i == 2:
            if ref.port == k:
                yield from self.match(inner, node.inputs[0], bound)
            return
        if node.op != "Squeeze":
            return
        ref = self.strip(node.inputs[0])
        node = self.view.producer(ref)
        if node.op != "Split" or node.attr["num_split"].i != 2 or ref.port != k:
            return
        if self.constant(node.inputs[0]).item() == 0:
            yield from self.match(inner, node.inputs[1], bound)

    def _columns(self, node: Node, rank: int) -> tuple[int, int | None] | None:
        """[begin, end) of a slice x[begin:end] of a vector, or x[:, begin:end]."""
        begin, end, strides = (self.constant(ref) for ref in node.inputs[1:])
        if any(v is None or v.size != rank for v in (begin, end, strides)) or (strides != 1).any():
            return None
        masks = {key: node.attr[f"{key}_mask"].i for key in ("begin", "end")}
        others = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        rows_whole = rank == 1 or (masks["begin"] & 1 or begin[0] == 0) and masks["end"] & 1
        if any(node.attr[key].i for key in others) or not rows_whole:
            return None
        first = 0 if masks["begin"] & rank else int(begin[-1])
        last = None if masks["end"] & rank else int(end[-1])
        return None if first < 0 or (last is not None and last <= 0) else (first, last)
