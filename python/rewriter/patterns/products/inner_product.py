"""MatMul by constant weights, of rows or of tensors of more axes.

Tensordot makes [.., K] @ [K, N] of Reshape to [-1, K], MatMul and Reshape back: the op takes any
number of axes itself, and element-wise work after the second Reshape can join it.
"""

from collections.abc import Mapping

import numpy as np

from ....graph import Body, Ref
from ....graph.families import KEEP_MEMORY
from ....ops.records import InnerProduct
from ...cost import is_slower_product
from ...precision.carried import dequantizes, weight_steps
from ...rules import Declined, Match, OneOf, Replacement, Rule, Stored, require


def inner_product(tf, x, transpose_b, weights, shape=None):
    """Product of rows by constant weights, with the reshapes around it."""
    product = tf.MatMul(x, weights, transpose_b=transpose_b)
    return tf.either(product, tf.Reshape(product, shape))


def _inner_product(match: Match) -> Replacement:
    body, weights, turned = match.body, match["weights"], match["transpose_b"]
    shape = body.shapes.shape(weights)
    known = shape is not None and all(isinstance(size, int) and size > 0 for size in shape)
    require(known, "the shape of the weights is not known")
    ic, oc = shape[::-1] if turned else shape
    rows = body.shapes.elements(match["x"], nominal=1) // ic
    lowering = match.context.lowering
    in_floats = lowering is None or lowering.weights_only
    if in_floats and not match.context.options.deterministic and is_slower_product(rows, ic, oc):
        raise Declined(f"TensorFlow's matmul is faster at {rows} rows of {ic}->{oc}")
    inputs, values = {"src": _source(match, ic, oc)}, None
    steps, dequantized = None, False
    stored = body.view.producer(body.view.origin(weights, KEEP_MEMORY))
    # What each run finds in the same memory is packed once.
    if turned or stored.op not in ("Const", "Placeholder", "ReadVariableOp"):
        values = body.constants.value(weights)
        values = np.ascontiguousarray(values.T if turned else values, np.float32)
        steps, dequantized = weight_steps(weights, values, body), dequantizes(weights, body)
    else:
        inputs["weights"] = weights
    payload = InnerProduct(
        origin=match.node(("MatMul",)).name,
        in_channels=ic,
        channels=oc,
        constant_weights=values is not None or not body.constants.live,
        weights=values,
        weight_steps=steps,
        dequantized=dequantized,
        algorithm="direct" if match.context.options.algorithm == "direct" else "auto",
    )
    return Replacement(payload, inputs, match.root.name, match.nodes)


def _source(match: Match, ic: int, oc: int) -> Ref:
    """The tensor that is multiplied: that before the first Reshape, where there are two."""
    if match.root.op == "MatMul":
        return match["x"]
    flat, shapes = match.body.view.producer(match["x"]), match.body.shapes
    before = shapes.shape(flat.inputs[0]) if flat.op == "Reshape" else None
    if not before or before[-1] != ic or shapes.shape(match.root.ref) != (*before[:-1], oc):
        raise Declined
    return flat.inputs[0]


def matrix(payload: InnerProduct, inputs: Mapping[str, Ref], body: Body) -> np.ndarray:
    """The weights of a planned product that reads `inputs`."""
    return body.constants.value(inputs["weights"]) if payload.weights is None else payload.weights


RULE = Rule(
    inner_product,
    _inner_product,
    like=None,
    weights=Stored(),
    transpose_b=OneOf((False, True)),
    shape=None,
)
