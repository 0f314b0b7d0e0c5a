"""Graphs as data: views, matching, symbolic shapes. Needs no native library."""

from .body import LOOPS, Body, Module, Place, called, first_argument
from .constants import Constants, Variable
from .functions import Flat, flatten, unflatten
from .match import Any, Match, Op, Scalar, match
from .shapes import Shapes
from .symbolic import Expr, Size, estimate, window
from .view import GraphView, Node, Ref

__all__ = [
    "Any",
    "Body",
    "Constants",
    "Expr",
    "Flat",
    "GraphView",
    "LOOPS",
    "Match",
    "Module",
    "Node",
    "Op",
    "Place",
    "Ref",
    "Scalar",
    "Shapes",
    "Size",
    "Variable",
    "called",
    "estimate",
    "first_argument",
    "flatten",
    "match",
    "unflatten",
    "window",
]
