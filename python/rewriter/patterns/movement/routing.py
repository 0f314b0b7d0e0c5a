"""Ops that only move whole channels: what each of them does to an array of channel numbers.

A tensor [N, H, W, ...] is seen as an array [...] whose entries say which channel of which tensor
lies there. Split, concatenation, transposition and the like then are what they are in NumPy, and
any spelling of a channel shuffle is the array that comes out in the end.
"""

from collections.abc import Sequence

import numpy as np

from ....graph import MOVES, Body, Node, Ref, move

_FIXED = 3  # dimensions N, H, W, which no routing op touches
OPS = frozenset(MOVES) - {"Identity", "StopGradient"}
JOINS = frozenset({"ConcatV2"})  # these alone permute nothing


def route(node: Node, body: Body, given: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """The arrays of the node's outputs; None where it moves more than channels, or who knows."""
    if node.op == "Reshape":  # to sizes that need not be numbers
        made = _reshaped(body.shapes.shape(node.inputs[0]), body.shapes.shape(node.ref), given[0])
    else:
        made = move(node, given, body.known, hidden=_FIXED)
    shapes = [body.shapes.shape(Ref(node.name, port)) for port in range(len(made or ()))]
    pairs = zip(shapes, made or (), strict=True)
    return made if all(s and s[_FIXED:] == array.shape for s, array in pairs) else None


def _reshaped(before, after, array: np.ndarray) -> list[np.ndarray] | None:
    try:
        return [array.reshape(after[_FIXED:])] if before[:_FIXED] == after[:_FIXED] else None
    except (TypeError, ValueError):  # Something is not known, or pixels become channels.
        return None
