"""MatMul by constant weights, of rows or of tensors of more axes.

Tensordot makes [.., K] @ [K, N] of Reshape to [-1, K], MatMul and Reshape back: the op takes any
number of axes itself, and element-wise work behind the second Reshape can join it.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, Ref, dtype_name
from ....ops.records import InnerProduct
from ...context import Context
from ...precision.carried import weight_steps
from ...rules import Found

ROOTS = ("MatMul",)
NAMED = ("transpose_b",)
_MANY_WRITTEN, _SHORT_SUM = 2_000_000, 256  # see _is_slower
# What hands on the memory it reads.
_VIEWS = frozenset({"ExpandDims", "Identity", "Reshape", "Squeeze"})


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The product of `node`, with the reshapes around it."""
    found = product(node, body)
    if isinstance(found, str):
        return found
    reason = _is_slower(found.payload, body.shapes.elements(node.inputs[0], nominal=1))
    if reason and not context.options.deterministic:  # TensorFlow's need not be that
        return reason
    if context.options.algorithm == "direct":
        found = replace(found, payload=replace(found.payload, algorithm="direct"))
    return _with_reshapes(node, found, body)


def _is_slower(payload: InnerProduct, elements: int) -> str | None:
    """Why TensorFlow's product by oneDNN is the better one: what is written outweighs arithmetic.

    Measured with a bias against TensorFlow with oneDNN, two threads of a Zen 4, rows x K -> N,
    TensorFlow's time over ours:

        3136 x 160 -> 640  0.91    12544 x 64 -> 256  0.84    12544 x 128 -> 512  0.90
        3136 x  96 -> 384  1.05     3136 x 64 -> 256  1.00     3136 x 384 -> 1536 0.98
        12544 x 256 -> 64  1.45      197 x 768 -> 3072 1.16     128 x 768 -> 30522 1.04

    Unknown sizes count as 1, so a product with an open batch is judged by one sample.
    """
    ic, oc = payload.in_channels, payload.channels
    rows = elements // ic
    if rows * oc < _MANY_WRITTEN or ic > _SHORT_SUM or oc <= ic:
        return None
    return f"TensorFlow's product is faster at {rows} rows of {ic}->{oc}"


def product(node: Node, body: Body) -> Found | str:
    """The product of `node` by itself."""
    attr, (src, weights) = node.attr, node.inputs
    if attr["T"].type != types_pb2.DT_FLOAT:
        return f"dtype {dtype_name(attr['T'].type)}, only float32 is implemented"
    if not body.constants.is_constant(weights):
        return "the weights are computed or assigned inside the function"
    shape = body.shapes.shape(weights)
    if shape is None or not all(isinstance(size, int) and size > 0 for size in shape):
        return "the shape of the weights is not known"
    turned, inputs, values = attr["transpose_b"].b, {"src": src}, None
    if turned or not _is_stored(weights, body):
        values = body.constants.value(weights)
        values = np.ascontiguousarray(values.T if turned else values, np.float32)
    else:
        inputs["weights"] = weights
    ic, oc = shape[::-1] if turned else shape
    steps = None if values is None else weight_steps(weights, values, body)
    payload = InnerProduct(
        origin=node.name,
        in_channels=ic,
        channels=oc,
        constant_weights=values is not None or not body.constants.live,
        weights=values,
        weight_steps=steps,
    )
    return Found(payload, inputs, node.name)


def matrix(payload: InnerProduct, inputs: Mapping[str, Ref], body: Body) -> np.ndarray:
    """The weights of a planned product that reads `inputs`."""
    return body.constants.value(inputs["weights"]) if payload.weights is None else payload.weights


def _is_stored(ref: Ref, body: Body) -> bool:
    """Whether each run finds the tensor in the same memory, so that it is packed once."""
    stored = body.view.producer(body.view.origin(ref, _VIEWS))
    return stored.op in ("Const", "Placeholder", "ReadVariableOp")


def _with_reshapes(node: Node, found: Found, body: Body) -> Found:
    """The same product of the tensor before it was made a matrix, if that is what happens."""
    view, shapes = body.view, body.shapes
    flat, payload = view.producer(node.inputs[0]), found.payload
    root = view.only_reader(node.ref)[0]
    if flat.op != "Reshape" or root is None or root.op != "Reshape" or root.payload is not None:
        return found
    src = flat.inputs[0]
    before, after = shapes.shape(src), shapes.shape(root.ref)
    if not before or not after or before[:-1] != after[:-1]:
        return found
    if (before[-1], after[-1]) != (payload.in_channels, payload.channels):
        return found
    return Found(
        payload, {**found.inputs, "src": src}, root.name, frozenset({root.name, node.name})
    )
