"""Loops over time steps: a While with the body of a Keras cell -> a `Recurrence`, or why not.

Keras, and TensorFlow's dynamic_rnn before it, lower a recurrent layer to one While over tensor
lists: a step reads its input from one, computes the cell, and writes its output into another.
What the loop carries has a role each: a counter, the step, the list of outputs, the state, with a
mask the output of the step before. All of the body must be accounted for; a body that does
anything else, or a cell with a little more than ours, is another recurrence and stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from google.protobuf.message import Message

from ...graph import GraphView, Node, Ref
from ...tensorflow_private import function_def_to_graph, tensor_util

ROOTS = ("While", "StatelessWhile")
_ACTIVATIONS = {"Tanh": "tanh", "Relu": "relu", "Sigmoid": "sigmoid"}
_SUMS = ("AddV2", "Add", "BiasAdd")
_COMMUTATIVE = frozenset({"AddV2", "Add", "Mul"})


@dataclass(frozen=True)
class Recurrence:
    """A recurrent layer. Numbers are positions among the loop's inputs and outputs.

    Attributes:
      cell: "vanilla", "lstm" or "gru".
      activation, recurrent_activation: names the op knows.
      reset_after: of a GRU.
      source: the list of inputs.
      kernel, recurrent_kernel: a variable's handle or a tensor.
      bias: the same, or None.
      states: h, and c of an LSTM.
      outputs: the list of outputs.
      sequences: whether it holds every step's, not the last one's alone.
      mask: the list of masks, or None.
      before: the output of the step before, which only a mask needs; or None.
      zero_output_for_mask: whether a masked step gives zero instead.
      zeros: then where that zero comes from.
      limits: the bounds of the number of steps that the loop carries.
      lengths: those that it knows, as numbers.
      starts: what must begin as zero: counter and step.
    """

    cell: str
    activation: str
    recurrent_activation: str
    reset_after: bool
    source: int
    kernel: int
    recurrent_kernel: int
    bias: int | None
    states: tuple[int, ...]
    outputs: int
    sequences: bool
    mask: int | None
    before: int | None
    zero_output_for_mask: bool
    zeros: int | None
    limits: tuple[int, ...]
    lengths: tuple[int, ...]
    starts: tuple[int, ...]

    def details(self) -> str:
        """What the report says about it."""
        gates = "" if self.cell == "vanilla" else f", gates {self.recurrent_activation}"
        kind = "" if self.cell != "gru" or self.reset_after else " (reset before)"
        masked = ", masked" if self.mask is not None else ""
        which = "all steps" if self.sequences else "last step"
        return f"{self.cell}{kind}, {self.activation}{gates}, {which}{masked}"


class _No(Exception):
    """Why a loop is no recurrence of ours."""


def plan(node: Node, view: GraphView) -> Recurrence | str | None:
    """The recurrence, why it is none of ours, or None if the loop is nothing of the kind."""
    functions = {f.signature.name: f for f in view.library.function}
    body = functions.get(node.attr["body"].func.name)
    if body is None:  # inside another loop, whose library is the main graph's
        return None
    ops = {n.op for n in body.node_def}
    if not {"TensorListGetItem", "TensorListSetItem", "MatMul"} <= ops:
        return None
    try:
        condition = _Function(functions[node.attr["cond"].func.name])
        shapes = node.attr["output_shapes"].list.shape
        return _Loop(condition, _Function(body), shapes).plan()
    except _No as no:
        return str(no)


# Patterns are tuples: an op and its inputs. A string stands for a tensor, the same wherever it
# stands. ("split", k, n, x) is part k of n of the columns of x, however it is cut; ("gates", k, n,
# x) are the columns of gates k to n, of three, of a slice; ("row", k, x) is row k of two;
# ("act", name, x) is an activation, of one kind for each name.
class _Function:
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
        if pattern[0] in ("split", "row", "gates"):
            yield from self._match_part(pattern, ref, bound)
            return
        node = self.view.producer(ref)
        if pattern[0] == "act":
            name = _ACTIVATIONS.get(node.op)
            if name is not None and bound.get(pattern[1], name) == name:
                yield from self.match(pattern[2], node.inputs[0], {**bound, pattern[1]: name})
            return
        ops = _SUMS if pattern[0] == "sum" else (pattern[0],)
        if node.op not in ops or len(node.inputs) != len(pattern) - 1 or ref.port != 0:
            return
        if node.op == "MatMul" and any(
            node.attr[f"{key}_{side}"].b for key in ("transpose", "adj") for side in "ab"
        ):
            return
        orders = [node.inputs]
        if node.op in _COMMUTATIVE:
            orders.append(node.inputs[::-1])
        for inputs in orders:
            yield from self._match_all(list(zip(pattern[1:], inputs, strict=True)), bound)

    def _match_all(self, pairs, bound):
        if not pairs:
            yield bound
            return
        (pattern, ref), *rest = pairs
        for more in self.match(pattern, ref, bound):
            yield from self._match_all(rest, more)

    def _match_part(self, pattern, ref, bound):
        kind, k, n, inner = pattern if len(pattern) == 4 else (*pattern[:2], 2, pattern[2])
        node, units = self.view.producer(ref), bound.get("units")
        if node.op == "Split" and kind != "gates":
            axis = self.constant(node.inputs[0])
            axes = (0,) if kind == "row" else (1, -1)
            if node.attr["num_split"].i == n and ref.port == k and axis.item() in axes:
                yield from self.match(inner, node.inputs[1], bound)
        elif node.op == "StridedSlice" and kind != "row" and units:
            if (cut := self._columns(node)) is None:
                return
            begin, last = (k, n) if kind == "gates" else (k, k + 1)
            ends = {last * units, None} if last == (3 if kind == "gates" else n) else {last * units}
            if cut[0] == begin * units and cut[1] in ends:
                yield from self.match(inner, node.inputs[0], bound)

    def _columns(self, node: Node) -> tuple[int, int | None] | None:
        """[begin, end) of a slice x[:, begin:end]."""
        begin, end, strides = (self.constant(ref) for ref in node.inputs[1:])
        if any(v is None or v.size != 2 for v in (begin, end, strides)) or (strides != 1).any():
            return None
        masks = {key: node.attr[f"{key}_mask"].i for key in ("begin", "end")}
        others = ("ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        rows_whole = (masks["begin"] & 1 or begin[0] == 0) and masks["end"] & 1
        if any(node.attr[key].i for key in others) or not rows_whole:
            return None
        first = 0 if masks["begin"] & 2 else int(begin[1])
        last = None if masks["end"] & 2 else int(end[1])
        return None if first < 0 or (last is not None and last <= 0) else (first, last)


class _Loop:
    """One While: its condition and its body."""

    def __init__(self, condition: _Function, body: _Function, shapes):
        self.condition, self.body, self.shapes = condition, body, shapes

    def plan(self) -> Recurrence:
        if self.body.has_effects:
            raise _No("its body has side effects")
        step, starts, limits, lengths = self._steps()
        written, at, value = self._written()
        if at == step:
            sequences = True
        elif (index := self.body.constant(at)) is not None and index.item() == 0:
            sequences = False
        else:
            raise _No("it writes its outputs in an order of its own")
        invariant = {i for i in range(len(self.body.results)) if self._next_is_itself(i)}
        value, mask, before, zeros = self._unmask(value, step, invariant)
        carried = [
            i
            for i in range(len(self.body.results))
            if i not in invariant and i not in starts and i not in (written, before)
        ]
        cell = self._cell(value, mask, carried, step, invariant)
        source = self._list_read(cell.pop("x"), step, invariant)
        return Recurrence(
            **cell,
            source=source,
            outputs=written,
            sequences=sequences,
            mask=None if mask is None else self._list_read(mask, step, invariant),
            before=before,
            zero_output_for_mask=zeros is not None,
            zeros=zeros,
            limits=limits,
            lengths=lengths,
            starts=starts,
        )

    def _matches(self, pattern, ref: Ref) -> bool:
        return next(self.body.match(pattern, ref, {}), None) is not None

    def _next_is_itself(self, i: int) -> bool:
        return self.body.argument(self.body.results[i]) == i

    def _steps(self) -> tuple[Ref, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The step in the body, the positions that count up from zero, and their bounds."""
        counting = [
            i
            for i, result in enumerate(self.body.results)
            if self._matches(("AddV2", Ref(self.body.arguments[i]), 1.0), result)
        ]
        pairs, open_ends = [], [self.condition.results[0]]
        while open_ends:
            node = self.condition.view.producer(self.condition.strip(open_ends.pop()))
            if node.op == "LogicalAnd":
                open_ends += node.inputs
            elif node.op == "Less":
                count, limit = node.inputs
                pairs.append((self.condition.argument(count), self._limit(limit)))
            else:
                raise _No("it ends for another reason than its number of steps")
        if not pairs or any(i not in counting or limit is None for i, limit in pairs):
            raise _No("its steps are not counted one by one")
        limits = tuple(limit for _, (limit, _) in pairs if limit is not None)
        if not all(map(self._next_is_itself, limits)):
            raise _No("the number of its steps changes on the way")
        lengths = tuple(length for _, (_, length) in pairs if length is not None)
        reads = [n for n in self.body.view if n.op == "TensorListGetItem"]
        steps = {self.body.argument(node.inputs[1]) for node in reads}
        if len(steps) != 1 or (step := steps.pop()) not in counting:
            raise _No("it reads its inputs in an order of its own")
        return Ref(self.body.arguments[step]), tuple(counting), limits, lengths

    def _limit(self, ref: Ref) -> tuple[int | None, int | None] | None:
        """The position or the value of a bound."""
        position, value = self.condition.argument(ref), self.condition.constant(ref)
        if position is None and value is None:
            return None
        return position, None if value is None else value.item()

    def _written(self) -> tuple[int, Ref, Ref]:
        """The list written: its position, where in it, and what."""
        found = []
        for i, result in enumerate(self.body.results):
            node = self.body.view.producer(self.body.strip(result))
            if node.op == "TensorListSetItem" and self.body.argument(node.inputs[0]) == i:
                found.append((i, self.body.strip(node.inputs[1]), self.body.strip(node.inputs[2])))
        if len(found) != 1:
            raise _No(f"it writes {len(found)} lists of outputs, not one")
        return found[0]

    def _list_read(self, ref: Ref, step: Ref, invariant: set[int]) -> int:
        node = self.body.view.producer(self.body.strip(ref))
        if node.op == "TensorListGetItem" and self.body.strip(node.inputs[1]) == step:
            position = self.body.argument(node.inputs[0])
            if position in invariant:
                return position
        raise _No("what a step reads does not come from a list of inputs")

    def _unmask(self, value: Ref, step: Ref, invariant: set[int]):
        """The output before the mask chooses; the mask, the output before, the zeros."""
        chosen = self._choice(value)
        if chosen is None:
            return value, None, None, None
        mask, new, old = chosen
        position = self.body.argument(old)
        if position is None:
            raise _No("a masked step does not repeat an output")
        carried = [
            i
            for i, result in enumerate(self.body.results)
            if i not in invariant and self.body.strip(result) == value
        ]
        if position in invariant:
            zeros = position
            before = carried[0] if carried else None
        else:
            zeros, before = None, position
            if position not in carried:
                raise _No("a masked step does not repeat the output of the step before")
        return new, mask, before, zeros

    def _choice(self, ref: Ref) -> tuple[Ref, Ref, Ref] | None:
        """Mask, then and else of a choice by a mask of this step."""
        node = self.body.view.producer(self.body.strip(ref))
        if node.op not in ("SelectV2", "Select"):
            return None
        tile = self.body.view.producer(self.body.strip(node.inputs[0]))
        mask = self.body.strip(tile.inputs[0]) if tile.op == "Tile" else tile.ref
        return mask, self.body.strip(node.inputs[1]), self.body.strip(node.inputs[2])

    def _state(self, i: int, mask: Ref | None) -> Ref:
        """The next value of state i, without the mask."""
        ref = self.body.strip(self.body.results[i])
        if mask is None:
            return ref
        chosen = self._choice(ref)
        if chosen is None or chosen[0] != mask or self.body.argument(chosen[2]) != i:
            raise _No("a masked step does not keep the state")
        return chosen[1]

    def _cell(self, value, mask, carried, step, invariant) -> dict:
        if not 1 <= len(carried) <= 2:
            raise _No(f"it carries {len(carried)} states")
        nexts = {i: self._state(i, mask) for i in carried}
        hidden = [i for i in carried if nexts[i] == value]
        if len(hidden) != 1:
            raise _No("its output is not its state")
        h = hidden[0]
        cells = [i for i in carried if i != h]
        units = self._units(h)
        candidates = _lstms() if cells else [*_vanillas(), *_grus()]
        for name, reset_after, patterns, bias in candidates:
            bound = {"units": units, "?h": Ref(self.body.arguments[h])}
            pairs = [(patterns[0], value)]
            if cells:
                bound["?c"] = Ref(self.body.arguments[cells[0]])
                pairs.append((patterns[1], nexts[cells[0]]))
            for found in self.body._match_all(pairs, bound):
                roles = {key: self.body.variable(found[key]) for key in ("?W", "?U")}
                if bias:
                    roles["?b"] = self.body.variable(found["?b"])
                if any(position not in invariant for position in roles.values()):
                    continue
                return {
                    "cell": name,
                    "activation": found["f"],
                    "recurrent_activation": found.get("g", "sigmoid"),
                    "reset_after": reset_after,
                    "kernel": roles["?W"],
                    "recurrent_kernel": roles["?U"],
                    "bias": roles.get("?b"),
                    "states": (h, *cells),
                    "x": found["?x"],
                }
        raise _No("its cell is not one of Keras's with activations tanh, sigmoid or relu")

    def _units(self, h: int) -> int | None:
        dims = [d.size for d in self.shapes[h].dim] if h < len(self.shapes) else []
        return dims[1] if len(dims) == 2 and dims[1] > 0 else None


def _vanillas():
    x_w, h_u = ("MatMul", "?x", "?W"), ("MatMul", "?h", "?U")
    yield "vanilla", True, (("act", "f", ("sum", ("sum", x_w, "?b"), h_u)),), True
    yield "vanilla", True, (("act", "f", ("sum", ("sum", x_w, h_u), "?b")),), True
    yield "vanilla", True, (("act", "f", ("sum", x_w, h_u)),), False


def _lstms():
    products = ("sum", ("MatMul", "?x", "?W"), ("MatMul", "?h", "?U"))
    for sums, bias in [(("sum", products, "?b"), True), (products, False)]:
        i, f, g, o = (("split", k, 4, sums) for k in range(4))
        c = (
            "sum",
            ("Mul", ("act", "g", f), "?c"),
            ("Mul", ("act", "g", i), ("act", "f", g)),
        )
        yield "lstm", True, (("Mul", ("act", "g", o), ("act", "f", c)), c), bias


def _grus():
    x_w = ("MatMul", "?x", "?W")

    def state(z, candidate):
        return ("sum", ("Mul", z, "?h"), ("Mul", ("Sub", 1.0, z), candidate))

    # Reset after: a row of the bias each.
    h_u = ("MatMul", "?h", "?U")
    rows = [("Squeeze", ("row", k, "?b")) for k in range(2)]
    for by_input, by_state, bias in [
        (("sum", x_w, rows[0]), ("sum", h_u, rows[1]), True),
        (x_w, h_u, False),
    ]:
        z, r = (
            ("act", "g", ("sum", ("split", k, 3, by_input), ("split", k, 3, by_state)))
            for k in range(2)
        )
        inner = ("sum", ("split", 2, 3, by_input), ("Mul", r, ("split", 2, 3, by_state)))
        yield "gru", True, (state(z, ("act", "f", inner)),), bias
    for by_input, bias in [(("sum", x_w, "?b"), True), (x_w, False)]:
        by_state = ("MatMul", "?h", ("gates", 0, 2, "?U"))
        z, r = (
            ("act", "g", ("sum", ("split", k, 3, by_input), ("split", k, 2, by_state)))
            for k in range(2)
        )
        share = ("MatMul", ("Mul", r, "?h"), ("gates", 2, 3, "?U"))
        inner = ("sum", ("split", 2, 3, by_input), share)
        yield "gru", False, (state(z, ("act", "f", inner)),), bias
