"""Loops over time steps whose body is exactly a cell of Keras.

Each becomes one op. Keras, and TensorFlow's dynamic_rnn before it, lower a recurrent layer to one
While over tensor lists: a step reads the input from one, computes the cell, and writes the output
into another.
What the loop carries has a role each: a counter, the step, the list of outputs, the state, with a
mask the output of the step before. All of the body must be accounted for; a body that does
anything else, or a cell with a little more than ours, is another recurrence and stays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import tensorflow as tf
from tensorflow.core.framework import types_pb2

from ....graph import Any, Body, Match, Node, OneOf, Op, Ref, dtype, dtype_name, is_float32
from ....graph.families import LOOPS
from ...context import Context
from ...patterns.products.recurrent import CELLS, STEP, C, H, Step
from ...report import Converted
from ...rules import Declined, require

ROOTS = tuple(sorted(LOOPS, reverse=True))
_READERS = frozenset({"ReadVariableOp", "VariableShape", "Identity", *ROOTS})
# What may be in the body of a cell that has none of our activations: these say nothing about it.
_UNREMARKABLE = frozenset(
    "AddV2 Add BiasAdd Const Identity MatMul Mul NoOp ReadVariableOp Relu Relu6 RealDiv Select"
    " SelectV2 Sigmoid Split SplitV Squeeze StridedSlice Sub Tanh TensorListGetItem"
    " TensorListSetItem Tile Unpack ZerosLike StopGradient Less LogicalAnd Placeholder".split()
)
_COUNTED = Op("Add|AddV2", Any("count"), 1.0)
_WRITTEN = Op("TensorListSetItem", Any("outputs"), Any("at"), Any("value"))
_STEPS = Any("steps")
# The number of steps: of the longest row (dynamic_rnn), or a maximum over one number (Keras).
_LIMIT = OneOf(
    Op("Minimum", _STEPS, Op("Maximum", 1.0, OneOf(Op("Max", Any("lengths"), 0), Any("most")))),
    Op("Max", _STEPS, Any()),
    _STEPS,
)


def _masks() -> Iterator:
    """What a step makes of the new value of something and the old one: with no mask, one of a list
    of masks, the steps of each row that count (dynamic_rnn's sequence_length)."""
    yield lambda new, old: new
    mask = Op("TensorListGetItem", Any("mask"), STEP, Any())
    over = Op("GreaterEqual", STEP, Any("row_lengths"))
    yield lambda new, old: Op("Select|SelectV2", OneOf(Op("Tile", mask, Any()), mask), new, old)
    yield lambda new, old: Op("Select|SelectV2", OneOf(Op("Tile", over, Any()), over), old, new)


# (cell, what is written and the next states as patterns), the simple ones first.
_SPELLINGS = [
    (cell, (keep(cell[2][0], Any("before")), *map(keep, cell[2], (H, C))))
    for keep in _masks()
    for cell in CELLS
]


def replace_loops(body: Body, context: Context) -> None:
    """Turns each loop over the steps of a recurrent layer into one op with packed weights."""
    algorithm = "direct" if context.options.algorithm == "direct" else "auto"
    for node in body.view:
        if node.op not in ROOTS:
            continue
        condition, step = (body.inner.get((node.name, key, 0)) for key in ("cond", "body"))
        reason, details = context.reason_to_leave(body, node), None
        try:
            if not reason and body.place is None and condition and step and _is_of_steps(step):
                details = _Loop(node, body, Step(condition), Step(step)).replace(algorithm)
        except Declined as declined:
            reason = str(declined)
        if reason:
            context.report.decline(node.name, reason)
        elif details:
            converted = Converted(node.name, "BlockdnnRnn", None, algorithm, details)
            context.report.converted.append(converted)


def _is_of_steps(step: Body) -> bool:
    return {"TensorListGetItem", "TensorListSetItem", "MatMul"} <= {n.op for n in step.view}


class _Loop:
    """One While: the condition and the body.

    Attributes, once the layer is known, of which numbers are positions among inputs and outputs:
      attributes: those of the op.
      outputs: the list that is written.
      read: role -> what the loop begins with: the lists "source" and "mask", "row_lengths", the
        matrices "W" and "U", each a variable's handle or a tensor.
      bias: of the same; one, or two that are the rows, or none.
      states: h, and c of an LSTM.
      zeros: what must begin as zero: counter and step, and the output before the first step.
    """

    def __init__(self, node: Node, body: Body, condition: Step, step: Step):
        self.node, self.body, self.view, self.write = node, body, body.view, body.writer(node.name)
        self.condition, self.step = condition, step
        self.results = list(map(step.seen, step.results))
        positions = range(len(self.results))
        self.invariant = {i for i in positions if step.argument(self.results[i]) == i}
        self.counting = {i for i in positions if self._carries(i, _COUNTED, "count")}

    def replace(self, algorithm: str) -> str:
        """Replaces it by the layer; returns what the report says about it.

        Raises:
            Declined: it is another recurrence, and stays as it was.
        """
        self._find_layer()
        read = self.node.inputs
        source, mask = self._list_source("source"), self._list_source("mask")
        require(source is not None, "its inputs do not come from one tensor")
        kind = dtype_name(dtype(self.view, source))
        require(is_float32(self.view, source), f"dtype {kind}, only float32 is implemented")
        lengths = self.read.get("row_lengths")
        are_known = lengths is None or self._is_of(lengths, tf.int32)
        require(are_known, "the lengths of its rows are not int32")
        self._check_ends(source)
        is_one = "mask" not in self.read or mask is not None
        require(is_one, "its mask does not come from one tensor")
        require(mask is None or self._is_of(mask, tf.bool), "its mask is not bool")
        begins = all(self._is_zero(read[i]) for i in self.zeros)
        require(begins, "its first step, or the output before that, is not zero")
        used = {i for i in range(len(read)) if self.view.use_count(Ref(self.node.name, i))}
        require(used <= {self.outputs, *self.states}, "something else that it carries is used")
        stacks = [n for n, _ in self.view.consumers(Ref(self.node.name, self.outputs))]
        are_stacks = all(n.op == "TensorListStack" for n in stacks)
        require(are_stacks, "its outputs are read as a list")
        weights = (self.read["W"], self.read["U"], *self.bias)
        is_fixed = not any(map(self._is_assigned, weights))
        require(is_fixed, "its weights are assigned in the same function")
        self._write(source, mask, stacks, algorithm)
        return self._details()

    # Reading the functions.

    def _find_layer(self) -> None:
        writes = any(n.op.startswith(("Assign", "Print", "Assert")) for n in self.step.view)
        require(not writes, "its body has side effects")
        positions = range(len(self.results))
        written = {i: match for i in positions if (match := self._carries(i, _WRITTEN, "outputs"))}
        require(len(written) == 1, f"it writes {len(written)} lists of outputs, not one")
        ((self.outputs, match),) = written.items()
        at, value = match.refs["at"], match.refs["value"]
        carried = {*positions} - self.invariant - self.counting - {self.outputs}
        require(len(carried) <= 3, f"it carries {len(carried)} states")
        for (name, reset_after, _, bias), states, match in self._cells(value, sorted(carried)):
            # The output of the step before is left; a choice of zeros need not read it.
            rest = carried - {*states}
            roles = self._roles(match, {*states}, rest)
            if roles is None or any(self.results[i] != value for i in rest) or len(rest) > 1:
                continue
            before = {roles.get("before")} & self.invariant
            self.states, self.zeros = states, (*self.counting, *rest, *before)
            self.read = {role: self.node.inputs[i] for role, i in roles.items()}
            self.bias = [self.read[key] for key in bias]
            self.attributes = {
                "cell": name,
                "activation": match.values["f"],
                "recurrent_activation": match.values.get("g", "sigmoid"),
                "reset_after": reset_after,
                "return_sequences": self._is_of_all_steps(at, roles["step"]),
                "zero_output_for_mask": bool(before),
            }
            return
        others = {node.op for node in self.step.view} - _UNREMARKABLE
        what = f": it has {', '.join(sorted(others))}" if others else ""
        raise Declined(
            "its cell is not one of Keras's with activations tanh, sigmoid, relu or linear, or"
            f" gates of hard_sigmoid (relu6(x + 3) / 6){what}"
        )

    def _cells(self, value: Ref, carried: list[int]) -> Iterator:
        """(cell, positions of the states, match) of all ways to read the step."""
        for cell, patterns in _SPELLINGS:
            for states in itertools.permutations(carried, len(patterns) - 1):
                refs = [value, *(self.results[i] for i in states)]
                if not all(map(self.step.may_be, patterns, refs)):
                    continue
                arguments = [Ref(self.step.arguments[i]) for i in states]
                bound = Match(dict(zip("hc", arguments, strict=False)))
                self.step.units = self._units(states[0])
                for match in self.step.ways_of_all(patterns, refs, bound):
                    yield cell, states, match

    def _units(self, h: int) -> int | None:
        dims = [[d.size for d in shape.dim] for shape in self.node.attr["output_shapes"].list.shape]
        return dims[h][1] if h < len(dims) and len(dims[h]) == 2 and dims[h][1] > 0 else None

    def _roles(self, match: Match, states: set[int], rest: set[int]) -> dict[str, int] | None:
        """The position of each operand of a step; None where one is not what the role says."""
        roles = {name: self.step.argument(ref) for name, ref in match.refs.items()}
        kinds = {"step": self.counting, "before": self.invariant | rest}
        kinds |= dict.fromkeys("hc", states)
        fits = all(i in kinds.get(name, self.invariant) for name, i in roles.items())
        return roles if fits else None

    def _carries(self, i: int, pattern: Op, name: str) -> Match | None:
        """How result i is the pattern of what was carried before under that name."""
        ways = self.step.ways(pattern, self.results[i])
        return next((way for way in ways if self.step.argument(way.refs[name]) == i), None)

    def _is_of_all_steps(self, at: Ref, step: int) -> bool:
        """Whether what is written at that index are the outputs of all steps, or the last one's."""
        if self.step.argument(at) == step:
            return True
        index = self.step.constant(at)
        is_first = index is not None and index.item() == 0
        require(is_first, "it writes its outputs in an order of its own")
        return False

    def _check_ends(self, source: Ref) -> None:
        """Raises Declined unless it ends when all of the source has been read."""
        steps = (self.body.shapes.shape(source) or ("not known",))[0]
        open_ends = [self.condition.results[0]]
        while open_ends:
            node = self.condition.producer(open_ends.pop())
            if node.op == "LogicalAnd":
                open_ends += node.inputs
                continue
            require(node.op == "Less", "it ends for another reason than its number of steps")
            count, limit = map(self.condition.argument, node.inputs)
            number = self.condition.constant(node.inputs[1])
            counts = count in self.counting and not (limit is None and number is None)
            require(counts, "its steps are not counted one by one")
            is_fixed = limit is None or limit in self.invariant
            require(is_fixed, "the number of its steps changes on the way")
            at_end = self._counts(limit, steps) if number is None else number.item() == steps
            require(at_end, "it may end before its inputs do")

    def _counts(self, limit: int, steps) -> bool:
        """Whether the loop begins with the number of steps there."""

        def equals(ref: Ref) -> bool:
            number = self.body.shapes.value(ref)
            return number is not None and number.size == 1 and number.item() == steps

        scope, lengths = Step(self.body), self.read.get("row_lengths")
        lengths = None if lengths is None else scope.seen(lengths)
        return any(
            equals(refs["steps"])
            and equals(refs.get("most", refs["steps"]))
            and refs.get("lengths", lengths) == lengths
            for refs in (match.refs for match in scope.ways(_LIMIT, self.node.inputs[limit]))
        )

    # Reading what stands around it.

    def _strip(self, ref: Ref) -> Ref:
        return self.view.origin(ref, ("Identity",))

    def _list_source(self, role: str) -> Ref | None:
        """The tensor whose rows a list has."""
        if role not in self.read:
            return None
        node = self.view.producer(self._strip(self.read[role]))
        return node.inputs[0] if node.op == "TensorListFromTensor" else None

    def _is_of(self, ref: Ref, kind: tf.DType) -> bool:
        return dtype(self.view, ref) == kind.as_datatype_enum

    def _is_zero(self, ref: Ref) -> bool:
        node = self.view.producer(self._strip(ref))
        if node.op == "ZerosLike":
            return True
        value = self.body.constants.value(node.inputs[1] if node.op == "Fill" else node.ref)
        return value is not None and not value.any()

    def _unreverse(self, ref: Ref) -> Ref:
        """What `ref` is, from the last step to the first; or itself."""
        ref = self._strip(ref)
        node = self.view.producer(ref)
        is_steps = node.op == "ReverseV2" and self.body.constants.scalar(node.inputs[1]) == 0
        return self._strip(node.inputs[0]) if is_steps else ref

    def _is_assigned(self, ref: Ref) -> bool:
        if self.view.producer(ref).op != "Placeholder":
            return False
        return any(
            n.op not in _READERS and n.attr["dtype"].type != types_pb2.DT_FLOAT
            for n, _ in self.view.consumers(ref)
        )

    def _swaps(self, ref: Ref) -> Ref | None:
        """What `ref` is the transpose of, batch and steps exchanged."""
        node = self.view.producer(self._strip(ref))
        if node.op != "Transpose":
            return None
        return node.inputs[0] if self.body.shapes.numbers(node.inputs[1]) == [1, 0, 2] else None

    # Writing.

    def _details(self) -> str:
        cell, attributes = self.attributes["cell"], self.attributes
        gates = "" if cell == "vanilla" else f", gates {attributes['recurrent_activation']}"
        kind = "" if cell != "gru" or attributes["reset_after"] else " (reset before)"
        masked = ", masked" if "mask" in self.read else ""
        masked += ", lengths" if "row_lengths" in self.read else ""
        which = "all steps" if attributes["return_sequences"] else "last step"
        return f"{cell}{kind}, {attributes['activation']}{gates}, {which}{masked}"

    def _value(self, ref: Ref, suffix: str) -> Ref:
        producer = self.view.producer(self._strip(ref))
        is_handle = (
            producer.op == "Placeholder"
            and producer.attr["dtype"].type == types_pb2.DT_RESOURCE
            or producer.op == "VarHandleOp"
        )
        read = {"dtype": tf.float32}
        return self.write.add(suffix, "ReadVariableOp", ref, **read) if is_handle else ref

    def _bias(self) -> Ref:
        """The bias as one tensor, of two rows where the loop has each by itself."""
        if len(self.bias) == 1:
            return self._value(self.bias[0], "bias")
        rows = list(map(self._strip, self.bias))
        (unpack, other), ports = map(self.view.producer, rows), [row.port for row in rows]
        if unpack is other and unpack.op == "Unpack" and ports == [0, 1]:
            if unpack.attr["axis"].i == 0 and unpack.attr["num"].i == 2:
                return unpack.inputs[0]
        values = [self._value(row, f"bias_{k}") for k, row in enumerate(self.bias)]
        return self.write.add("bias", "Pack", values)

    def _write(self, source: Ref, mask: Ref | None, stacks: list[Node], algorithm: str) -> None:
        node, sequences = self.node, self.attributes["return_sequences"]
        backwards = self._unreverse(source) != self._strip(source)
        if mask is not None:
            backwards = backwards and self._unreverse(mask) != self._strip(mask)
        if backwards:
            source, mask = self._unreverse(source), mask and self._unreverse(mask)
        # Where transposes stand around the loop, the op reads and writes without them.
        plain, plain_mask = self._swaps(source), mask and self._swaps(mask)
        swaps = [n for s in stacks for n, _ in self.view.consumers(s.ref)]
        batch_major = (
            plain is not None
            and (mask is None or plain_mask is not None)
            and (not sequences or all(self._swaps(n.ref) is not None for n in swaps))
            and not (sequences and any(self.view.is_fetched(s.ref) for s in stacks))
        )
        if batch_major:
            source, mask = plain, plain_mask
        kernels = [self._value(self.read["W"], "kernel")]
        kernels.append(self._value(self.read["U"], "recurrent_kernel"))
        constants = self.body.constants
        constant = not constants.live and all(map(constants.is_constant, kernels))
        ref = self.write.add(
            "rnn",
            "BlockdnnRnn",
            source,
            *kernels,
            [self._bias()] if self.bias else [],
            [node.inputs[i] for i in self.states],
            [] if mask is None else [self.write.add("mask", "Squeeze", mask, squeeze_dims=[2])],
            [self.read["row_lengths"]] if "row_lengths" in self.read else [],
            [],
            **self.attributes,
            go_backwards=backwards,
            restore_order=False,
            time_major=not batch_major,
            training=False,
            algorithm=algorithm,
            constant_weights=constant,
        )
        self.view.set_controls(self.view.node(ref.node), node.controls)
        for port, state in enumerate(self.states, 1):
            self.view.replace_uses(Ref(node.name, state), Ref(ref.node, port))
        dst = ref
        if not sequences:
            dst = self.write.add("step", "ExpandDims", ref, 0)  # a list of one output
        for stack in stacks:
            if sequences and batch_major:
                for swap, _ in self.view.consumers(stack.ref):
                    self.view.replace_uses(swap.ref, dst)
            else:
                self.view.replace_uses(stack.ref, dst)
        for reader in self.view.control_consumers(node.name):
            names = [ref.node if name == node.name else name for name in reader.controls]
            self.view.set_controls(reader, names)
        self.view.targets = [name for name in self.view.targets if name != node.name]
        dead = [s.name for s in stacks]
        dead += [n.name for s in stacks for n, _ in self.view.consumers(s.ref)]
        self.view.remove_dead([*reversed(dead), node.name])
