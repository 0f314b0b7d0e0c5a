"""Lets convolutions read and write bfloat16 or bytes, and what lies between them.

A tensor is narrow where a convolution reads it, and from there back through all that only moves or
pools. Who else reads it and takes no narrow type gets it back as float32, by a reorder; a source
that nobody can write narrow is made so by one. So no narrow tensor is without a convolution.
"""

from dataclasses import replace

import numpy as np
import tensorflow as tf

from ....graph import FLOAT32, Body, GraphView, Node, Ref, dtype_name
from ....ops.records import (
    BLOCKED,
    Concat,
    Conv,
    GlobalPool,
    InnerProduct,
    Pad,
    Pool,
    Reorder,
    Resize,
    Shuffle,
)
from ...context import Context
from ...patterns.products.inner_product import matrix
from ...precision.lowering import Layer, Lowering
from ...precision.quantize import bias_correction, decibels, quantize_weights, snr

_BF16 = tf.bfloat16.as_numpy_dtype
# What makes its result of the values of its source, and so has its quantization.
_KEEPS = (Pad, Pool, Resize, Shuffle)
# Products whose sum is an int32 whatever they are: 2^31 / (255 * 127), and of a depthwise
# convolution, which adds them up as floats, 2^24 / (255 * 127).
_MOST_PRODUCTS, _MOST_TAPS = 66_000, 500


def lower_precision(body: Body, context: Context) -> None:
    """With `precision`, makes convolutions and what lies between them, or weights alone, narrow."""
    lowering = context.lowering
    if lowering is not None and lowering.weights_only:
        return _store_narrow(body, lowering)
    if lowering is None or (lowering.is_int8 and body.place is not None):
        return  # Nobody has seen the values of a loop's or a branch's tensors.
    convolutions = [n for n in body.view.topological() if _is_candidate(n, lowering)]
    lowered = {n.name for n in convolutions if body.label(n.name) not in lowering.keep}
    narrow = _narrow(body.view, lowered)
    if body.place is None:
        lowering.tensors = [n.ref for n in body.view.topological() if n.ref in narrow]
    if not lowering.observing:
        lowering.layers += [
            Layer(body.label(node.name), "float32", snr=_snr(node, lowering))
            for node in convolutions
            if node.name not in lowered
        ]
        _Writer(body, lowering, lowered, narrow).write()


def _store_narrow(body: Body, lowering: Lowering) -> None:
    """Stores weights narrow; they become float32 again when they are packed."""
    for node in body.view.topological():
        payload = node.payload
        if not isinstance(payload, Conv | InnerProduct):
            continue
        inputs, fields = node.by_role, {}
        if isinstance(payload, Conv):
            weights, fields["scale"] = _floats(payload), None
        elif payload.weights_type == FLOAT32:
            weights = matrix(payload, inputs, body)
            inputs.pop("weights", None)
        else:
            continue
        if weights is None or not np.isfinite(weights).all():
            continue
        label = body.label(node.name)
        if label in lowering.keep:
            lowering.layers.append(Layer(label, "float32", snr=_snr_of(weights, lowering)))
            continue
        if lowering.precision == "int8-weights":
            fields["weights"], fields["weight_scales"] = quantize_weights(weights)
        else:
            fields["weights"] = weights.astype(_BF16)
        body.view.set_inputs(node, inputs)
        node.payload = replace(payload, **fields)
        kind = fields["weights"].dtype.name
        lowering.layers.append(Layer(label, kind, snr=_snr_of(weights, lowering)))


def _snr_of(weights: np.ndarray, lowering: Lowering) -> float:
    """What rounding the weights leaves, in dB."""
    if lowering.precision.startswith("bf16"):
        return snr(weights, weights.astype(_BF16).astype(np.float32))
    stored, scales = quantize_weights(weights)
    return snr(weights, stored * scales)


def _is_candidate(node: Node, lowering: Lowering) -> bool:
    conv = node.payload
    if not isinstance(conv, Conv) or conv.pool or conv.dst_part or conv.src_part:
        return False
    *_, per_group, _ = conv.weights.shape
    if lowering.is_int8 and (
        conv.taps > _MOST_PRODUCTS or (per_group == 1 and conv.taps > _MOST_TAPS)
    ):
        return False
    return bool(np.isfinite(_floats(conv)).all())


def _floats(conv: Conv) -> np.ndarray:
    """The weights with the scale in them."""
    values = np.empty(conv.weights.shape, np.float32)
    conv.write_weights(values.reshape(-1))
    return values


def _moves(node: Node) -> bool:
    """Whether it can work on narrow tensors, though it multiplies nothing."""
    payload = node.payload
    return isinstance(payload, (*_KEEPS, Concat)) and _has_types(payload)


def _has_types(payload) -> bool:
    return payload.has("src_quantization") or payload.has("src_quantizations")


def _sources(node: Node) -> list[Ref]:
    """What it reads that may be narrow."""
    named = node.by_role.items()
    return [ref for role, ref in named if role == "src" or role.startswith("value ")]


def _sum(conv: Conv) -> str | None:
    """The role of the operand of the sum that follows the bias at once, if there is one."""
    first = conv.steps[0] if conv.steps else None
    is_sum = first is not None and first.kind == "sum" and isinstance(first.operand, str)
    only = is_sum and [s.operand for s in conv.steps].count(first.operand) == 1
    return first.operand if only else None


def _narrow(view: GraphView, lowered: set[str]) -> set[Ref]:
    """The tensors that are narrow where those convolutions are."""
    narrow: set[Ref] = set()
    for node in reversed(view.topological()):
        if node.name in lowered:
            narrow.add(node.src)
            if role := _sum(node.payload):
                producer = view.producer(node.by_role[role])
                if producer.name in lowered or _moves(producer):
                    narrow.add(producer.ref)
        elif node.payload is not None and _moves(node) and node.ref in narrow:
            narrow.update(_sources(node))
    return narrow


def _snr(node: Node, lowering: Lowering) -> float | None:
    """What rounding the weights and the source of a convolution leaves, in dB."""
    of_weights = _snr_of(_floats(node.payload), lowering)
    if not lowering.is_int8:
        return of_weights
    choice = lowering.choices.get(node.src.node)
    if choice is None:
        return None
    ratios = (choice.snr, of_weights)
    return decibels(1.0, sum(10 ** (-ratio / 10) for ratio in ratios))


class _Writer:
    """Writes the narrow types into the payloads of one body."""

    def __init__(self, body: Body, lowering: Lowering, lowered: set[str], narrow: set[Ref]):
        self._body, self._view = body, body.view
        self._lowering, self._lowered, self._narrow = lowering, lowered, narrow
        self._dtype = lowering.dtype
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
        elif payload is not None and _moves(node) and self._reads_narrow(node):
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

    def _reads_narrow(self, node: Node) -> bool:
        """Whether a node that moves works on narrow tensors: it has to, or it costs nothing."""
        return node.ref in self._narrow or (
            isinstance(node.payload, Pool) and node.src in self._quantizations
        )

    def _write_convolution(self, node: Node) -> None:
        conv, inputs = node.payload, node.by_role
        inputs["src"] = src = self._as_narrow(node.src)
        weights, means = _floats(conv), self._lowering.means.get(node.src.node)
        changes = {"scale": None, "algorithm": "direct"} | self._of_source(src)
        if self._lowering.is_int8:
            stored, changes["weight_scales"] = quantize_weights(weights)
            changes["weights"] = stored
            if means is not None:
                lost = bias_correction(
                    weights, stored, changes["weight_scales"], means[: conv.in_channels]
                )
                shift = 0.0 if conv.shift is None else conv.shift
                changes["shift"] = np.broadcast_to(shift + lost, [conv.channels])
        else:
            changes["weights"] = weights.astype(_BF16)
        role = _sum(conv)
        if role and inputs[role] in self._quantizations:
            changes |= {"sum_role": role, "sum_dtype": self._dtype}
            changes["sum_quantization"] = self._quantizations[inputs[role]]
        for other, ref in inputs.items():
            if other not in ("src", role if "sum_dtype" in changes else "src"):
                inputs[other] = self._as_float(ref)
        label = self._body.label(node.name)
        layer = Layer(label, dtype_name(self._dtype), snr=_snr(node, self._lowering))
        self._view.set_inputs(node, inputs)
        self._set(node, **changes, **self._of_result(node.ref))
        if choice := self._lowering.choices.get(node.name):
            (scale, zero_point), method, _ = choice
            layer = replace(layer, method=method, scale=scale, zero_point=zero_point)
        self._lowering.layers.append(layer)

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
        inputs = {
            role: self._as_narrow(ref) if ref in _sources(node) else self._as_float(ref)
            for role, ref in node.by_role.items()
        }
        self._view.set_inputs(node, inputs)
        sources = [inputs[role] for role in node.roles if inputs[role] in self._quantizations]
        changes = {"src_dtype": self._dtype}
        if isinstance(node.payload, Concat):
            if self._lowering.is_int8:
                given = tuple(self._quantizations[ref] for ref in sources)
                changes |= {"src_quantizations": given, "src_quantization": given[0]}
        else:
            changes["src_quantization"] = self._quantizations[sources[0]]
        if node.ref in self._narrow:
            own = self._quantizations[sources[0]] if isinstance(node.payload, _KEEPS) else None
            changes |= self._of_result(node.ref, own)
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

    def _chosen(self, ref: Ref) -> tuple:
        return self._lowering.choices[ref.node].quantization if self._lowering.is_int8 else ()

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
            name = f"{ref.node}/{dtype_name(record.dtype)}"
            made = self._view.add(Node(name, record.op, {"src": ref}, payload=record)).ref
            self._body.shapes.put(made, self._body.shapes.shape(ref))
            self._made[ref, narrow] = made
        return self._made[ref, narrow]
