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
from tensorflow.core.framework import types_pb2

from ....graph import FLOAT32, INT32, Body, Node, Ref, constant_node, is_float32, make_node, window
from ....graph.elementwise_ops import BINARY, UNARY
from ....ops.records import ConvVolume
from ...context import Context
from ...patterns.conv import conv_transpose

_POOLS = {"MaxPool3D": "MaxPool", "AvgPool3D": "AvgPool"}
_UNARY = UNARY | {"BiasAdd", "Identity"}


def lift_volumes(body: Body, context: Context) -> None:
    """Plans 3-D convolutions on slices of volumes, and keeps what stands between them there."""
    for node in body.view.topological():
        if node.name not in body.view:
            continue
        if node.op == "Conv3D":
            _convolution(node, body, context)
        elif node.op == "Conv3DBackpropInputV2":
            _transposed(node, body, context)
        elif body.view.has_control_edges(node.name) or node.payload is not None:
            continue
        elif node.op in _POOLS:
            _pool(node, body)
        elif node.op == "Mean":
            _mean(node, body)
        elif inputs := _on_slices(node, body):
            _put(node, node.op, inputs, node.proto, body)


def _volume(ref: Ref, body: Body):
    """(N, D, H, W, C), all but N known numbers; or None."""
    shape = body.shapes.shape(ref)
    known = shape is not None and len(shape) == 5
    return shape if known and all(isinstance(size, int) for size in shape[1:]) else None


def _slices(ref: Ref, body: Body) -> Ref | None:
    """The [N * D, H, W, C] of float32 of which `ref` is [N, D, H, W, C], reshaped."""
    node, volume = body.view.producer(ref), _volume(ref, body)
    if node.op != "Reshape" or ref.port or volume is None or node.payload is not None:
        return None
    if not is_float32(body.view, ref):
        return None
    shape = body.shapes.shape(node.inputs[0])
    return node.inputs[0] if shape and len(shape) == 4 and shape[1:] == volume[2:] else None


def _to_slices(ref: Ref, body: Body) -> Ref:
    slices = _slices(ref, body)
    if slices is not None:
        return slices
    volume = _volume(ref, body)
    name = f"{ref.node}/slices"
    return _infer(
        _reshape(name, ref, [-1, *volume[2:]], body), body, (volume[0] * volume[1], *volume[2:])
    )


def _infer(node: Node, body: Body, shape) -> Ref:
    """Adds a Reshape whose logical shape is known better than its rule can tell."""
    node = body.view.add(node)
    body.shapes.put(node.ref, shape)
    return node.ref


def _reshape(name: str, ref: Ref, shape, body: Body) -> Node:
    target = body.view.add(constant_node(f"{name}/shape", shape))
    return make_node(name, "Reshape", [ref, target.ref], T=FLOAT32, Tshape=INT32)


def _back(node: Node, slices: Ref, volume, body: Body) -> None:
    """Puts the slices, as volumes, in the place of the node."""
    sources = [ref.node for ref in node.inputs]
    body.view.replace(_reshape(node.name, slices, [-1, *volume[1:]], body))
    body.shapes.put(node.ref, volume)
    body.view.remove_dead(sources)


def _put(node: Node, op: str, inputs: list[Ref], proto, body: Body) -> None:
    """Does the node's work on slices."""
    batch = next(_volume(ref, body)[0] for ref in node.inputs if _slices(ref, body))
    volume = (batch, *_volume(node.ref, body)[1:])
    first = next(shape for shape in map(body.shapes.shape, inputs) if shape and len(shape) == 4)
    done = body.view.add(Node(f"{node.name}/slices", op, inputs, node.controls, proto))
    body.shapes.put(done.ref, (first[0], *volume[2:]))
    _back(node, done.ref, volume, body)


def _convolution(node: Node, body: Body, context: Context) -> None:
    reason = context.reason_to_leave(body, node) or _obstacle(node, node.inputs[0], 3, body)
    if reason:
        context.report.decline(node.name, reason)
        return
    volume, weights = _volume(node.inputs[0], body), body.constants.value(node.inputs[1])
    strides, padding = tuple(node.attr["strides"].list.i[1:4]), node.attr["padding"].s.decode()
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
    src = {"src": _to_slices(node.inputs[0], body)}
    done = body.view.add(Node(f"{node.name}/slices", payload.op, src, payload=payload))
    _back(node, done.ref, (volume[0], *out, weights.shape[4]), body)


def _obstacle(node: Node, src: Ref, axis: int, body: Body) -> str | None:
    """Why volumes `src` are not convolved by weights whose `axis` is their channels."""
    attr, volume = node.attr, _volume(src, body)
    if attr["T"].type != types_pb2.DT_FLOAT:
        return "only float32 is implemented"
    if attr["data_format"].s not in (b"NDHWC", b""):
        return f"data_format {attr['data_format'].s.decode()}, only NDHWC is implemented"
    if any(size != 1 for size in attr["dilations"].list.i):
        return "dilated 3-D convolution is not implemented"
    if volume is None:
        return "the sizes of its volumes are not all known"
    if not body.constants.is_constant(node.inputs[1]):
        return "the weights are computed or assigned inside the function"
    weights = body.constants.value(node.inputs[1])
    if not weights.size or weights.shape[axis] != volume[4]:
        return "the filter is empty or grouped"
    if body.view.has_control_edges(node.name):
        return "a control edge holds it"
    return None


def _transposed(node: Node, body: Body, context: Context) -> None:
    _, filters, src = node.inputs
    reason = context.reason_to_leave(body, node) or _obstacle(node, src, 4, body)
    if not reason and max(node.attr["strides"].list.i) > conv_transpose.MOST_STRIDE:
        reason = f"strides above {conv_transpose.MOST_STRIDE} are not implemented"
    volume, dst = _volume(src, body), _volume(node.ref, body)
    before = None if reason or dst is None else _cut(node, volume, dst, body)
    if before is None:
        context.report.decline(node.name, reason or "the size of its result is not its source's")
        return
    stride, taps = node.attr["strides"].list.i[1], body.shapes.shape(filters)[0]
    count = -(-dst[1] // stride)
    parts: list[Ref | None] = []
    for q in range(stride):
        own = [k for k in range(taps) if (q + before - k) % stride == 0]
        begins = [(q + before - k) // stride for k in own]
        parts.append(own and _plane(node, q, own, begins, count, body))
    some = next(part for part in parts if part)
    for q, part in enumerate(parts):
        if not part:  # no tap reaches these slices
            zeros = make_node(f"{node.name}/zeros_{q}", "ZerosLike", [some], T=FLOAT32)
            parts[q] = _infer(zeros, body, body.shapes.shape(some))
    slices = parts[0]
    if stride > 1:
        apart = [
            _infer(
                _reshape(f"{part.node}/apart", part, [-1, 1, *dst[2:]], body),
                body,
                (volume[0] * count, 1, *dst[2:]),
            )
            for part in parts
        ]
        joined = _joined(f"{node.name}/joined", apart, 1, body)
        name = f"{node.name}/volumes"
        if dst[1] < count * stride:
            all_of_them = _reshape(name, joined, [-1, count * stride, *dst[2:]], body)
            joined = _infer(all_of_them, body, (volume[0], count * stride, *dst[2:]))
            joined = _some(name, joined, 0, dst[1], body)
        slices = _reshape(f"{node.name}/slices", joined, [-1, *dst[2:]], body)
        slices = _infer(slices, body, (volume[0] * dst[1], *dst[2:]))
    _back(node, slices, dst, body)


def _cut(node: Node, src, dst, body: Body) -> int | None:
    """Slices before the first of the result that source slices reach, or None of a wrong size."""
    kernel, strides = body.shapes.shape(node.inputs[1]), node.attr["strides"].list.i
    padding = node.attr["padding"].s.decode()
    for axis in (1, 2, 3):
        if window(dst[axis], kernel[axis - 1], strides[axis], padding, 0, 0) != src[axis]:
            return None
    total = max((src[1] - 1) * strides[1] + kernel[0] - dst[1], 0)
    return total // 2 if padding == "SAME" else 0


def _plane(node: Node, q: int, taps, begins, count: int, body: Body) -> Ref:
    """The slices that lie `q` behind a stride: a transposed convolution of planes.

    Args:
        taps: along the depth.
        begins: the first source slice of each, of `count`; those outside of a volume are zeros.
    """
    (_, filters, src), dst = node.inputs, _volume(node.ref, body)
    name = f"{node.name}/slice_{q}"
    volume, kernel = _volume(src, body), body.shapes.shape(filters)
    slices, kernels = [], []
    for tap, begin in zip(taps, begins, strict=True):
        slices.append(_to_slices(_shifted(f"{name}/{tap}", src, begin, count, body), body))
        own = _some(f"{name}/{tap}/filter", filters, tap, 1, body, axis=0)
        own = _reshape(f"{name}/{tap}/filter", own, kernel[1:], body)
        kernels.append(_infer(own, body, kernel[1:]))
    sizes = body.view.add(constant_node(f"{name}/sizes", dst[2:4]))
    images = _joined(f"{name}/source", slices, 3, body)
    weights = _joined(f"{name}/filter", kernels, 3, body)
    made = make_node(
        name,
        "Conv2DBackpropInput",
        [sizes.ref, weights, images],
        T=FLOAT32,
        padding=node.attr["padding"],
        strides=[1, *node.attr["strides"].list.i[2:4], 1],
    )
    return _infer(made, body, (volume[0] * count, *dst[2:]))


def _shifted(name: str, src: Ref, begin: int, count: int, body: Body) -> Ref:
    """`count` slices of each volume from `begin` on, zeros before the first and after the last."""
    batch, depth, *rest = _volume(src, body)
    before, after = max(-begin, 0), max(begin + count - depth, 0)
    inside = max(count - before - after, 0)
    if inside < depth:
        src = _some(f"{name}/inside", src, max(begin, 0), inside, body)
    if not before and not after:
        return src
    pads = np.zeros((5, 2), np.int32)
    pads[1] = before, after
    pads = body.view.add(constant_node(f"{name}/pads", pads))
    padded = make_node(f"{name}/padded", "Pad", [src, pads.ref], T=FLOAT32, Tpaddings=INT32)
    return _infer(padded, body, (batch, count, *rest))


def _some(name: str, src: Ref, begin: int, size: int, body: Body, axis: int = 1) -> Ref:
    shape = body.shapes.shape(src)
    begins, sizes = np.zeros(len(shape), np.int32), np.full(len(shape), -1, np.int32)
    begins[axis], sizes[axis] = begin, size
    given = [
        body.view.add(constant_node(f"{name}/{key}", value)).ref
        for key, value in (("begin", begins), ("size", sizes))
    ]
    some = make_node(f"{name}/part", "Slice", [src, *given], T=FLOAT32, Index=INT32)
    return _infer(some, body, (*shape[:axis], size, *shape[axis + 1 :]))


def _joined(name: str, parts: list[Ref], axis: int, body: Body) -> Ref:
    if len(parts) == 1:
        return parts[0]
    shapes = [body.shapes.shape(part) for part in parts]
    size = sum(shape[axis] for shape in shapes)
    where = body.view.add(constant_node(f"{name}/axis", axis))
    joined = make_node(name, "ConcatV2", [parts, where.ref], T=FLOAT32, Tidx=INT32)
    return _infer(joined, body, (*shapes[0][:axis], size, *shapes[0][axis + 1 :]))


def _pool(node: Node, body: Body) -> None:
    src, volume = _slices(node.inputs[0], body), _volume(node.inputs[0], body)
    if src is None or node.attr["data_format"].s not in (b"NDHWC", b""):
        return
    ksize, strides = node.attr["ksize"].list.i[1:4], node.attr["strides"].list.i[1:4]
    padding = node.attr["padding"].s.decode()
    d, h, w = (
        window(size, kernel, stride, padding, 0, 0)
        for size, kernel, stride in zip(volume[1:4], ksize, strides, strict=True)
    )
    batch, depth, channels = volume[0], volume[1], volume[4]
    if ksize[1:] != [1, 1] or strides[1:] != [1, 1]:
        plane = _window_pool(node, f"{node.name}/plane", src, ksize[1:], strides[1:], body)
        src = plane
        body.shapes.put(src, (batch * depth, h, w, channels))
    if ksize[0] != 1 or strides[0] != 1:
        name = f"{node.name}/depth"
        columns = _reshape(f"{name}/columns", src, [-1, depth, h * w, channels], body)
        src = _infer(columns, body, (batch, depth, h * w, channels))
        src = _window_pool(node, name, src, [ksize[0], 1], [strides[0], 1], body)
        body.shapes.put(src, (batch, d, h * w, channels))
        slices = _reshape(f"{name}/slices", src, [-1, h, w, channels], body)
        src = _infer(slices, body, (batch * d, h, w, channels))
    _back(node, src, (batch, d, h, w, channels), body)


def _window_pool(node: Node, name: str, src: Ref, ksize, strides, body: Body) -> Ref:
    window = {"ksize": [1, *ksize, 1], "strides": [1, *strides, 1]}
    made = make_node(
        name, _POOLS[node.op], [src], T=FLOAT32, padding=node.attr["padding"], **window
    )
    return body.view.add(made).ref


def _mean(node: Node, body: Body) -> None:
    """Over a volume: over each slice, then over the slices of a volume."""
    src, volume = _slices(node.inputs[0], body), _volume(node.inputs[0], body)
    axes = body.shapes.numbers(node.inputs[1])
    if src is None or axes is None or node.attr["keep_dims"].b:
        return
    if sorted(axis % 5 for axis in axes) != [1, 2, 3]:
        return
    dtype, (batch, depth, *_, channels) = node.attr["Tidx"].type, volume
    over = body.view.add(constant_node(f"{node.name}/plane/axes", [1, 2], dtype))
    plane = Node(f"{node.name}/plane", "Mean", [src, over.ref], proto=node.proto)
    plane = body.view.add(plane)
    body.shapes.put(plane.ref, (batch * depth, channels))
    slices = _reshape(f"{node.name}/slices", plane.ref, [-1, depth, channels], body)
    slices = _infer(slices, body, (batch, depth, channels))
    last = body.view.add(constant_node(f"{node.name}/depth/axes", [1], dtype))
    sources = [ref.node for ref in node.inputs]
    body.view.set_inputs(node, [slices, last.ref])
    body.view.remove_dead(sources)


def _on_slices(node: Node, body: Body) -> list[Ref] | None:
    """The inputs with which the node makes the slices of its result, where it can."""
    if _volume(node.ref, body) is None:
        return None
    if node.op in _UNARY:
        slices = _slices(node.inputs[0], body)
        return slices and [slices, *node.inputs[1:]]
    if node.op in BINARY:
        own = [_alike(node, ref, body) for ref in node.inputs]
        pairs = zip(node.inputs, own, strict=True)
        if len({body.shapes.shape(ref) for ref, slices in pairs if slices}) > 1:
            return None  # one batch is repeated for the other
        slices = [
            slices or _constant(node, ref, body)
            for slices, ref in zip(own, node.inputs, strict=True)
        ]
        return slices if any(own) and all(slices) else None
    if node.op == "ConcatV2":
        *values, axis = node.inputs
        slices, number = [_slices(ref, body) for ref in values], body.shapes.number(axis)
        if all(slices) and number is not None and number % 5 == 4:
            dtype = node.attr["Tidx"].type
            moved = body.view.add(constant_node(f"{node.name}/slices/axis", 3, dtype))
            return [*slices, moved.ref]
    return None


def _alike(node: Node, ref: Ref, body: Body) -> Ref | None:
    """The slices of an operand that has the size of the node's result."""
    same = body.shapes.shape(ref) and body.shapes.shape(ref)[1:] == body.shapes.shape(node.ref)[1:]
    return _slices(ref, body) if same else None


def _constant(node: Node, ref: Ref, body: Body) -> Ref | None:
    """A constant of a value a channel, or one for all, as it lies against slices."""
    if not body.constants.is_constant(ref):
        return None
    shape = np.shape(body.constants.value(ref))
    if len(shape) < 2:
        return ref
    if len(shape) > 5 or any(size != 1 for size in shape[:-1]):
        return None
    return body.view.add(_reshape(f"{node.name}/slices/constant", ref, [shape[-1]], body)).ref
