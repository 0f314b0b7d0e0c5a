"""Dense and EinsumDense layers of Keras's `quantize("int8")`.

    s [.., 1] = 127 / (max |x| + 1e-7) of each row;  q = clip(round(x s), -127, 127) as int8
    y = float(q @ kernel) / (s kernel_scale),        sums in int32

An EinsumDense may have several axes of a row, on either side: reshapes make matrices of them. The
inner product that quantizes its rows is all that; its scales are 1 / kernel_scale. Weights and
scales stay where they are.
"""

import math

from tensorflow.core.framework import types_pb2

from ....graph import Any, Body, Node, Op, Ref, Scalar, Writer, match
from ....ops.records import InnerProduct
from ...context import Context
from ...rules import Found

ROOTS = ("RealDiv",)
_VIEWS = frozenset({"ExpandDims", "Reshape", "Squeeze", "Transpose"})
_MOST = 66311  # products of bytes whose sum is an int32 for sure: (2^31 - 1) / (255 * 127)
_X = Any("x")
_LARGEST = Op(
    "Add|AddV2", Op("Max", Op("Abs", _X), Any("axes"), keep_dims=True), Scalar(name="epsilon")
)
_SCALE = Op("RealDiv", Scalar(127.0), _LARGEST)
_STEPS = Op("Minimum", Op("Round", Op("Mul", _X, _SCALE)), Scalar(127.0))
_BYTES = Op("Cast", Op("Maximum", _STEPS, Scalar(-127.0)))


def find(node: Node, body: Body, context: Context) -> Found | str | None:
    """The layer whose division by its scales is `node`, if it is one."""
    view, shapes, constants = body.view, body.shapes, body.constants
    floats = view.producer(node.inputs[0])
    if floats.op != "Cast" or floats.attr["SrcT"].type != types_pb2.DT_INT32:
        return None
    sums, result = _past_reshape(floats.inputs[0], body)
    if not sums.op.startswith("BatchMatMulV3") or sums.attr["Ta"].type != types_pb2.DT_INT8:
        return None
    rows, flat = _past_reshape(sums.inputs[0], body)
    found = match(_BYTES, rows, body)
    if found is None or abs(found.values["epsilon"] - 1e-7) > 1e-9:
        return None
    weights, x = sums.inputs[1], found.refs["x"]
    if sums.attr["adj_x"].b or sums.attr["adj_y"].b or not constants.is_constant(weights):
        return "int8 weights that are computed or transposed"
    of_x, of_y = shapes.shape(x), shapes.shape(node.inputs[0])
    matrix = shapes.shape(weights)
    if None in (of_x, of_y, matrix) or len(matrix) != 2 or of_y != shapes.shape(node.ref):
        return "the shapes of its int8 product are not known"
    ic, oc = matrix
    axes = shapes.numbers(found.refs["axes"])
    contracted = len(axes or ())
    kept = len(of_x) - contracted
    if sorted(a % len(of_x) for a in axes or ()) != list(range(kept, len(of_x))):
        return "rows that are quantized along other axes than those of its int8 product"
    # The rows are as many as before, so all of their axes are equal if all but one are.
    others = sum(a != b for a, b in zip(of_x[:kept], of_y, strict=False))
    if ic > _MOST or math.prod(of_x[kept:]) != ic or len(of_y) <= kept or others > 1:
        return "its int8 product is not of quantized rows by a matrix"
    kernel_scale = _kernel_scale(view.producer(node.inputs[1]), found, body, of_y[kept:], kept)
    if kernel_scale is None or math.prod(of_y[kept:]) != oc:
        return "its int8 product is divided by other scales than those of rows and columns"
    payload = InnerProduct(
        origin=node.name,
        in_channels=ic,
        channels=oc,
        stored_dtype=types_pb2.DT_INT8,
        quantize_rows=True,
    )
    inputs = {"src": x, "weights": weights}

    def prepared(write: Writer) -> dict[str, Ref]:
        made = {"weight_scales": write.add("weight_scales", "Reciprocal", kernel_scale)}
        if contracted > 1 and flat is not None:
            made["src"] = write.add("rows", "Reshape", x, flat)
        return inputs | made

    has_axes = result is not None and len(of_y) - kept > 1  # behind its rows
    finish = lambda write, product: write.put("Reshape", product, result)  # noqa: E731
    return Found(payload, inputs, node.name, prepare=prepared, finish=finish if has_axes else None)


def _kernel_scale(product: Node, found, body: Body, channels, kept: int) -> Ref | None:
    """The scales of columns that `product` multiplies those of rows by; None for all else."""
    if product.op != "Mul":
        return None
    for index in (0, 1):
        ref, other = product.inputs[index], product.inputs[1 - index]
        scale = _past_views(ref, body, kept)
        if scale is None or scale.name not in found.nodes or scale.op != "RealDiv":
            continue
        shape, of_rows = body.shapes.shape(other), body.shapes.shape(ref)
        if shape is None or of_rows is None or not body.constants.is_constant(other):
            return None
        ones = len(shape) - len(channels)
        aligned = ones <= 0 or all(size == 1 for size in shape[:ones])
        spread = len(of_rows) == kept + len(channels) and all(s == 1 for s in of_rows[kept:])
        return other if aligned and tuple(shape[max(0, ones) :]) == channels and spread else None
    return None


def _past_views(ref: Ref, body: Body, kept: int) -> Node | None:
    """What stands before views that leave the first `kept` axes where they are."""
    node = body.view.producer(ref)
    while node.op in _VIEWS:
        if node.op == "Transpose":
            order = body.shapes.numbers(node.inputs[1])
            if order is None or order[:kept] != list(range(kept)):
                return None
        node = body.view.producer(node.inputs[0])
    return node


def _past_reshape(ref: Ref, body: Body) -> tuple[Node, Ref | None]:
    """The producer of the tensor, before a Reshape, and the shape that one makes."""
    node = body.view.producer(ref)
    if node.op != "Reshape":
        return node, None
    return body.view.producer(node.inputs[0]), node.inputs[1]
