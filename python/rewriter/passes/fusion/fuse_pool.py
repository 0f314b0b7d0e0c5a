"""Joins a convolution with the max pooling that alone reads it, where one pass makes both.

Winograd holds whole windows of 2x2 in its tiles of results and stores their maxima; other
algorithms do not. The library knows which will run, so it is asked. That takes sizes: where they
are open, but for the batch, two ops remain.
"""

from dataclasses import replace

from ....graph import Body, Node
from ....ops.memory import memory_plan
from ....ops.records import BLOCK, BLOCKED, Conv, Pool, Reorder
from ...context import Context

_WINDOW = (2, 2)


def fuse_pool(body: Body, context: Context) -> None:
    """Joins a convolution with the max pooling of 2x2 behind it, where Winograd stores maxima."""
    for node in body.view.topological():
        if not _pools_windows(node.payload):
            continue
        first = body.view.producer(node.inputs[0])
        if _is_free(first) and body.view.is_only_for(first.ref, node):
            sizes = _source_sizes(body, first)
            if sizes and _adds_no_padding(body, first, node) and _pools_tiles(first.payload, sizes):
                _join(body, first, node)


def _pools_windows(payload) -> bool:
    if not isinstance(payload, Pool):
        return False
    return not payload.is_narrow and (payload.kind, payload.ksize, payload.strides) == (
        "max",
        _WINDOW,
        _WINDOW,
    )


def _is_free(node: Node) -> bool:
    """Whether it is a convolution whose chain reads no tensors."""
    conv = node.payload
    if not isinstance(conv, Conv) or conv.dst_layout != BLOCKED or node.roles != ("src",):
        return False
    return not conv.src_part and not conv.dst_part and not conv.is_narrow


def _source_sizes(body: Body, conv: Node) -> list[int] | None:
    """[N, H, W], an open batch counting as 1; None where others are open."""
    source = body.view.producer(conv.inputs[0])
    ref = source.inputs[0] if isinstance(source.payload, Reorder) else conv.inputs[0]
    batch, *plane = body.shapes.shape(ref)[:3]
    if not all(isinstance(size, int) for size in plane):
        return None
    return [batch if isinstance(batch, int) else 1, *plane]


def _adds_no_padding(body: Body, conv: Node, pool: Node) -> bool:
    """Whether all windows lie inside."""
    payload, sizes = pool.payload, body.shapes.shape(conv.ref)[1:3]
    if payload.padding == "EXPLICIT":
        return not any(payload.explicit_paddings)
    return payload.padding == "VALID" or all(size % 2 == 0 for size in sizes)


def _pools_tiles(conv: Conv, sizes: list[int]) -> bool:
    """Whether the convolution would be Winograd anyway, and its tiles hold whole windows."""
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
            algorithm=conv.algorithm,
            **pool,
        )

    if not plan().algorithm.startswith("winograd"):
        return False
    try:
        plan(pool=list(_WINDOW))
    except ValueError:  # the library says which tiles and chains it pools
        return False
    return True


def _join(body: Body, conv: Node, pool: Node) -> None:
    payload = replace(conv.payload, origin=pool.payload.origin, pool=_WINDOW)
    controls = [*conv.controls, *pool.controls]
    body.view.replace(Node(pool.name, payload.op, conv.by_role, controls, payload=payload))
    body.view.remove_dead([conv.name])
