"""Writes the account of the finished plan: ops of ours, work on either side, causes of reorders."""

import math
from collections import Counter

from ...graph import Body, Node, Ref, estimate, product
from ...graph.families import CONVOLUTIONS, SUMS
from ...ops.records import (
    Attention,
    Conv,
    ConvDepthwise,
    Convolution,
    InnerProduct,
    Reorder,
    UpdateSlice,
)
from ..context import Context
from ..report import Converted

# op -> how many dimensions of the weights an element of the result is summed over; for ops that
# scatter, an element of their source.
_SUMMED = dict.fromkeys(CONVOLUTIONS, -1) | {"DepthwiseConv2dNative": 2}


def account(body: Body, context: Context) -> None:
    """Lists ops of ours, and reorders with their causes; counts multiply-adds on either side."""
    report, left = context.report, Counter()
    body.view.prune()  # What nobody reads is not written, and so not counted.
    for node in body.view.topological():
        payload, shape = node.payload, body.shapes.shape(node.ref)
        known = shape and tuple(size if isinstance(size, int) else None for size in shape)
        if isinstance(payload, Reorder):
            change = f"{payload.src_layout}->{payload.dst_layout}"
            report.reorders.append((str(node.inputs[0]), change))
            report.reorder_causes.append(_cause(body, node))
            report.reorder_bytes += 4 * _product(shape[1:]) if shape else 0
        elif payload is not None:
            algorithm = getattr(payload, "algorithm", "")
            what = Converted(node.name, payload.op, known, algorithm, payload.details())
            report.converted.append(what)
            report.multiply_adds += _of_payload(body, node)
        elif node.op == UpdateSlice.op:  # of no plan
            report.converted.append(Converted(node.name, node.op, known, "", "in place"))
        else:
            report.multiply_adds_left += _of_op(body, node)
            left[node.op] += node.op in SUMS
    if context.options.deterministic and +left:
        ops = ", ".join(f"{count} {op}" for op, count in sorted((+left).items()))
        report.notes.append(
            f"deterministic: TensorFlow adds up {ops}; how, may depend on batch and threads"
        )


def _of_payload(body: Body, node: Node) -> int:
    payload, written = node.payload, body.shapes.elements(node.ref)
    if isinstance(payload, ConvDepthwise):
        spread = payload.depthwise.strides[0] * payload.depthwise.strides[1]
        return written * int(spread * payload.first.taps + payload.depthwise.taps)
    if isinstance(payload, Convolution):
        pooled = isinstance(payload, Conv) and payload.pool
        return int(written * payload.taps) * (pooled[0] * pooled[1] if pooled else 1)
    if isinstance(payload, Attention):
        k = body.shapes.shape(node.by_role["k"])
        keys = _product([k[payload.keys_axis(len(k))]])
        return written * keys * (payload.head_size + payload.channels) // payload.channels
    return written * payload.in_channels if isinstance(payload, InnerProduct) else 0


def _of_op(body: Body, node: Node) -> int:
    """Multiply-adds of an op that stays with TensorFlow; those of loops are not counted."""
    shapes, counted, summed = body.shapes, node.ref, None
    if node.op in _SUMMED:
        summed = (shapes.shape(node.inputs[1]) or ())[: _SUMMED[node.op]]
        counted = node.inputs[2] if "Backprop" in node.op else counted
    elif (factors := product(node, shapes)) and len(factors.refs) == 2:
        pairs = zip(factors.labels, map(shapes.shape, factors.refs), strict=True)
        sizes = {label: size for pair in pairs for label, size in zip(*pair, strict=True)}
        summed = [size for label, size in sizes.items() if label not in factors.result]
    return 0 if summed is None else shapes.elements(counted) * _product(summed)


def _product(sizes) -> int:
    return math.prod(estimate(size, 64) for size in sizes)  # of what is not known, as ratios count


def _cause(body: Body, node: Node) -> str:
    """What wants or makes the plain tensor on one side of a reorder."""
    view, (src,) = body.view, node.inputs[:1]
    if view.producer(src).payload is None:
        producer = view.producer(src)
        if producer.op == "Placeholder":
            return f"the input {producer.name}"
        return f"{producer.op} {producer.name}, which has no blocked form here"
    readers = [reader for reader, _ in view.consumers(node.ref)]
    names_it = [reader for reader in readers if reader.op in ("Identity", "IdentityN")]
    if view.is_fetched(node.ref) or any(
        view.is_fetched(Ref(reader.name, reader.inputs.index(node.ref))) for reader in names_it
    ):
        others = (reader for reader, _ in view.consumers(src) if reader is not node)
        if any(reader.payload is not None for reader in others):
            return "an output that the next layer also reads in blocks"
        return "an output of the function"
    plain = next((reader for reader in readers if reader.payload is None), None)
    if plain is not None:
        return f"{plain.op} {plain.name}, which has no blocked form here"
    return f"{readers[0].op} {readers[0].name}, which reads plain tensors" if readers else ""
