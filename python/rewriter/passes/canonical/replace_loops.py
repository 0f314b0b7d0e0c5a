"""Loops over time steps become one op each."""

from __future__ import annotations

import tensorflow as tf
from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, Ref, dtype, dtype_name, is_float32
from ...context import Context
from ...patterns.products import recurrent
from ...patterns.products.recurrent import Recurrence
from ...report import Converted

_READERS = frozenset({"ReadVariableOp", "VariableShape", "Identity", *recurrent.ROOTS})


def replace_loops(body: Body, context: Context) -> None:
    """Turns each loop over the steps of a recurrent layer into one op with packed weights."""
    algorithm = "direct" if context.options.algorithm == "direct" else "auto"
    for node in body.view:
        if node.op not in recurrent.ROOTS:
            continue
        found = context.reason_to_leave(body, node) or recurrent.find(node, body, context)
        if found is None:
            continue
        reason = found if isinstance(found, str) else _Loop(body, node, found, algorithm).replace()
        if reason:
            context.report.decline(node.name, reason)
            continue
        context.report.converted.append(
            Converted(node.name, "BlockdnnRnn", None, algorithm, found.details())
        )


class _Loop:
    """A While and the recurrence that its body is."""

    def __init__(self, body: Body, node: Node, found: Recurrence, algorithm: str):
        self.body, self.view, self.node, self.found = body, body.view, node, found
        self.algorithm, self.write = algorithm, body.writer(node.name)

    def replace(self) -> str | None:
        """Edits the graph; or returns why it must not, and leaves it as it was."""
        r = self.found
        source = self._listed(r.source)
        if source is None:
            return "its inputs do not come from one tensor"
        if not is_float32(self.view, source):
            kind = dtype_name(dtype(self.view, source))
            return f"dtype {kind}, only float32 is implemented"
        if r.row_lengths is not None and not self._is_of(self.node.inputs[r.row_lengths], tf.int32):
            return "the lengths of its rows are not int32"
        if not all(self._is_zero(i) for i in r.starts):
            return "it does not begin at the first step"
        if not all(self._is_length_of(self.node.inputs[i], source) for i in r.limits):
            return "it may end before its inputs do"
        known = self.body.shapes.shape(source)
        if r.lengths and (not known or any(length != known[0] for length in r.lengths)):
            return "it may end before its inputs do"
        mask = None if r.mask is None else self._listed(r.mask)
        if r.mask is not None and mask is None:
            return "its mask does not come from one tensor"
        if mask is not None and not self._is_of(mask, tf.bool):
            return "its mask is not bool"
        for position in (r.before, r.zeros):
            if position is not None and not self._is_zero(position):
                return "the output before its first step is not zero"
        used = {ref.port for ref in self._outputs_in_use()}
        if not used <= {r.outputs, *r.states}:
            return "something else that it carries is used"
        stacks = [n for n, _ in self.view.consumers(Ref(self.node.name, r.outputs))]
        if any(n.op != "TensorListStack" for n in stacks):
            return "its outputs are read as a list"
        for position in (r.kernel, r.recurrent_kernel, *r.bias):
            if self._is_assigned(self.node.inputs[position]):
                return "its weights are assigned in the same function"
        self._write(source, mask, stacks)
        return None

    # Reading.

    def _strip(self, ref: Ref) -> Ref:
        return self.view.origin(ref, ("Identity",))

    def _listed(self, position: int) -> Ref | None:
        """The tensor whose rows a list has."""
        node = self.view.producer(self._strip(self.node.inputs[position]))
        return node.inputs[0] if node.op == "TensorListFromTensor" else None

    def _is_of(self, ref: Ref, kind: tf.DType) -> bool:
        return dtype(self.view, ref) == kind.as_datatype_enum

    def _is_zero(self, position: int) -> bool:
        node = self.view.producer(self._strip(self.node.inputs[position]))
        if node.op == "ZerosLike":
            return True
        ref = node.inputs[1] if node.op == "Fill" else node.ref
        value = self.body.constants.value(ref)
        return value is not None and not value.any()

    def _is_length_of(self, limit: Ref, source: Ref) -> bool:
        node = self.view.producer(self._strip(limit))
        if node.op == "Minimum":  # dynamic_rnn's: min(steps, max(1, steps or the longest row))
            steps, most = node.inputs
            return self._is_length_of(steps, source) and self._is_at_least_rows(most, source)
        if node.op == "StridedSlice":
            shape = self.view.producer(self._strip(node.inputs[0]))
            ends = [self.body.constants.value(ref) for ref in node.inputs[1:3]]
            return (
                shape.op == "Shape"
                and self._same(shape.inputs[0], source)
                and all(end is not None and end.tolist() == [i] for i, end in enumerate(ends))
                and node.attr["shrink_axis_mask"].i == 1
            )
        if node.op == "Max":  # Keras's, of one number
            limit = node.inputs[0]
        value = self.body.constants.value(limit)
        known = self.body.shapes.shape(source)
        return value is not None and value.size == 1 and bool(known) and known[0] == value.item()

    def _is_at_least_rows(self, ref: Ref, source: Ref) -> bool:
        """Whether no row counts steps from `ref` on, max(1, ..)."""
        node = self.view.producer(self._strip(ref))
        if node.op != "Maximum":
            return False
        one = self.body.constants.value(node.inputs[0])
        if one is None or one.size != 1 or one.item() != 1:
            return False
        if self.found.row_lengths is None:
            return self._is_length_of(node.inputs[1], source)
        longest = self.view.producer(self._strip(node.inputs[1]))
        lengths = self.node.inputs[self.found.row_lengths]
        if longest.op != "Max" or self._strip(longest.inputs[0]) != self._strip(lengths):
            return False
        axes = self.body.constants.value(longest.inputs[1])
        return axes is not None and axes.tolist() == [0]

    def _same(self, a: Ref, b: Ref) -> bool:
        """Whether two tensors have the same size of their first dimension."""
        return self._unreversed(a) == self._unreversed(b)

    def _unreversed(self, ref: Ref) -> Ref:
        """What `ref` is, from the last step to the first; or itself."""
        ref = self._strip(ref)
        node = self.view.producer(ref)
        if node.op != "ReverseV2":
            return ref
        axis = self.body.constants.value(node.inputs[1])
        is_steps = axis is not None and axis.tolist() == [0]
        return self._strip(node.inputs[0]) if is_steps else ref

    def _outputs_in_use(self) -> list[Ref]:
        name = self.node.name
        read = [ref for n in self.view for ref in n.inputs if ref.node == name]
        return read + [ref for ref in self.view.fetches if ref.node == name]

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
        order = self.body.constants.value(node.inputs[1])
        return node.inputs[0] if order is not None and order.tolist() == [1, 0, 2] else None

    # Writing.

    def _value(self, position: int, suffix: str) -> Ref:
        ref = self.node.inputs[position]
        producer = self.view.producer(self._strip(ref))
        is_handle = (
            producer.op == "Placeholder"
            and producer.attr["dtype"].type == types_pb2.DT_RESOURCE
            or producer.op == "VarHandleOp"
        )
        if not is_handle:
            return ref
        return self.write.add(suffix, "ReadVariableOp", ref, dtype=tf.float32)

    def _bias(self) -> Ref:
        """The bias as one tensor, of two rows where the loop has each by itself."""
        if len(self.found.bias) == 1:
            return self._value(self.found.bias[0], "bias")
        rows = [self._strip(self.node.inputs[i]) for i in self.found.bias]
        producers = [self.view.producer(row) for row in rows]
        (unpack, other), ports = producers, [row.port for row in rows]
        if unpack is other and unpack.op == "Unpack" and ports == [0, 1]:
            if unpack.attr["axis"].i == 0 and unpack.attr["num"].i == 2:
                return unpack.inputs[0]
        values = [self._value(i, f"bias_{k}") for k, i in enumerate(self.found.bias)]
        return self.write.add("bias", "Pack", values)

    def _write(self, source: Ref, mask: Ref | None, stacks: list[Node]) -> None:
        r, node = self.found, self.node
        backwards = self._unreversed(source) != self._strip(source)
        if mask is not None:
            backwards = backwards and self._unreversed(mask) != self._strip(mask)
        if backwards:
            source, mask = self._unreversed(source), mask and self._unreversed(mask)
        # Where transposes stand around the loop, the op reads and writes without them.
        plain, plain_mask = self._swaps(source), mask and self._swaps(mask)
        swaps = [n for s in stacks for n, _ in self.view.consumers(s.ref)]
        batch_major = (
            plain is not None
            and (mask is None or plain_mask is not None)
            and (not r.sequences or all(self._swaps(n.ref) is not None for n in swaps))
            and not (r.sequences and any(self.view.is_fetched(s.ref) for s in stacks))
        )
        if batch_major:
            source, mask = plain, plain_mask
        kernels = [
            self._value(r.kernel, "kernel"),
            self._value(r.recurrent_kernel, "recurrent_kernel"),
        ]
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
            [] if r.row_lengths is None else [node.inputs[r.row_lengths]],
            [],
            cell=r.cell,
            activation=r.activation,
            recurrent_activation=r.recurrent_activation,
            reset_after=r.reset_after,
            go_backwards=backwards,
            restore_order=False,
            return_sequences=r.sequences,
            zero_output_for_mask=r.zero_output_for_mask,
            time_major=not batch_major,
            training=False,
            algorithm=self.algorithm,
            constant_weights=constant,
        )
        self.view.set_controls(self.view.node(ref.node), node.controls)
        for port, state in enumerate(r.states, 1):
            self.view.replace_uses(Ref(node.name, state), Ref(ref.node, port))
        dst = ref
        if not r.sequences:
            dst = self.write.add("step", "ExpandDims", ref, 0)  # of a list of one
        for stack in stacks:
            if r.sequences and batch_major:
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
