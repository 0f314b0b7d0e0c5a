"""op -> rule for the shape of the first output, one row each.

A rule gets the node and the `Shapes` so far, or what `_read` reads of them, and returns a tuple of
sizes, in which None means "ask TensorFlow's static shape", or None when it knows nothing. The
length of a list, as map_fn, scan and TensorArrays have, is that of its creation: a loop that
sets elements leaves it.
"""

import math

from .families import BINARY, COMPARISONS, LOOPS, PRODUCTS, UNARY
from .functions import flatten, handed_on
from .moves import taken
from .products import product
from .quantized import QUANTIZING
from .symbolic import Expr, Size, exact_division, is_count, window
from .view import Node, Ref


def infer(node: Node, shapes):
    rule = _RULES.get(node.op)
    return rule(node, shapes) if rule else None


def infer_port(node: Node, port: int, shapes):
    """The same of another output than the first."""
    return _of_split(node, port, shapes) if node.op in _SPLITS else None


def _read(*methods: str):
    """Makes a rule of what is read of the first inputs, which is asked where all of it is known.

    Args:
        methods: of each input the one of `Shapes` that reads it.
    """

    def of(rule):
        def ask(node: Node, shapes):
            pairs = zip(methods, node.inputs, strict=False)
            values = [getattr(shapes, method)(ref) for method, ref in pairs]
            return None if any(value is None for value in values) else rule(node, *values)

        return ask

    return of


def _broadcast_size(a, b):
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, int) and a > 1:
        return a
    if isinstance(b, int) and b > 1:
        return b
    return None


def _broadcast(node: Node, shapes):
    result = ()
    for ref in node.inputs:
        shape = shapes.shape(ref)
        if shape is None:
            return None
        rank = max(len(result), len(shape))
        padded = [(1,) * (rank - len(s)) + s for s in (result, shape)]
        result = tuple(_broadcast_size(a, b) for a, b in zip(*padded, strict=True))
    return result


def spatial_axes(node: Node, rank: int = 4) -> tuple[int, ...]:
    """The axes of depth, height and width, as many as there are, under the node's data_format."""
    first = 2 if node.attr["data_format"].s.startswith(b"NC") else 1
    return tuple(range(first, first + rank - 2))


def _windowed(node: Node, shapes, kernel, channels):
    src = shapes.shape(node.inputs[0])
    if src is None or len(src) != 2 + len(kernel) or None in kernel:
        return None
    axes = spatial_axes(node, len(src))
    sizes = list(src)
    sizes[_channel_axis(axes)] = channels
    pads = node.attr["explicit_paddings"].list.i or (0,) * 2 * len(src)
    for axis, length in zip(axes, kernel, strict=True):
        padding, stride = node.attr["padding"].s.decode(), node.attr["strides"].list.i[axis]
        sizes[axis] = window(src[axis], length, stride, padding, *pads[2 * axis : 2 * axis + 2])
    return tuple(sizes)


def _channel_axis(axes: tuple[int, ...]) -> int:
    """The axis of channels beside these."""
    return 1 if axes[0] == 2 else len(axes) + 1


def _convolution(depthwise: bool):
    def rule(node: Node, shapes):
        weights = shapes.shape(node.inputs[1])
        if weights is None or len(weights) < 4 or not all(isinstance(s, int) for s in weights):
            return None
        dilations = node.attr["dilations"].list.i or (1,) * len(weights)
        axes = spatial_axes(node, len(weights))
        kernel = [(weights[i] - 1) * dilations[axis] + 1 for i, axis in enumerate(axes)]
        channels = weights[-2] * weights[-1] if depthwise else weights[-1]
        return _windowed(node, shapes, kernel, channels)

    return rule


def _conv_transpose(node: Node, shapes):
    sizes = shapes.value(node.inputs[0])
    return None if sizes is None or len(sizes) not in (4, 5) else tuple(sizes)


def _pool(node: Node, shapes):
    src, ksize = shapes.shape(node.inputs[0]), node.attr["ksize"].list.i
    if src is None or len(src) != len(ksize):
        return None
    axes = spatial_axes(node, len(src))
    return _windowed(node, shapes, [ksize[axis] for axis in axes], src[_channel_axis(axes)])


@_read("shape", "value")
def _pad(node: Node, src, pads):
    return tuple(size + before + after for size, (before, after) in zip(src, pads, strict=True))


def _concat(node: Node, shapes):
    parts = [shapes.shape(ref) for ref in node.inputs[:-1]]
    axis = shapes.number(node.inputs[-1])
    if axis is None or any(part is None or len(part) != len(parts[0]) for part in parts):
        return None
    sizes = list(parts[0])
    axis %= len(sizes)
    for i in range(len(sizes)):
        column = [part[i] for part in parts]
        known = [size for size in column if isinstance(size, int)]
        sizes[i] = sum(column[1:], column[0]) if i == axis else (known or column)[0]
    return tuple(sizes)


def _without(sizes, axes: set[int]):
    return tuple(size for axis, size in enumerate(sizes) if axis not in axes)


@_read("shape", "numbers")
def _reduce(node: Node, src, axes):
    axes = {axis % len(src) for axis in axes if src}
    if node.attr["keep_dims"].b:
        return tuple(1 if i in axes else size for i, size in enumerate(src))
    return _without(src, axes)


def _reshape(node: Node, shapes):
    src, target = shapes.shape(node.inputs[0]), shapes.value(node.inputs[1])
    if target is None:
        return None
    sizes = list(target.reshape(-1))
    if -1 in sizes:
        return tuple(_fill(sizes, src))
    return tuple(sizes)


def _fill(sizes, src):
    """Replaces the -1 where cancelling sizes, and multiples of them, leaves one for it."""
    if src is None:
        return [None if size == -1 else size for size in sizes]
    rest, product = list(src), 1
    for size in sizes:
        if not isinstance(size, Expr):
            product *= size if size != -1 else 1
            continue
        # The same size before others of which it is a multiple, and these before its multiples.
        others = [other for other in rest if isinstance(other, Expr)]
        ratios = [(ratio, 1, other) for other in others if (ratio := size.ratio(other))]
        ratios += [(1, ratio, other) for other in others if (ratio := other.ratio(size)) > 1]
        if not ratios:
            return [None if size == -1 else size for size in sizes]
        times, left, other = min(ratios, key=lambda r: (r[1], r[0]))
        rest[rest.index(other)] = left
        product *= times
    missing = math.prod(size for size in rest if isinstance(size, int))
    unknowns = [size for size in rest if not isinstance(size, int)]
    fill = None
    if product and not unknowns and missing % product == 0:
        fill = missing // product
    elif product and len(unknowns) == 1:  # which the op demands to be divisible
        common = math.gcd(missing, product)
        fill = exact_division(unknowns[0] * (missing // common), product // common)
    return [fill if size == -1 else size for size in sizes]


@_read("shape")
def _squeeze(node: Node, src):
    drop = {axis % len(src) for axis in node.attr["squeeze_dims"].list.i}
    if not drop:
        if not all(isinstance(size, int) for size in src):
            return None
        drop = {axis for axis, size in enumerate(src) if size == 1}
    return _without(src, drop)


@_read("shape", "number")
def _expand_dims(node: Node, src, axis):
    sizes = list(src)
    sizes.insert(axis % (len(src) + 1), 1)
    return tuple(sizes)


def _pack(node: Node, shapes):
    parts = [shapes.shape(ref) for ref in node.inputs]
    if any(part is None or part != parts[0] for part in parts):
        return None
    axis = node.attr["axis"].i % (len(parts[0]) + 1)
    return (*parts[0][:axis], len(parts), *parts[0][axis:])


@_read("shape", "numbers")
def _transpose(node: Node, src, order):
    return tuple(src[i] for i in order) if len(order) == len(src) else None


@_read("shape", "value")
def _resize(node: Node, src, size):
    return (src[0], size[0], size[1], src[3]) if len(src) == 4 else None


@_read("shape", "numbers", "value")
def _space_to_batch(node: Node, src, block, pads):
    """Every b-th pixel is an image of its own; the op demands that b divides the padded size."""
    inner = [
        exact_division(size + before + after, b)
        for size, b, (before, after) in zip(src[1:], block, pads, strict=False)
    ]
    return (src[0] * math.prod(block), *inner, *src[1 + len(block) :])


@_read("shape", "numbers", "value")
def _batch_to_space(node: Node, src, block, crops):
    inner = [
        size * b - before - after
        for size, b, (before, after) in zip(src[1:], block, crops, strict=False)
    ]
    return (exact_division(src[0], math.prod(block)), *inner, *src[1 + len(block) :])


def _product(node: Node, shapes):
    """Each letter has one size, but for those of a batch."""
    factors, sizes = product(node, shapes), {}
    for labels, ref in zip(factors.labels, factors.refs, strict=True) if factors else ():
        for label, size in zip(labels, shapes.shape(ref), strict=True):
            if label in factors.batch:
                sizes[label] = _broadcast_size(sizes.get(label, 1), size)
            elif isinstance(size, int) or label not in sizes:
                sizes[label] = size
    return tuple(map(sizes.__getitem__, factors.result)) if factors else None


@_read("shape", "value")
def _tile(node: Node, src, times):
    return tuple(
        size * n if isinstance(size, int) or isinstance(n, int) else None
        for size, n in zip(src, times, strict=True)
    )


def _of_value(index: int):
    """The shape is the value of an input."""

    def rule(node: Node, shapes):
        sizes = shapes.value(node.inputs[index])
        return None if sizes is None else tuple(sizes)

    return rule


@_read("number", "value", "number")
def _range(node: Node, first, limit, step):
    counts = (first, step) == (0, 1) and is_count(limit.item())
    return (limit.item(),) if counts else None


def _like(index: int):
    """The shape is that of an input."""
    return lambda node, shapes: shapes.shape(node.inputs[index])


def _slice(node: Node, shapes):
    """Of known sizes, wherever it begins; only numbers say "the rest", which is -1."""
    sizes = shapes.value(node.inputs[2])
    if sizes is not None and all(map(is_count, sizes)):
        return tuple(sizes)
    src, begin, size = shapes.shape(node.inputs[0]), *map(shapes.numbers, node.inputs[1:])
    if src is None or begin is None or size is None:
        return None
    return tuple(
        count if count >= 0 else whole - first if first else whole
        for whole, first, count in zip(src, begin, size, strict=True)
    )


def _strided_slice(node: Node, shapes):
    """Dimensions that stay whole, new ones, cuts of known ones; others are TensorFlow's to tell."""
    src, strides = shapes.shape(node.inputs[0]), shapes.numbers(node.inputs[3])
    if src is None or strides is None:
        return None
    unknown = ["?"] * len(strides)
    begin, end = (shapes.numbers(ref) or unknown for ref in node.inputs[1:3])
    index = taken(node, begin, end, strides)
    left, result = list(src), []
    for i, item in enumerate(index):
        if item is Ellipsis:
            whole = len(left) - sum(later is not None for later in index[i + 1 :])
            result, left = result + left[:whole], left[whole:]
        elif item is None:
            result.append(1)
        elif not left:
            return None
        else:
            size = left.pop(0)
            if not isinstance(item, slice):
                continue
            if isinstance(size, int) and "?" not in (item.start, item.stop):
                size = len(range(size)[item])
            elif item.stop is not None or (item.start, item.step) not in _WHOLE:
                size = None
            result.append(size)
    return (*result, *left)


_WHOLE = ((None, 1), (0, 1), (None, -1))  # where a slice that has no end begins, and the step


@_read("shape", "shape", "number")
def _gather(node: Node, params, indices, axis):
    if not params:
        return None  # A scalar is what is known of a handle, and nothing can be gathered from it.
    axis, shared = axis % len(params), node.attr["batch_dims"].i
    shared += len(indices) if shared < 0 else 0
    return (*params[:axis], *indices[shared:], *params[axis + 1 :])


def _of_split(node: Node, port: int, shapes):
    """Of any output of what has several that are parts of one tensor."""
    src, axis, size = _SPLITS[node.op](node, port, shapes)
    sizes = shapes.shape(src)
    if sizes is None or axis is None:
        return None
    axis %= len(sizes)
    return (*sizes[:axis], *size, *sizes[axis + 1 :])


def _even_part(node: Node, port: int, shapes):
    """(source, axis, what becomes of it) of an output of Split; of others below."""
    src, axis = shapes.shape(node.inputs[1]), shapes.number(node.inputs[0])
    size = exact_division(src[axis], node.attr["num_split"].i) if src and axis is not None else None
    return node.inputs[1], axis, (size,)


def _part(node: Node, port: int, shapes):
    sizes = shapes.numbers(node.inputs[1])
    size = sizes[port] if sizes and sizes[port] >= 0 else None
    return node.inputs[0], shapes.number(node.inputs[2]), (size,)


_SPLITS = {
    "Split": _even_part,
    "SplitV": _part,
    "TopKV2": lambda node, _, shapes: (node.inputs[0], -1, (shapes.number(node.inputs[1]),)),
    "Unpack": lambda node, *_: (node.inputs[0], node.attr["axis"].i, ()),
}


def _stacked(node: Node, shapes):
    """All elements of a list as one tensor: they have the shape of the one that was set last."""
    sizes, stack = _element(shapes.value(node.inputs[1])), shapes.view.producer(node.inputs[0])
    item = shapes.shape(stack.inputs[2]) if stack.op == "TensorListSetItem" else None
    if sizes is None or None in sizes:
        sizes = sizes if item is None else item
    return None if sizes is None else (_length(node.inputs[0], shapes), *sizes)


def _element(sizes):
    """The shape of elements by what a node states of it; a scalar says that it is unknown."""
    if sizes is None or not sizes.ndim:
        return None
    return tuple(size if is_count(size) else None for size in sizes)


def _length(ref: Ref, shapes) -> Size | None:
    """The number of tensors in a list, where it is known."""
    node = shapes.view.producer(ref)
    while _keeps_length(node, ref, shapes):
        ref = node.inputs[ref.port]
        node = shapes.view.producer(ref)
    if node.op == "TensorListReserve":
        number = shapes.value(node.inputs[1])
        return None if number is None else number.item()
    if node.op == "TensorListFromTensor":
        src = shapes.shape(node.inputs[0])
        return src[0] if src else None
    return None


def _keeps_length(node: Node, ref: Ref, shapes) -> bool:
    """Whether a list is as long as the one that the node reads in its place."""
    if node.op == "TensorListSetItem":
        return not node.attr["resize_if_index_out_of_bounds"].b
    return node.op in LOOPS and ref.port in _kept(node, shapes.view.library)


def _kept(loop: Node, library) -> set[int]:
    """The variables of a loop that are lists of one length all the time."""
    name = loop.attr["body"].func.name
    bodies = (function for function in library.function if function.signature.name == name)
    return next((handed_on(flatten(body), lists=True) for body in bodies), set())


# Handles of lists, which are scalars, and what makes no tensor.
_LISTS = "EmptyTensorList TensorListFromTensor TensorListReserve TensorListSetItem".split()
_SCALARS = (*_LISTS, "NoOp")
_FILLS = (
    "Fill RandomStandardNormal RandomUniform StatelessRandomNormalV2 StatelessRandomUniformV2 "
    "StatelessTruncatedNormalV2 TruncatedNormal"
).split()
_SAME_SHAPE = (
    "BiasAdd Cast ClipByValue Cumprod Cumsum FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3 "
    "Identity IdentityN LRN LogSoftmax LogicalNot MatrixBandPart OnesLike ReverseV2 Roll Softmax "
    "StopGradient ZerosLike"
).split()
_BROADCASTING = "AddN LogicalAnd LogicalOr SelectV2".split()

_RULES = {
    **dict.fromkeys((*_SAME_SHAPE, *UNARY, *QUANTIZING), _like(0)),
    **dict.fromkeys((*_BROADCASTING, *BINARY, *COMPARISONS), _broadcast),
    **dict.fromkeys(("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic"), _resize),
    **dict.fromkeys(("All", "Any", "Max", "Mean", "Min", "Prod", "Sum"), _reduce),
    **dict.fromkeys(("Pad", "PadV2", "MirrorPad"), _pad),
    **dict.fromkeys(("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D"), _pool),
    **dict.fromkeys(("Conv2D", "Conv3D"), _convolution(depthwise=False)),
    "DepthwiseConv2dNative": _convolution(depthwise=True),
    **dict.fromkeys(("Conv2DBackpropInput", "Conv3DBackpropInputV2"), _conv_transpose),
    "SpaceToBatchND": _space_to_batch,
    "BatchToSpaceND": _batch_to_space,
    "ConcatV2": _concat,
    "Const": lambda node, _: tuple(d.size for d in node.attr["value"].tensor.tensor_shape.dim),
    **dict.fromkeys(("ArgMax", "ArgMin"), _reduce),
    "BroadcastTo": _of_value(1),
    **dict.fromkeys(_SCALARS, lambda node, shapes: ()),
    **dict.fromkeys(_FILLS, _of_value(0)),
    "ScatterNd": _of_value(2),
    **dict.fromkeys(PRODUCTS, _product),
    "TensorListGetItem": lambda node, shapes: _element(shapes.value(node.inputs[2])),
    "TensorListStack": _stacked,
    "Tile": _tile,
    "Pack": _pack,
    "Range": _range,
    "Shape": _read("shape")(lambda node, src: (len(src),)),
    "Slice": _slice,
    "GatherV2": _gather,
    "BlockdnnUpdateSlice": _like(2),
    **dict.fromkeys(("TensorScatterUpdate", "XlaDynamicUpdateSlice"), _like(0)),
    **dict.fromkeys(_SPLITS, lambda node, shapes: infer_port(node, 0, shapes)),
    "StridedSlice": _strided_slice,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "ExpandDims": _expand_dims,
    "Transpose": _transpose,
}
