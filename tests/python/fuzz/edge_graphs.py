"""Graphs around each pattern of the rewriter, with constants at their edges and formulas spoilt.

A formula is a function of TensorFlow's ops, called three times with the same drawn numbers: eagerly
in float32, which says what is right; eagerly in float64, which says how far rounding goes; and
traced. A plain case is the formula as people write it, which the rewriter has to convert. In others
constants are edges, or an ulp or 1e-4 beside what they should be; they have other ranks and are
broadcast along other axes; one op is another; and whatever is made of it, the numbers are
TensorFlow's.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import functools
import inspect
import re

import numpy as np
import tensorflow as tf
from formulas import EDGES, RULES, SIBLINGS, Draw, Run, arguments
from tables import MOVES, STEPS

from tf_blockdnn.python.rewriter import Options, optimize_concrete
from tf_blockdnn.python.rewriter.patterns.movement import concat, cut, rows
from tf_blockdnn.python.rewriter.patterns.pixels import fake_quantize, select, spread
from tf_blockdnn.python.rewriter.patterns.pixels.elementwise import affine, functions
from tf_blockdnn.python.rewriter.patterns.planes import pad, reduce


class Maker:
    """Makes one formula's graph: `m.Op(..)` is an op of TensorFlow, or at one place a sibling.

    Args:
        seed: of the choices.
        kind: the data type.
        plain: whether all is as it should be. Else numbers are beside what they should be, or one
            op is a sibling, or all numbers, weights and settings are drawn.
        size: of the tensor on which the formula works.
    """

    def __init__(self, seed, kind, plain, size):
        self.draw, self.kind, self.plain, self.size = Draw(*seed), kind, plain, size
        self.mode = "plain" if plain else self.draw.of("number", "number", "op", "any")
        self._left = self.draw.integers(1, 6)  # ops until the one that is another
        # Constants of more axes than the tensor give them to the result.
        self.has_more_axes = self.mode == "any" and self.draw.of(0, 0, 1)

    def __getattr__(self, op):
        if not op[0].isupper():
            raise AttributeError(op)

        def apply(*args, **attributes):
            nonlocal op
            self._left -= self.mode == "op"
            if self.mode == "op" and self._left == 0 and SIBLINGS.get(op):
                op = self.draw.of(*SIBLINGS[op].split())
            function = getattr(tf.raw_ops, op)
            names = inspect.signature(function).parameters
            return function(**dict(zip(names, args, strict=False)), **attributes)

        return apply

    def constant(self, value):
        return tf.constant(np.float32(value), self.kind)

    def number(self, usual):
        """A constant of one element."""
        value, rank = np.float32(usual), 0
        if self.mode == "number" and self.draw.of(0, 1):
            moved = [value * np.float32(by) for by in (1.00002, 0.99998, 1.0001)]
            value = self.draw.of(np.nextafter(value, np.float32(np.inf)), *moved)
        elif self.mode == "any":
            value = self.draw.of(value, value, value, np.float32(self.draw.of(*EDGES)))
            rank = self.draw.of(0, 0, 0, 0, 0, 1, 2, 4, 5)
            rank = len(self.size) + 1 if self.has_more_axes else rank
        return self.constant(np.full([1] * rank, value))

    def weights(self, low=-2.0, high=2.0):
        """A constant that is broadcast to the tensor, one number a channel where it is plain."""
        *outer, channels = self.size
        shape = [channels]
        if self.mode == "any":
            ones = [1] * len(outer)
            shapes = [shape, shape, [1], [], [*ones, channels], [1, *ones, channels]]
            shapes += [[*ones, 1], [*outer, 1], [*ones[1:], channels]]
            shapes += [[size, *ones[at + 1 :], 1] for at, size in enumerate(outer)]
            shape = [1, *ones, channels] if self.has_more_axes else self.draw.of(*shapes)
        values = self.draw.uniform(low, high, shape).astype(np.float32)
        if self.mode == "any" and self.draw.of(0, 1):
            values.flat[0] = self.draw.of(*EDGES)
        return self.constant(values)

    def run(self):
        """Computes formulas of rules, one of them with another op or number."""
        spoilt = self.draw.integers(-4, 8) if self.mode in ("number", "op") else -1
        return Run(self.draw, self.kind, spoilt)

    def axis(self, axis, rank):
        return axis - self.draw.of(0, rank)


# ---- Formulas: (m, x) -> a tensor. The first word of each name is the pattern's module.


def _by_rule(name, **usual):
    """The formula of that rule; `usual` are the numbers that people give it."""

    def formula(m, x):
        rule, given = RULES[name], {}
        for key in rule.parameters[1:]:
            is_absent = rule.defaults.get(key) is not None and m.draw.of(0, 0, 1)
            value = m.number(usual[key]) if key in usual else m.weights()
            given[key] = None if is_absent else value
        return m.run().of(rule, {"x": x} | given).tensor

    return formula


def _drawn(*rules):
    """The formula of one of the rules, with arguments drawn as in its own test."""

    def formula(m, x):
        rule = m.draw.of(*rules)
        given = arguments(rule, m.draw, x=np.zeros(m.size))
        others = [name for name in rule.tensors if name != "x"]
        return m.run().of(rule, given | {"x": x} | {name: beside(m, x) for name in others}).tensor

    def beside(m, x):
        """A tensor as large as x, or one that is broadcast over it."""
        axes = m.draw.of([], [], [3], [1], [2], [1, 2])
        return m.Mean(x, axes, keep_dims=True) if axes else m.draw.of(m.Neg, m.Square)(x)

    return formula


def _after_pad(*rules):
    """The same of a picture with a Pad before it."""

    def formula(m, x):
        pads = [[0, 0], [1, 0], m.draw.of([0, 0], [0, 1]), [0, 0]]
        value = m.constant(m.draw.of(-np.inf, 0.0, -1e9, 0.5))
        x = m.draw.of(
            lambda: m.Pad(m.Relu(x), pads), lambda: m.Pad(x, pads), lambda: m.PadV2(x, pads, value)
        )()
        m.size = [m.size[0], m.size[1] + 1, m.size[2] + pads[2][1], m.size[3]]
        return _drawn(*rules)(m, x)

    return formula


_PARTS = {"sixth": 1 / 6, "six": 6.0}


def _affine(m, x):
    for _ in range(m.draw.of(1, 2, 3)):
        w = m.number(0.7) if m.draw.of(0, 1) else m.weights(0.3, 2.0)
        x = m.draw.of(
            lambda: m.Mul(x, w),  # noqa: B023
            lambda: m.AddV2(w, x),  # noqa: B023
            lambda: m.Sub(x, w),  # noqa: B023
            lambda: m.Sub(w, x),  # noqa: B023
            lambda: m.RealDiv(x, w),  # noqa: B023
        )()
    return x


def _squeeze_excite(m, x):
    channels = m.size[-1]
    down = m.constant(m.draw.uniform(-0.4, 0.4, (channels, 8)))
    up = m.constant(m.draw.uniform(-0.4, 0.4, (8, channels)))
    gate = m.Relu(m.AddV2(m.MatMul(m.Mean(x, [1, 2]), down), m.number(0.1)))
    gate = m.Sigmoid(m.MatMul(gate, up))
    return m.Mul(x, m.Reshape(gate, [-1, 1, 1, channels]))


def _explicit_depth_pool(m, x):
    """A depth pooling with a setting that depth_pool does not have."""
    n, h, w, c = m.size
    columns = m.Reshape(x, [1, n, h * w, c])
    pads = [0, 0, *m.draw.of([1, 1], [0, 1]), 0, 0, 0, 0]
    window = {"ksize": [1, 2, 1, 1], "strides": [1, m.draw.of(1, 2), 1, 1]}
    columns = m.MaxPool(columns, padding="EXPLICIT", explicit_paddings=pads, **window)
    return m.Reshape(columns, [-1, h, w, c])


def _counts(m, x):
    seen = m.Cast(m.Greater(x, m.number(0.3)), m.kind)
    return m.Sum(seen, [1, 2], keep_dims=m.draw.of(True, False))


def _keep_dims(m, x):
    return m.Reshape(m.Mean(x, [1, 2]), [-1, 1, 1, m.size[-1]])


def _cut(m, x):
    if m.mode != "any":
        return m.AddV2(x[..., 1:9], x[..., 7:15])
    return m.draw.of(
        lambda: x[..., -8:],
        lambda: x[..., ::2],
        lambda: x[..., 3],
        lambda: x[:, 1:-1],
        lambda: x[:, ::2, ::-1],
        lambda: x[:, None, ..., :4][:, 0],
        lambda: m.Slice(x, [0, 0, 1, 2], [-1, -1, -1, 5]),
        lambda: m.GatherV2(x, [3, 4, 5, 0], m.axis(3, 4), batch_dims=0),
        lambda: tf.gather(x, tf.zeros([m.size[0], 2], tf.int32), axis=1, batch_dims=1),
    )()


def _transposed(m, x):
    """A product with a setting that inner_product does not have, and without."""
    matrix = m.constant(m.draw.integers(-2, 3, (m.size[-1], 24)))
    if m.mode == "any":
        return m.MatMul(m.Transpose(x, [1, 0]), matrix, transpose_a=True)
    return m.MatMul(x, matrix)


def _einsum(m, x):
    n, t, c = m.size
    a, b = m.draw.integers(-2, 3, (3, c, 5)), m.draw.integers(-2, 3, (c, 6))
    return m.draw.of(
        lambda: tf.einsum("btc,ncd->btnd", x, m.constant(a)),
        lambda: tf.einsum("btc,cd->btd", x, m.constant(b)),
        lambda: tf.einsum("ncd,btc->bntd", m.constant(a), x),
        lambda: tf.einsum("btc,ncd->bntd", x, m.constant(a)),
        lambda: tf.linalg.matmul(x, m.constant(b)),
    )()


def _attention(m, x, first=()):
    q, k, v = tf.split(x, 3, -1)
    t = m.size[-2]
    scores = m.draw.of(
        lambda: m.BatchMatMulV2(m.Mul(q, m.number(0.3)), k, adj_y=True),
        lambda: m.Mul(m.BatchMatMulV2(q, k, adj_y=True), m.number(0.3)),
        lambda: m.RealDiv(m.BatchMatMulV2(q, k, adj_y=True), m.number(3.0)),
    )()
    changes = {
        "cap": lambda s: m.Mul(m.Tanh(m.RealDiv(s, m.number(2.0))), m.number(2.0)),
        "bias": lambda s: m.AddV2(s, m.constant(m.draw.uniform(-1, 1, m.draw.of([t], [t, t])))),
        "mask": lambda s: m.SelectV2(
            m.draw.uniform(0, 1, (t, t)) < 0.7, s, m.number(m.draw.of(-1e9, 0.5, -0.5, -np.inf))
        ),
        "number": lambda s: m.AddV2(s, m.number(m.draw.of(0.7, 0.9, 0.0))),
        "causal": lambda s: m.SelectV2(np.tri(t, dtype=bool), s, m.number(-1e9)),
        "scale": lambda s: m.Mul(s, m.number(1.3)),
        "heads": lambda s: m.draw.of(m.Mul, m.RealDiv)(
            s, m.constant(m.draw.uniform(0.5, 2.0, (m.size[1], 1, 1)))
        ),
    }
    names = ("cap", "bias", "mask") if m.mode == "plain" else ("heads", "cap", "bias", "mask")
    order = first or [name for name in names if m.draw.of(0, 1)]
    if m.mode == "any":
        order = [*first, *(m.draw.of(*changes) for _ in range(m.draw.of(1, 2, 3)))]
    for name in order:
        scores = changes[name](scores)
    weights = m.Softmax(scores)
    if len(scores.shape) > len(v.shape):  # by a constant of more axes
        return weights
    return m.BatchMatMulV2(weights, v)


_PICTURE, _ROWS, _TOKENS = "picture", "rows", "tokens"
# name -> (formula, what it works on, what the report says where it was converted)
FORMULAS = {
    "activations: swish": (_by_rule("swish", beta=1.5), _PICTURE, "swish"),
    "activations: mish": (_by_rule("mish"), _PICTURE, "mish"),
    "activations: hard sigmoid": (_by_rule("hard_sigmoid", **_PARTS), _PICTURE, "hard_sigmoid"),
    "activations: hard swish": (_by_rule("hard_swish", **_PARTS), _PICTURE, "hard_swish"),
    "activations: gelu": (_by_rule("gelu_erf"), _PICTURE, "gelu_erf"),
    "activations: gelu of rows": (_by_rule("gelu_erf"), _ROWS, "gelu_erf"),
    "activations: gelu by tanh": (_by_rule("gelu_tanh"), _PICTURE, "gelu_tanh"),
    "activations: leaky maximum": (_by_rule("leaky_relu", alpha=0.2), _PICTURE, "leaky_relu"),
    "activations: clip": (_by_rule("clip", low=-1.0, high=2.0), _PICTURE, "clip"),
    "activations: at least": (_by_rule("at_least", low=0.5), _PICTURE, "binary.max"),
    "activations: at most": (_by_rule("at_most", high=0.5), _PICTURE, "binary.min"),
    "activations: prelu": (_by_rule("prelu"), _PICTURE, "prelu"),
    "activations: prelu of minus": (_by_rule("prelu_of_minus"), _PICTURE, "prelu"),
    "affine": (_affine, _PICTURE, "Conv"),
    "affine: rows": (_affine, _ROWS, "InnerProduct"),
    "norms: layer": (_by_rule("layer_norm", epsilon=1e-3), _TOKENS, "LayerNorm"),
    "norms: layer of pictures": (_by_rule("layer_norm", epsilon=1e-3), _PICTURE, "LayerNorm"),
    "norms: rms": (_by_rule("rms_norm", epsilon=1e-3), _TOKENS, "LayerNorm"),
    "softmax": (_by_rule("softmax"), _ROWS, "Softmax"),
    "squeeze_excite": (_squeeze_excite, _PICTURE, "SqueezeExcite"),
    "depth_pool: explicit": (_explicit_depth_pool, _PICTURE, "Conv"),
    "reduce: counts": (_counts, _PICTURE, "Sum"),
    "reduce: global, with dimensions": (_keep_dims, _PICTURE, "GlobalPool"),
    "cut": (_cut, _PICTURE, "Concat"),
    "inner_product: transposed": (_transposed, _ROWS, "InnerProduct"),
    "inner_product: einsum": (_einsum, _TOKENS, "InnerProduct"),
    "attention": (_attention, "heads", "Attention"),
    "attention: a number": (
        functools.partial(_attention, first=("number", "mask")),
        "heads",
        "Attention",
    ),
}
# The same of formulas whose plain cases may stay: arguments that TensorFlow takes may decline.
_OF_RULES = {
    "conv_transpose": (_PICTURE, "Conv"),
    "convolution": (_PICTURE, "Conv"),
    "dense": (_PICTURE, "Conv"),
    "depth_pool": (_PICTURE, "Pool"),
    "dilated": (_PICTURE, "Conv"),
    "inner_product": (_ROWS, "InnerProduct"),
    "pool": (_PICTURE, "Pool"),
    "quantized": (_TOKENS, "InnerProduct"),
    "resize": (_PICTURE, "Resize"),
    "shuffle": (_PICTURE, "Shuffle|Transpose"),
    "upsample": (_PICTURE, "Resize"),
}
_OTHERS = "^(?!BlockdnnConv|BlockdnnReorder)"  # than stand around each picture
_OF_TABLES = {
    affine: "Conv",
    concat: _OTHERS,
    cut: _OTHERS,
    fake_quantize: "FakeQuant",
    functions: "eltwise|binary",
    pad: _OTHERS,
    reduce: _OTHERS,
    rows: _OTHERS,
    select: "binary",
    spread: "tensor",
}


def _module(owner) -> str:
    return owner.rpartition(".")[2]


DRAWN = {
    f"{_module(RULES[name].formula.__module__)}: {name}": (_drawn(RULES[name]), *rest)
    for name, rest in _OF_RULES.items()
}
DRAWN |= {
    f"{_module(table.__name__)}: rows": (
        _drawn(*(row for row in (MOVES | STEPS).values() if {*row.ROOTS} & {*table.ROOTS})),
        _PICTURE,
        mark,
    )
    for table, mark in _OF_TABLES.items()
}
_PADDED = {"pool": "Pool", "convolution": "Conv"}
DRAWN |= {
    f"{name}: padded": (_after_pad(RULES[name]), _PICTURE, mark) for name, mark in _PADDED.items()
}
FORMULAS |= DRAWN


# ---- Cases.


def _same(m, x):
    """A picture, convolved: its own pixels, maybe scaled, by weights that scale them back."""
    power = m.draw.of(0, 0, 70, -70) if m.mode == "any" else 0
    eye = np.zeros((3, 3, x.shape[3], x.shape[3]))
    eye[1, 1] = np.eye(x.shape[3]) * 2.0**power
    if power:
        x = x * m.constant(2.0**-power)
    return tf.nn.conv2d(x, m.constant(eye), 1, "SAME")


class Case:
    """A formula with drawn sizes; the same numbers make the same case."""

    def __init__(self, name, seed, index):
        self.formula, self.place, self.mark = FORMULAS[name]
        self.seed = (seed, index, sum(map(ord, name)))
        d = Draw(*self.seed)
        self.plain, channels = bool(d.of(0, 0, 1)), d.of(16, 20, 32)
        self.converts = self.plain and name not in DRAWN
        self.size = {
            "picture": [d.of(2, 3), d.of(4, 5, 7), d.of(4, 6, 7), channels],
            "rows": [d.of(3, 5), channels],
            "tokens": [d.of(1, 2), d.of(3, 5), channels],
            "heads": [d.of(1, 2), d.of(1, 3), d.of(4, 7), 3 * d.of(8, 16)],
        }[self.place]
        self.x = (3.0 * d.standard_normal(self.size)).astype(np.float32)
        self.x.flat[:6] = (0.0, -0.0, 1.0, -1.0, 3.0, -3.0)
        self.open = [d.of(0, 0, 0, 0 if self.converts else 1) for _ in self.size[:-1]] + [0]
        self.apart = self.plain or name in DRAWN  # what moves is not folded into what follows
        self.depth, self.goes_on = d.of(0, 0, 0, 0, 1, 2, 3), self.converts or bool(d.of(0, 1))
        self.goes_on |= name in DRAWN and bool(d.of(0, 1))

    def build(self, kind, x):
        m = Maker(self.seed, kind, self.plain, self.size)
        if self.place == "picture":
            x = _same(m, x)
        elif self.place == "rows":
            x = x @ m.constant(np.eye(self.size[-1]))
        y = self.formula(m, x)
        if tf.executing_eagerly():
            self.shape = y.shape
        if self.place != "picture" or not self.goes_on or len(self.shape) != 4 or not self.shape[3]:
            return y
        y.set_shape([None, None, None, self.shape[3]])  # as people know how many channels there are
        return _same(m, tf.abs(y) if self.apart else y)

    def nested(self, x, shape, depth):
        """The formula, in as many conditions or loops."""
        if depth == 0:
            return self.build(tf.float32, x)
        inner = functools.partial(self.nested, x, shape, depth - 1)
        if (depth + self.seed[1]) % 2:
            return tf.cond(tf.reduce_any(x < 1e38), inner, lambda: tf.zeros(shape))
        start = (tf.constant(0), tf.zeros(shape))
        any_size = (tf.TensorShape([]), tf.TensorShape([None] * len(shape)))
        return tf.while_loop(lambda i, _: i < 1, lambda i, _: (i + 1, inner()), start, any_size)[1]


def fault(got, wanted, exact):
    """What is wrong with `got`, or None.

    TensorFlow's own error is what it has in float32 beside float64. Where it overflows in one of
    them alone, nothing is right. Integers are exact.
    """
    if got.shape != wanted.shape:
        return f"shape {got.shape} for {wanted.shape}"
    with np.errstate(all="ignore"):
        exact = exact.astype(np.float32)
        known = np.isnan(wanted) == np.isnan(exact)
        known &= np.isinf(wanted) == np.isinf(exact)
        largest = np.max(np.abs(wanted), initial=1.0, where=np.abs(wanted) < 1e4)
        own, sizes = np.abs(wanted - exact), largest + np.abs(wanted)
        worst = np.max(own / sizes, initial=0.0, where=known & np.isfinite(own))
        allowed = (2e-6 + 8.0 * worst) * sizes + 32.0 * own
        if np.array_equal(wanted, np.round(exact)):  # counts, say
            allowed = 0.0
        right = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        right |= np.isfinite(wanted) & (np.abs(got - wanted) <= allowed)
    wrong = known & ~right
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.any() else None
    return at and f"{got[at]} for {wanted[at]} at {at}, {wrong.sum()} of {wrong.size}"


def check(name, seed, index):
    """(whether it was converted; None: it is no case; what is wrong or None)."""
    case = Case(name, seed, index)
    x = tf.constant(case.x)
    spec = tf.TensorSpec([None if n else s for n, s in zip(case.open, case.size, strict=True)])
    try:
        wanted = case.build(tf.float32, x).numpy()
        build = functools.partial(case.nested, shape=wanted.shape, depth=case.depth)
        # Eagerly TensorFlow sometimes takes groups of a convolution that graphs cannot have.
        original = tf.function(build, autograph=False).get_concrete_function(spec)
    except (ValueError, TypeError, tf.errors.OpError):
        if case.converts:
            raise
        return None, None
    try:
        exact = case.build(tf.float64, tf.cast(x, tf.float64)).numpy()
    except (ValueError, TypeError, tf.errors.OpError):  # of an op that float64 does not have
        exact = wanted
    if exact.shape != wanted.shape:  # With oneDNN it takes windows that fit nowhere.
        return None, None
    options = Options(algorithm="direct", strict=True)
    rewritten = optimize_concrete(original, options=options)
    report = rewritten.report
    converted = [f"{item.op}: {item.details}" for item in report.converted]
    converted += [f"{text}" for _, text in report.folded + report.joined]
    fired = any(re.search(case.mark, text) for text in converted)
    wrong = fault(rewritten.concrete(x).numpy(), wanted, exact)
    if case.converts and not fired:
        wrong = wrong or f"not converted: {converted}, {report.declined}"
    return fired, wrong


def run(case):
    """`check` of (name, seed, index), or what it raises."""
    if case is None:
        # TensorFlow's own rewriting takes max(x, 1.5 x) for a LeakyRelu.
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        return tf.constant(0)
    try:
        return check(*case)
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error)[:300]}"
