"""Graphs as data: views, matching, symbolic shapes. Needs no native library."""

from .body import Body, Module, Place, called, first_argument
from .constants import LOOPS, Constants, Variable
from .formats import Format, read, written
from .functions import Flat, called_functions, flatten, restore_library, unflatten
from .match import Any, Match, Op, Scalar, Scope, match
from .nodes import (
    FLOAT32,
    INT32,
    UINT8,
    attribute_types,
    constant_node,
    defaults,
    definition,
    gathered,
    make_node,
)
from .quantized import QUANTIZING, Grid, grid
from .read_only import renew_read_only
from .shapes import Shapes
from .symbolic import Expr, Size, estimate, window
from .types import dtype, dtype_name, is_float32, outputs
from .verifier import Verifier, check_edges
from .view import GraphView, Node, Ref

__all__ = [
    "Any",
    "Body",
    "Constants",
    "Expr",
    "FLOAT32",
    "Flat",
    "Format",
    "GraphView",
    "Grid",
    "INT32",
    "LOOPS",
    "Match",
    "Module",
    "Node",
    "Op",
    "Place",
    "QUANTIZING",
    "Ref",
    "Scalar",
    "Scope",
    "Shapes",
    "Size",
    "UINT8",
    "Variable",
    "Verifier",
    "attribute_types",
    "called",
    "called_functions",
    "check_edges",
    "constant_node",
    "defaults",
    "definition",
    "dtype",
    "dtype_name",
    "estimate",
    "first_argument",
    "flatten",
    "gathered",
    "grid",
    "is_float32",
    "make_node",
    "match",
    "outputs",
    "read",
    "renew_read_only",
    "restore_library",
    "unflatten",
    "window",
    "written",
]
