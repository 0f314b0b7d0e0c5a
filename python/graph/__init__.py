"""Graphs as data: views, matching, symbolic shapes. Needs no native library."""

from .body import Body, Module, Place, Sizes, called, first_argument
from .constants import LOOPS, Constants, Variable, taken
from .formats import Format, read, written
from .functions import Flat, called_functions, flatten, handed_on, restore_library, unflatten
from .match import Any, Axes, Match, OneOf, Op, Reshaped, Scalar, Scope, match, sizes_of
from .nodes import (
    FLOAT32,
    INT32,
    UINT8,
    Writer,
    attribute_types,
    constant_node,
    defaults,
    definition,
    make_node,
    open_sizes,
    unusual,
)
from .quantized import QUANTIZING, grid
from .read_only import renew_read_only
from .shapes import Shapes
from .symbolic import Expr, Size, estimate, window
from .types import dtype, dtype_name, is_float32, outputs
from .verifier import Verifier, check_edges
from .view import Attributes, GraphView, Node, Ref
