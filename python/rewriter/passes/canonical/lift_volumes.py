"""Runs what is written for volumes [N, D, H, W, C] on their slices, [N * D, H, W, C].

A 3-D convolution of slices is an op of ours. What stands between two of them works on slices as
well: element-wise work as it is, pooling in two steps, over the plane and then over the depth,

    pool(x, [kd, kh, kw]) = pool(pool(x, [1, kh, kw]), [kd, 1, 1]),

of which the second is a pooling of [N, D, H * W, C] by windows of [kd, 1]. Means count what is
inside of each window, and the counts are products, so they agree. The Reshapes back to volumes
sink to the end of the graph, where they cost nothing.

A transposed 3-D convolution becomes one of planes for each slice of the stride s along the depth,

    y[s u + q] = sum over k of transposed(x[u + (q + before - k) / s], w[k]),

where k are the taps that leave no remainder: their slices of x lie side by side as channels.

Open sizes are computed from those of the first volume, by small ops on integers: a volume has its
shape again by them. How many slices a volume has a convolution learns from the number of volumes,
the batch of the tensor from which the slices were taken first.
"""

import numpy as np
from tensorflow.core.framework import types_pb2

from ....graph import Body, Expr, Node, Ref, Shape, Size, Writer, is_float32, times, window
from ....graph.families import BATCH_NORMS, VOLUMES
from ....ops.records import ConvVolume
from ...context import Context
from ...patterns.conv import conv_transpose
from ...rules import Declined, require
from .views import Views

_UNKNOWN = "the sizes of its volumes are not all known"
_POOLS = {"MaxPool3D": "MaxPool", "AvgPool3D": "AvgPool"}


def lift_volumes(body: Body, context: Context) -> None:
    """Plans 3-D convolutions on slices of volumes, and keeps what stands between them there."""
    views = _Volumes(body)
    for node in body.view.topological():
        if node.name not in body.view:
            continue
        if node.op in VOLUMES:
            try:
                if reason := context.reason_to_leave(body, node):
                    raise Declined(reason)
                plan = _plan_convolution if node.op == "Conv3D" else _plan_transposed
                plan(node, views, context)
            except Declined as declined:
                context.report.decline(node.name, str(declined))
        elif body.view.has_control_edges(node.name) or node.payload is not None:
            continue
        elif node.op in _POOLS:
            _pool(node, views)
        elif node.op in BATCH_NORMS:
            _normalise(node, views)
        elif node.op == "Shape":
            views.say_shape(node)
        elif node.op == "ConcatV2":
            _concatenate(node, views)
        else:
            views.sink(node)


class _Volumes(Views):
    """The volumes that are made of slices, and what tells their open sizes.

    Attributes:
        counted: a number of volumes -> a tensor that has so many samples.
    """

    def __init__(self, body: Body):
        super().__init__(body, _is_kind, takes=_is_of_volumes)
        self.counted: dict[Size, Ref] = {}
        self._tensors: dict[Size, Ref] = {}  # each open size that is known, int32

    def read(self, ref: Ref) -> None:
        """Learns the sizes of volumes that TensorFlow makes."""
        shape = _volume(ref, self.body)
        self.counted.setdefault(shape[0], ref)
        if not self.tells(shape):
            sizes = self.body.writer(ref.node).add("shape", "Shape", ref, shape=(5,))
            self.learn(shape, sizes, ref.node)

    def learn(self, shape: Shape, tensor: Ref, name: str) -> None:
        """Takes the open sizes of volumes from a tensor that holds their shape."""
        write = self.body.writer(name)
        for axis, size in enumerate(shape[:4]):
            if not self._is_known(size):
                part = [axis], [axis + 1], [1]
                self._tensors[size] = write.add(
                    f"shape/{axis}", "StridedSlice", tensor, *part, shrink_axis_mask=1, shape=()
                )

    def _is_known(self, size: Size) -> bool:
        return isinstance(size, int) or size in self._tensors

    def tells(self, shape: Shape | None) -> bool:
        return shape is not None and all(map(self._is_known, shape[1:]))

    def sizes(self, shape: Shape, name: str) -> list[int] | Ref:
        first, *others = shape
        # Of a tensor without elements -1 tells nothing, but known sizes are above 0.
        is_open = any(isinstance(size, Expr) for size in others)
        return self.vector((first if is_open and self._is_known(first) else -1, *others), name)

    def vector(self, sizes: Shape, name: str) -> list[int] | Ref:
        """These sizes as one argument of an op."""
        if not any(isinstance(size, Expr) for size in sizes):
            return list(sizes)
        return self.body.writer(name).add("", "Pack", self._parts(sizes, name), axis=0)

    def _parts(self, sizes: Shape, name: str) -> list[Ref]:
        write = self.body.writer(name)
        return [
            self._tensors[size] if isinstance(size, Expr) else write.constant(f"{at}", size)
            for at, size in enumerate(sizes)
        ]

    def say_shape(self, node: Node) -> None:
        """Puts the sizes of volumes that are slices in the place of a Shape."""
        shape = self.body.shapes.shape(node.inputs[0])
        is_int32 = node.attr["out_type"].type in (0, types_pb2.DT_INT32)
        if self.view(node.inputs[0]) and is_int32 and all(map(self._is_known, shape)):
            self.body.writer(node.name).put("Pack", self._parts(shape, node.name), axis=0)

    def reshape(self, name: str, src: Ref, shape: Shape) -> Ref:
        sizes = self.sizes(shape, f"{name}/shape")
        return self.body.writer(name).add("", "Reshape", src, sizes, shape=shape)

    def windows(self, volume: Shape, kernel, strides, padding: str, name: str) -> Shape:
        """How many windows fit in each axis of a volume; where that is open it is computed."""
        counts = []
        for axis, (length, stride) in enumerate(zip(kernel, strides, strict=True), 1):
            counts.append(window(volume[axis], length, stride, padding, 0, 0))
            if not self._is_known(counts[-1]):
                write = self.body.writer(f"{name}/size_{axis}")
                slack = -1 if padding == "SAME" else -length
                first = write.add("first", "AddV2", self._tensors[volume[axis]], slack, shape=())
                steps = write.add("steps", "FloorDiv", first, stride, shape=())
                self._tensors[counts[-1]] = write.add("", "AddV2", steps, 1, shape=())
        return tuple(counts)

    def product(self, a: Size, b: Size, name: str) -> Size:
        """The product of two sizes; where it is open and they are known it is computed."""
        whole = times(a, b)
        if not self._is_known(whole) and self._is_known(a) and self._is_known(b):
            factors = self._parts((a, b), name)
            self._tensors[whole] = self.body.writer(name).add("", "Mul", *factors, shape=())
        return whole


def _volume(ref: Ref, body: Body):
    """(N, D, H, W, C), C a number; or None."""
    shape = body.shapes.shape(ref)
    known = shape is not None and len(shape) == 5 and None not in shape
    return shape if known and isinstance(shape[4], int) else None


def _is_kind(node: Node, body: Body) -> bool:
    """Whether it makes [N, D, H, W, C] of slices [N * D, H, W, C] of float32."""
    volume, shape = _volume(node.ref, body), body.shapes.shape(node.inputs[0])
    slices = volume and shape and len(shape) == 4 and shape[1:] == volume[2:]
    return node.op == "Reshape" and bool(slices) and is_float32(body.view, node.ref)


def _is_of_volumes(ref: Ref, body: Body) -> bool:
    """Whether it has a number for each channel of a volume, [N, 1, 1, 1, C]: gates."""
    shape = body.shapes.shape(ref) or ()
    return len(shape) == 5 and shape[1:4] == (1, 1, 1) and is_float32(body.view, ref)


def _put(node: Node, x: Ref, volume, views: _Volumes) -> None:
    """Puts slices, as volumes of this shape, in the place of the node."""
    sizes = views.sizes(volume, f"{node.name}/shape")
    views.body.writer(node.name).put("Reshape", x, sizes)
    views.body.shapes.put(node.ref, volume)


def _slices(ref: Ref, views: _Volumes) -> Ref:
    """The slices of volumes; one Reshape serves all readers."""
    batch, depth, *image = _volume(ref, views.body)
    if view := views.view(ref):
        return view.x
    views.read(ref)
    shape = (views.product(batch, depth, f"{ref.node}/slices/count"), *image)
    for reader, _ in views.body.view.consumers(ref):
        if reader.op == "Reshape" and views.body.shapes.shape(reader.ref) == shape:
            return reader.ref
    return views.reshape(f"{ref.node}/slices", ref, shape)


def _plan_convolution(node: Node, views: _Volumes, context: Context) -> None:
    body, (src, padding) = views.body, _unpadded(node, views.body)
    _check(node, src, 3, body)
    volume, weights = _volume(src, body), body.constants.value(node.inputs[1])
    strides, inputs = tuple(node.attr["strides"].list.i[1:4]), {"src": _slices(src, views)}
    if is_open := isinstance(volume[1], Expr):
        inputs["volumes"] = views.counted.get(volume[0])
    require(views.tells(volume) and None not in inputs.values(), _UNKNOWN)
    out = views.windows(volume, weights.shape[:3], strides, padding, node.name)
    payload = ConvVolume(
        origin=node.name,
        channels=weights.shape[4],
        weights=weights,
        in_channels=volume[4],
        strides=strides,
        padding=padding,
        depth=0 if is_open else volume[1],
        sizes=(times(volume[0], out[0]), *out[1:], weights.shape[4]),
        algorithm=context.options.algorithm,
    )
    done = body.writer(node.name).plan("slices", payload, inputs)
    _put(node, done, (volume[0], *out, weights.shape[4]), views)


def _unpadded(node: Node, body: Body) -> tuple[Ref, str]:
    """What a convolution reads, and the padding, which may be what a Pad before it does."""
    src, padding = node.inputs[0], node.attr["padding"].s.decode()
    pad, kernel = body.view.producer(src), body.shapes.shape(node.inputs[1])
    if pad.op != "Pad" or padding != "VALID" or body.view.has_control_edges(pad.name):
        return src, padding
    pads, volume = body.shapes.value(pad.inputs[1]), _volume(pad.inputs[0], body)
    if pads is None or volume is None or kernel is None:
        return src, padding
    wanted, strides = [(0, 0)] * 5, node.attr["strides"].list.i
    for axis in (1, 2, 3):
        size, length, stride = volume[axis], kernel[axis - 1], strides[axis]
        total = (window(size, 1, stride, "SAME", 0, 0) - 1) * stride + length - size
        if isinstance(total, Expr):
            return src, padding
        wanted[axis] = (max(total, 0) // 2, max(total, 0) - max(total, 0) // 2)
    same = [tuple(pair) for pair in pads] == wanted
    return (pad.inputs[0], "SAME") if same else (src, padding)


def _normalise(node: Node, views: _Volumes) -> None:
    """Does for slices what a batch normalisation with known statistics does for volumes."""
    body, view = views.body, views.view(node.inputs[0])
    is_fixed = node.attr["data_format"].s == b"NDHWC" and not node.attr["is_training"].b
    if view is None or not is_fixed:
        return
    if any(body.view.use_count(Ref(node.name, port)) for port in range(1, 6)):
        return
    proto = node.to_proto()
    proto.attr["data_format"].s = b"NHWC"
    inputs = [view.x, *node.inputs[1:]]
    done = body.view.add(Node(f"{node.name}/slices", node.op, inputs, proto=proto))
    _put(node, done.ref, _volume(view.node.ref, body), views)


def _check(node: Node, src: Ref, axis: int, body: Body) -> None:
    """Raises Declined unless volumes `src` meet constant weights whose `axis` is their channels."""
    volume, layout = _volume(src, body), node.attr["data_format"].s
    require(node.attr["T"].type == types_pb2.DT_FLOAT, "only float32 is implemented")
    other = f"data_format {layout.decode()}, only NDHWC is implemented"
    require(layout in (b"NDHWC", b""), other)
    is_dense = {*node.attr["dilations"].list.i} <= {1}
    require(is_dense, "dilated 3-D convolution is not implemented")
    require(volume is not None, _UNKNOWN)
    is_constant = body.constants.is_constant(node.inputs[1])
    require(is_constant, "the weights are computed or assigned inside the function")
    weights = body.constants.value(node.inputs[1])
    require(weights.size and weights.shape[axis] == volume[4], "the filter is empty or grouped")
    require(np.isfinite(weights).all(), "the filter holds infinities or NaN")
    require(not body.view.has_control_edges(node.name), "a control edge holds it")


def _plan_transposed(node: Node, views: _Volumes, context: Context) -> None:
    body, (shape, filters, src) = views.body, node.inputs
    _check(node, src, 4, body)
    too_far = f"strides above {conv_transpose.MOST_STRIDE} are not implemented"
    require(max(node.attr["strides"].list.i) <= conv_transpose.MOST_STRIDE, too_far)
    volume, dst = _volume(src, body), _volume(node.ref, body)
    before = dst and _slices_before(node, volume, dst, body)
    require(before is not None, "the size of its result is not its source's")
    if not views.view(src):
        views.read(src)
    views.learn(dst, shape, node.name)
    require(views.tells(volume), _UNKNOWN)
    stride, taps = node.attr["strides"].list.i[1], body.shapes.shape(filters)[0]
    count, write = window(dst[1], 1, stride, "SAME", 0, 0), body.writer(node.name)
    require(isinstance(count - volume[1], int), _UNKNOWN)
    parts: list[Ref | None] = []
    for q in range(stride):
        tap_numbers = [k for k in range(taps) if (q + before - k) % stride == 0]
        begins = [(q + before - k) // stride for k in tap_numbers]
        parts.append(tap_numbers and _plane(node, q, tap_numbers, begins, count, views))
    some = next(part for part in parts if part)
    for q, part in enumerate(parts):
        if not part:  # no tap reaches these slices
            parts[q] = write.add(f"zeros_{q}", "ZerosLike", some, shape=body.shapes.shape(some))
    slices = parts[0]
    if stride > 1:
        shape = (views.product(volume[0], count, f"{node.name}/count"), 1, *dst[2:])
        slices = [views.reshape(f"{node.name}/slices_{q}", x, shape) for q, x in enumerate(parts)]
        joined = write.add("joined", "ConcatV2", slices, 1)
        if isinstance(dst[1], int) and dst[1] < count * stride:
            joined = write.reshape("volumes", joined, (volume[0], count * stride, *dst[2:]))
            joined = write.cut("inside", joined, 1, 0, dst[1])
        shape = (views.product(volume[0], dst[1], f"{node.name}/slices/count"), *dst[2:])
        slices = views.reshape(f"{node.name}/slices", joined, shape)
    _put(node, slices, dst, views)


def _slices_before(node: Node, src, dst, body: Body) -> int | None:
    """Slices before the first of the result that source slices reach, or None of a wrong size."""
    kernel, strides = body.shapes.shape(node.inputs[1]), node.attr["strides"].list.i
    padding = node.attr["padding"].s.decode()
    for axis in (1, 2, 3):
        if window(dst[axis], kernel[axis - 1], strides[axis], padding, 0, 0) != src[axis]:
            return None
    total = (src[1] - 1) * strides[1] + kernel[0] - dst[1]
    if isinstance(total, Expr):
        return None
    return max(total, 0) // 2 if padding == "SAME" else 0


def _plane(node: Node, q: int, taps, begins, count: Size, views: _Volumes) -> Ref:
    """The slices that lie `q` after a stride: a transposed convolution of planes.

    Args:
        taps: along the depth.
        begins: the first source slice of each, of `count`; those outside of a volume are zeros.
    """
    (_, filters, src), dst = node.inputs, _volume(node.ref, views.body)
    name = f"{node.name}/slice_{q}"
    write, kernel = views.body.writer(name), views.body.shapes.shape(filters)
    slices, kernels = [], []
    for tap, begin in zip(taps, begins, strict=True):
        slices.append(_slices(_shift(write, f"{tap}", src, begin, count, views.body), views))
        kernel_slice = write.cut(f"{tap}/filter", filters, 0, tap, 1)
        kernels.append(write.reshape(f"{tap}/filter", kernel_slice, kernel[1:]))
    return write.add(
        "",
        "Conv2DBackpropInput",
        views.vector(dst[2:4], f"{name}/size"),
        _join_channels(write, "filter", kernels),
        _join_channels(write, "source", slices),
        padding=node.attr["padding"],
        strides=[1, *node.attr["strides"].list.i[2:4], 1],
        shape=(times(_volume(src, views.body)[0], count), *dst[2:]),
    )


def _join_channels(write: Writer, what: str, parts: list[Ref]) -> Ref:
    """Channels of images side by side."""
    return parts[0] if len(parts) == 1 else write.add(what, "ConcatV2", parts, 3)


def _shift(write: Writer, what: str, src: Ref, begin: int, count: Size, body: Body) -> Ref:
    """`count` slices of each volume from `begin` on, zeros before the first and after the last.

    Zeros come first, then the cut: a volume may have fewer slices than are cut.
    """
    batch, depth, *rest = _volume(src, body)
    left = depth - begin - count  # slices after the last
    before, after = max(-begin, 0), max(-left, 0)
    first, cut = max(begin, 0), max(left, 0)
    if before or after:
        pads, depth = np.zeros((5, 2), np.int32), depth + before + after
        pads[1] = before, after
        src = write.add(f"{what}/padded", "Pad", src, pads, shape=(batch, depth, *rest))
    if first or cut:
        bounds = [0, first], [0, -cut], [1, 1]
        masks = {"begin_mask": 1, "end_mask": 1 if cut else 3}
        shape = (batch, count, *rest)
        src = write.add(f"{what}/inside", "StridedSlice", src, *bounds, **masks, shape=shape)
    return src


def _concatenate(node: Node, views: _Volumes) -> None:
    """Joins channels slice by slice.

    Open sizes of what is joined are the same, as expressions or not: TensorFlow refuses others, and
    so it does slices of as many volumes.
    """
    body, (*refs, axis) = views.body, node.inputs
    sources, shapes = [views.view(ref) for ref in refs], [_volume(ref, body) for ref in refs]
    whole, are_slices = _volume(node.ref, body), None not in sources and None not in shapes
    if not (are_slices and views.tells(whole) and body.shapes.number(axis) in (4, -1)):
        return views.sink(node)
    slices = [view.x for view in sources]
    planes = [body.shapes.shape(ref) for ref in slices]
    if len({shape[0] for shape in shapes}) > 1 or any(len(plane) != 4 for plane in planes):
        return views.sink(node)
    shape = (*planes[0][:3], whole[4])
    _put(node, body.writer(node.name).add("x", "ConcatV2", slices, 3, shape=shape), whole, views)
    return None


def _pool(node: Node, views: _Volumes) -> None:
    body, name = views.body, node.name
    view, volume = views.view(node.inputs[0]), _volume(node.inputs[0], body)
    if view is None or node.attr["data_format"].s not in (b"NDHWC", b""):
        return
    if not views.tells(volume):
        return
    src = view.x
    ksize, strides = node.attr["ksize"].list.i[1:4], node.attr["strides"].list.i[1:4]
    padding = node.attr["padding"].s.decode()
    d, h, w = views.windows(volume, ksize, strides, padding, name)
    batch, depth, channels = volume[0], volume[1], volume[4]

    def pooled(what: str, src: Ref, ksize, strides, shape) -> Ref:
        window = {"ksize": [1, *ksize, 1], "strides": [1, *strides, 1], "padding": padding}
        return body.writer(name).add(what, _POOLS[node.op], src, **window, shape=shape)

    if ksize[1:] != [1, 1] or strides[1:] != [1, 1]:
        shape = (times(batch, depth), h, w, channels)
        src = pooled("plane", src, ksize[1:], strides[1:], shape)
    if ksize[0] != 1 or strides[0] != 1:
        pixels = views.product(h, w, f"{name}/pixels")
        src = views.reshape(f"{name}/columns", src, (batch, depth, pixels, channels))
        shape = (batch, d, pixels, channels)
        src = pooled("depth", src, [ksize[0], 1], [strides[0], 1], shape)
        count = views.product(batch, d, f"{name}/slices/count")
        src = views.reshape(f"{name}/slices", src, (count, h, w, channels))
    _put(node, src, (batch, d, h, w, channels), views)
