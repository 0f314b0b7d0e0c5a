"""op -> converter, one row each: how a node that reads a blocked tensor becomes ours.

A converter gets the node and the `LayoutState` and returns the node to put in its
place, or one line that says why it stays with TensorFlow (which then reads a plain
copy). Convolutions are planned before; element-wise idioms have a row of their own.
"""

from dataclasses import replace

from ..graph import Node
from .passes.canonical.constant_shapes import constant_node
from .patterns.movement import concat
from .patterns.planes import pad, pool, resize
from .patterns.planes.depth_pool import DepthPool
from .primitives import BLOCKED, NHWC, Eltwise, Reshape

_PARTLY_PLAIN = "part of what it reads is plain, and nothing after it wants blocks"


def max_or_avg_pool(node: Node, state) -> Node | str:
    planned = pool.plan(node, state.body)
    if isinstance(planned, str):
        return planned
    src, payload = planned
    return Node(node.name, payload.op, {"src": src}, node.controls, payload=payload)


def global_pool(node: Node, state) -> Node | str:
    payload = pool.plan_global(node, state.body)
    if isinstance(payload, str):
        return payload
    if payload.writes == BLOCKED and not state.wants_blocked(node.ref):
        payload = replace(payload, writes=NHWC)
    src = {"src": node.inputs[0]}
    return Node(node.name, payload.op, src, node.controls, payload=payload)


def join(node: Node, state) -> Node | str:
    payload = concat.plan(node, state.body)
    if isinstance(payload, str):
        return payload
    values = node.inputs[:-1]
    plain = [ref for ref in values if not state.is_blocked(ref)]
    if plain and not state.wants_blocked(node.ref):
        return _PARTLY_PLAIN
    return Node(node.name, payload.op, payload.roles(values), node.controls, payload=payload)


def several(node: Node, state) -> Node | str:
    """The nodes of a shuffle or an upsampling that ends at `node`."""
    found = state.several[node.name]
    payload = found.payload
    if isinstance(found, DepthPool):
        return _depth_pool(node, found, state.body.view)
    return Node(node.name, payload.op, {"src": found.src}, node.controls, payload=payload)


def _depth_pool(node: Node, found: DepthPool, view) -> Node:
    """A pooling between two other shapes of the same memory."""
    pool, name = found.pool, node.name
    shapes = [
        view.add(constant_node(f"{name}/blocked_shape", shape)).ref
        for shape in (found.columns, found.slices)
    ]
    inputs = {"src": found.src, "shape": shapes[0]}
    columns = Reshape(origin=name, channels=pool.channels)
    columns = view.add(Node(f"{name}/columns", columns.op, inputs, payload=columns))
    pooled = view.add(Node(f"{name}/pool", pool.op, {"src": columns.ref}, payload=pool))
    inputs = {"src": pooled.ref, "shape": shapes[1]}
    return Node(name, found.payload.op, inputs, node.controls, payload=found.payload)


def resized(node: Node, state) -> Node | str:
    payload = resize.plan(node, state.body)
    if isinstance(payload, str):
        return payload
    src = {"src": node.inputs[0]}
    return Node(node.name, payload.op, src, node.controls, payload=payload)


def pad_or_cut(node: Node, state) -> Node | str:
    """Rows and columns of zeros, or fewer rows and columns, where blocks are wanted behind."""
    payload = pad.plan(node, state.body)
    if isinstance(payload, str):
        return payload
    if not state.wants_blocked(node.ref):
        return "nothing after it wants blocks"
    src = {"src": node.inputs[0]}
    return Node(node.name, payload.op, src, node.controls, payload=payload)


def keep_dims(node: Node, state) -> Node | str:
    """[N, C] -> [N, 1, 1, C] right after a global pool: the pool writes that itself."""
    pooled = state.body.view.producer(node.inputs[0])
    shape, channels = state.body.shapes.shape(node.ref), pooled.payload.channels
    src = state.body.shapes.shape(pooled.src)
    if shape is None or src is None or tuple(shape) != (src[0], 1, 1, channels):
        return "it is not [N, 1, 1, C]"
    if state.body.view.use_count(pooled.ref) != 1:
        return "the pooled values have other uses"
    writes = BLOCKED if state.wants_blocked(node.ref) else NHWC
    payload = replace(pooled.payload, writes=writes)
    return Node(node.name, payload.op, pooled.by_role, pooled.controls, payload=payload)


def eltwise(node: Node, state) -> Node | str:
    """An element-wise idiom that ends at `node`, read from its first blocked source."""
    idioms = state.followers.at_root(node.name)
    idiom = max(idioms, key=lambda idiom: _blocked_inputs(idiom, state))
    shapes = state.body.shapes
    channels = shapes.channels(idiom.src)
    if channels is None or not state.is_blocked(idiom.src):
        return "its operands have other shapes"
    plain = len(idiom.inputs) - _blocked_inputs(idiom, state)
    wanted = state.wants_blocked(node.ref)
    if not wanted and (plain or state.has_plain_use(idiom.src)):
        return "nothing after it wants blocks, and its input is needed plain anyway"
    payload = Eltwise(origin=node.name, channels=channels, steps=idiom.steps)
    return Node(node.name, payload.op, idiom.inputs, node.controls, payload=payload)


def _blocked_inputs(idiom, state) -> int:
    """How many inputs are blocked; none if the source is not."""
    count = sum(state.is_blocked(ref) for ref in idiom.inputs.values())
    return count if state.is_blocked(idiom.src) else 0


CONVERTERS = {
    "MaxPool": max_or_avg_pool,
    "AvgPool": max_or_avg_pool,
    "Mean": global_pool,
    "Max": global_pool,
    "ConcatV2": join,
    "Pad": pad_or_cut,
    "PadV2": pad_or_cut,
    "StridedSlice": pad_or_cut,
    **dict.fromkeys(resize.ROOTS, resized),
}
AFTER_GLOBAL_POOL = {"Reshape": keep_dims, "ExpandDims": keep_dims}
# Through these a blocked layout is passed on to whoever reads the result.
TRANSPARENT = frozenset(
    {"MaxPool", "AvgPool", "ConcatV2", "Pad", "PadV2", "StridedSlice", *resize.ROOTS}
)
