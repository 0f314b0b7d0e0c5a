"""Sums up the finished plan for the report: work, and what causes each reorder."""

import math
from collections import Counter

from ...graph import Body, Node, Ref, estimate
from ...ops.records import Attention, Conv, ConvDepthwise, Convolution, InnerProduct, Reorder
from ..context import Context

# An unknown height or width counts as this many, an unknown batch, too: only ratios are told.
_NOMINAL = 64
# What adds up many numbers.
_SUMS = frozenset(
    {"AvgPool", "AvgPool3D", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "Conv2D", "Conv3D"}
    | {"Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNative", "Einsum", "MatMul"}
    | {"Mean", "Prod", "Softmax", "Sum"}
)


def account(body: Body, context: Context) -> None:
    """Counts multiply-adds on either side and bytes of reorders; names what causes these."""
    report = context.report
    nodes = body.view.topological()
    report.multiply_adds = sum(_of_payload(body, n) for n in nodes if n.payload is not None)
    report.multiply_adds_left = sum(_of_op(body, n) for n in nodes if n.payload is None)
    reorders = [node for node in nodes if isinstance(node.payload, Reorder)]
    report.reorder_causes = [_cause(body, node) for node in reorders]
    report.reorder_bytes = sum(_bytes_of_sample(body, node.inputs[0]) for node in reorders)
    left = Counter(node.op for node in nodes if node.payload is None and node.op in _SUMS)
    if context.options.deterministic and left:
        ops = ", ".join(f"{count} {op}" for op, count in sorted(left.items()))
        report.notes.append(
            f"deterministic: TensorFlow adds up {ops}; how, may depend on batch and threads"
        )


def _of_payload(body: Body, node: Node) -> int:
    payload = node.payload
    written = _elements(body, node.ref)
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
    if node.op in ("Conv2D", "Conv3D"):
        taps = body.shapes.shape(node.inputs[1])
        return _elements(body, node.ref) * _product(taps[:-1] if taps else ())
    if node.op == "DepthwiseConv2dNative":
        taps = body.shapes.shape(node.inputs[1])
        return _elements(body, node.ref) * _product(taps[:2] if taps else ())
    if node.op in ("Conv2DBackpropInput", "Conv3DBackpropInputV2"):  # each source pixel, all taps
        taps = body.shapes.shape(node.inputs[1])
        return _elements(body, node.inputs[2]) * _product(taps[:-1] if taps else ())
    if node.op == "Einsum":
        return _of_einsum(body, node)
    if node.op in ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"):
        shape = body.shapes.shape(node.inputs[0])
        flag = "transpose_a" if node.op == "MatMul" else "adj_x"
        axis = -2 if node.attr[flag].b else -1
        return _elements(body, node.ref) * _product(shape[axis:][:1] if shape else ())
    return 0


def _of_einsum(body: Body, node: Node) -> int:
    """Each element of the result is a sum over the labels that it does not have."""
    operands, _, result = node.attr["equation"].s.decode().replace(" ", "").partition("->")
    sizes = {}
    for labels, ref in zip(operands.split(","), node.inputs, strict=True):
        shape = body.shapes.shape(ref) or ()
        first, _, last = labels.partition("...")
        sizes.update(zip(first, shape, strict=False))
        sizes.update(zip(last[::-1], shape[::-1], strict=False))
    summed = [size for label, size in sizes.items() if label not in result]
    return _elements(body, node.ref) * _product(summed) if len(node.inputs) == 2 else 0


def _elements(body: Body, ref: Ref) -> int:
    return body.shapes.elements(ref, _NOMINAL) if body.shapes.shape(ref) else 0


def _bytes_of_sample(body: Body, ref: Ref) -> int:
    shape = body.shapes.shape(ref)
    return 4 * math.prod(estimate(size, _NOMINAL) for size in shape[1:]) if shape else 0


def _product(sizes) -> int:
    result = 1
    for size in sizes:
        result *= size if isinstance(size, int) else _NOMINAL
    return result


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
