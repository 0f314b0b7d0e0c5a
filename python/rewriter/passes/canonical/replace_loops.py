"""Loops over time steps become one op each."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.core.framework import types_pb2

from ....graph import Any, Body, Node, OneOf, Op, Ref, dtype, dtype_name, is_float32
from ...context import Context
from ...patterns.products import recurrent
from ...patterns.products.recurrent import Recurrence
from ...patterns.products.recurrent_step import Step
from ...report import Converted

_READERS = frozenset({"ReadVariableOp", "VariableShape", "Identity", *recurrent.ROOTS})
_STEPS = Any("steps")
# The number of steps; that of dynamic_rnn ends with the longest row, Keras's is a maximum of one.
_LIMIT = OneOf(
    Op("Minimum", _STEPS, Op("Maximum", 1.0, OneOf(Op("Max", Any("lengths"), 0), Any("most")))),
    Op("Max", _STEPS, Any()),
    _STEPS,
)


def replace_loops(body: Body, context: Context) -> None:
    """Turns each loop over the steps of a recurrent layer into one op with packed weights."""
    algorithm = "direct" if context.options.algorithm == "direct" else "auto"
    for node in body.view:
        if node.op not in recurrent.ROOTS:
            continue
        result = context.reason_to_leave(body, node) or recurrent.find(node, body, context)
        if result is None:
            continue
        reason = (
            result if isinstance(result, str) else _Loop(body, node, result, algorithm).replace()
        )
        if reason:
            context.report.decline(node.name, reason)
            continue
        context.report.converted.append(
            Converted(node.name, "BlockdnnRnn", None, algorithm, result.details())
        )


class _Loop:
    """A While and the recurrence that its body is."""

    def __init__(self, body: Body, node: Node, recurrence: Recurrence, algorithm: str):
        self.body, self.view, self.node, self.recurrence = body, body.view, node, recurrence
        self.algorithm, self.write = algorithm, body.writer(node.name)

    def replace(self) -> str | None:
        """Edits the graph; or returns why it must not, and leaves it as it was."""
        r, roles, read = self.recurrence, self.recurrence.roles, self.node.inputs
        source, mask = (self._list_source(roles.get(name)) for name in ("source", "mask"))
        if source is None:
            return "its inputs do not come from one tensor"
        if not is_float32(self.view, source):
            kind = dtype_name(dtype(self.view, source))
            return f"dtype {kind}, only float32 is implemented"
        if "row_lengths" in roles and not self._is_of(read[roles["row_lengths"]], tf.int32):
            return "the lengths of its rows are not int32"
        steps = (self.body.shapes.shape(source) or ("not known",))[0]
        ends = [self._is_number(read[i], steps) for i in r.limits]
        if not all(ends) or any(length != steps for length in r.lengths):
            return "it may end before its inputs do"
        if "mask" in roles and mask is None:
            return "its mask does not come from one tensor"
        if mask is not None and not self._is_of(mask, tf.bool):
            return "its mask is not bool"
        if not all(self._is_zero(read[i]) for i in r.zeros):
            return "its first step, or the output before that, is not zero"
        results = [Ref(self.node.name, i) for i in range(len(read))]
        used = {ref.port for ref in results if self.view.use_count(ref)}
        if not used <= {roles["outputs"], *r.states}:
            return "something else that it carries is used"
        stacks = [n for n, _ in self.view.consumers(results[roles["outputs"]])]
        if any(n.op != "TensorListStack" for n in stacks):
            return "its outputs are read as a list"
        if any(self._is_assigned(read[i]) for i in (roles["W"], roles["U"], *r.bias)):
            return "its weights are assigned in the same function"
        self._write(source, mask, stacks)
        return None

    # Reading.

    def _strip(self, ref: Ref) -> Ref:
        return self.view.origin(ref, ("Identity",))

    def _list_source(self, position: int | None) -> Ref | None:
        """The tensor whose rows a list has."""
        if position is None:
            return None
        node = self.view.producer(self._strip(self.node.inputs[position]))
        return node.inputs[0] if node.op == "TensorListFromTensor" else None

    def _is_of(self, ref: Ref, kind: tf.DType) -> bool:
        return dtype(self.view, ref) == kind.as_datatype_enum

    def _is_zero(self, ref: Ref) -> bool:
        node = self.view.producer(self._strip(ref))
        if node.op == "ZerosLike":
            return True
        value = self.body.constants.value(node.inputs[1] if node.op == "Fill" else node.ref)
        return value is not None and not value.any()

    def _is_number(self, limit: Ref, steps) -> bool:
        """Whether it is the number of steps."""

        def equals(ref: Ref) -> bool:
            number = self.body.shapes.value(ref)
            return number is not None and number.size == 1 and number.item() == steps

        scope, lengths = Step(self.body), self.recurrence.roles.get("row_lengths")
        lengths = None if lengths is None else scope.seen(self.node.inputs[lengths])
        return any(
            equals(refs["steps"])
            and equals(refs.get("most", refs["steps"]))
            and refs.get("lengths", lengths) == lengths
            for refs in (match.refs for match in scope.ways(_LIMIT, limit))
        )

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

    def _value(self, position: int, suffix: str) -> Ref:
        ref = self.node.inputs[position]
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
        if len(self.recurrence.bias) == 1:
            return self._value(self.recurrence.bias[0], "bias")
        rows = [self._strip(self.node.inputs[i]) for i in self.recurrence.bias]
        producers = [self.view.producer(row) for row in rows]
        (unpack, other), ports = producers, [row.port for row in rows]
        if unpack is other and unpack.op == "Unpack" and ports == [0, 1]:
            if unpack.attr["axis"].i == 0 and unpack.attr["num"].i == 2:
                return unpack.inputs[0]
        values = [self._value(i, f"bias_{k}") for k, i in enumerate(self.recurrence.bias)]
        return self.write.add("bias", "Pack", values)

    def _write(self, source: Ref, mask: Ref | None, stacks: list[Node]) -> None:
        r, node, roles = self.recurrence, self.node, self.recurrence.roles
        sequences = r.attributes["return_sequences"]
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
        kernels = [self._value(roles["W"], "kernel"), self._value(roles["U"], "recurrent_kernel")]
        constants = self.body.constants
        constant = not constants.live and all(map(constants.is_constant, kernels))
        masks = [] if mask is None else [self.write.add("mask", "Squeeze", mask, squeeze_dims=[2])]
        ref = self.write.add(
            "rnn",
            "BlockdnnRnn",
            source,
            *kernels,
            [self._bias()] if r.bias else [],
            [node.inputs[i] for i in r.states],
            masks,
            [node.inputs[roles["row_lengths"]]] if "row_lengths" in roles else [],
            [],
            **r.attributes,
            go_backwards=backwards,
            restore_order=False,
            time_major=not batch_major,
            training=False,
            algorithm=self.algorithm,
            constant_weights=constant,
        )
        self.view.set_controls(self.view.node(ref.node), node.controls)
        for port, state in enumerate(r.states, 1):
            self.view.replace_uses(Ref(node.name, state), Ref(ref.node, port))
        dst = ref
        if not sequences:
            dst = self.write.add("step", "ExpandDims", ref, 0)  # of a list of one
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
