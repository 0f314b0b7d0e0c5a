"""Replaces computed shape tensors by constants where symbolic sizes allow.

A Reshape to [batch, 1, 1, C], spelled Shape -> StridedSlice -> Pack, becomes a Reshape
to the constant [-1, 1, 1, C]: then nobody asks a blocked tensor for its shape.
"""

from ....graph import INT32, Body, Expr, open_sizes
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
        dtype = node.attr["Tshape"].type or INT32
        constant = body.writer(node.name).constant("constant_shape", open_sizes(sizes), dtype)
        body.view.set_inputs(node, [node.inputs[0], constant])
        body.view.remove_dead([shape.node])
