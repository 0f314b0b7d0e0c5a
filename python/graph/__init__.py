"""Graphs as data: views, matching, symbolic shapes. Needs no native library."""

from .body import Body, Module, Place, Sizes, called, first_argument
from .constants import Constants, Variable
from .formats import Format, read, written
from .functions import (
    Flat,
    all_nodes,
    called_functions,
    definitions,
    flatten,
    handed_on,
    nodes_within,
    restore_library,
    unflatten,
    write_function,
)
from .indices import Axis, Index, leaves, size_of, view_axes, views_beside, write_views
from .match import (
    Any,
    Axes,
    Binding,
    Match,
    OneOf,
    Op,
    Pattern,
    Reshaped,
    Scalar,
    Scope,
    Viewed,
    match,
    sizes_of,
)
from .moves import MOVES, cuts, move, moved, slices
from .nodes import (
    FLOAT32,
    INT32,
    UINT8,
    Writer,
    constant_node,
    make_node,
    open_sizes,
    unusual,
)
from .products import Product, product
from .quantized import QUANTIZING, grid
from .read_only import describe_variables, renew_read_only
from .shapes import Shape, Shapes
from .symbolic import Expr, Size, estimate, times, window
from .types import (
    attribute_types,
    defaults,
    definition,
    dtype,
    dtype_name,
    has_gradients,
    is_float32,
    outputs,
)
from .verifier import Verifier, check_edges
from .view import Attributes, GraphView, Node, Ref
