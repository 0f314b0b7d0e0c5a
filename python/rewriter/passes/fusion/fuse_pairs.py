"""Joins a convolution with the op that alone reads it, where one pass makes both.

The op that runs a 1x1 convolution and a depthwise one keeps the tensor between them in cache, and
where the plan finds two passes faster, runs these: nothing is lost by joining.

Winograd holds whole windows of 2x2 in the tiles of results and stores their maxima; other
algorithms do not. The library knows which will run, so it is asked. That takes sizes: where they
are open, but for the batch, two ops remain.
"""

from dataclasses import replace

from ....graph import Body, Node
from ....ops.memory import memory_plan
from ....ops.records import BLOCK, BLOCKED, Conv, ConvDepthwise, Pool, Record, Reorder
from ...context import Context

_ONE, _WINDOW = (1, 1), (2, 2)


def fuse_depthwise(body: Body, context: Context) -> None:
    """Joins a 1x1 convolution with the depthwise one that alone reads it."""
    for node, first in _pairs(body, Conv):
        conv, depthwise = first.payload, node.payload
        if _is_pointwise(conv) and _is_depthwise(depthwise) and first.roles == ("src",):
            algorithm = "direct" if conv.algorithm == "winograd" else conv.algorithm
            both = ConvDepthwise(
                origin=depthwise.origin,
                channels=depthwise.channels,
                steps=depthwise.steps,
                src_part=conv.src_part,
                first=conv,
                algorithm=algorithm,
                depthwise=depthwise,
            )
            _join(body, first, node, both)


def fuse_pool(body: Body, context: Context) -> None:
    """Joins a convolution with the max pooling of 2x2 after it, where Winograd stores maxima."""
    for node, first in _pairs(body, Pool):
        conv, pool = first.payload, node.payload
        halves = (pool.kind, pool.ksize, pool.strides) == ("max", _WINDOW, _WINDOW)
        if not halves or pool.is_low_precision:
            continue
        sizes = None if conv.src_part or first.roles != ("src",) else _source_sizes(body, first)
        if sizes and _adds_no_padding(body, first, pool) and _pools_tiles(conv, sizes):
            _join(body, first, node, replace(conv, origin=pool.origin, pool=_WINDOW))


def _pairs(body: Body, kind: type[Record]):
    """(node of that kind, the convolution that it alone reads in blocks)"""
    for node in body.view.topological():
        if not isinstance(node.payload, kind):
            continue
        first = body.view.producer(node.src)
        conv = first.payload
        if not isinstance(conv, Conv) or conv.dst_layout != BLOCKED or conv.dst_part:
            continue
        if not conv.is_low_precision and body.view.is_only_for(first.ref, node):
            yield node, first


def _join(body: Body, first: Node, node: Node, payload: Record) -> None:
    inputs = node.by_role | first.by_role
    body.view.replace(Node(node.name, payload.op, inputs, node.controls, payload=payload))
    body.view.remove_dead([first.name])


def _is_pointwise(conv: Conv) -> bool:
    """Whether it is a dense 1x1 convolution of every pixel."""
    padded = conv.padding == "EXPLICIT" and any(conv.explicit_paddings)
    kind = conv.weights.shape[:2], conv.strides, conv.groups
    return kind == (_ONE, _ONE, 1) and conv.src_layout == BLOCKED and not (padded or conv.is_typed)


def _is_depthwise(conv: Conv) -> bool:
    """Whether each block of the result depends on the same block of the source alone."""
    if conv.src_part or conv.dst_part or conv.is_low_precision or conv.is_typed:
        return False
    in_blocks = conv.src_layout == conv.dst_layout == BLOCKED
    return in_blocks and conv.groups == conv.in_channels == conv.channels


def _source_sizes(body: Body, conv: Node) -> list[int] | None:
    """[N, H, W], an open batch counting as 1; None where others are open."""
    source = body.view.producer(conv.inputs[0])
    ref = source.inputs[0] if isinstance(source.payload, Reorder) else conv.inputs[0]
    batch, *plane = body.shapes.shape(ref)[:3]
    if not all(isinstance(size, int) for size in plane):
        return None
    return [batch if isinstance(batch, int) else 1, *plane]


def _adds_no_padding(body: Body, conv: Node, pool: Pool) -> bool:
    """Whether all windows lie inside."""
    if pool.padding == "EXPLICIT":
        return not any(pool.explicit_paddings)
    sizes = body.shapes.shape(conv.ref)[1:3]
    return pool.padding == "VALID" or all(size % 2 == 0 for size in sizes)


def _pools_tiles(conv: Conv, sizes: list[int]) -> bool:
    """Whether the library would take Winograd anyway, with tiles that hold whole windows."""
    batch, height, width = sizes
    channels = conv.in_channels
    blocked = (batch, -(-channels // BLOCK), height, width, BLOCK)
    top, bottom, left, right = conv.explicit_paddings

    def plan(**pool):
        return memory_plan(
            "conv",
            blocked if conv.src_layout == BLOCKED else (batch, height, width, channels),
            conv.weights.shape,
            strides=list(conv.strides),
            padding=[[top, bottom], [left, right]] if conv.padding == "EXPLICIT" else conv.padding,
            dilations=list(conv.dilations),
            groups=conv.groups,
            post_ops=";".join(s.text("" if s.operand is None else "#0") for s in conv.chain),
            args=[(conv.channels,)],
            src_layout=conv.src_layout,
            channels=channels,
            how=conv.algorithm,
            **pool,
        )

    if not plan().algorithm.startswith("winograd"):
        return False
    try:
        plan(pool=list(_WINDOW))
    except ValueError:  # the library says which tiles and chains it pools
        return False
    return True
