"""Rows or columns of blocked pictures moved as they lie: turned lines, pictures one after another.

[N, H, 1, C] and [N, 1, H, C] are one in memory, in blocks too. TensorFlow joins rows and columns
of blocks, [N, CB, H, W, 16], as it joins those of pictures.
"""

from dataclasses import dataclass

from ....graph import Body, GraphView, Node, constant_node
from ....ops.records import BLOCK, Join, Record, Reshape
from ...context import Context
from ..found import Found

ROOTS = ("ConcatV2", "Reshape", "Transpose")


@dataclass(frozen=True, kw_only=True)
class _FoundMove(Found):
    """An op of TensorFlow's with a constant of its own: the shape or the axis of blocks."""

    role: str
    constant: object

    def node(self, view: GraphView) -> Node:
        constant = view.add(constant_node(f"{self.root}/{self.role}", self.constant)).ref
        inputs = {**self.inputs, self.role: constant}
        return Node(self.root, self.payload.op, inputs, payload=self.payload)


def find(node: Node, body: Body, context: Context) -> Found | None:
    """What `node` moves, if it moves pixels in their order or joins rows or columns."""
    if not moves(node, body):
        return None
    shape = body.shapes.shape(node.ref)
    common = dict(origin=node.name, channels=shape[3])
    if node.op == "ConcatV2":
        axis = body.shapes.number(node.inputs[-1]) % 4
        payload: Record = Join(count=len(node.inputs) - 1, **common)
        inputs = payload.roles(node.inputs[:-1])
        return _FoundMove(payload, inputs, node.name, role="axis", constant=axis + 1)
    blocks = -(-shape[3] // BLOCK)
    sizes = [-1, blocks, *shape[1:3], BLOCK]
    inputs = {"src": node.inputs[0]}
    return _FoundMove(Reshape(**common), inputs, node.name, role="shape", constant=sizes)


def moves(node: Node, body: Body) -> bool:
    """Whether pixels keep their order and channels, or rows or columns are joined."""
    if node.op not in ROOTS or node.payload is not None or node.controls:
        return False
    shapes, now = body.shapes, body.shapes.shape(node.ref)
    if now is None or len(now) != 4 or not isinstance(now[3], int) or now[3] < 1:
        return False
    if node.op == "ConcatV2":
        axis = shapes.number(node.inputs[-1])
        known = all(shapes.rank(ref) == 4 for ref in node.inputs[:-1])
        return known and axis is not None and axis % 4 in (1, 2)
    was = shapes.shape(node.inputs[0])
    if was is None or len(was) != 4 or (was[0], was[3]) != (now[0], now[3]):
        return False
    if not all(isinstance(size, int) for size in (*was[1:3], *now[1:3])):
        return False
    if was[1] * was[2] != now[1] * now[2]:
        return False
    order = shapes.numbers(node.inputs[1]) if node.op == "Transpose" else None
    return node.op == "Reshape" or (order == [0, 2, 1, 3] and 1 in was[1:3])
