"""What assign_layout asks before something that reads a blocked tensor becomes ours.

`settled` says in which layout the primitive of a pattern writes, or why TensorFlow keeps it (and
then reads a plain copy). Convolutions are planned before; element-wise idioms are `eltwise`.
"""

from dataclasses import replace

from ....graph import Node, Ref
from ....ops.records import (
    BLOCKED,
    NHWC,
    ROW_MOVES,
    Concat,
    Conv,
    Eltwise,
    GlobalPool,
    Join,
    Pad,
    Reshape,
    SqueezeExcite,
)
from ...patterns import PATTERNS
from ...patterns.movement import concat, cut, rows
from ...patterns.pixels import fake_quantize, spread
from ...patterns.planes import pad, pool, resize
from ...rules import Found


def settled(found: Found, state) -> Found | str:
    """What is found, with the layout that its readers want; or one line that says why not."""
    settle = _SETTLE.get(type(found.payload))
    return settle(found, state) if settle else found


def _pools(found: Found, state) -> Found | str:
    if found.payload.dst_layout != BLOCKED or state.wants_blocked(Ref(found.root)):
        return found
    return replace(found, payload=replace(found.payload, dst_layout=NHWC))


def _joins(found: Found, state) -> Found | str:
    plain = [ref for ref in found.inputs.values() if not state.is_blocked(ref)]
    if plain and not state.wants_blocked(Ref(found.root)):
        return "part of what it reads is plain, and nothing after it wants blocks"
    return found


def _cuts_or_joins(found: Found, state) -> Found | str:
    if not found.payload.is_slice:
        return _joins(found, state)
    reads = state.wants_blocked(Ref(found.root), few=True)
    return found if reads else "nothing after it reads blocks"


def _wanted(found: Found, state) -> Found | str:
    return found if state.wants_blocked(Ref(found.root)) else "nothing after it wants blocks"


def _scales(found: Found, state) -> Found | str:
    payload, scales = found.payload, Ref(found.root)
    if payload.dst_layout != NHWC:
        return found
    plain = state.has_plain_use(scales) and not state.wants_blocked(scales)
    return replace(found, payload=replace(payload, dst_layout=NHWC if plain else BLOCKED))


def _blocks_wanted(found: Found, state) -> Found | str:
    settled_before = found.root in state.spans or found.payload.dst_layout != BLOCKED
    return found if settled_before else _wanted(found, state)


_SETTLE = {
    Concat: _cuts_or_joins,
    Conv: _blocks_wanted,
    Eltwise: _wanted,
    GlobalPool: _pools,
    Join: _wanted,
    **dict.fromkeys(ROW_MOVES, _wanted),
    Pad: _wanted,
    Reshape: _blocks_wanted,
    SqueezeExcite: _scales,
}


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


def plain_activation(node: Node, state) -> Node | None:
    """An activation that TensorFlow runs as many ops, between plain tensors: one op instead."""
    for idiom in state.followers.at_root(node.name):
        channels = state.body.shapes.features(idiom.src)
        if len(idiom.nodes) < _MANY_OPS or idiom.operands or channels is None:
            continue
        payload = Eltwise(origin=node.name, channels=channels, steps=idiom.steps, layout=NHWC)
        return Node(node.name, payload.op, idiom.inputs, node.controls, payload=payload)
    return None


def _blocked_inputs(idiom, state) -> int:
    """How many inputs are blocked; none if the source is not."""
    count = sum(state.is_blocked(ref) for ref in idiom.inputs.values())
    return count if state.is_blocked(idiom.src) else 0


# So many passes over memory take longer than one with all of the arithmetic, whoever runs them.
_MANY_OPS = 4
# Through these a blocked layout is passed on to whoever reads the result; through slices of
# channels, too.
TRANSPARENT = frozenset(
    op for one in (concat, fake_quantize, pad, pool.RULE, resize.RULE) for op in one.ROOTS
)
# What may become ours where it stands.
CONVERTED = frozenset(
    op for one in PATTERNS["assign_layout"] if one not in (cut, rows, spread) for op in one.ROOTS
)
