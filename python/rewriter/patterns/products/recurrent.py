"""Loops over time steps whose body is exactly a cell of Keras.

Keras, and TensorFlow's dynamic_rnn before it, lower a recurrent layer to one While over tensor
lists: a step reads its input from one, computes the cell, and writes its output into another.
What the loop carries has a role each: a counter, the step, the list of outputs, the state, with a
mask the output of the step before. All of the body must be accounted for; a body that does
anything else, or a cell with a little more than ours, is another recurrence and stays.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....graph import Body, Match, Node, Op, Ref, Scalar
from ...context import Context
from .recurrent_cells import grus, lstms, vanillas
from .recurrent_step import Is, Step

ROOTS = ("While", "StatelessWhile")
# What may be in the body of a cell that has none of our activations: these say nothing about it.
_UNREMARKABLE = frozenset(
    "AddV2 Add BiasAdd Const Identity MatMul Mul NoOp ReadVariableOp Relu Relu6 RealDiv Select"
    " SelectV2 Sigmoid Split SplitV Squeeze StridedSlice Sub Tanh TensorListGetItem"
    " TensorListSetItem Tile Unpack ZerosLike StopGradient Less LogicalAnd Placeholder".split()
)


@dataclass(frozen=True)
class Recurrence:
    """A recurrent layer. Numbers are positions among the loop's inputs and outputs.

    Attributes:
      cell: "vanilla", "lstm" or "gru".
      activation, recurrent_activation: names the op knows.
      reset_after: of a GRU.
      source: the list of inputs.
      kernel, recurrent_kernel: a variable's handle or a tensor.
      bias: of the same; one, or two that are its rows, or none.
      states: h, and c of an LSTM.
      outputs: the list of outputs.
      sequences: whether it holds every step's, not the last one's alone.
      mask: the list of masks, or None.
      row_lengths: the steps of each row that count (dynamic_rnn's sequence_length), or None.
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
    bias: tuple[int, ...]
    states: tuple[int, ...]
    outputs: int
    sequences: bool
    mask: int | None
    row_lengths: int | None
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
        masked += ", lengths" if self.row_lengths is not None else ""
        which = "all steps" if self.sequences else "last step"
        return f"{self.cell}{kind}, {self.activation}{gates}, {which}{masked}"


class _No(Exception):
    """Why a loop is no recurrence of ours."""


def find(node: Node, body: Body, context: Context) -> Recurrence | str | None:
    """The recurrence of the loop `node`; None if it is nothing of the kind."""
    condition, steps = (body.inner.get((node.name, key, 0)) for key in ("cond", "body"))
    if body.place is not None or condition is None or steps is None:
        return None
    if not {"TensorListGetItem", "TensorListSetItem", "MatMul"} <= {n.op for n in steps.view}:
        return None
    try:
        shapes = node.attr["output_shapes"].list.shape
        return _Loop(Step(condition), Step(steps), shapes).plan()
    except _No as no:
        return str(no)


class _Loop:
    """One While: its condition and its body."""

    def __init__(self, condition: Step, body: Step, shapes):
        self.condition, self.body, self.shapes = condition, body, shapes

    def plan(self) -> Recurrence:
        if any(n.op.startswith(("Assign", "Print", "Assert")) for n in self.body.view):
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
        row_lengths = None if mask is None else self._row_lengths(mask, step, invariant)
        is_list = mask is not None and row_lengths is None
        return Recurrence(
            **cell,
            source=source,
            outputs=written,
            sequences=sequences,
            mask=self._list_read(mask, step, invariant) if is_list else None,
            row_lengths=row_lengths,
            before=before,
            zero_output_for_mask=zeros is not None,
            zeros=zeros,
            limits=limits,
            lengths=lengths,
            starts=starts,
        )

    def _next_is_itself(self, i: int) -> bool:
        return self.body.argument(self.body.results[i]) == i

    def _steps(self) -> tuple[Ref, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """The step in the body, the positions that count up from zero, and their bounds."""
        counting = [
            i
            for i, result in enumerate(self.body.results)
            if any(
                self.body.ways(Op("AddV2", Is(Ref(self.body.arguments[i])), Scalar(1.0)), result)
            )
        ]
        pairs, open_ends = [], [self.condition.results[0]]
        while open_ends:
            node = self.condition.producer(open_ends.pop())
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
            node = self.body.producer(result)
            if node.op == "TensorListSetItem" and self.body.argument(node.inputs[0]) == i:
                found.append((i, self.body.strip(node.inputs[1]), self.body.strip(node.inputs[2])))
        if len(found) != 1:
            raise _No(f"it writes {len(found)} lists of outputs, not one")
        return found[0]

    def _list_read(self, ref: Ref, step: Ref, invariant: set[int]) -> int:
        node = self.body.producer(ref)
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
        node = self.body.producer(ref)
        if node.op not in ("SelectV2", "Select"):
            return None
        tile = self.body.producer(node.inputs[0])
        mask = self.body.strip(tile.inputs[0]) if tile.op == "Tile" else tile.ref
        chosen, other = map(self.body.strip, node.inputs[1:])
        if tile.op == "GreaterEqual":  # step >= length: the row has ended
            chosen, other = other, chosen
        return mask, chosen, other

    def _row_lengths(self, mask: Ref, step: Ref, invariant: set[int]) -> int | None:
        """The position of the lengths that a mask compares with the step."""
        node = self.body.view.producer(mask)
        if node.op != "GreaterEqual" or self.body.strip(node.inputs[0]) != step:
            return None
        position = self.body.argument(node.inputs[1])
        return position if position in invariant else None

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
        self.body.units = self._units(h)
        candidates = lstms() if cells else [*vanillas(), *grus()]
        for name, reset_after, patterns, bias in candidates:
            states = dict(zip("hc", (h, *cells), strict=False))
            bound = Match({key: Ref(self.body.arguments[i]) for key, i in states.items()})
            values = (value, *(nexts[i] for i in cells))
            for found in self.body.ways_of_all(patterns, values, bound):
                roles = {key: self.body.variable(found.refs[key]) for key in ("W", "U", *bias)}
                if any(position not in invariant for position in roles.values()):
                    continue
                return {
                    "cell": name,
                    "activation": found.values["f"],
                    "recurrent_activation": found.values.get("g", "sigmoid"),
                    "reset_after": reset_after,
                    "kernel": roles["W"],
                    "recurrent_kernel": roles["U"],
                    "bias": tuple(roles[key] for key in bias),
                    "states": (h, *cells),
                    "x": found.refs["x"],
                }
        others = {node.op for node in self.body.view} - _UNREMARKABLE
        what = f": it has {', '.join(sorted(others))}" if others else ""
        raise _No(
            "its cell is not one of Keras's with activations tanh, sigmoid, hard_sigmoid"
            f" (relu6(x + 3) / 6), relu or linear{what}"
        )

    def _units(self, h: int) -> int | None:
        dims = [d.size for d in self.shapes[h].dim] if h < len(self.shapes) else []
        return dims[1] if len(dims) == 2 and dims[1] > 0 else None
