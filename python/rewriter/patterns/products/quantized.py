"""Dense and EinsumDense layers of Keras's `quantize("int8")`.

    s [.., 1] = 127 / (max |x| + 1e-7) of each row;  q = clip(round(x s), -127, 127) as int8
    y = float(q @ kernel) / (s kernel_scale),        sums in int32

An EinsumDense may have several axes of a row, on either side: reshapes make matrices of them. The
inner product that quantizes rows is all that; the scales are 1 / kernel_scale. Weights and
scales stay where they are.
"""

import math

from tensorflow.core.framework.types_pb2 import DT_INT8, DT_INT32

from ....graph import FLOAT32, Ref, Writer
from ....ops.records import InnerProduct
from ...rules import Declined, Match, Number, Replacement, Rule, Sizes, Stored, require

_MOST = 66311  # products of bytes whose sum is an int32 for sure: (2^31 - 1) / (255 * 127)


def quantized(tf, x, axes, epsilon, kernel, kernel_scale, flat=None, result=None):
    """Dense and EinsumDense layers of Keras's `quantize("int8")`."""
    scale = 127.0 / (tf.Max(tf.Abs(x), axes, keep_dims=True) + epsilon)
    steps = tf.Maximum(tf.Minimum(tf.Round(x * scale), 127.0), -127.0)
    rows = tf.Cast(steps, DstT=DT_INT8)
    rows = tf.either(tf.Reshape(rows, flat), rows)
    sums = tf.BatchMatMulV3(rows, kernel, Ta=DT_INT8, Tb=DT_INT8, Tout=DT_INT32)
    sums = tf.Cast(tf.either(tf.Reshape(sums, result), sums), DstT=FLOAT32)
    return sums / (tf.viewed(scale) * kernel_scale)


def _quantized(match: Match) -> Replacement:
    view, shapes, root, x = match.body.view, match.body.shapes, match.root, match["x"]
    kernel_scale, flat, result = match["kernel_scale"], match["flat"], match["result"]
    (scales,) = (ref for ref in view.producer(root.inputs[1]).inputs if ref != kernel_scale)
    of_x, of_y, matrix = map(shapes.shape, (x, root.ref, match["kernel"]))
    of_rows, of_columns = map(shapes.shape, (scales, kernel_scale))
    known = None not in (of_x, of_y, matrix, of_rows, of_columns) and len(matrix) == 2
    require(known, "the shapes of its int8 matmul are not known")
    ic, oc = matrix
    contracted = match["axes"].size
    kept = len(of_x) - contracted
    rows, channels = of_x[:kept], of_y[kept:]
    if sorted(axis % len(of_x) for axis in match["axes"].flat) != list(range(kept, len(of_x))):
        raise Declined("rows are quantized along other axes than those of its int8 matmul")
    # The rows are as many as before, so all of their axes are equal if all but one are.
    others = sum(a != b for a, b in zip(rows, of_y, strict=False))
    if ic > _MOST or math.prod(of_x[kept:]) != ic or not channels or others > 1:
        raise Declined("its int8 matmul is not of quantized rows by a matrix")
    ones = max(0, len(of_columns) - len(channels))
    lie = of_columns[ones:] == channels and set(of_columns[:ones]) <= {1}
    lie = lie and len(of_rows) == len(of_y) and set(of_rows[kept:]) == {1}
    if not lie or shapes.shape(root.inputs[0]) != of_y or math.prod(channels) != oc:
        raise Declined("its int8 matmul is divided by other scales than those of rows and columns")
    payload = InnerProduct(
        origin=root.name,
        in_channels=ic,
        channels=oc,
        stored_dtype=DT_INT8,
        quantize_rows=True,
    )
    inputs = {"src": x, "weights": match["kernel"]}

    def prepared(write: Writer) -> dict[str, Ref]:
        refs = {"weight_scales": write.add("weight_scales", "Reciprocal", kernel_scale)}
        if contracted > 1 and flat is not None:
            refs["src"] = write.add("rows", "Reshape", x, flat)
        return inputs | refs

    has_axes = result is not None and len(channels) > 1
    finish = lambda write, product: write.put("Reshape", product, result)  # noqa: E731
    return Replacement(
        payload,
        inputs,
        root.name,
        match.nodes,
        prepare=prepared,
        finish=finish if has_axes else None,
    )


RULE = Rule(
    quantized,
    _quantized,
    like=None,
    axes=Sizes(),
    epsilon=Number(0.99e-7, 1.01e-7),
    kernel=Stored(),
    kernel_scale=Stored(),
    flat=None,
    result=None,
)
