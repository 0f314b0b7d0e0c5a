"""Runs what is written for volumes [N, D, H, W, C] on their slices, [N * D, H, W, C].

A 3-D convolution of slices is an op of ours. What stands between two of them works on slices as
well: element-wise work as it is, pooling in two steps, over the plane and then over the depth,

    pool(x, [kd, kh, kw]) = pool(pool(x, [1, kh, kw]), [kd, 1, 1]),

of which the second is a pooling of [N, D, H * W, C] by windows of [kd, 1]. Means count what is
inside of each window, and the counts are products, so they agree. The Reshapes back to volumes
sink to the end of the graph, where they cost nothing.

A transposed 3-D convolution becomes one of planes for each slice of its stride s along the depth,

    y[s u + q] = sum over k of transposed(x[u + (q + before - k) / s], w[k]),

where k are the taps that leave no remainder: their slices of x lie side by side as channels.
"""

import numpy as np
from tensorflow.core.framework import node_def_pb2, types_pb2

from ....graph import Body, Node, Ref, Writer, is_float32, window
from ....graph.families import BATCH_NORMS, VOLUMES
from ....ops.records import ConvVolume
from ...context import Context
from ...patterns.conv import conv_transpose
from ...rules import Declined, require
from .views import Views

_POOLS = {"MaxPool3D": "MaxPool", "AvgPool3D": "AvgPool"}


def lift_volumes(body: Body, context: Context) -> None:
    """Plans 3-D convolutions on slices of volumes, and keeps what stands between them there."""
    views = Views(body, _is_kind, takes=_is_of_volumes)
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
        else:
            views.sink(node)


def _volume(ref: Ref, body: Body):
    """(N, D, H, W, C), all but N known numbers; or None."""
    shape = body.shapes.shape(ref)
    known = shape is not None and len(shape) == 5
    return shape if known and all(isinstance(size, int) for size in shape[1:]) else None


def _is_kind(node: Node, body: Body) -> bool:
    """Whether it makes [N, D, H, W, C] of slices [N * D, H, W, C] of float32."""
    volume, shape = _volume(node.ref, body), body.shapes.shape(node.inputs[0])
    slices = volume and shape and len(shape) == 4 and shape[1:] == volume[2:]
    return node.op == "Reshape" and bool(slices) and is_float32(body.view, node.ref)


def _is_of_volumes(ref: Ref, body: Body) -> bool:
    """Whether it has a number for each channel of a volume, [N, 1, 1, 1, C]: its gates."""
    shape = body.shapes.shape(ref) or ()
    return len(shape) == 5 and shape[1:4] == (1, 1, 1) and is_float32(body.view, ref)


def _put(node: Node, x: Ref, volume, body: Body) -> None:
    """Puts slices, as volumes of this shape, in the place of the node."""
    body.writer(node.name).put("Reshape", x, [-1, *volume[1:]])
    body.shapes.put(node.ref, volume)


def _slices(ref: Ref, views: Views) -> Ref:
    """The slices of volumes; one Reshape serves all readers."""
    batch, depth, *image = _volume(ref, views.body)
    if view := views.view(ref):
        return view.x
    shape = (batch * depth, *image)
    for reader, _ in views.body.view.consumers(ref):
        if reader.op == "Reshape" and views.body.shapes.shape(reader.ref) == shape:
            return reader.ref
    return views.body.writer(ref.node).add("slices", "Reshape", ref, [-1, *image], shape=shape)


def _plan_convolution(node: Node, views: Views, context: Context) -> None:
    body, (src, padding) = views.body, _unpadded(node, views.body)
    _check(node, src, 3, body)
    volume, weights = _volume(src, body), body.constants.value(node.inputs[1])
    strides = tuple(node.attr["strides"].list.i[1:4])
    out = tuple(
        window(size, kernel, stride, padding, 0, 0)
        for size, kernel, stride in zip(volume[1:4], weights.shape[:3], strides, strict=True)
    )
    payload = ConvVolume(
        origin=node.name,
        channels=weights.shape[4],
        weights=weights,
        in_channels=volume[4],
        strides=strides,
        padding=padding,
        depth=volume[1],
        sizes=(volume[0] * out[0], *out[1:], weights.shape[4]),
        algorithm=context.options.algorithm,
    )
    done = body.writer(node.name).plan("slices", payload, {"src": _slices(src, views)})
    _put(node, done, (volume[0], *out, weights.shape[4]), body)


def _unpadded(node: Node, body: Body) -> tuple[Ref, str]:
    """What a convolution reads, and its padding, which may be what a Pad before it does."""
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
        total = max((-(-size // stride) - 1) * stride + length - size, 0)
        wanted[axis] = (total // 2, total - total // 2)
    same = [tuple(pair) for pair in pads] == wanted
    return (pad.inputs[0], "SAME") if same else (src, padding)


def _normalise(node: Node, views: Views) -> None:
    """Does for slices what a batch normalisation with known statistics does for volumes."""
    body, view = views.body, views.view(node.inputs[0])
    is_fixed = node.attr["data_format"].s == b"NDHWC" and not node.attr["is_training"].b
    if view is None or not is_fixed:
        return
    if any(body.view.use_count(Ref(node.name, port)) for port in range(1, 6)):
        return
    proto = node_def_pb2.NodeDef()
    proto.CopyFrom(node.proto)
    proto.attr["data_format"].s = b"NHWC"
    inputs = [view.x, *node.inputs[1:]]
    done = body.view.add(Node(f"{node.name}/slices", node.op, inputs, proto=proto))
    _put(node, done.ref, _volume(node.ref, body), body)


def _check(node: Node, src: Ref, axis: int, body: Body) -> None:
    """Raises Declined unless volumes `src` meet constant weights whose `axis` is their channels."""
    volume, layout = _volume(src, body), node.attr["data_format"].s
    require(node.attr["T"].type == types_pb2.DT_FLOAT, "only float32 is implemented")
    other = f"data_format {layout.decode()}, only NDHWC is implemented"
    require(layout in (b"NDHWC", b""), other)
    is_dense = {*node.attr["dilations"].list.i} <= {1}
    require(is_dense, "dilated 3-D convolution is not implemented")
    require(volume is not None, "the sizes of its volumes are not all known")
    is_constant = body.constants.is_constant(node.inputs[1])
    require(is_constant, "the weights are computed or assigned inside the function")
    weights = body.constants.value(node.inputs[1])
    require(weights.size and weights.shape[axis] == volume[4], "the filter is empty or grouped")
    require(np.isfinite(weights).all(), "the filter holds infinities or NaN")
    require(not body.view.has_control_edges(node.name), "a control edge holds it")


def _plan_transposed(node: Node, views: Views, context: Context) -> None:
    body, (_, filters, src) = views.body, node.inputs
    _check(node, src, 4, body)
    too_far = f"strides above {conv_transpose.MOST_STRIDE} are not implemented"
    require(max(node.attr["strides"].list.i) <= conv_transpose.MOST_STRIDE, too_far)
    volume, dst = _volume(src, body), _volume(node.ref, body)
    before = dst and _slices_before(node, volume, dst, body)
    require(before is not None, "the size of its result is not its source's")
    stride, taps = node.attr["strides"].list.i[1], body.shapes.shape(filters)[0]
    count, write = -(-dst[1] // stride), body.writer(node.name)
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
        slice_shape = (volume[0] * count, 1, *dst[2:])
        apart = [write.reshape(f"apart_{q}", part, slice_shape) for q, part in enumerate(parts)]
        joined = write.add("joined", "ConcatV2", apart, 1)
        if dst[1] < count * stride:
            joined = write.reshape("volumes", joined, (volume[0], count * stride, *dst[2:]))
            joined = write.cut("inside", joined, 1, 0, dst[1])
        shape = (volume[0] * dst[1], *dst[2:])
        slices = write.add("slices", "Reshape", joined, [-1, *dst[2:]], shape=shape)
    _put(node, slices, dst, body)


def _slices_before(node: Node, src, dst, body: Body) -> int | None:
    """Slices before the first of the result that source slices reach, or None of a wrong size."""
    kernel, strides = body.shapes.shape(node.inputs[1]), node.attr["strides"].list.i
    padding = node.attr["padding"].s.decode()
    for axis in (1, 2, 3):
        if window(dst[axis], kernel[axis - 1], strides[axis], padding, 0, 0) != src[axis]:
            return None
    total = max((src[1] - 1) * strides[1] + kernel[0] - dst[1], 0)
    return total // 2 if padding == "SAME" else 0


def _plane(node: Node, q: int, taps, begins, count: int, views: Views) -> Ref:
    """The slices that lie `q` behind a stride: a transposed convolution of planes.

    Args:
        taps: along the depth.
        begins: the first source slice of each, of `count`; those outside of a volume are zeros.
    """
    (_, filters, src), dst = node.inputs, _volume(node.ref, views.body)
    write, kernel = views.body.writer(f"{node.name}/slice_{q}"), views.body.shapes.shape(filters)
    slices, kernels = [], []
    for tap, begin in zip(taps, begins, strict=True):
        slices.append(_slices(_shift(write, f"{tap}", src, begin, count, views.body), views))
        kernel_slice = write.cut(f"{tap}/filter", filters, 0, tap, 1)
        kernels.append(write.reshape(f"{tap}/filter", kernel_slice, kernel[1:]))
    return write.add(
        "",
        "Conv2DBackpropInput",
        dst[2:4],
        _join_channels(write, "filter", kernels),
        _join_channels(write, "source", slices),
        padding=node.attr["padding"],
        strides=[1, *node.attr["strides"].list.i[2:4], 1],
        shape=(_volume(src, views.body)[0] * count, *dst[2:]),
    )


def _join_channels(write: Writer, what: str, parts: list[Ref]) -> Ref:
    """Channels of images side by side."""
    return parts[0] if len(parts) == 1 else write.add(what, "ConcatV2", parts, 3)


def _shift(write: Writer, what: str, src: Ref, begin: int, count: int, body: Body) -> Ref:
    """`count` slices of each volume from `begin` on, zeros before the first and after the last."""
    batch, depth, *rest = _volume(src, body)
    before, after = max(-begin, 0), max(begin + count - depth, 0)
    inside = max(count - before - after, 0)
    if inside < depth:
        src = write.cut(f"{what}/inside", src, 1, max(begin, 0), inside)
    if not before and not after:
        return src
    pads = np.zeros((5, 2), np.int32)
    pads[1] = before, after
    return write.add(f"{what}/padded", "Pad", src, pads, shape=(batch, count, *rest))


def _pool(node: Node, views: Views) -> None:
    body, write = views.body, views.body.writer(node.name)
    view, volume = views.view(node.inputs[0]), _volume(node.inputs[0], body)
    if view is None or node.attr["data_format"].s not in (b"NDHWC", b""):
        return
    src = view.x
    ksize, strides = node.attr["ksize"].list.i[1:4], node.attr["strides"].list.i[1:4]
    padding = node.attr["padding"].s.decode()
    d, h, w = (
        window(size, kernel, stride, padding, 0, 0)
        for size, kernel, stride in zip(volume[1:4], ksize, strides, strict=True)
    )
    batch, depth, channels = volume[0], volume[1], volume[4]

    def pooled(what: str, src: Ref, ksize, strides, shape) -> Ref:
        window = {"ksize": [1, *ksize, 1], "strides": [1, *strides, 1], "padding": padding}
        return write.add(what, _POOLS[node.op], src, **window, shape=shape)

    if ksize[1:] != [1, 1] or strides[1:] != [1, 1]:
        shape = (batch * depth, h, w, channels)
        src = pooled("plane", src, ksize[1:], strides[1:], shape)
    if ksize[0] != 1 or strides[0] != 1:
        src = write.reshape("columns", src, (batch, depth, h * w, channels))
        shape = (batch, d, h * w, channels)
        src = pooled("depth", src, [ksize[0], 1], [strides[0], 1], shape)
        shape = (batch * d, h, w, channels)
        src = write.add("slices", "Reshape", src, [-1, *shape[1:]], shape=shape)
    _put(node, src, (batch, d, h, w, channels), body)
