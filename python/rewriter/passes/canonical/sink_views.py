"""Brings tensors to the forms that all other passes know: pictures in NHWC.

An op with data_format NCHW works on the transposed tensor instead, and the result is transposed
back. TensorFlow runs a 1-D convolution or pooling as a 2-D one of height 1, ExpandDims, Conv2D,
Squeeze, and a dilation between SpaceToBatchND and BatchToSpaceND. Groups of channels are another
shape, [N, H, W, G, K]. What stands between would end the blocked region; views sink through it
(views.py) until they meet the next one, which cancels them.

Keras 2 writes layer normalisation as a batch normalisation in training of one NCHW image whose
channels are the rows, reshape(batch_norm(reshape(x, [1, rows, C, 1])), shape(x)) * gamma + beta: it
is written out before.
"""

import numpy as np
from tensorflow.core.framework import types_pb2

from ....graph import Body, Node, Ref, dtype, is_float32
from ....graph.families import BATCH_NORMS
from ...context import Context
from .views import Views

_TO_LAST, _TO_FIRST = [0, 2, 3, 1], [0, 3, 1, 2]
# op -> the index of the activation among the inputs
_FORMATTED = {
    **dict.fromkeys(("Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool", "BiasAdd"), 0),
    **dict.fromkeys(BATCH_NORMS, 0),
    "Conv2DBackpropInput": 2,
}
_MARGINS = frozenset({"BatchToSpaceND", "SpaceToBatchND"})


def sink_views(body: Body, context: Context) -> None:
    """Computes on pictures what is written for NCHW tensors, lines and groups of channels."""
    for node in body.view:
        if node.op in BATCH_NORMS and not body.view.has_control_edges(node.name):
            _normalise_rows(node, body)
    views = Views(body, _is_kind, takes=_is_of_groups)
    for node in body.view.topological():
        if node.name not in body.view or body.view.has_control_edges(node.name):
            continue
        if node.op in _FORMATTED and node.attr["data_format"].s == b"NCHW":
            _reformat(node, views)
        elif node.op in _MARGINS:
            _pad_plane(node, views)
        else:
            views.sink(node)


def _normalise_rows(node: Node, body: Body) -> None:
    """Writes a batch norm of one image as the layer norm that it is of the rows of x."""
    view, shapes = body.view, body.shapes
    before, after = view.producer(node.inputs[0]), view.only_reader(node.ref)[0]
    trains = node.attr["is_training"].b and node.attr["data_format"].s == b"NCHW"
    if not trains or after is None or {before.op, after.op} != {"Reshape"}:
        return
    x, image = before.inputs[0], shapes.shape(before.ref) or ()
    channels = (shapes.shape(x) or (None,))[-1]
    is_row = len(image) == 4 and (image[0], *image[2:]) == (1, channels, 1)
    if not is_row or not isinstance(channels, int) or not shapes.equal(x, after.ref):
        return
    is_plain = _is_full(node.inputs[1], 1.0, body) and _is_full(node.inputs[2], 0.0, body)
    statistics = any(view.use_count(Ref(node.name, port)) for port in range(1, 6))
    if not is_plain or statistics or not is_float32(view, node.ref):
        return
    last, affine = after, {"Mul": 1.0, "AddV2": 0.0}
    for op in affine:
        reader, index = view.only_reader(last.ref)
        other = reader and reader.op == op and reader.inputs[1 - index]
        if other and body.constants.is_constant(other) and shapes.shape(other) == (channels,):
            affine[op], last = other, reader
    write = body.writer(last.name)
    mean = write.add("mean", "Mean", x, [-1], keep_dims=True)
    squares = write.add("squares", "SquaredDifference", x, mean)
    variance = write.add("variance", "Mean", squares, [-1], keep_dims=True)
    shifted = write.add("shifted", "AddV2", variance, node.attr["epsilon"].f)
    scaled = write.add("scaled", "Mul", write.add("root", "Rsqrt", shifted), affine["Mul"])
    moved = write.add("moved", "Mul", mean, scaled)
    left = write.add("left", "Sub", affine["AddV2"], moved)
    write.put("AddV2", write.add("normal", "Mul", x, scaled), left)


def _is_full(ref: Ref, number: float, body: Body) -> bool:
    """Whether all elements of a tensor are that number."""
    node = body.view.producer(ref)
    if node.op == "Fill":
        return body.constants.scalar(node.inputs[1]) == number
    value = body.constants.value(ref)
    return value is not None and bool((value == number).all())


def _is_kind(node: Node, body: Body) -> bool:
    """Whether it is NCHW of NHWC, [N, W, C] of [N, 1, W, C], [N, H, W, G, K] of [N, H, W, C], or
    what a convolution makes in another shape: heads of detectors give each box a row."""
    before, after = (body.shapes.shape(ref) for ref in (node.inputs[0], node.ref))
    if not is_float32(body.view, node.ref):
        return False
    if node.op == "Transpose":
        return _order(node, body) == _TO_FIRST
    if node.op == "Squeeze":
        dims = [dim % 4 for dim in node.attr["squeeze_dims"].list.i]
        return len(before or ()) == 4 and dims == [1] and not body.constants.is_constant(node.ref)
    if node.op != "Reshape" or body.shapes.channels(node.inputs[0]) is None or after is None:
        return False
    producer = body.view.producer(node.inputs[0])
    if producer.op in ("Add", "AddV2", "BiasAdd"):
        producer = body.view.producer(producer.inputs[0])
    if producer.op in ("Conv2D", "DepthwiseConv2dNative"):
        return True
    is_split = len(after) == 5 and after[:3] == before[:3] and before[1:3] != (1, 1)
    return is_split and all(isinstance(size, int) for size in after[3:])


def _is_of_groups(ref: Ref, body: Body) -> bool:
    """Whether it is [N, 1, 1, G, K]."""
    shape = body.shapes.shape(ref) or ()
    return len(shape) == 5 and shape[1:3] == (1, 1) or shape == () and is_float32(body.view, ref)


def _order(node: Node, body: Body) -> list[int] | None:
    """The constant order of a Transpose of rank 4."""
    order = body.shapes.numbers(node.inputs[1]) if node.op == "Transpose" else None
    return [axis % 4 for axis in order] if order is not None and len(order) == 4 else None


def _to_last(ref: Ref, views: Views) -> Ref:
    """The NHWC form of an activation; one transpose serves all readers."""
    view, body = views.view(ref), views.body
    if view is not None and view.node.op == "Transpose":
        return view.x
    for reader, index in body.view.consumers(ref):
        if index == 0 and _order(reader, body) == _TO_LAST:
            return reader.ref
    return body.writer(ref.node).add("nhwc", "Transpose", ref, _TO_LAST)


def _reformat(node: Node, views: Views) -> None:
    """Does in NHWC what the node does in NCHW."""
    place, body, write = _FORMATTED[node.op], views.body, views.body.writer(node.name)
    if node.attr["T"].type != types_pb2.DT_FLOAT or body.shapes.rank(node.inputs[place]) != 4:
        return
    if any(body.view.use_count(Ref(node.name, port)) for port in range(1, 6)):
        return  # a batch normalisation whose statistics are read
    proto = node.to_proto()
    proto.attr["data_format"].s = b"NHWC"
    for key, width in (("strides", 1), ("dilations", 1), ("ksize", 1), ("explicit_paddings", 2)):
        if key in proto.attr and (values := proto.attr[key].list.i):
            groups = np.reshape(list(values), [4, width])
            values[:] = [int(value) for value in groups[_TO_LAST].reshape(-1)]
    inputs = list(node.inputs)
    inputs[place] = _to_last(inputs[place], views)
    if node.op == "Conv2DBackpropInput":
        inputs[0] = write.add("nhwc/sizes", "GatherV2", inputs[0], _TO_LAST, 0)
    done = body.view.add(Node(f"{node.name}/nhwc", node.op, inputs, node.controls, proto))
    body.shapes.shape(done.ref)  # Later it is planned, and TensorFlow does not know the op.
    write.put("Transpose", done.ref, _TO_FIRST)


def _pad_plane(node: Node, views: Views) -> None:
    """Runs SpaceToBatchND, or the inverse, over a plane of height 1: a block of [1, size]."""
    source, block, margins = node.inputs
    body, write, view = views.body, views.body.writer(node.name), views.view(node.inputs[0])
    sizes, shape = body.shapes.numbers(block), body.shapes.shape(node.ref)
    if sizes is None or len(sizes) != 1 or body.shapes.value(margins) is None:
        return
    if view is not None and view.node.op == "Squeeze":
        plane = view.x
    elif view is None and node.op == "SpaceToBatchND" and body.shapes.rank(source) == 3:
        reader, _ = body.view.only_reader(node.ref)
        if reader is None or reader.op != "ExpandDims":
            return  # Nobody wants a plane after it.
        plane = write.add("expand", "ExpandDims", source, 1)
    else:
        return
    kinds = [dtype(body.view, ref) for ref in (block, margins)]
    # The paddings or crops may depend on the width; of the height there are none.
    margins = [write.constant("height", [[0, 0]], kinds[1]), margins]
    margins = write.add("margins", "ConcatV2", margins, 0)
    inputs = [plane, write.constant("block_shape", [1, *sizes], kinds[0]), margins]
    done = body.view.add(Node(f"{node.name}/plane", node.op, inputs, node.controls, node.proto))
    if shape is not None and len(shape) == 3:
        body.shapes.put(done.ref, (shape[0], 1, *shape[1:]))
    write.put("Squeeze", done.ref, squeeze_dims=[1])
