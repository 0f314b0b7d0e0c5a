"""Lets a model that was quantized elsewhere compute on the bytes that it means.

Between two roundings to bytes (FakeQuantWithMinMaxVars, QuantizeAndDequantizeV2, ...) a convolution
whose weights are whole multiples of a step an output channel is one of integers:

    y = sum (sx (qx - zx)) (sw qw) = sx sw sum (qx - zx) qw

and the rounding after its bias, batch normalisation and activation is how the result is stored.
What batch normalisation multiplies by goes into the scales. Scales, zero points and weights are the
model's own; nothing is calibrated.
"""

from dataclasses import replace

import numpy as np

from ....graph import QUANTIZING, UINT8, Body, Node, Ref
from ....ops.records import (
    BLOCKED,
    MAX_STEPS,
    Concat,
    Conv,
    Eltwise,
    FakeQuantize,
    InnerProduct,
    Reorder,
    Reshape,
    eltwise,
)
from ...context import Context
from ...precision.carried import byte_of, multiples
from ...precision.lowering import Layer
from ...precision.quantize import LEVELS, Quantization, as_int4
from ...report import Precision
from .low_precision_tensors import low_precision_tensors, sources, write_types
from .lower_precision import is_candidate

_METHOD = "the model's own"


def lower_quantized(body: Body, context: Context) -> None:
    """Runs convolutions between the roundings of a quantized model on bytes, by its own scales."""
    view = body.view
    known: dict[Ref, Quantization] = {}
    for node in view.topological():
        if (quantization := _of_result(node, known, body)) is not None:
            known[node.ref] = quantization
    layers: list[Layer] = []
    lowered = _lowered(body, known, context)
    if known:
        stored = _absorb(body, known, lowered)
        tensors = low_precision_tensors(view, lowered, known.__contains__) | stored
        for node in view.topological():
            rounding = node.payload
            if isinstance(rounding, FakeQuantize) and node.ref in tensors:
                if rounding.most == LEVELS:  # The reorder rounds to all of a byte's numbers.
                    layouts = dict.fromkeys(("src_layout", "dst_layout"), rounding.layout)
                    common = dict(origin=rounding.origin, channels=rounding.channels)
                    node.payload = Reorder(**common, **layouts)
        fields = _fields_of(body, known, layers)
        write_types(body, UINT8, dict.fromkeys(lowered, fields), tensors, known.get)
    layers += _store_products(body)
    if layers and context.lowering is None:
        context.report.precision = Precision("int8", layers, [], 0)
    elif layers and not context.lowering.observing:
        context.lowering.layers += layers


def _of_result(node: Node, known, body: Body) -> Quantization | None:
    """What the bytes stand for that hold all that the node makes, where that is known."""
    payload = node.payload
    if isinstance(payload, FakeQuantize):
        return payload.quantization
    if payload is None and node.op in QUANTIZING:
        byte = byte_of(node, body)
        return None if isinstance(byte, str) else byte[0]
    if _hands_on(node):
        read = sources(node) if payload is not None else node.inputs
        quantizations = {known.get(ref) for ref in read}
        return quantizations.pop() if len(quantizations) == 1 else None
    return None


def _hands_on(node: Node) -> bool:
    """Whether it only moves numbers: each of the result is zero, or from a source."""
    payload = node.payload
    if payload is None:
        return node.op == "Identity"
    moves = isinstance(payload, Concat | Reorder | Reshape)
    return (moves or (payload.keeps and not payload.makes_numbers)) and not payload.is_low_precision


def _lowered(body: Body, known, context: Context) -> set[str]:
    """The convolutions of bytes by bytes; notes why others of quantized tensors are none."""
    lowered = set()
    for node in body.view.topological():
        if not isinstance(node.payload, Conv):
            continue
        conv, quantized = node.payload, node.src in known
        if conv.weight_steps is None:
            reason = "its weights are not quantized" if quantized else None
        elif not quantized:
            reason = "what it reads is not quantized"
        elif multiples(conv.weights, conv.weight_steps) is None:
            reason = "its weights are not int8 any more, as they went through another fusion"
        elif not is_candidate(node, is_int8=True):
            reason = "it adds up more products than an int32 holds, or reads a part"
        else:
            lowered.add(node.name)
            continue
        if reason:
            context.report.notes.append(f"{body.label(node.name)} stays float32: {reason}")
    return lowered


def _absorb(body: Body, known, lowered: set[str]) -> set[Ref]:
    """Lets what makes a tensor that is rounded at once store it so; returns such tensors."""
    view, stored = body.view, set()
    for node in view.topological():
        rounding = node.payload
        if not isinstance(rounding, FakeQuantize) or node.src.port:
            continue
        maker = view.producer(node.src)
        if not view.is_only_for(node.src, node) or not _stores(maker, known, lowered):
            continue
        payload = _rounded(maker.payload, rounding)
        if payload is None:
            continue
        node_of_bytes = Node(node.name, payload.op, maker.by_role, node.controls, payload=payload)
        view.replace(node_of_bytes)
        view.remove_dead([maker.name])
        if maker.name in lowered:
            lowered.remove(maker.name)
            lowered.add(node.name)
        stored.add(node_of_bytes.ref)
    return stored


def _stores(maker: Node, known, lowered: set[str]) -> bool:
    """Whether it may write any bytes."""
    payload = maker.payload
    if isinstance(payload, Eltwise):
        return payload.layout == BLOCKED and not payload.dst_part
    if isinstance(payload, Concat):
        return not payload.is_slice and all(ref in known for ref in sources(maker))
    return maker.name in lowered


def _rounded(payload, rounding: FakeQuantize):
    """The payload, clipped where fewer than 256 numbers are used; None if it takes no step."""
    if rounding.most == LEVELS:
        return payload
    scale, zero_point = rounding.quantization
    last = eltwise("clip", alpha=-scale * zero_point, beta=scale * (rounding.most - zero_point))
    if not payload.takes_steps or len(payload.chain) + 1 > MAX_STEPS:
        return None
    return replace(payload, steps=(*payload.steps, last))


def _fields_of(body: Body, known, layers: list[Layer]):
    """What gives a convolution the fields of the weights, and notes it among the layers."""

    def fields(node: Node) -> dict:
        conv = node.payload
        scale, zero_point = known.get(node.ref, (None, None))
        method = "" if scale is None else _METHOD
        layers.append(Layer(body.label(node.name), "uint8", method, scale, zero_point))
        scale = 1.0 if conv.scale is None else conv.scale
        scales = (conv.weight_steps * np.broadcast_to(scale, [conv.channels])).astype(np.float32)
        return {"weights": multiples(conv.weights, conv.weight_steps), "weight_scales": scales}

    return fields


def _store_products(body: Body) -> list[Layer]:
    """Stores quantized weights of products as what they are; arithmetic stays float32."""
    layers = []
    for node in body.view.topological():
        product = node.payload
        if not isinstance(product, InnerProduct) or product.weights is None:
            continue
        if product.weight_steps is not None:
            stored = multiples(product.weights, product.weight_steps)
            if stored is None:
                continue
            kind, fields = "int8", {"weights": stored, "weight_scales": product.weight_steps}
            fields["weight_scales"] = fields["weight_scales"].astype(np.float32)
        elif product.dequantized and (int4 := as_int4(product.weights)) is not None:
            kind = "int4"
            fields = dict(zip(("weights", "weight_scales", "group"), int4, strict=True))
        else:
            continue
        node.payload = replace(product, **fields)
        layers.append(Layer(body.label(node.name), kind, method=_METHOD))
    return layers
