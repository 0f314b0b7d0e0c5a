"""Turns what we can run wherever it stands into planned primitives.

Convolutions and inner products begin a chain; softmax ends one, so it comes when all
before it is settled.
"""

from ...graph import Body, Ref, dtype, dtype_name, is_float32
from ..capture import XLA
from ..context import Context
from ..patterns import patterns_of
from ..rules import look


def lift_convolutions(body: Body, context: Context) -> None:
    """Plans convolutions, Dense layers on pictures as such, and norms; notes why others stay."""
    for node in body.view:
        if node.attr[XLA].b:
            context.report.decline(node.name, "XLA compiles it (jit_compile=True)")
        if node.op == "DepthwiseConv2dNativeBackpropInput":  # which a reader of the report expects
            context.report.decline(node.name, "transposed convolution is not implemented")
    _lift(body, context, "lift_convolutions")


def lift_attention(body: Body, context: Context) -> None:
    """Makes one op of what attention does between its projections; notes why it cannot."""
    _lift(body, context, "lift_attention")


def lift_inner_products(body: Body, context: Context) -> None:
    """Plans the multiplications by constant weights."""
    _lift(body, context, "lift_inner_products")


def lift_softmax(body: Body, context: Context) -> None:
    """Converts each softmax of what a converted op computes."""
    _lift(body, context, "lift_softmax")


def _lift(body: Body, context: Context, name: str) -> None:
    """Puts what the patterns of pass `name` find into the graph; notes why others stay.

    What ends last is looked for first: the norm with a scale before the norm alone.
    """
    for node in reversed(body.view.topological()):
        for pattern in patterns_of(name, node.op):
            result = look(pattern, node, body, context) if node.name in body.view else None
            if result is None:
                continue
            if not isinstance(result, str) and not is_float32(body.view, Ref(result.root)):
                kind = dtype_name(dtype(body.view, Ref(result.root)))
                result = f"dtype {kind}, only float32 is implemented"
            origin = node if isinstance(result, str) else body.view.node(result.payload.origin)
            reason = context.reason_to_leave(body, origin)
            if reason or isinstance(result, str):
                context.report.decline(node.name, reason or result)
                continue
            for note in result.notes:
                context.report.decline(*note)
            result.put(body)
            break
