"""Writes narrow types, bfloat16 or bytes, into the payloads of one body.

The pass says which convolutions work on narrow tensors, what their weights become, and what the
bytes of a tensor stand for. What lies between convolutions goes along here; a tensor that is narrow
and that somebody reads who takes float32 only becomes that by a reorder, and one that nobody can
write narrow is made so by one.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from tensorflow.core.framework import types_pb2

from ....graph import FLOAT32, Body, GraphView, Node, Ref, dtype_name
from ....ops.records import (
    BLOCKED,
    Concat,
    Conv,
    Eltwise,
    GlobalPool,
    Pool,
    Reorder,
)

_BF16 = types_pb2.DT_BFLOAT16


def moves(node: Node) -> bool:
    """Whether it can work on narrow tensors, though it multiplies nothing."""
    payload = node.payload
    if isinstance(payload, Eltwise):
        return payload.layout == BLOCKED
    return (payload.keeps or isinstance(payload, Concat)) and _has_types(payload)


def _has_types(payload) -> bool:
    return payload.has("src_quantization") or payload.has("src_quantizations")


def sources(node: Node) -> list[Ref]:
    """What a node that moves reads and may be narrow."""
    named = node.by_role
    found = [ref for role, ref in named.items() if role == "src" or role.startswith("value ")]
    if role := operand(node.payload):
        found.append(named[role])
    return found


def operand(payload) -> str | None:
    """The role of the operand that may be narrow, if there is one.

    It is the first that is a tensor of the shape of the result; of a convolution that of a sum,
    which follows the bias at once where the result is plain. Only one entry of the chain reads it.
    """
    if not isinstance(payload, Conv | Eltwise):
        return None
    read = [step for step in payload.steps if isinstance(step.operand, str)]
    first = [s for s in read if s.kind == "sum" or s.shape == "tensor"][:1]
    if isinstance(payload, Conv):
        steps = payload.steps if payload.dst_layout == BLOCKED else payload.steps[:1]
        first = [s for s in first if s.kind == "sum" and s in steps]
    only = first and [s.operand for s in read].count(first[0].operand) == 1
    return first[0].operand if only else None


def narrow_tensors(
    view: GraphView, lowered: set[str], may: Callable[[Ref], bool] = lambda ref: True
) -> set[Ref]:
    """The tensors that are narrow where those convolutions are.

    A tensor is narrow where such a convolution reads it, and from there back through all that only
    moves, pools or works on each element.

    Args:
        may: whether a tensor may be, if a convolution does not read it.
    """
    narrow: set[Ref] = set()
    for node in reversed(view.topological()):
        if node.name in lowered:
            narrow.add(node.src)
            read = [node.by_role[role]] if (role := operand(node.payload)) else []
        elif node.payload is not None and moves(node) and node.ref in narrow:
            read = sources(node)
            if not isinstance(node.payload, Eltwise):
                narrow.update(filter(may, read))
                continue
        else:
            continue
        for ref in filter(may, read):
            producer = view.producer(ref)
            if producer.name in lowered or (producer.payload is not None and moves(producer)):
                narrow.add(ref)
    return narrow


def joined_values(view: GraphView, narrow: set[Ref]) -> dict[Ref, Ref]:
    """Value -> the narrow tensor whose bytes it is written in, since only that is made of it.

    A concatenation's values are written there and not copied. What a maximum alone reads needs no
    range of its own: what lies below all maxima, as masks and pads do, becomes the lowest byte. So
    does what moves values there, if it alone reads them.
    """
    joined: dict[Ref, Ref] = {}
    for node in reversed(view.topological()):
        if isinstance(node.payload, Concat):
            whole = joined.get(node.ref, node.ref)
        elif node.payload is not None and node.payload.keeps and not _averages(node):
            is_maximum = isinstance(node.payload, Pool)
            whole = joined.get(node.ref, node.ref if is_maximum else None)
        else:
            continue
        if whole in narrow:
            for ref in sources(node):
                if len(view.consumers(ref)) == 1 and not view.is_fetched(ref):
                    joined[ref] = whole
    return joined


def _averages(node: Node) -> bool:
    """Whether it is a pool that makes new numbers."""
    return isinstance(node.payload, Pool) and node.payload.kind == "avg"


class TypeWriter:
    """Writes the types.

    Args:
        dtype: what is narrow.
        lowered: name of a convolution -> a function of it, which gives the fields that say how its
            weights are stored.
        narrow: the tensors.
        chosen: what the bytes of a tensor stand for; () of bfloat16.
        joined: values that are to stand for what `chosen` says of them, as joined_values has them.
    """

    def __init__(
        self,
        body: Body,
        dtype: int,
        lowered: Mapping[str, Callable[[Node], dict]],
        narrow: set[Ref],
        chosen: Callable[[Ref], tuple],
        joined: Mapping[Ref, Ref] | None = None,
    ):
        self._body, self._view = body, body.view
        self._lowered, self._narrow, self._dtype = lowered, narrow, dtype
        self._chosen = chosen
        self._joined = joined or {}
        self._quantizations: dict[Ref, tuple] = {}
        self._made: dict[tuple[Ref, bool], Ref] = {}

    def write(self) -> None:
        for node in self._view.topological():
            self._write(node)
        self._view.fetches = [self._as_float(ref) for ref in self._view.fetches]

    def _write(self, node: Node) -> None:
        payload = node.payload
        if node.name in self._lowered:
            self._write_convolution(node)
        elif isinstance(payload, Reorder) and self._is_typed(payload):
            self._write_reorder(node)
        elif payload is not None and moves(node) and self._works_narrow(node):
            self._write_move(node)
        elif isinstance(payload, GlobalPool) and _has_types(payload):
            if node.src in self._quantizations:
                self._set(node, **self._of_source(node.src))
        else:
            inputs = [self._as_float(ref) for ref in node.inputs]
            if inputs != node.inputs:
                self._view.set_inputs(node, inputs)

    @staticmethod
    def _is_typed(payload) -> bool:
        return payload.dtype == payload.src_dtype == FLOAT32

    def _works_narrow(self, node: Node) -> bool:
        """Whether a node that moves works on narrow tensors: it has to, or it costs nothing."""
        if not self._is_typed(node.payload):
            return False
        reads = any(ref in self._quantizations for ref in sources(node))
        return node.ref in self._narrow or (isinstance(node.payload, Eltwise | Pool) and reads)

    def _write_convolution(self, node: Node) -> None:
        conv, inputs = node.payload, node.by_role
        inputs["src"] = src = self._as_narrow(node.src)
        changes = {"scale": None} | self._of_source(src)
        changes |= self._lowered[node.name](node) | self._of_operand(conv, inputs)
        self._view.set_inputs(node, inputs)
        self._set(node, **changes, **self._of_result(node.ref))

    def _of_operand(self, payload, inputs: dict[str, Ref]) -> dict:
        """The fields of the narrow operand; all others become float32 in `inputs`."""
        role, changes = operand(payload), {}
        if role and inputs[role] in self._quantizations:
            changes = {"sum_role": role, "sum_dtype": self._dtype}
            changes["sum_quantization"] = self._quantizations[inputs[role]]
        for other, ref in inputs.items():
            if other != "src" and not (changes and other == role):
                inputs[other] = self._as_float(ref)
        return changes

    def _write_reorder(self, node: Node) -> None:
        """A change of the layout changes the type on its way."""
        changes = {}
        if node.inputs[0] in self._quantizations:
            changes |= self._of_source(node.inputs[0])
        if node.ref in self._narrow:
            changes |= self._of_result(node.ref)
        if changes:
            self._set(node, **changes)

    def _write_move(self, node: Node) -> None:
        inputs, changes = node.by_role, {}
        if isinstance(node.payload, Eltwise):
            if node.src in self._quantizations:
                changes = self._of_source(node.src)
            changes |= self._of_operand(node.payload, inputs)
            self._view.set_inputs(node, inputs)
            self._set(node, **changes, **self._of_result(node.ref))
            return
        inputs = {
            role: self._as_narrow(ref) if ref in sources(node) else self._as_float(ref)
            for role, ref in inputs.items()
        }
        self._view.set_inputs(node, inputs)
        given = [self._quantizations[ref] for ref in inputs.values() if ref in self._quantizations]
        changes = {"src_dtype": self._dtype, "src_quantization": given[0]}
        if isinstance(node.payload, Concat) and given[0]:
            changes["src_quantizations"] = tuple(given)
        if node.ref in self._narrow:
            averages_into = _averages(node) and node.ref in self._joined
            kept = node.payload.keeps and not averages_into
            changes |= self._of_result(node.ref, given[0] if kept else None)
        self._set(node, **changes)

    def _set(self, node: Node, **changes) -> None:
        node.payload = replace(node.payload, **changes)

    def _of_source(self, ref: Ref) -> dict:
        return {"src_dtype": self._dtype, "src_quantization": self._quantizations[ref]}

    def _of_result(self, ref: Ref, quantization: tuple | None = None) -> dict:
        """The fields of what writes that tensor, which is narrow from now on if it is to be."""
        if ref not in self._narrow:
            return {}
        if quantization is None:
            quantization = self._chosen(ref)
        self._quantizations[ref] = quantization
        return {"dtype": self._dtype, "dst_quantization": quantization}

    def _as_narrow(self, ref: Ref) -> Ref:
        """The tensor as narrow numbers; its own, if that is what it holds."""
        if ref in self._quantizations:
            return ref
        quantization = self._chosen(ref)
        made = self._reorder(
            ref, True, dtype=self._dtype, dst_quantization=quantization, origin=ref.node
        )
        self._quantizations[made] = quantization
        return made

    def _as_float(self, ref: Ref) -> Ref:
        """The tensor as float32; its own, if that is what it holds."""
        if ref not in self._quantizations:
            return ref
        return self._reorder(ref, False, **self._of_source(ref), origin=ref.node)

    def _reorder(self, ref: Ref, narrow: bool, **types) -> Ref:
        if (ref, narrow) not in self._made:
            payload = self._view.producer(ref).payload
            layout = BLOCKED if payload is not None and payload.dst_layout == BLOCKED else "nhwc"
            channels = payload.channels if payload else self._body.shapes.channels(ref)
            record = Reorder(channels=channels, src_layout=layout, dst_layout=layout, **types)
            write, shape = self._body.writer(ref.node), self._body.shapes.shape(ref)
            made = write.plan(dtype_name(record.dtype), record, {"src": ref}, shape)
            self._made[ref, narrow] = made
        return self._made[ref, narrow]
