"""The rows of tables and patterns that are no formulas, each written as one, for the same test.

What is found at their ops is what the rewriter finds there: a table is as good as its rows.
"""

import numpy as np
from formulas import DRAWN, Draw
from tensorflow.core.framework.types_pb2 import DT_FLOAT

from tf_blockdnn.python.ops.records import BINARY, COMPARISONS
from tf_blockdnn.python.rewriter.followers import Followers
from tf_blockdnn.python.rewriter.patterns.movement import concat, cut, rows
from tf_blockdnn.python.rewriter.patterns.pixels import select, spread
from tf_blockdnn.python.rewriter.patterns.pixels.elementwise import functions
from tf_blockdnn.python.rewriter.patterns.planes import pad, reduce
from tf_blockdnn.python.rewriter.rules import PerChannel, Rule, look


def _row(name: str, formula, find, **kinds) -> Rule:
    formula.__name__ = name
    row = Rule(formula, None, like=None, **kinds)
    row.find = find
    return row


def _step(node, body, context):
    return next(iter(Followers(body).at_root(node.name)), None)


def _steps():
    """Each function of x, of x and a constant, of two tensors; comparisons as numbers."""

    def of_one(op):
        return lambda tf, x: getattr(tf, op)(x)

    def of_two(op, exchanged=False):
        def function(tf, x, y):
            made = getattr(tf, op)(*((y, x) if exchanged else (x, y)))
            return tf.Cast(made, DstT=DT_FLOAT) if BINARY_OF.get(op) in COMPARISONS else made

        return function

    for op in functions.OF_ONE:
        yield _row(op, of_one(op), _step)
    yield _row("BiasAdd", of_two("BiasAdd"), _step, y=PerChannel())
    for op in BINARY_OF:
        for exchanged in (False, True):
            name = f"{op}{' exchanged' if exchanged else ''}"
            yield _row(name, of_two(op, exchanged), _step)
            yield _row(f"{name}, a constant", of_two(op, exchanged), _step, y=PerChannel())


BINARY_OF = {op: name for name, op in BINARY.items() if op} | {"SquaredDifference": "sub"}


def _found(*patterns):
    def find(node, body, context):
        found = [look(pattern, node, body, context) for pattern in patterns]
        return next((one for one in found if one is not None), None)

    return find


def _moves():
    """What moves, reduces and joins pictures."""
    find = _found(reduce, rows, concat, cut, pad, spread, select)

    def reduced(op):
        return lambda tf, x, axes, keep_dims: getattr(tf, op)(x, axes, keep_dims=keep_dims)

    formulas = {
        **{op: reduced(op) for op in reduce.ROOTS},
        "Pad": lambda tf, x, paddings: tf.Pad(x, paddings),
        "PadV2": lambda tf, x, paddings, value: tf.PadV2(x, paddings, value),
        "MirrorPad": lambda tf, x, paddings, mode: tf.MirrorPad(x, paddings, mode=mode),
        "Slice": lambda tf, x, begin, size: tf.Slice(x, begin, size),
        "StridedSlice": lambda tf, x, begin, end, strides, begin_mask, end_mask: tf.StridedSlice(
            x, begin, end, strides, begin_mask=begin_mask, end_mask=end_mask
        ),
        "Roll": lambda tf, x, shift, axis: tf.Roll(x, shift, axis),
        "ReverseV2": lambda tf, x, axes: tf.ReverseV2(x, axes),
        "Tile": lambda tf, x, multiples: tf.Tile(x, multiples),
        "GatherV2": lambda tf, x, indices, axis: tf.GatherV2(x, indices, axis),
        "ConcatV2": lambda tf, x, y, axis: tf.ConcatV2(x, y, x, axis),
        "AddV2, spread": lambda tf, x, y: x + y,
        "Sub, spread": lambda tf, x, y: y - x,
        "RealDiv, spread": lambda tf, x, y: x / y,
        "SelectV2": lambda tf, x, y: tf.SelectV2(tf.Greater(x, y), x, y),
        "SelectV2 of a number": lambda tf, x, y: tf.SelectV2(tf.Less(y, x), 2.0, y),
    }
    for name, formula in formulas.items():
        parameters = set(formula.__code__.co_varnames[1 : formula.__code__.co_argcount])
        yield _row(name, formula, find, **dict.fromkeys(parameters - {"x", "y"}))


def _picture(d: Draw, given: dict) -> np.ndarray:
    return d.standard_normal([2, d.of(5, 6), d.of(1, 7), d.of(3, 16, 24)]).astype(np.float32)


def _operand(d: Draw, given: dict) -> np.ndarray:
    """As large as x, a value a sample and channel, or one that is broadcast in another way."""
    shape = given["x"].shape
    small = [*shape[:1], *[1] * (len(shape) - 2), *shape[1:][-1:]]
    return d.tensor(d.of(shape, shape, small, shape[1:]))


def _line(d: Draw, given: dict) -> np.ndarray:
    """A line or pixel of x, or as large as x."""
    shape = list(given["x"].shape)
    if axis := d.of(0, 1, 2, 3):
        shape[axis] = 1
    return d.standard_normal(shape).astype(np.float32)


def _ints(*shape_or_choices):
    return lambda d, given: np.array(d.of(*shape_or_choices), np.int32)


STEPS = {row.formula.__name__: row for row in _steps()}
MOVES = {row.formula.__name__: row for row in _moves()}
_OF_MOVES = {
    "x": _picture,
    "y": _line,
    "axes": _ints([1, 2], [-2, 1], [1], [-2], [3], [0, 1]),
    "axis": _ints(1, 2, -2, 3),
    "begin": lambda d, given: np.array([0, *d.integers(0, 3, 2), d.of(0, 0, 1)], np.int32),
    "begin_mask": lambda d, given: d.of(0, 9, 15),
    "end": lambda d, given: np.array([2, d.of(4, 5), d.of(1, -1, 7), d.of(3, 16)], np.int32),
    "end_mask": lambda d, given: d.of(9, 9, 13, 1),
    "indices": _ints([2, 0, 1], [*range(2, 0, -1)], [0, 1, 1, 2]),
    "keep_dims": lambda d, given: d.of(False, True),
    "mode": lambda d, given: d.of("REFLECT", "SYMMETRIC"),
    "multiples": lambda d, given: np.array([d.of(1, 2), d.of(1, 3), 2, d.of(1, 1, 2)], np.int32),
    "paddings": lambda d, given: np.array(
        [[0, 0], *d.integers(0, 2, (2, 2)), [0, d.of(0, 0, 0, 1)]], np.int32
    ),
    "shift": _ints(1, -2, 7),
    "size": lambda d, given: np.array([-1, *d.of([1, 1], [-1, 1]), d.of(-1, -1, 2)], np.int32),
    "strides": lambda d, given: np.array([1, d.of(1, 2), d.of(1, 3), 1], np.int32),
    "value": lambda d, given: np.array(d.of(0.0, -np.inf, 2.5), np.float32),
}
DRAWN |= {(name, key): _OF_MOVES[key] for name, row in MOVES.items() for key in row.parameters}
DRAWN |= {(name, "y"): _operand for name, row in STEPS.items() if "y" in row.tensors}
