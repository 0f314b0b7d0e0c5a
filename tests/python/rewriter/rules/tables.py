"""The rows of tables and patterns that are no formulas, each written as one, for the same test.

What is found at their ops is what the rewriter finds there: a table is as good as its rows.
"""

import inspect
from dataclasses import replace

import numpy as np
import tensorflow as eager
from formulas import DRAWN, EDGES, Draw
from tensorflow.core.framework.types_pb2 import DT_FLOAT

from tf_blockdnn.python.graph.families import BATCH_NORMS
from tf_blockdnn.python.ops.records import BINARY, COMPARISONS
from tf_blockdnn.python.rewriter.followers import Followers
from tf_blockdnn.python.rewriter.passes.lift import lift_convolutions, lift_inner_products
from tf_blockdnn.python.rewriter.patterns.movement import concat, cut, rows
from tf_blockdnn.python.rewriter.patterns.pixels import (
    fake_quantize,
    select,
    spread,
    squeeze_excite,
)
from tf_blockdnn.python.rewriter.patterns.pixels.elementwise import functions
from tf_blockdnn.python.rewriter.patterns.planes import pad, reduce
from tf_blockdnn.python.rewriter.patterns.products import attention
from tf_blockdnn.python.rewriter.rules import OneOf, PerChannel, Rule, Window, look


def _row(name: str, formula, find, **kinds) -> Rule:
    """What `find` makes of a formula; x, y and z are tensors, what else has no kind is drawn."""
    formula.__name__ = name
    others = {*inspect.signature(formula).parameters} - {"tf", *"xyz"}
    row = Rule(formula, None, like=None, **(dict.fromkeys(others) | kinds))
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
            result = getattr(tf, op)(*((y, x) if exchanged else (x, y)))
            return tf.Cast(result, DstT=DT_FLOAT) if BINARY_OF.get(op) in COMPARISONS else result

        return function

    def batch_norm(op):
        return lambda tf, x, gamma, beta, mean, variance: getattr(tf, op)(
            x, gamma, beta, mean, variance, epsilon=1e-3, is_training=False
        )

    yield _row("LeakyRelu", lambda tf, x, alpha: tf.LeakyRelu(x, alpha=alpha), _step)
    for op in [op for op in functions.OF_ONE if op != "LeakyRelu"]:
        yield _row(op, of_one(op), _step)
    yield _row("BiasAdd", of_two("BiasAdd"), _step, y=PerChannel())
    yield _row("AddN", lambda tf, x, y, z: tf.AddN(x, y, z), _step)
    for op in sorted(BATCH_NORMS):
        yield _row(op, batch_norm(op), _step)
    for op in BINARY_OF:
        for exchanged in (False, True):
            name = f"{op}{' exchanged' if exchanged else ''}"
            yield _row(name, of_two(op, exchanged), _step)
            yield _row(f"{name}, a constant", of_two(op, exchanged), _step, y=PerChannel())


BINARY_OF = {op: name for name, op in BINARY.items() if op} | {"SquaredDifference": "sub"}


def _first_of(*patterns):
    def find(node, body, context):
        results = [look(pattern, node, body, context) for pattern in patterns]
        return next((result for result in results if result is not None), None)

    return find


def _moves():
    """What moves, reduces and joins pictures."""
    find = _first_of(reduce, rows, concat, cut, pad, spread, select)

    def reduced(op):
        return lambda tf, x, axes, keep_dims: getattr(tf, op)(x, axes, keep_dims=keep_dims)

    def spreading(op):
        return lambda tf, x, y: getattr(tf, op)(x, y)

    formulas = {
        **{op: reduced(op) for op in reduce.ROOTS},
        "Pad": lambda tf, x, paddings: tf.Pad(x, paddings),
        "PadV2": lambda tf, x, paddings, value: tf.PadV2(x, paddings, value),
        "MirrorPad": lambda tf, x, paddings, mode: tf.MirrorPad(x, paddings, mode=mode),
        "Slice": lambda tf, x, begin, size: tf.Slice(x, begin, size),
        "StridedSlice": lambda tf, x, begin, end, strides, begin_mask, end_mask: tf.StridedSlice(
            x, begin, end, strides, begin_mask=begin_mask, end_mask=end_mask
        ),
        "Reshape": lambda tf, x, shape: tf.Reshape(x, shape),
        "Transpose": lambda tf, x, order: tf.Transpose(x, order),
        "Roll": lambda tf, x, shift, axis: tf.Roll(x, shift, axis),
        "ReverseV2": lambda tf, x, axes: tf.ReverseV2(x, axes),
        "Tile": lambda tf, x, multiples: tf.Tile(x, multiples),
        "GatherV2": lambda tf, x, indices, axis: tf.GatherV2(x, indices, axis),
        "ConcatV2": lambda tf, x, y, axis: tf.ConcatV2(x, y, x, axis),
        **{f"{op}, spread": spreading(op) for op in spread.ROOTS},
        "Sub, spread the other way": lambda tf, x, y: y - x,
        "SelectV2": lambda tf, x, y: tf.SelectV2(tf.Greater(x, y), x, y),
        "SelectV2 by a constant": lambda tf, x, y, bound: tf.SelectV2(tf.Greater(x, bound), y, x),
        "SelectV2 of a number": lambda tf, x, y: tf.SelectV2(tf.Less(y, x), 2.0, y),
        "SelectV2 or 0": lambda tf, x, bound: tf.SelectV2(tf.GreaterEqual(x, bound), x, 0.0),
    }
    for name, formula in formulas.items():
        yield _row(name, formula, find)


def _grids():
    """What rounds to the numbers of a grid."""

    def rounded(op, options):
        bits = (np.int32(8),) if op.endswith("V3") else ()
        return lambda tf, x, low, high: getattr(tf, op)(x, low, high, *bits, **options)

    def by_attributes(options):
        return lambda tf, x: tf.FakeQuantWithMinMaxArgs(x, min=-2.0, max=1.5, **options)

    for op in fake_quantize.ROOTS:
        known = {} if op.startswith("Fake") else {"range_given": True}
        kinds = [{}, {"narrow_range": True}]
        kinds += [{"signed_input": False}] if known else []
        kinds += [] if op.endswith("V3") else [{"num_bits": 4}]
        for kind in kinds:
            name, options = " ".join((op, *kind)), known | kind
            by_range = not op.endswith("Args")
            formula = rounded(op, options) if by_range else by_attributes(options)
            yield _row(name, formula, _first_of(fake_quantize))


def _gates():
    """Squeeze-and-excitation, by products or 1x1 convolutions, which are planned before."""

    def by_products(tf, x, down, up, bias):
        inner = tf.Relu(tf.BiasAdd(tf.MatMul(tf.Mean(x, [1, 2]), down), bias))
        return tf.Sigmoid(tf.MatMul(inner, up))

    def by_convolutions(tf, x, down4, up4, bias):
        options = {"strides": [1, 1, 1, 1], "padding": "SAME"}
        pixel = tf.Conv2D(tf.Mean(x, [1, 2], keep_dims=True), down4, **options)
        return tf.Sigmoid(tf.Conv2D(tf.Relu(tf.BiasAdd(pixel, bias)), up4, **options))

    def find(node, body, context):
        return look(squeeze_excite, node, body, replace(context, followers=Followers(body)))

    for formula in (by_products, by_convolutions):
        row = _row(f"squeeze_excite {formula.__name__}", formula, find)
        row.ROOTS, row.before = squeeze_excite.ROOTS, (lift_convolutions, lift_inner_products)
        yield row


def _channel(d: Draw, known: dict) -> np.ndarray:
    """A number a channel, one of which may be an edge."""
    values = d.uniform(0.5, 2.0, known["x"].shape[-1]).astype(np.float32)
    values[0] = d.of(*values[:1], *values[:1], *EDGES)
    return values


def _factor(d: Draw, known: dict) -> np.ndarray:
    """Mostly a number, or one a channel, that may be far from 1."""
    usual = d.uniform(0.3, 2.0, d.of([], known["x"].shape[3])) * d.of(1, 1, 1, 2.0**70, 2.0**-70)
    usual = np.asarray(usual, np.float32)
    return d.of(usual, usual, usual, d.kind(PerChannel(), known))


def _matrix(transposed: bool, rank: int):
    def draw(d: Draw, known: dict) -> np.ndarray:
        shape = [known["x"].shape[-1], 8]
        matrix = d.uniform(-0.4, 0.4, shape[::-1] if transposed else shape).astype(np.float32)
        return matrix.reshape([1] * (rank - 2) + list(matrix.shape))

    return draw


def _picture(d: Draw, known: dict) -> np.ndarray:
    return d.normal([2, d.of(5, 6), d.of(1, 7), d.of(3, 16, 24)])


def _operand(d: Draw, known: dict) -> np.ndarray:
    """As large as x, a value a sample and channel, or one that is broadcast in another way."""
    shape = known["x"].shape
    small = [*shape[:1], *[1] * (len(shape) - 2), *shape[1:][-1:]]
    return d.tensor(d.of(shape, shape, small, shape[1:]))


def _line(d: Draw, known: dict) -> np.ndarray:
    """A line or pixel of x, or as large as x."""
    shape = list(known["x"].shape)
    if axis := d.of(0, 1, 2, 3):
        shape[axis] = 1
    return d.normal(shape)


def _ints(*shape_or_choices):
    return lambda d, known: np.array(d.of(*shape_or_choices), np.int32)


class Joined:
    """A formula of what several patterns convert; each of `roots` is an op of it."""

    hits = 0  # which only rules count

    def __init__(self, formula, *roots: str, **kinds):
        self.formula, self.ROOTS, self.kinds, self.defaults = formula, roots, kinds, {}
        self.parameters = [*inspect.signature(formula).parameters][1:]
        self.tensors = [name for name in self.parameters if name in "xyz"]


def affine_chain(tf, x, a, b, c):
    for w in (a, b, c)[: tf.draw.of(1, 2, 3)]:
        x = tf.either(x * w, w + x, x - w, w - x, x / w)
    return x


def squeezed(tf, x, down, up, bias):
    inner = tf.Relu(tf.BiasAdd(tf.MatMul(tf.Mean(x, [1, 2]), down), bias))
    gate = tf.Sigmoid(tf.MatMul(inner, up))
    return x * tf.Reshape(gate, [-1, 1, 1, x.shape[3]])


def explicit_depth_pool(tf, x, columns, pads, stride, result):
    """A depth pooling with a setting that the rule does not have."""
    window = {"ksize": [1, 2, 1, 1], "strides": [1, stride, 1, 1]}
    x = tf.Reshape(x, columns)
    x = tf.MaxPool(x, padding="EXPLICIT", explicit_paddings=[0, 0, *pads, 0, 0, 0, 0], **window)
    return tf.Reshape(x, result)


def counts(tf, x, bound, axes, keep_dims):
    return tf.Sum(tf.Cast(tf.Greater(x, bound), DstT=DT_FLOAT), axes, keep_dims=keep_dims)


def kept_axes(tf, x):
    return tf.Reshape(tf.Mean(x, [1, 2]), [-1, 1, 1, x.shape[3]])


def cuts(tf, x):
    return tf.either(
        tf.Slice(x, [0, 0, 0, 1], [-1, -1, -1, 2]) + tf.Slice(x, [0, 0, 0, 0], [-1, -1, -1, 2]),
        tf.call(lambda x: x[..., -2:], x),
        tf.call(lambda x: x[..., ::2], x),
        tf.call(lambda x: x[..., 2], x),
        tf.call(lambda x: x[:, ::2, ::-1], x),
        tf.call(lambda x: x[:, None, ..., :3][:, 0], x),
        tf.GatherV2(x, [2, 1, 0], np.int32(3), batch_dims=0),
        tf.GatherV2(x, [[0, 0], [0, 0]], np.int32(1), batch_dims=1),
    )


def transposed(tf, x, weights):
    """A product with a setting that the rule does not have, and without."""
    turned = tf.MatMul(tf.Transpose(x, [1, 0]), weights, transpose_a=True)
    return tf.either(turned, tf.MatMul(x, weights))


def einsum(tf, x, heads, matrix):
    return tf.either(
        tf.call(lambda x, w: eager.einsum("btc,ncd->btnd", x, w), x, heads),
        tf.call(lambda x, w: eager.einsum("ncd,btc->bntd", w, x), x, heads),
        tf.call(lambda x, w: eager.einsum("btc,cd->btd", x, w), x, matrix),
        tf.call(eager.linalg.matmul, x, matrix),
    )


def scores(tf, x, y, z, bias, mask, fill, factors, number):
    """Attention, with what happens to scores in its order, or in another."""
    product = tf.BatchMatMulV2(x, y, adj_y=True)
    scores = tf.either(tf.BatchMatMulV2(x * 0.3, y, adj_y=True), product * 0.3, product / 3.0)
    changes = {
        "heads": lambda s: tf.either(s * factors, s / factors),
        "cap": lambda s: tf.Tanh(s / 2.0) * 2.0,
        "bias": lambda s: s + bias,
        "mask": lambda s: tf.SelectV2(mask, s, fill),
        "causal": lambda s: tf.SelectV2(np.tri(x.shape[2], dtype=bool), s, -1e9),
        "number": lambda s: s + number,
        "scale": lambda s: s * 1.3,
    }
    usual = [name for name in [*changes][:4] if tf.draw.of(0, 1)]
    drawn = [tf.draw.of(*changes) for _ in range(tf.draw.of(1, 2, 3))]
    for name in tf.draw.of(usual, usual, drawn, ["number", "mask"]):
        scores = changes[name](scores)
    return tf.BatchMatMulV2(tf.Softmax(scores), z)


def padded_pool(tf, x, pads, value, ksize, strides, padding):
    """A pooling with a Pad before it."""
    x = tf.either(tf.PadV2(x, pads, value), tf.Pad(x, pads), tf.Pad(tf.Relu(x), pads))
    options = {"ksize": ksize, "strides": strides, "padding": padding}
    return tf.either(tf.MaxPool(x, **options), tf.AvgPool(x, **options))


def padded_convolution(tf, x, weights, pads, value, strides, padding):
    x = tf.either(tf.PadV2(x, pads, value), tf.Pad(x, pads))
    return tf.Conv2D(x, weights, strides=strides, padding=padding)


# "VALID" is what a Pad before it can become a part of.
_PADDED = {"pads": None, "value": None, "padding": OneOf(("VALID", "VALID", "VALID", "SAME"))}
JOINED = {
    joined.formula.__name__: joined
    for joined in (
        Joined(affine_chain, "AddV2", "Sub", "Mul", "RealDiv"),
        Joined(squeezed, "Sigmoid"),
        Joined(explicit_depth_pool, "MaxPool", stride=OneOf((1, 2))),
        Joined(counts, "Sum", "Greater"),
        Joined(kept_axes, "Mean"),
        Joined(cuts, "Slice", "StridedSlice", "GatherV2"),
        Joined(transposed, "MatMul"),
        Joined(einsum, "BatchMatMulV2", "Einsum"),
        Joined(scores, *attention.ROOTS),
        Joined(padded_pool, "MaxPool", "AvgPool", ksize=Window(), strides=Window(), **_PADDED),
        Joined(
            padded_convolution, "Conv2D", strides=OneOf(([1, 1, 1, 1], [1, 2, 2, 1])), **_PADDED
        ),
    )
}
STEPS = {row.formula.__name__: row for row in _steps()}
MOVES = {row.formula.__name__: row for row in (*_moves(), *_grids(), *_gates())}
_OF_MOVES = {
    "x": _picture,
    "y": _line,
    "axes": _ints([1, 2], [-2, 1], [1], [-2], [3], [0, 1]),
    "axis": _ints(1, 2, -2, 3),
    "bound": lambda d, known: d.kind(PerChannel(), known),
    "begin": lambda d, known: np.array([0, *d.integers(0, 3, 2), d.of(0, 0, 1)], np.int32),
    "begin_mask": lambda d, known: d.of(0, 9, 15),
    "end": lambda d, known: np.array([2, d.of(4, 5), d.of(1, -1, 7), d.of(3, 16)], np.int32),
    "end_mask": lambda d, known: d.of(9, 9, 13, 1),
    "indices": _ints([2, 0, 1], [*range(2, 0, -1)], [0, 1, 1, 2]),
    "keep_dims": lambda d, known: d.of(False, True),
    "mode": lambda d, known: d.of("REFLECT", "SYMMETRIC"),
    "multiples": lambda d, known: np.array([d.of(1, 2), d.of(1, 3), 2, d.of(1, 1, 2)], np.int32),
    "paddings": lambda d, known: np.array(
        [[0, 0], *d.integers(0, 2, (2, 2)), [0, d.of(0, 0, 0, 1)]], np.int32
    ),
    "order": _ints(*[[0, 2, 1, 3]] * 5, [0, 1, 3, 2]),
    "shape": lambda d, known: np.array(
        [2, *d.of([1, -1], [-1, 1], [-1, 2]), known["x"].shape[-1]], np.int32
    ),
    "shift": _ints(1, -2, 7),
    "size": lambda d, known: np.array([-1, *d.of([1, 1], [-1, 1]), d.of(-1, -1, 2)], np.int32),
    "strides": lambda d, known: np.array([1, d.of(1, 2), d.of(1, 3), 1], np.int32),
    "value": lambda d, known: np.array(d.of(0.0, -np.inf, 2.5), np.float32),
    "low": lambda d, known: np.array(d.of(0.0, -1.0, -4.0, 0.5), np.float32),
    "high": lambda d, known: np.array(d.of(2.0, 1.5, 6.0, 0.0), np.float32),
    "down": _matrix(False, 2),
    "down4": _matrix(False, 4),
    "up": _matrix(True, 2),
    "up4": _matrix(True, 4),
    "bias": lambda d, known: d.standard_normal(8).astype(np.float32),
}
_OF_JOINED = {
    ("affine_chain", "x"): lambda d, known: d.normal([2, 5, 4, d.of(3, 16, 24)]),
    **{("affine_chain", key): _factor for key in "abc"},
    ("explicit_depth_pool", "columns"): lambda d, known: np.array(
        [1, known["x"].shape[0], -1, known["x"].shape[3]], np.int32
    ),
    ("explicit_depth_pool", "pads"): lambda d, known: d.of([1, 1], [0, 1]),
    ("explicit_depth_pool", "result"): lambda d, known: np.array(
        [-1, *known["x"].shape[1:]], np.int32
    ),
    ("transposed", "x"): lambda d, known: d.normal([d.of(1, 5), d.of(3, 16, 24)]),
    ("transposed", "weights"): lambda d, known: d.normal([known["x"].shape[1], 24]),
    ("einsum", "x"): lambda d, known: d.normal([d.of(1, 2), d.of(3, 5), d.of(3, 16)]),
    ("einsum", "heads"): lambda d, known: d.normal([3, known["x"].shape[2], 5]),
    ("einsum", "matrix"): lambda d, known: d.normal([known["x"].shape[2], 6]),
    ("scores", "x"): lambda d, known: d.standard_normal(
        [d.of(1, 2), d.of(1, 3), d.of(4, 7), d.of(8, 16)]
    ).astype(np.float32),
    ("scores", "bias"): lambda d, known: d.normal([known["x"].shape[2]] * d.of(1, 2)),
    ("scores", "mask"): lambda d, known: d.uniform(0, 1, [known["x"].shape[2]] * 2) < 0.7,
    ("scores", "fill"): lambda d, known: d.of(-1e9, 0.5, -0.5, -np.inf),
    ("scores", "factors"): lambda d, known: d.uniform(0.5, 2, [known["x"].shape[1], 1, 1]).astype(
        np.float32
    ),
    ("scores", "number"): lambda d, known: d.of(0.7, 0.9, 0.0),
    **{("scores", key): lambda d, known: d.normal(known["x"].shape) for key in "yz"},
    # As wide as windows: where they are wider oneDNN, which TensorFlow calls, is wrong or crashes.
    **{
        (f"padded_{op}", "x"): lambda d, known: d.normal([2, d.of(5, 6), 7, d.of(3, 16, 24)])
        for op in ("pool", "convolution")
    },
    ("padded_convolution", "weights"): lambda d, known: d.standard_normal(
        [d.of(1, 3), 3, known["x"].shape[3], d.of(3, 16)]
    ).astype(np.float32),
}
_OF_MOVES["pads"] = lambda d, known: np.array([[0, 0], [1, 0], [0, d.of(0, 1)], [0, 0]], np.int32)
DRAWN |= {
    (name, key): _OF_MOVES[key]
    for name, row in (MOVES | JOINED).items()
    for key in row.parameters
    if key in _OF_MOVES and row.kinds.get(key) is None
}
DRAWN |= _OF_JOINED
DRAWN["Transpose", "x"] = lambda d, known: d.standard_normal(
    [2, d.of(5, 6), d.of(1, 1, 1, 7), d.of(3, 16, 24)]
).astype(np.float32)
DRAWN["LeakyRelu", "alpha"] = lambda d, known: d.of(0.25, 0.25, 0.0, 0.5, 1.0, 1.5, -0.5)
DRAWN |= {(name, key): _operand for name, row in STEPS.items() for key in {*"yz"} & {*row.tensors}}
for _op in BATCH_NORMS:
    DRAWN |= {(_op, "x"): _picture}
    DRAWN |= {(_op, key): _channel for key in ("gamma", "beta", "mean", "variance")}
