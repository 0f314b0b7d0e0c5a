"""Replaces computed shape tensors by constants where symbolic sizes allow.

A Reshape to [batch, 1, 1, C], spelled Shape -> StridedSlice -> Pack, becomes a Reshape
to the constant [-1, 1, 1, C]: then nobody asks a blocked tensor for its shape.
"""

from tensorflow.core.framework import types_pb2

from ....graph import Body, Expr, constant_node
from ...context import Context


def constant_shapes(body: Body, context: Context) -> None:
    """Gives each Reshape a constant shape where at most one size is unknown."""
    for node in body.view:
        if node.op != "Reshape" or node.name not in body.view:
            continue
        shape = node.inputs[1]
        sizes = body.shapes.value(shape)
        if body.view.producer(shape).op == "Const" or sizes is None:
            continue
        unknown = [size for size in sizes if isinstance(size, Expr)]
        numbers = [size for size in sizes if not isinstance(size, Expr)]
        if len(unknown) > 1 or (unknown and any(size <= 0 for size in numbers)):
            continue
        values = [-1 if isinstance(size, Expr) else size for size in sizes]
        dtype = node.attr["Tshape"].type or types_pb2.DT_INT32
        constant = body.view.add(constant_node(f"{node.name}/constant_shape", values, dtype))
        body.view.set_inputs(node, [node.inputs[0], constant.ref])
        body.view.remove_dead([shape.node])
