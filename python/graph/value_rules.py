"""The elements of small integer tensors, as object arrays of sizes.

What moves elements moves sizes alike (moves.py); others have a rule, one row each, which gets the
node and the values of the inputs and returns that of the output, or None where it knows nothing.
"""

import math

import numpy as np
from tensorflow.core.framework import types_pb2

from .constants import array
from .moves import MOVES, move, moved
from .symbolic import floordiv, mod
from .view import Node

_INTEGER = (types_pb2.DT_INT32, types_pb2.DT_INT64)
_EXACT = (*_INTEGER, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE)  # of what shapes have for sizes
_MAX_ELEMENTS = 64


def infer(node: Node, shapes):
    if node.op == "Const":
        return _const(node)
    if node.op == "Shape" and node.attr["out_type"].type in (0, *_INTEGER):
        shape = shapes.shape(node.inputs[0])
        return None if shape is None else _objects(list(shape))
    if node.op in MOVES:
        arrays = [shapes.value(ref) for ref in moved(node)]
        known = arrays and all(array is not None for array in arrays)
        return (move(node, arrays, shapes.value) or [None])[0] if known else None
    rule = _RULES.get(node.op)
    if rule is None:
        return None
    values = [shapes.value(ref) for ref in node.inputs]
    return None if any(value is None for value in values) else rule(node, *values)


def _objects(values) -> np.ndarray:
    result = np.empty(np.shape(values) if not isinstance(values, list) else len(values), object)
    result[...] = values
    return result


def _const(node: Node):
    tensor = node.attr["value"].tensor
    if tensor.dtype not in _INTEGER:
        return None
    size = math.prod(dim.size for dim in tensor.tensor_shape.dim)
    return array(tensor).astype(object) if size <= _MAX_ELEMENTS else None


def _elementwise(function):
    def rule(node: Node, a, b):
        result = np.asarray(np.frompyfunc(function, 2, 1)(a, b), object)
        return None if any(size is None for size in result.flat) else result

    return rule


def _product(a, b):
    return a * b if isinstance(a, int) or isinstance(b, int) else None


def _one_of(function):
    """Of two numbers, or of the same size twice."""
    return lambda a, b: a if a == b else function(a, b) if type(a) is type(b) is int else None


def _by_number(function):
    return lambda a, b: function(a, b) if isinstance(b, int) and b > 0 else None


def _prod(node: Node, x, axes):
    """Of all elements of a vector."""
    if x.ndim != 1 or node.attr["keep_dims"].b or list(axes.reshape(-1)) not in ([0], [-1]):
        return None
    result = 1
    for size in x:
        result = _product(result, size)
        if result is None:
            return None
    return _objects(result)


def _range(node: Node, start, limit, delta):
    bounds = [value.item() for value in (start, limit, delta)]
    if not all(isinstance(bound, int) for bound in bounds) or not bounds[2]:
        return None
    numbers = range(*bounds)
    return _objects(list(numbers)) if len(numbers) <= _MAX_ELEMENTS else None


_RULES = {
    "Cast": lambda node, x: x if node.attr["DstT"].type in _EXACT else None,
    "AddV2": _elementwise(lambda a, b: a + b),
    "Add": _elementwise(lambda a, b: a + b),
    "Sub": _elementwise(lambda a, b: a - b),
    "Mul": _elementwise(_product),
    "Maximum": _elementwise(_one_of(max)),
    "Minimum": _elementwise(_one_of(min)),
    "Prod": _prod,
    "Range": _range,
    "FloorMod": _elementwise(_by_number(mod)),
    "FloorDiv": _elementwise(_by_number(floordiv)),
}
