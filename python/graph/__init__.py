"""Graphs as data: views, matching, symbolic shapes. Needs no native library."""

from .constants import Constants, Variable
from .match import Any, Match, Op, Scalar, match
from .shapes import Shapes
from .symbolic import Expr, Size
from .view import GraphView, Node, Ref

__all__ = [
    "Any",
    "Constants",
    "Expr",
    "GraphView",
    "Match",
    "Node",
    "Op",
    "Ref",
    "Scalar",
    "Shapes",
    "Size",
    "Variable",
    "match",
]
