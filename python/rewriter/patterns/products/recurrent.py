"""Loops over time steps whose body is exactly a cell of Keras.

Keras, and TensorFlow's dynamic_rnn before it, lower a recurrent layer to one While over tensor
lists: a step reads its input from one, computes the cell, and writes its output into another.
What the loop carries has a role each: a counter, the step, the list of outputs, the state, with a
mask the output of the step before. All of the body must be accounted for; a body that does
anything else, or a cell with a little more than ours, is another recurrence and stays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from ....graph import Any, Body, Match, Node, OneOf, Op, Ref
from ...context import Context
from .recurrent_cells import CELLS, STEP, C, H
from .recurrent_step import Step

ROOTS = ("While", "StatelessWhile")
# What may be in the body of a cell that has none of our activations: these say nothing about it.
_UNREMARKABLE = frozenset(
    "AddV2 Add BiasAdd Const Identity MatMul Mul NoOp ReadVariableOp Relu Relu6 RealDiv Select"
    " SelectV2 Sigmoid Split SplitV Squeeze StridedSlice Sub Tanh TensorListGetItem"
    " TensorListSetItem Tile Unpack ZerosLike StopGradient Less LogicalAnd Placeholder".split()
)
_COUNTED = Op("Add|AddV2", Any("count"), 1.0)
_WRITTEN = Op("TensorListSetItem", Any("outputs"), Any("at"), Any("value"))


def _masks() -> Iterator:
    """What a step makes of the new value of something and the old one: with no mask, one of a list
    of masks, the steps of each row that count (dynamic_rnn's sequence_length)."""
    yield lambda new, old: new
    mask = Op("TensorListGetItem", Any("mask"), STEP, Any())
    over = Op("GreaterEqual", STEP, Any("row_lengths"))
    yield lambda new, old: Op("Select|SelectV2", OneOf(Op("Tile", mask, Any()), mask), new, old)
    yield lambda new, old: Op("Select|SelectV2", OneOf(Op("Tile", over, Any()), over), old, new)


# (cell, what is written and the next states as patterns), the simple ones first.
_STEPS = [
    (cell, (keep(cell[2][0], Any("before")), *map(keep, cell[2], (H, C))))
    for keep in _masks()
    for cell in CELLS
]


@dataclass(frozen=True)
class Recurrence:
    """A recurrent layer. Numbers are positions among the loop's inputs and outputs.

    Attributes:
      attributes: those of the op.
      roles: of the lists "source", "outputs" and "mask", of "row_lengths", of the matrices "W" and
        "U", each a variable's handle or a tensor, and of the output "before" the first step.
      bias: of the same; one, or two that are its rows, or none.
      states: h, and c of an LSTM.
      limits: the bounds of the number of steps that the loop carries.
      lengths: those that it knows, as numbers.
      zeros: what must begin as zero: counter and step, and the output before.
    """

    attributes: dict[str, object]
    roles: dict[str, int]
    bias: tuple[int, ...]
    states: tuple[int, ...]
    limits: tuple[int, ...]
    lengths: tuple[int, ...]
    zeros: tuple[int, ...]

    def details(self) -> str:
        """What the report says about it."""
        cell, attributes = self.attributes["cell"], self.attributes
        gates = "" if cell == "vanilla" else f", gates {attributes['recurrent_activation']}"
        kind = "" if cell != "gru" or attributes["reset_after"] else " (reset before)"
        masked = ", masked" if "mask" in self.roles else ""
        masked += ", lengths" if "row_lengths" in self.roles else ""
        which = "all steps" if attributes["return_sequences"] else "last step"
        return f"{cell}{kind}, {attributes['activation']}{gates}, {which}{masked}"


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
        return _Loop(Step(condition), Step(steps), node.attr["output_shapes"].list.shape).plan()
    except _No as no:
        return str(no)


class _Loop:
    """One While: its condition and its body."""

    def __init__(self, condition: Step, body: Step, shapes):
        self.condition, self.body, self.shapes = condition, body, shapes
        self.results = list(map(body.seen, body.results))
        positions = range(len(self.results))
        self.invariant = {i for i in positions if body.argument(self.results[i]) == i}
        self.counting = tuple(i for i in positions if self._carries(i, _COUNTED, "count"))

    def plan(self) -> Recurrence:
        if any(n.op.startswith(("Assign", "Print", "Assert")) for n in self.body.view):
            raise _No("its body has side effects")
        positions = range(len(self.results))
        limits, lengths = self._bounds()
        written = {i: match for i in positions if (match := self._carries(i, _WRITTEN, "outputs"))}
        if len(written) != 1:
            raise _No(f"it writes {len(written)} lists of outputs, not one")
        ((outputs, match),) = written.items()
        at, value = match.refs["at"], match.refs["value"]
        carried = {*positions} - self.invariant - {*self.counting, outputs}
        if len(carried) > 3:
            raise _No(f"it carries {len(carried)} states")
        for (name, reset_after, _, bias), states, match in self._cells(value, sorted(carried)):
            # The output of the step before is left; a choice of zeros need not read it.
            rest = carried - {*states}
            roles = self._roles(match, {*states}, rest)
            if roles is None or any(self.results[i] != value for i in rest) or len(rest) > 1:
                continue
            sequences = self._is_of_all_steps(at, roles.pop("step"))
            zeros = {roles[key] for key in ("before",) if key in roles} & self.invariant
            return Recurrence(
                attributes={
                    "cell": name,
                    "activation": match.values["f"],
                    "recurrent_activation": match.values.get("g", "sigmoid"),
                    "reset_after": reset_after,
                    "return_sequences": sequences,
                    "zero_output_for_mask": bool(zeros),
                },
                roles=roles | {"outputs": outputs},
                bias=tuple(roles[key] for key in bias),
                states=states,
                limits=limits,
                lengths=lengths,
                zeros=(*self.counting, *rest, *zeros),
            )
        others = {node.op for node in self.body.view} - _UNREMARKABLE
        what = f": it has {', '.join(sorted(others))}" if others else ""
        raise _No(
            "its cell is not one of Keras's with activations tanh, sigmoid, relu or linear, or"
            f" gates of hard_sigmoid (relu6(x + 3) / 6){what}"
        )

    def _roles(self, match: Match, states: set[int], rest: set[int]) -> dict[str, int] | None:
        """The position of each operand of a step; None where one is not what its role says."""
        roles = {name: self.body.argument(ref) for name, ref in match.refs.items()}
        kinds = {"step": {*self.counting}, "before": self.invariant | rest}
        kinds |= dict.fromkeys("hc", states)
        fits = all(i in kinds.get(name, self.invariant) for name, i in roles.items())
        return roles if fits else None

    def _is_of_all_steps(self, at: Ref, step: int) -> bool:
        """Whether what is written at that index are the outputs of all steps, or the last one's."""
        if self.body.argument(at) == step:
            return True
        index = self.body.constant(at)
        if index is None or index.item() != 0:
            raise _No("it writes its outputs in an order of its own")
        return False

    def _carries(self, i: int, pattern: Op, name: str) -> Match | None:
        """How result i is the pattern of what was carried before under that name."""
        ways = self.body.ways(pattern, self.results[i])
        return next((way for way in ways if self.body.argument(way.refs[name]) == i), None)

    def _bounds(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What bounds the steps: positions, and numbers."""
        limits, lengths, open_ends = [], [], [self.condition.results[0]]
        while open_ends:
            node = self.condition.producer(open_ends.pop())
            if node.op == "LogicalAnd":
                open_ends += node.inputs
                continue
            if node.op != "Less":
                raise _No("it ends for another reason than its number of steps")
            (count, limit), number = map(self.condition.argument, node.inputs), None
            if limit is None and (number := self.condition.constant(node.inputs[1])) is None:
                raise _No("its steps are not counted one by one")
            if count not in self.counting:
                raise _No("its steps are not counted one by one")
            if limit is not None and limit not in self.invariant:
                raise _No("the number of its steps changes on the way")
            limits += [] if limit is None else [limit]
            lengths += [] if number is None else [number.item()]
        return tuple(limits), tuple(lengths)

    def _cells(self, value: Ref, carried: list[int]) -> Iterator:
        """(cell, positions of its states, match) of all ways to read the step."""
        for cell, patterns in _STEPS:
            for states in itertools.permutations(carried, len(patterns) - 1):
                refs = [value, *(self.results[i] for i in states)]
                if not all(map(self.body.may_be, patterns, refs)):
                    continue
                arguments = [Ref(self.body.arguments[i]) for i in states]
                bound = Match(dict(zip("hc", arguments, strict=False)))
                self.body.units = self._units(states[0])
                for match in self.body.ways_of_all(patterns, refs, bound):
                    yield cell, states, match

    def _units(self, h: int) -> int | None:
        dims = [d.size for d in self.shapes[h].dim] if h < len(self.shapes) else []
        return dims[1] if len(dims) == 2 and dims[1] > 0 else None
