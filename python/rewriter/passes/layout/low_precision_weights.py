"""Stores weights in low precision, where the tensors between layers stay float32.

Of precisions of weights alone arithmetic stays float32, too. Weights of convolutions become float32
again when they are packed; products and recurrent layers of few rows, which are bound by the memory
that they read, keep them as they are stored. Of others each layer also rounds the rows that it
reads: products and recurrent layers to bfloat16, products to bytes with a scale a row.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

from ....graph import FLOAT32, Body, Node, Ref, make_node
from ....ops.records import Conv, InnerProduct, Rnn
from ...patterns.products.inner_product import matrix
from ...precision.lowering import Layer, Lowering
from ...precision.moments import SampledRows
from ...precision.quantize import (
    BF16,
    balance,
    bfloat16_weights,
    dequantize_int4,
    quantize_int4,
    quantize_weights,
    snr,
)
from ...report import Report

# Products whose sum is an int32 whatever they are: 2^31 / (255 * 128).
MOST_PRODUCTS = 65_000
_KERNELS = (1, 2)  # which inputs of a recurrent layer the two matrices are


def low_precision_weights(
    body: Body,
    lowering: Lowering,
    report: Report,
    wanted: Callable[[Node], bool] = lambda node: True,
) -> None:
    """Stores the weights of layers that are wanted so and that the precision has a way for."""
    for node in body.view.topological():
        if not wanted(node):
            continue
        if isinstance(node.payload, InnerProduct):
            _store(node, body, lowering)
        elif isinstance(node.payload, Conv) and lowering.weights_only:
            _store(node, body, lowering)
        elif node.op == Rnn.op and (lowering.weights_only or not lowering.makes_bytes):
            _store_recurrent(node, body, lowering, report)


def sources_of_products(body: Body) -> dict[Ref, SampledRows]:
    """The tensors whose rows products multiply by float32 weights, each with room for a sample."""
    return {
        node.src: SampledRows(node.payload.in_channels)
        for node in body.view.topological()
        if isinstance(node.payload, InnerProduct) and node.payload.weights_type == FLOAT32
    }


def snr_of(weights: np.ndarray, lowering: Lowering) -> float:
    """What rounding the weights leaves, in dB."""
    if not lowering.makes_bytes:
        return snr(weights, weights.astype(BF16))
    return snr(weights, *quantize_weights(weights))


def _store(node: Node, body: Body, lowering: Lowering) -> None:
    """Makes the weights of a convolution or product an array of the low-precision type."""
    payload, inputs, fields = node.payload, node.by_role, {}
    if isinstance(payload, Conv):
        weights, fields["scale"] = payload.folded_weights(), None
    elif payload.weights_type == FLOAT32:
        weights = matrix(payload, inputs, body)
        inputs.pop("weights", None)
    else:
        return
    rounds = isinstance(payload, InnerProduct) and not lowering.weights_only
    if rounds and lowering.makes_bytes and payload.in_channels > MOST_PRODUCTS:
        return
    label, read = body.label(node.name), _rows_read(node, body, lowering)
    if lowering.makes_int4 and isinstance(payload, InnerProduct):
        fields = _int4_fields(weights, label, lowering, read)
        if fields is None:
            return
    elif not _takes([weights], label, lowering):
        return
    else:
        balances = rounds and lowering.makes_bytes and read is not None
        factors = balance(weights, read) if balances else None
        if factors is not None:
            weights = weights / factors[:, None]
        fields["weights"], scales = _stored(weights, lowering)
        if factors is not None:
            scales, fields["balance_rows"] = np.concatenate([scales, factors]), True
        if scales is not None:
            fields["weight_scales"] = scales
    if rounds:
        fields["quantize_rows" if lowering.makes_bytes else "round_rows"] = True
    body.view.set_inputs(node, inputs)
    node.payload = replace(payload, **fields)


def _rows_read(node: Node, body: Body, lowering: Lowering) -> np.ndarray | None:
    """Some rows of what a product reads, where calibration has seen others than zeros."""
    sample = lowering.rows.get(node.src) if body.place is None else None
    return sample.rows if sample is not None and sample.rows.any() else None


def _int4_fields(
    weights: np.ndarray | None, label: str, lowering: Lowering, read: np.ndarray | None
) -> dict | None:
    """The fields of a product whose weights become numbers of 4 bits; None where they do not."""
    if weights is None or not weights.size or not np.isfinite(weights).all():
        return None
    with np.errstate(over="ignore", invalid="ignore"):  # What is too large for it has no ratio.
        stored, scales, group = quantize_int4(weights, read=read)
        ratio = snr(weights, dequantize_int4(stored, scales, group, len(weights)))
    if ratio == -math.inf:  # They are so large that the greatest number of a group is none.
        return None
    keep = label in lowering.keep
    lowering.layers.append(Layer(label, "float32" if keep else "int4", snr=ratio))
    return None if keep else {"weights": stored, "weight_scales": scales, "group": group}


def _store_recurrent(node: Node, body: Body, lowering: Lowering, report: Report) -> None:
    """Makes both matrices of a recurrent layer constants of the low-precision type."""
    if node.attr["weights_type"].type not in (types_pb2.DT_INVALID, FLOAT32):
        return
    refs = [node.inputs[place] for place in _KERNELS]
    if not all(map(body.constants.is_constant, refs)):
        return
    name = node.name.removesuffix("/rnn")  # of the loop that it was
    matrices = [np.asarray(body.constants.value(ref), np.float32) for ref in refs]
    if not _takes(matrices, body.label(name), lowering):
        return
    write, inputs, scales = body.writer(node.name), list(node.inputs), []
    for place, weights in zip(_KERNELS, matrices, strict=True):
        values, of_columns = _stored(weights, lowering)
        kind = tf.as_dtype(values.dtype).as_datatype_enum
        inputs[place] = write.constant(f"{place}", values, kind)
        if of_columns is not None:
            scales.append(write.constant(f"{place}/scales", of_columns, FLOAT32))
    attributes = {key: node.attr[key] for key in node.proto.attr}
    attributes |= {"weights_type": kind, "num_scales": len(scales), "constant_weights": True}
    attributes["round_rows"] = rounds = not lowering.weights_only
    layer = make_node(
        node.name, node.op, [*inputs, *scales], node.controls, node.proto.device, **attributes
    )
    body.view.replace(layer)
    body.view.remove_dead([ref.node for ref in refs])
    stored = tf.as_dtype(kind).name + ", rows rounded" * rounds
    for index, item in enumerate(report.converted):
        if item.node == name and item.op == Rnn.op:
            report.converted[index] = replace(item, details=f"{item.details}, weights {stored}")


def _takes(matrices: list[np.ndarray | None], label: str, lowering: Lowering) -> bool:
    """Whether they are stored in low precision; notes the layer that they belong to."""
    if any(weights is None or not np.isfinite(weights).all() for weights in matrices):
        return False
    keep, ratio = label in lowering.keep, min(snr_of(matrix, lowering) for matrix in matrices)
    kind = "int8" if lowering.makes_bytes else "bfloat16"
    lowering.layers.append(Layer(label, "float32" if keep else kind, snr=ratio))
    return not keep


def _stored(weights: np.ndarray, lowering: Lowering) -> tuple[np.ndarray, np.ndarray | None]:
    """(the weights, the scales of their columns where they are int8)."""
    if lowering.makes_bytes:
        return quantize_weights(weights)
    return bfloat16_weights(weights), None
