"""Lets convolutions read and write bfloat16 or bytes, and what lies between them.

Products and recurrent layers multiply so, too, but read and write float32 (low_precision_weights).

A tensor has low precision where a convolution reads it, and from there back through all that only
moves or pools. Who else reads it, and takes float32 alone, gets that by a reorder; a source that
nobody can write in low precision becomes so by one. So none of these is without a convolution.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ....graph import Body, Node, Ref, dtype_name
from ....graph.families import CONVOLUTIONS, PRODUCTS
from ....ops.records import (
    Attention,
    Conv,
    ConvDepthwise,
    Convolution,
    InnerProduct,
    PackedMatmul,
    Rnn,
    SqueezeExcite,
)
from ...context import Context
from ...cost import slow_in_bf16, slow_in_int8
from ...precision.lowering import Layer, Lowering
from ...precision.quantize import (
    BF16,
    bfloat16_weights,
    bias_correction,
    decibels,
    quantize_weights,
    round_weights,
)
from ...report import Precision, Report
from .low_precision_tensors import joined_values, low_precision_tensors, write_types
from .low_precision_weights import MOST_PRODUCTS, low_precision_weights, snr_of, sources_of_products
from .open_squeeze_excite import open_squeeze_excite

_FASTER = '{}: convolutions of bfloat16 run in float32; precision="bf16" makes them bfloat16'
_MULTIPLYING = Attention | Convolution | InnerProduct | SqueezeExcite
# Ops that multiply as layers do, of TensorFlow and of models that have ops of ours already.
_OURS = (Attention, Conv, ConvDepthwise, InnerProduct, PackedMatmul, Rnn)
_MULTIPLY = PRODUCTS | CONVOLUTIONS | {record.op for record in _OURS}


def lower_precision(body: Body, context: Context) -> None:
    """Gives `precision` to convolutions and what lies between them, or to weights alone."""
    lowering = context.lowering
    if lowering is None:
        return _lower_as_it_was(body, context)
    if lowering.convolves:
        _lower_tensors(body, lowering, context)
    if lowering.observing and lowering.looks_at_rows and body.place is None:
        lowering.rows = sources_of_products(body)
    if not lowering.observing:
        low_precision_weights(body, lowering, context.report)
        if not lowering.weights_only:
            _round_attention(body, lowering)
        _name_what_stays(body, lowering, context)


def _lower_tensors(body: Body, lowering: Lowering, context: Context) -> None:
    """Gives convolutions and what lies between them low precision."""
    if body.place is not None:  # Nobody has seen the values of a loop's or a branch's tensors.
        if lowering.is_int8:
            return
        lowering = replace(lowering, means={})
    _lower(body, lowering, lambda node: body.label(node.name) not in lowering.keep, context.report)


def _round_attention(body: Body, lowering: Lowering) -> None:
    """Lets attention multiply bfloat16, whatever products by weights multiply."""
    for node in body.view.topological():
        if isinstance(node.payload, Attention):
            keep = body.label(node.name) in lowering.keep
            lowering.layers.append(Layer(body.label(node.name), "float32" if keep else "bfloat16"))
            node.payload = replace(node.payload, round_rows=not keep)


def _name_what_stays(body: Body, lowering: Lowering, context: Context) -> None:
    """Says of each product that is float32 in any case why it is."""
    named, declined = {layer.node for layer in lowering.layers}, dict(context.report.declined)

    def reason(node: Node) -> str:
        if why := declined.get(node.name) or context.reason_to_leave(body, node):
            return why
        if isinstance(node.payload, Conv) and not lowering.weights_only:
            if not lowering.convolves:
                return 'precision="int8" makes convolutions bytes, by calibration'
            if lowering.is_int8 and body.place is not None:
                return "calibration sees no tensor of a loop or a branch"
        if node.op == Rnn.op and lowering.makes_bytes and not lowering.weights_only:
            return (
                'there is no recurrent layer of bytes; precision="int8-weights" stores its weights'
            )
        if node.op == Rnn.op or isinstance(node.payload, InnerProduct | Conv):
            return "its weights are computed or no finite numbers, or it reads a part of a tensor"
        return f"{node.payload.title[0] if node.payload else node.op} is of float32 alone"

    for node in body.view.topological():
        label = body.label(node.name.removesuffix("/rnn"))
        left = node.payload is None and node.op in _MULTIPLY
        if label not in named and (left or isinstance(node.payload, _MULTIPLYING)):
            lowering.left.append((label, reason(node)))


def _lower_as_it_was(body: Body, context: Context) -> None:
    """Lets what computed in bfloat16 before `widen` do so again."""

    def was_low_precision(node: Node) -> bool:
        return body.label(node.payload.origin) in context.bfloat16

    def is_product(node: Node) -> bool:
        return isinstance(node.payload, InnerProduct) and was_low_precision(node)

    if not context.bfloat16:
        return
    reason, report = slow_in_bf16(), context.report
    lowering = Lowering("bf16-weights" if reason else "bf16", to_nearest=True)
    if reason is None:
        _lower(body, lowering, was_low_precision, report)
        layers = [layer for layer in lowering.layers if layer.dtype != "float32"]
        lowering.layers = []
    else:  # They run in float32, without the rounding that TensorFlow does after each op.
        convolutions = [n for n in body.view.topological() if is_candidate(n, False)]
        layers = [
            Layer(body.label(n.name), "float32") for n in convolutions if was_low_precision(n)
        ]
        if layers and _FASTER.format(reason) not in report.notes:
            report.notes.append(_FASTER.format(reason))
    low_precision_weights(body, lowering, report, is_product)
    layers += lowering.layers
    if not layers:
        return
    if report.precision is None:
        report.precision = Precision("bf16", [], [], 0)
    report.precision.layers.extend(layers)


def _lower(
    body: Body, lowering: Lowering, wanted: Callable[[Node], bool], report: Report
) -> set[str]:
    """Gives low precision to convolutions that are to have it; returns their names."""
    convolutions = [n for n in body.view.topological() if is_candidate(n, lowering.is_int8)]
    lowered = {n.name for n in convolutions if wanted(n)}
    if lowering.is_int8 and (slow := slow_in_int8(body, map(body.view.node, lowered))):
        report.notes.append(slow)
    open_squeeze_excite(body, lowered)
    tensors = low_precision_tensors(body.view, lowered)
    joined = joined_values(body.view, tensors)
    if body.place is None:
        place = {n.name: i for i, n in enumerate(body.view.topological())}
        seen = tensors.difference(joined)
        lowering.tensors = sorted(seen, key=lambda ref: (place[ref.node], ref.port))
        lowering.convolutions = [
            (n.name, n.src, n.payload) for n in convolutions if n.name in lowered
        ]
    if not lowering.observing:
        lowering.layers += [
            Layer(body.label(node.name), "float32", snr=_snr(node, lowering))
            for node in convolutions
            if node.name not in lowered
        ]
        fields = _fields_of(body, lowering, joined)
        write_types(
            body,
            lowering.dtype,
            dict.fromkeys(lowered, fields),
            tensors,
            lambda ref: _choice(ref, lowering, joined).quantization if lowering.is_int8 else (),
            joined,
        )
    return lowered


def _choice(ref: Ref, lowering: Lowering, joined: Mapping[Ref, Ref]):
    """The quantization of a tensor, or of what it is joined to; None where it has none."""
    return lowering.choices.get(joined.get(ref, ref))


def _fields_of(body: Body, lowering: Lowering, joined: Mapping[Ref, Ref]):
    """What gives a convolution the fields of the weights, and notes it among the layers."""

    def fields(node: Node) -> dict:
        label = body.label(node.name)
        layer = Layer(label, dtype_name(lowering.dtype), snr=_snr(node, lowering))
        if choice := _choice(node.ref, lowering, joined):
            (scale, zero_point), method, _ = choice
            layer = replace(layer, method=method, scale=scale, zero_point=zero_point)
        lowering.layers.append(layer)
        return _weights_of(node, lowering)

    return fields


def _weights_of(node: Node, lowering: Lowering) -> dict:
    """Its bias makes good what rounding the weights takes from the mean of each channel."""
    conv, weights = node.payload, node.payload.folded_weights()
    if lowering.is_int8:
        stored, scales = quantize_weights(weights)
        if (moments := lowering.moments.get(node.name)) is not None:
            stored = round_weights(weights, stored, scales, moments.covariance)
        changes = {"weights": stored, "weight_scales": scales}
    else:
        stored = weights.astype(BF16) if lowering.to_nearest else bfloat16_weights(weights)
        scales, changes = np.ones(conv.channels, np.float32), {"weights": stored}
    means = lowering.means.get(node.src)
    if means is not None and np.isfinite(means).all():
        lost = bias_correction(weights, stored, scales, means[: conv.in_channels])
        shift = 0.0 if conv.shift is None else conv.shift
        changes["shift"] = np.broadcast_to(shift + lost, [conv.channels])
    return changes


def is_candidate(node: Node, is_int8: bool) -> bool:
    """Whether it is a convolution that could work on low-precision tensors."""
    conv = node.payload
    if (
        not isinstance(conv, Conv)
        or conv.is_low_precision
        or conv.pool
        or conv.dst_part
        or conv.src_part
    ):
        return False
    if is_int8 and conv.taps > MOST_PRODUCTS:
        return False
    return bool(np.isfinite(conv.folded_weights()).all())


def _snr(node: Node, lowering: Lowering) -> float | None:
    """What rounding the weights and the source of a convolution leaves, in dB."""
    of_weights = snr_of(node.payload.folded_weights(), lowering)
    if not lowering.is_int8:
        return of_weights
    choice = lowering.choices.get(node.src)
    if choice is None:
        return None
    ratios = (choice.snr, of_weights)
    return decibels(1.0, sum(10 ** (-ratio / 10) for ratio in ratios))
