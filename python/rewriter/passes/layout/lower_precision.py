"""Lets convolutions read and write bfloat16 or bytes, and what lies between them.

A tensor is narrow where a convolution reads it, and from there back through all that only moves or
pools. Who else reads it and takes no narrow type gets it back as float32, by a reorder; a source
that nobody can write narrow is made so by one. So no narrow tensor is without a convolution.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import tensorflow as tf

from ....graph import FLOAT32, Body, Node, dtype_name
from ....ops.records import Conv, InnerProduct
from ...context import Context
from ...patterns.products.inner_product import matrix
from ...precision.lowering import Layer, Lowering, slow_here
from ...precision.quantize import bias_correction, decibels, quantize_weights, snr
from ...report import Precision
from .narrow import Writer, narrow_tensors

_BF16 = tf.bfloat16.as_numpy_dtype
# Products whose sum is an int32 whatever they are: 2^31 / (255 * 128), and of a depthwise
# convolution, which adds them up as floats, 2^24 / (255 * 128).
_MOST_PRODUCTS, _MOST_TAPS = 65_000, 500


def lower_precision(body: Body, context: Context) -> None:
    """With `precision`, makes convolutions and what lies between them, or weights alone, narrow."""
    lowering = context.lowering
    if lowering is None:
        return _lower_as_it_was(body, context)
    if lowering.weights_only:
        return _store_narrow(body, lowering)
    if lowering.is_int8 and body.place is not None:
        return None  # Nobody has seen the values of a loop's or a branch's tensors.
    return _lower(body, lowering, lambda node: body.label(node.name) not in lowering.keep)


def _lower_as_it_was(body: Body, context: Context) -> None:
    """Lets what computed in bfloat16 before `widen` do so again."""

    def was_narrow(node: Node) -> bool:
        return body.label(node.payload.origin) in context.bfloat16

    if not context.bfloat16:
        return
    lowering, stored, report = Lowering("bf16"), Lowering("bf16-weights"), context.report
    _lower(body, lowering, was_narrow)
    _store_narrow(body, stored, lambda n: isinstance(n.payload, InnerProduct) and was_narrow(n))
    layers = [layer for layer in lowering.layers if layer.dtype != "float32"] + stored.layers
    if not layers:
        return
    if report.precision is None:
        report.precision = Precision("bf16", [], [], 0)
    report.precision.layers.extend(layers)
    if lowering.layers and (reason := slow_here("bf16")) and reason not in report.notes:
        report.notes.append(reason)


def _lower(body: Body, lowering: Lowering, wanted: Callable[[Node], bool]) -> None:
    """Makes those convolutions narrow that are wanted so."""
    convolutions = [n for n in body.view.topological() if is_candidate(n, lowering.is_int8)]
    lowered = {n.name for n in convolutions if wanted(n)}
    narrow = narrow_tensors(body.view, lowered)
    if body.place is None:
        lowering.tensors = [n.ref for n in body.view.topological() if n.ref in narrow]
    if not lowering.observing:
        lowering.layers += [
            Layer(body.label(node.name), "float32", snr=_snr(node, lowering))
            for node in convolutions
            if node.name not in lowered
        ]
        fields = _fields_of(body, lowering)
        chosen = lowering.choices
        Writer(
            body,
            lowering.dtype,
            dict.fromkeys(lowered, fields),
            narrow,
            lambda ref: chosen[ref.node].quantization if lowering.is_int8 else (),
        ).write()


def _fields_of(body: Body, lowering: Lowering):
    """What gives a convolution the fields of its weights, and notes it among the layers."""

    def fields(node: Node) -> dict:
        label = body.label(node.name)
        layer = Layer(label, dtype_name(lowering.dtype), snr=_snr(node, lowering))
        if choice := lowering.choices.get(node.name):
            (scale, zero_point), method, _ = choice
            layer = replace(layer, method=method, scale=scale, zero_point=zero_point)
        lowering.layers.append(layer)
        if lowering.is_int8:
            return _int8_weights(node, lowering)
        return {"weights": _floats(node.payload).astype(_BF16)}

    return fields


def _int8_weights(node: Node, lowering: Lowering) -> dict:
    """Its bias makes good what rounding the weights takes from the mean of each channel."""
    conv, weights = node.payload, _floats(node.payload)
    stored, scales = quantize_weights(weights)
    changes = {"weights": stored, "weight_scales": scales}
    means = lowering.means.get(node.src.node)
    if means is not None:
        lost = bias_correction(weights, stored, scales, means[: conv.in_channels])
        shift = 0.0 if conv.shift is None else conv.shift
        changes["shift"] = np.broadcast_to(shift + lost, [conv.channels])
    return changes


def _store_narrow(
    body: Body, lowering: Lowering, wanted: Callable[[Node], bool] = lambda node: True
) -> None:
    """Stores weights narrow; they become float32 again when they are packed."""
    for node in body.view.topological():
        payload = node.payload
        if not isinstance(payload, Conv | InnerProduct) or not wanted(node):
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


def is_candidate(node: Node, is_int8: bool) -> bool:
    """Whether it is a convolution that could work on narrow tensors."""
    conv = node.payload
    if not isinstance(conv, Conv) or conv.is_narrow or conv.pool or conv.dst_part or conv.src_part:
        return False
    *_, per_group, _ = conv.weights.shape
    if is_int8 and (conv.taps > _MOST_PRODUCTS or (per_group == 1 and conv.taps > _MOST_TAPS)):
        return False
    return bool(np.isfinite(_floats(conv)).all())


def _floats(conv: Conv) -> np.ndarray:
    """The weights with the scale in them."""
    values = np.empty(conv.weights.shape, np.float32)
    conv.write_weights(values.reshape(-1))
    return values


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
