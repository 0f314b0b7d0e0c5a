"""Joins neighbouring 1-D layers: between them, planes of height 1 stay planes.

TensorFlow runs a 1-D convolution or pooling as a 2-D one of height 1: ExpandDims, Conv2D,
Squeeze. What stands between two of them (bias, normalisation, activation, addition,
concatenation, padding, the SpaceToBatchND and BatchToSpaceND of a dilation) works on [N, W, C] and
would end the blocked region. The same work on [N, 1, W, C] gives the same numbers, so it is done
there,

    f(squeeze(x)) = squeeze(f(x)),    expand(squeeze(x)) = x,

and the squeezes sink to the end of the chain.
"""

from ....graph import Body, Node, Ref, dtype
from ....graph.elementwise_ops import UNARY
from ...context import Context
from .views import Views

_MARGINS = frozenset({"BatchToSpaceND", "SpaceToBatchND"})


def join_one_dimension(body: Body, context: Context) -> None:
    """Keeps the ops between 1-D convolutions on planes of height 1, as the convolutions are."""
    views = _Squeezes(body)
    for node in body.view.topological():
        if node.name not in body.view or body.view.has_control_edges(node.name):
            continue
        if node.op == "ExpandDims":
            _cancel(node, views)
        elif node.op in _MARGINS:
            if inputs := _on_blocks(node, views):
                views.work_below(node, inputs)
        elif node.attr["data_format"].s != b"NCHW":
            views.sink(node)


class _Squeezes(Views):
    """[N, W, C] of planes [N, 1, W, C]."""

    below = "plane"
    axes = (0, 2, 3)
    unary = UNARY | {"BiasAdd"}

    def viewed(self, ref: Ref) -> Ref | None:
        node = self.body.view.producer(ref)
        if node.op != "Squeeze" or ref.port or self.body.constants.is_constant(ref):
            return None
        shape = self.body.shapes.shape(node.inputs[0])
        dims = list(node.attr["squeeze_dims"].list.i)
        if shape is None or len(shape) != 4 or [dim % 4 for dim in dims] != [1]:
            return None
        return node.inputs[0]

    def spread(self, node: Node, ref: Ref) -> Ref | None:
        """A constant that lies against [N, 1, W, C] as against [N, W, C]."""
        shape = self.body.shapes.shape(ref)
        if shape is None or not self.body.constants.is_constant(ref):
            return None
        return ref if len(shape) < 3 or (len(shape) == 3 and shape[0] == 1) else None

    def put_view(self, node: Node, x: Ref) -> None:
        shape = self.body.shapes.shape(node.ref)
        if shape is not None and len(shape) == 3:
            self.body.shapes.put(x, (shape[0], 1, *shape[1:]))
        self.body.writer(node.name).put("Squeeze", x, squeeze_dims=[1])


def _on_blocks(node: Node, views: _Squeezes) -> list[Ref] | None:
    """The inputs of SpaceToBatchND, or of its inverse, over a plane: a block of [1, size]."""
    source, block, margins = node.inputs
    body, write = views.body, views.body.writer(node.name)
    sizes, values = body.shapes.numbers(block), body.shapes.value(margins)
    if sizes is None or len(sizes) != 1 or values is None:
        return None
    plane = views.viewed(source)
    if plane is None and _wants_plane(node, body):
        plane = write.add("expand", "ExpandDims", source, 1)
    if plane is None:
        return None
    kinds = [dtype(body.view, ref) for ref in (block, margins)]
    # The paddings or crops may depend on the width; of the height there are none.
    margins = [write.constant("height", [[0, 0]], kinds[1]), margins]
    margins = write.add("margins", "ConcatV2", margins, 0)
    return [plane, write.constant("block_shape", [1, *sizes], kinds[0]), margins]


def _wants_plane(node: Node, body: Body) -> bool:
    """Whether the source is 3-D, and the only reader of the node wants a plane anyway."""
    reader, rank = body.view.only_reader(node.ref)[0], body.shapes.rank(node.inputs[0])
    wanted = reader is not None and reader.op == "ExpandDims"
    return node.op == "SpaceToBatchND" and wanted and rank == 3


def _cancel(node: Node, views: _Squeezes) -> None:
    """expand(squeeze(x)) = x"""
    plane, axis = views.viewed(node.inputs[0]), views.body.shapes.number(node.inputs[1])
    if plane and axis is not None and axis % 4 == 1:
        views.body.view.replace_uses(node.ref, plane)
        views.body.view.remove_dead([node.name])
