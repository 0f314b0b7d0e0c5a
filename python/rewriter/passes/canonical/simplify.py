"""Writes ops as the cheaper ones that TensorFlow's own optimiser would run in their place.

It does not look into the functions of regions, and patterns know fewer spellings this way.

    pow(x, 2) = square(x),  pow(x, 3) = x * square(x),  pow(x, 1/2) = sqrt(x), ...
    transpose(x, [0, 1, ..]) = x,    reshape(x, shape(x)) = x
    x[:n, ...] = x of n,    x * s = x * [s, s, ..],  s [N, 1, 1, 1], x [N, H, W, C]
    reshape(reshape(x) + a + b) = x + reshape(a + b), as attention by rows and columns adds biases
    exp(x - max(x)) / sum(exp(x - max(x))) = softmax(x)
    x padded by nothing = x,    x * 1 = x / 1 = x,    x * ones_like(x) = x
    where(x == -0, -tiny, x) = x of a softmax, whose zeros have no sign, as Keras's argmax asks
    div_no_nan(x, sum(ones_like(y), axes)) = x / n of n elements, as Keras 2 takes moments of groups
    [x[:, i::2, j::2] of all i, j] = a transpose of x [N, H, W, C]
    bias_add(x, b) = x + [1, 1, 1, b], b computed, as Keras adds an embedding to one sample

The last one merges patches in Swin: four slices with steps take six times as long as a transpose.
And a Reshape to [batch, 1, 1, C], spelled Shape, StridedSlice, Pack, becomes one to [-1, 1, 1, C]
where symbolic sizes allow: then nobody asks for the shape of a blocked tensor.
"""

import math

import numpy as np

from ....graph import (
    INT32,
    Any,
    Body,
    Expr,
    Node,
    OneOf,
    Op,
    Ref,
    Scalar,
    is_float32,
    match,
    open_sizes,
    slices,
)
from ....tensorflow_private import dtypes
from ...context import Context


def simplify(body: Body, context: Context) -> None:
    """Writes powers as products, merged patches as transposes, shapes as constants."""
    for node in body.view.topological():
        rule = _RULES.get(node.op)
        if node.op == "Reshape" and node.name in body.view:
            _state_shape(node, body)
        if (
            rule is not None
            and node.name in body.view
            and not body.view.has_control_edges(node.name)
        ):
            rule(node, body)


def _state_shape(node: Node, body: Body) -> None:
    """Gives a Reshape a constant shape where at most one size is unknown."""
    shape = node.inputs[1]
    sizes = body.shapes.value(shape)
    if body.view.producer(shape).op == "Const" or sizes is None:
        return
    unknown = sum(isinstance(size, Expr) for size in sizes)
    if unknown > 1 or unknown and any(size <= 0 for size in sizes if isinstance(size, int)):
        return
    dtype = node.attr["Tshape"].type or INT32
    constant = body.writer(node.name).constant("constant_shape", open_sizes(sizes), dtype)
    body.view.set_inputs(node, [node.inputs[0], constant])
    body.view.remove_dead([shape.node])


def _power(node: Node, body: Body) -> None:
    x, exponent = node.inputs
    if not dtypes.as_dtype(node.attr["T"].type).is_floating or not body.shapes.equal(x, node.ref):
        return
    power, write = body.constants.scalar(exponent), body.writer(node.name)
    if power == 3.0:
        write.put("Mul", x, write.add("square", "Square", x))
    elif power in _POWERS:
        write.put(_POWERS[power], x)


def _transpose(node: Node, body: Body) -> None:
    order = body.shapes.value(node.inputs[1])
    if order is not None and list(order) == list(range(len(order))):
        _bypass(node, body)


def _reshape(node: Node, body: Body) -> None:
    if body.shapes.equal(node.inputs[0], node.ref):
        _bypass(node, body)
    else:
        _add_behind(node, body)


def _add_behind(node: Node, body: Body) -> None:
    """Adds after two reshapes, to other axes and back, what is added between them."""
    view, shapes, added = body.view, body.shapes, []
    split = view.producer(node.inputs[0])
    while split.op in ("Add", "AddV2") and is_float32(view, split.ref):
        x = [ref for ref in split.inputs if shapes.equal(ref, split.ref)]
        if not x or view.only_reader(split.ref)[0] is None:
            return
        added.append(split.inputs[1 - split.inputs.index(x[0])])
        split = view.producer(x[0])
    if not added or split.op != "Reshape" or view.only_reader(split.ref)[0] is None:
        return
    whole, sizes = shapes.shape(split.ref), [shapes.shape(ref) for ref in added]
    if whole is None or not shapes.equal(split.inputs[0], node.ref):
        return
    if any(len(shape or ()) != len(whole) for shape in sizes) or not all(
        any(shape[axis] == whole[axis] for shape in sizes) for axis in range(len(whole))
    ):
        return
    flat = shapes.shape(node.ref)
    if open_sizes(flat).count(-1) > 1:
        return
    write, (total, *rest) = body.writer(node.name), added[::-1]
    for number, ref in enumerate(rest):
        total = write.add(f"added{number}", "AddV2", total, ref)
    write.put("AddV2", split.inputs[0], write.reshape("flat", total, flat))


def _bias_add(node: Node, body: Body) -> None:
    x, bias = node.inputs
    sizes, view = body.shapes.shape(x) or (), body.view
    if body.constants.is_constant(bias) or len(sizes) != 4 or not isinstance(sizes[3], int):
        return
    if node.attr["data_format"].s.startswith(b"NC") or not is_float32(view, node.ref):
        return
    row, write, source = (1, 1, 1, sizes[3]), body.writer(node.name), view.producer(bias)
    is_row = source.op == "Squeeze" and body.shapes.shape(source.inputs[0]) == row
    write.put("AddV2", x, source.inputs[0] if is_row else write.reshape("row", bias, row))


def _bypass(node: Node, body: Body, x: Ref | None = None) -> None:
    if not body.view.is_fetched(node.ref):  # the name is the output's
        body.view.bypass(node, x or node.inputs[0])


def _slice(node: Node, body: Body) -> None:
    """A slice with steps of 1 that is as large as the source is the source."""
    steps = body.shapes.numbers(node.inputs[3])
    if steps is not None and set(steps) <= {1} and body.shapes.equal(node.inputs[0], node.ref):
        _bypass(node, body)


def _pad(node: Node, body: Body) -> None:
    paddings = body.shapes.numbers(node.inputs[1])
    if paddings is not None and not any(paddings):
        _bypass(node, body)


def _merge(node: Node, body: Body) -> None:
    """Writes the four phases of pictures, side by side in channels, as a transpose."""
    *refs, axis = node.inputs
    parts = [body.view.producer(ref) for ref in refs]
    if len(parts) != 4 or any(part.op != "StridedSlice" for part in parts):
        return
    order = _PHASES.get(tuple(_phase(part, body) for part in parts))
    sources, shape = {part.inputs[0] for part in parts}, body.shapes.shape(parts[0].inputs[0])
    is_last = body.constants.scalar(axis) in (-1, 3)
    if order is None or len(sources) > 1 or not is_last:
        return
    (n, h, w, c), write = shape, body.writer(node.name)
    pixels = write.reshape("pixels", parts[0].inputs[0], (n, h // 2, 2, w // 2, 2, c))
    turned = write.add("turned", "Transpose", pixels, order)
    write.put("Reshape", turned, open_sizes((n, h // 2, w // 2, 4 * c)))


def _phase(part: Node, body: Body) -> tuple[int, int] | None:
    """(i, j) where the node is x[:, i::2, j::2] of a picture of even sizes."""
    shape = body.shapes.shape(part.inputs[0]) or ()
    index = slices(part, body.known, 4) if len(shape) == 4 else None
    if index is None or not index[0] == index[3] == slice(None):
        return None
    n, *plane, c = shape
    if any(not isinstance(size, int) or size % 2 for size in (*plane, 2 * c)):
        return None
    halves = (n, *(size // 2 for size in plane), c)
    fits = body.shapes.shape(part.ref) == halves and {item.step for item in index[1:3]} == {2}
    return tuple(item.start or 0 for item in index[1:3]) if fits else None


def _divide(node: Node, body: Body) -> None:
    """Writes a softmax that is written out as the op."""
    softmax = match(_SOFTMAX, node, body)
    if softmax is None:
        return _multiply(node, body)
    x, *axes = map(softmax.refs.__getitem__, ("x", "over", "of_sum"))
    last = [[-1], [(body.shapes.rank(x) or 0) - 1]]
    if all(body.shapes.numbers(axis) in last for axis in axes) and is_float32(body.view, x):
        body.writer(node.name).put("Softmax", x)
    return None


def _divide_by_number(node: Node, body: Body) -> None:
    """Divides by a number that is known not to be 0."""
    x, divisor = node.inputs
    number = _number(divisor, body)
    if number and is_float32(body.view, node.ref) and body.shapes.equal(x, node.ref):
        body.writer(node.name).put("RealDiv", x, np.float32(number))


def _multiply(node: Node, body: Body) -> None:
    """Drops products and quotients by 1."""
    for x, other in (node.inputs, node.inputs[::-1])[: 2 if node.op == "Mul" else 1]:
        if _number(other, body) == 1.0 and body.shapes.equal(x, node.ref):
            return _bypass(node, body, x)
    return _spread(node, body)


def _select(node: Node, body: Body) -> None:
    """Drops a search for negative zeros where no result has a sign."""
    chosen = match(_FOR_NEGATIVE_ZEROS, node, body)
    if chosen is not None and body.view.producer(chosen.refs["x"]).op in _WITHOUT_SIGN:
        _bypass(node, body, chosen.refs["x"])


def _number(ref: Ref, body: Body, depth: int = 8) -> float | None:
    """0, 1 or a sum of them that all elements of a tensor are, whatever those hold of which it is
    made.

    Args:
        depth: how many nodes after such a one it may be.
    """
    node, shapes = body.view.producer(ref), body.shapes
    if node.op in _ALIKE or not depth:
        return _ALIKE.get(node.op)
    if node.op == "Const":
        value = body.constants.value(ref)
        if value.dtype.kind not in "fiu" or not value.size or np.ptp(value):
            return None
        return float(value.flat[0]) if value.flat[0] in (0, 1) else None
    if node.op in _OF_NUMBERS:
        numbers = [_number(each, body, depth - 1) for each in node.inputs]
        return None if None in numbers else _OF_NUMBERS[node.op](numbers)
    if node.op in ("Fill", "Reshape"):
        return _number(node.inputs[node.op == "Fill"], body, depth - 1)
    if node.op != "Sum" or (number := _number(node.inputs[0], body, depth - 1)) is None:
        return None
    shape, axes = shapes.shape(node.inputs[0]), shapes.numbers(node.inputs[1])
    sizes = [shape[axis] for axis in axes] if shape is not None and axes is not None else [None]
    count = math.prod(sizes) if all(isinstance(size, int) for size in sizes) else _MOST_EXACT
    return number * count if count < _MOST_EXACT else None


def _spread(node: Node, body: Body) -> None:
    """Repeats the number of a sample for each channel, as blocked tensors take it."""
    pictures = [body.shapes.shape(ref) for ref in node.inputs]
    if not is_float32(body.view, node.ref) or any(len(picture or ()) != 4 for picture in pictures):
        return
    for index, (shape, other) in enumerate(zip(pictures, reversed(pictures), strict=True)):
        is_vector = shape == (other[0], 1, 1, 1) and other[1:3] != (1, 1)
        if is_vector and isinstance(other[3], int) and other[3] > 1:
            inputs, ones = list(node.inputs), np.ones((1, 1, 1, other[3]))
            inputs[index] = body.writer(node.name).add("spread", "Mul", inputs[index], ones)
            body.view.set_inputs(node, inputs)


_ALIKE = {"OnesLike": 1.0, "ZerosLike": 0.0}
_OF_NUMBERS = {"AddV2": sum, "Mul": math.prod}
_MOST_EXACT = 1 << 24  # Sums of more ones are not exact in float32.
_X = Any("x")
_MOST = Op("Max", _X, Any("over"), keep_dims=True)
_EXP = Op("Exp", Op("Sub", _X, OneOf(_MOST, Op("StopGradient", _MOST))))
_SOFTMAX = Op("RealDiv", _EXP, Op("Sum", _EXP, Any("of_sum"), keep_dims=True))
# A number has a sign bit where the bits, masked or not, are a negative integer.
_HAS_SIGN = Op("Less", Op("BitwiseAnd", Op("Bitcast", _X), Any("mask")), Scalar(0.0))
_IS_NEGATIVE_ZERO = Op("LogicalAnd", Op("Equal", _X, Scalar(0.0)), _HAS_SIGN)
_FOR_NEGATIVE_ZEROS = Op("SelectV2", _IS_NEGATIVE_ZERO, Any("other"), _X)
_WITHOUT_SIGN = frozenset({"Abs", "Exp", "Sigmoid", "Softmax"})
# exponent -> the op that computes that power
_POWERS = {-1.0: "Reciprocal", -0.5: "Rsqrt", 0.5: "Sqrt", 2.0: "Square"}
# The phases (i, j) in their order -> the order of axes of [N, H / 2, i, W / 2, j, C].
_PHASES = {
    ((0, 0), (1, 0), (0, 1), (1, 1)): [0, 1, 3, 4, 2, 5],
    ((0, 0), (0, 1), (1, 0), (1, 1)): [0, 1, 3, 2, 4, 5],
}
_RULES = {
    "BiasAdd": _bias_add,
    "ConcatV2": _merge,
    "DivNoNan": _divide_by_number,
    "Mul": _multiply,
    "Pad": _pad,
    "Pow": _power,
    "Reshape": _reshape,
    "SelectV2": _select,
    "StridedSlice": _slice,
    "Transpose": _transpose,
    "RealDiv": _divide,
    **dict.fromkeys(("Add", "AddV2", "Sub"), _spread),
}
