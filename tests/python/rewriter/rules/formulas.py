"""The second reading of a rule: its formula, run on TensorFlow's ops with drawn arguments.

A `Case` draws the arguments by their kinds, from ordinary values and edges, runs the formula
eagerly in float32, which says what is right, and in float64, which says how far rounding goes,
traces it, and rewrites the trace: with this one rule, or with all passes, between neighbours that
are converted, in conditions and loops, and with parts that are used elsewhere. Spoilt, one op of
the formula is a sibling of it, or one number another, and whatever is made of it has to be right
all the same.
"""

import functools
import inspect
from dataclasses import fields, replace

import numpy as np
import tensorflow as tf
from graph_nodes import all_nodes

from tf_blockdnn import Options
from tf_blockdnn.python.graph.types import definition
from tf_blockdnn.python.ops.records import NHWC, Eltwise, eltwise
from tf_blockdnn.python.rewriter import optimize_concrete
from tf_blockdnn.python.rewriter.passes import order
from tf_blockdnn.python.rewriter.passes.layout.place_reorders import place_reorders
from tf_blockdnn.python.rewriter.patterns import PATTERNS
from tf_blockdnn.python.rewriter.patterns.pixels.elementwise import activations
from tf_blockdnn.python.rewriter.rules import (
    Idiom,
    Number,
    OneOf,
    PerChannel,
    Replacement,
    Rule,
    Size,
    Window,
)

EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.0, 1e-30, 3e38, np.inf, -np.inf)
# op -> others of its arguments
SIBLINGS = {
    **{"AddV2": "Sub Mul Maximum", "Sub": "AddV2 Mul", "Mul": "AddV2 Sub", "RealDiv": "Mul Sub"},
    **{"Maximum": "Minimum", "Minimum": "Maximum", "SquaredDifference": "Sub", "Pow": "Mul"},
    **{"Rsqrt": "Sqrt", "Sqrt": "Rsqrt Square", "Reciprocal": "Rsqrt", "Neg": "Abs"},
    **{"Square": "Abs", "Abs": "Square", "Relu": "Relu6 Abs Elu", "Relu6": "Relu"},
    **{"Sigmoid": "Tanh", "Tanh": "Sigmoid", "Erf": "Tanh Erfc", "Erfc": "Erf"},
    **{"Softplus": "Relu Softsign", "Softmax": "LogSoftmax"},
    **{"Mean": "Max Sum", "Max": "Mean Min", "Sum": "Mean"},
    **{"Greater": "Less GreaterEqual", "GreaterEqual": "LessEqual", "Less": "Greater LessEqual"},
    **{"LessEqual": "GreaterEqual", "MaxPool": "AvgPool", "AvgPool": "MaxPool"},
}


class Draw(np.random.Generator):
    """Draws; the same of the same seed."""

    def __init__(self, *seed: int):
        super().__init__(np.random.PCG64(seed))

    def of(self, *items):
        return items[self.integers(len(items))]

    def normal(self, shape) -> np.ndarray:
        """Numbers, at times whole ones: those of two tensors are equal at some places then.

        No zero is negative: a step that adds a zero takes its sign, which a quotient by it shows.
        """
        values = self.standard_normal(shape) * 3
        return (np.rint(values) + 0.0 if self.of(0, 0, 1) else values).astype(np.float32)

    def tensor(self, shape) -> np.ndarray:
        """Numbers of which one may be an edge."""
        values = self.normal(shape)
        if values.size:
            usual = (0.0, 1.0, 3.0, -3.0, 1e4)
            values.flat[self.integers(values.size)] = self.of(*usual, self.of(np.nan, np.inf))
        return values

    def number(self, low: float, high: float) -> float:
        values = [value for value in EDGES if low <= value <= high]
        drawn = self.standard_normal()
        return self.of(*values, *[drawn if low <= drawn <= high else values[0]] * len(values))

    def kind(self, kind, known: dict):
        """An argument of that kind, and of what it may not be."""
        if isinstance(kind, Number):
            number = self.number(kind.low, kind.high) if self.of(0, 1, 1, 1) else self.of(*EDGES)
            return np.full([1] * self.of(0, 0, 0, 1, 5), number, np.float32)
        if isinstance(kind, PerChannel):
            shape = known["x"].shape or [1]
            axis = self.of(*[1] * 6, self.integers(1, len(shape) + 1))  # from the end
            values = self.normal(shape[-axis])
            values[:1] = self.of(*values[:1], *values[:1], *EDGES)
            after = axis - 1 + self.of(0, 0, 0, 0, 1)
            return values.reshape([1] * self.of(0, 0, 0, 1, 4) + [-1] + [1] * after)
        if isinstance(kind, OneOf):
            return self.of(*kind.values)
        if isinstance(kind, Size):
            return self.of(1, 2, 2, 3, 4)
        if isinstance(kind, Window):
            return [1, self.of(1, 2, 3), self.of(1, 1, 2), 1]
        raise NotImplementedError(f"draw a {kind}")


def _matrix(d: Draw, known: dict) -> np.ndarray:
    shape = [known["x"].shape[-1] + d.of(0, 0, 0, 1), d.of(3, 16, 24)]
    return d.standard_normal(shape[::-1] if known["transpose_b"] else shape).astype(np.float32)


def _picture(d: Draw, known: dict) -> np.ndarray:
    """Larger than all windows, and finite: fast convolutions spread what is not."""
    return d.standard_normal([2, d.of(5, 6, 7), d.of(5, 8), d.of(3, 16, 24)]).astype(np.float32)


def _filter(d: Draw, known: dict) -> np.ndarray:
    """A filter, for some of the groups."""
    channels, groups = known["x"].shape[-1], d.of(1, 1, 1, 3)
    shape = [d.of(1, 2, 3), d.of(1, 3), channels // groups if channels % groups == 0 else 2]
    return _weights(d, *shape, d.of(1, 2, 3, 24))


def _weights(d: Draw, *shape: int) -> np.ndarray:
    """One of them may be infinite, which no zero of a padding may meet."""
    weights = d.standard_normal(shape).astype(np.float32)
    if d.of(0, 0, 0, 1):
        weights.flat[d.integers(weights.size)] = d.of(np.nan, np.inf, -np.inf)
    return weights


def _explicit(d: Draw, known: dict) -> list:
    sides = [int(n) for n in d.integers(0, 2, 4)]
    return [0, 0, *sides, 0, 0] if known["padding"] == "EXPLICIT" else []


def _size_before(d: Draw, known: dict) -> np.ndarray:
    """A size of which a convolution makes that of x, or some other size."""
    (n, *plane, _), window = known["x"].shape, known["weights"].shape[:2]
    for axis, stride in enumerate(known["strides"][1:3]):
        largest = plane[axis] * stride
        if known["padding"] == "VALID":
            largest += max(window[axis] - stride, 0)
        plane[axis] = largest - d.of(0, 0, 0, 1)
    return np.array([n, *plane, known["weights"].shape[2]], np.int32)


_PATTERNS = [
    pattern for patterns in (*PATTERNS.values(), activations.RULES) for pattern in patterns
]
RULES = {pattern.formula.__name__: pattern for pattern in _PATTERNS if isinstance(pattern, Rule)}
# What is drawn of a parameter in a way of its own: (formula, parameter) -> argument.
DRAWN = {
    ("depth_pool", "x"): lambda d, known: np.nan_to_num(d.tensor([6, 3, 2, 16])),
    ("depth_pool", "depth"): lambda d, known: d.of(
        *(n for n in (2, 3, 6) if known["x"].shape[0] % n == 0)
    ),
    ("depth_pool", "ksize"): lambda d, known: [1, d.of(1, 2), 1, 1],
    ("depth_pool", "strides"): lambda d, known: [1, d.of(1, 2), 1, 1],
    ("pool", "x"): _picture,
    ("pool", "explicit_paddings"): _explicit,
    ("convolution", "x"): _picture,
    ("convolution", "weights"): _filter,
    ("convolution", "strides"): lambda d, known: [1, *[d.of(1, 1, 2)] * 2, 1],
    ("convolution", "explicit_paddings"): _explicit,
    ("dilated", "x"): _picture,
    ("dilated", "weights"): _filter,
    ("dilated", "block"): lambda d, known: np.array([2, d.of(1, 2)], np.int32),
    ("dilated", "same_block"): lambda d, known: known["block"],
    ("dilated", "pads"): lambda d, known: d.integers(0, 4, (2, 2)).astype(np.int32),
    ("dilated", "crops"): lambda d, known: d.integers(0, 2, (2, 2)).astype(np.int32),
    ("conv_transpose", "x"): _picture,
    ("conv_transpose", "weights"): lambda d, known: _weights(
        d, d.of(1, 2, 3), d.of(1, 3), d.of(3, 24), known["x"].shape[-1]
    ),
    ("conv_transpose", "strides"): lambda d, known: [1, *[d.of(1, 2, 2)] * 2, 1],
    ("conv_transpose", "dilations"): lambda d, known: [1, 1, 1, 1],
    ("conv_transpose", "padding"): lambda d, known: d.of("SAME", "VALID"),
    ("conv_transpose", "explicit_paddings"): _explicit,
    ("conv_transpose", "sizes"): _size_before,
    ("resize", "x"): _picture,
    ("resize", "size"): lambda d, known: np.array([d.of(3, 6, 7), d.of(2, 4, 8)], np.int32),
    ("inner_product", "x"): lambda d, known: d.tensor([d.of(1, 5), d.of(3, 16, 24)]),
    ("inner_product", "transpose_b"): lambda d, known: d.of(False, True),
    ("inner_product", "weights"): _matrix,
    ("inner_product", "shape"): lambda d, known: np.array([-1, 1], np.int32),
    ("quantized", "x"): lambda d, known: np.nan_to_num(d.tensor([2, 3, d.of(5, 24)]), posinf=1.0),
    ("quantized", "axes"): lambda d, known: np.array([d.of(2, 2, -1, -1, -1, 1)], np.int32),
    ("quantized", "epsilon"): lambda d, known: np.array(d.of(*[1e-7] * 5, 1e-5), "f"),
    ("quantized", "kernel"): lambda d, known: d.integers(
        -127, 128, (known["x"].shape[-1], 7), np.int8
    ),
    ("quantized", "kernel_scale"): lambda d, known: d.uniform(0.5, 2, 7).astype("f"),
    ("quantized", "flat"): lambda d, known: np.array([-1, known["x"].shape[-1]], np.int32),
    ("quantized", "result"): lambda d, known: np.array([*known["x"].shape[:-1], 7], np.int32),
    ("dense", "x"): lambda d, known: d.tensor([2, 3, 4, d.of(3, 16, 24)]),
    ("dense", "weights"): _matrix,
    # An infinity stays one; some of the spellings take it from itself.
    ("prelu", "x"): lambda d, known: np.nan_to_num(d.tensor([2, 3, 24]), posinf=1.0),
    # A row with an infinity is no number as a whole.
    ("softmax", "x"): lambda d, known: np.nan_to_num(
        d.tensor(d.of([2, 3, 24], [4, 24])), posinf=1.0
    ),
}
_STRICT = Options(algorithm="direct", strict=True)
_ERRORS = (TypeError, ValueError, ZeroDivisionError, tf.errors.OpError)
# What has to be computed by an op of ours, for the rule to be of use.
BEHIND = {"softmax"}


class Value:
    """A tensor of a formula that is run, and the sites that it depends on; None if it is absent."""

    def __init__(self, run: "Run", tensor, sites: frozenset[int] = frozenset()):
        self.run, self.tensor, self.sites, self.error = run, tensor, sites, None

    @property
    def is_absent(self) -> bool:
        return self.tensor is None and self.error is None

    @property
    def shape(self):
        if self.error:
            raise self.error
        return self.tensor.shape

    def __neg__(self) -> "Value":
        return self.run.op("Neg", self)


def _operator(name: str, mirrored: bool):
    def apply(self, other) -> Value:
        a, b = (other, self) if mirrored else (self, other)
        absent = [isinstance(x, Value) and x.is_absent for x in (a, b)]
        if any(absent):
            return -b if absent[0] and name == "Sub" else b if absent[0] else a
        swaps = name in ("AddV2", "Mul") and self.run.draw.of(0, 1)
        return self.run.op(name, *((b, a) if swaps else (a, b)))

    return apply


for _name, _op in {"add": "AddV2", "sub": "Sub", "mul": "Mul", "truediv": "RealDiv"}.items():
    setattr(Value, f"__{_name}__", _operator(_op, False))
    setattr(Value, f"__r{_name}__", _operator(_op, True))


class Run:
    """The `tf` of a formula that computes; spelled alike whenever `draw` starts with one seed.

    Args:
        spoilt: the site, an op or number in their order, that is another.
    """

    def __init__(self, draw: Draw, dtype, spoilt: int = -1):
        self.draw, self.dtype, self.spoilt, self.moved = draw, dtype, spoilt, False
        self.is_far = draw.of(True, False)
        self.count, self.new = 0, set()  # sites so far, and those of the op that comes next
        self.values = []  # of all ops

    def __getattr__(self, name: str):
        return functools.partial(self.op, name)

    def _is_spoilt(self) -> bool:
        self.new.add(self.count)
        self.count += 1
        return self.count - 1 == self.spoilt

    def op(self, name: str, *args, **attributes) -> Value:
        if self._is_spoilt():
            name = self.draw.of(*SIBLINGS.get(name, name).split())
        for arg in args:
            if isinstance(arg, Value) and arg.error:
                return arg
        function = getattr(tf.raw_ops, name)
        names = list(inspect.signature(function).parameters)
        for key in [key for key in attributes if key not in names]:  # which the sibling has not
            del attributes[key]
        inputs = definition(name).input_arg
        if inputs[0].number_attr:  # many tensors, then one for each other input
            many = len(args) - len(inputs) + 1
            args = ([value.tensor for value in args[:many]], *args[many:])
        if attributes.get("DstT") == tf.float32:
            attributes["DstT"] = self.dtype
        sites = self.new.union(*(arg.sites for arg in args if isinstance(arg, Value)))
        inputs = dict(zip(names, map(self._input, args), strict=False))
        sites |= self.new  # with its numbers
        self.new = set()
        result = Value(self, None, frozenset(sites))
        try:
            outputs = function(**inputs, **attributes)
            result.tensor = outputs[0] if len(definition(name).output_arg) > 1 else outputs
        except (
            TypeError,
            ValueError,
            tf.errors.OpError,
        ) as error:  # perhaps of no way that is taken
            result.error = error
        self.values.append(result)
        return result

    def call(self, function, *args) -> Value:
        """Any function of tensors."""
        sites = frozenset().union(*(arg.sites for arg in args))
        return Value(self, function(*(arg.tensor for arg in args)), sites)

    def _input(self, value):
        if isinstance(value, Value):
            return value.tensor
        if isinstance(value, int | float):
            if self._is_spoilt():
                up = np.nextafter(np.float32(value), np.float32(np.inf))
                self.moved = self.is_far  # More than rounding: that is no such formula.
                value = value + (4e-6 * abs(value) or 1e-4) if self.moved else float(up)
            return tf.constant(value, self.dtype)
        if isinstance(value, list) and all(isinstance(n, int) for n in value):
            if self._is_spoilt():
                value = value[1:] + value[:1]
        return value

    def either(self, *ways):
        return self.draw.of(*ways)

    def viewed(self, x) -> Value:
        return x

    def axes(self, x, *axes: int) -> np.ndarray:
        rank = x.shape.rank
        moved = self._is_spoilt() and rank > 1
        numbers = [(a - moved) % rank - self.draw.of(0, rank) for a in axes]
        return np.array(numbers if len(numbers) > 1 else numbers[0], np.int32)

    def sizes(self, x, rank: int) -> list:
        if x.shape.rank != rank:
            raise ValueError("another rank")
        known, open_ = x.shape, tf.shape(x.tensor)
        return [open_[i] if known[i] is None else known[i] for i in range(rank)]

    def reshape(self, x, sizes) -> Value:
        return self.call(lambda x: tf.reshape(x, sizes), x)

    def of(self, rule, arguments: dict) -> Value:
        """The formula of these arguments, of which None is absent."""
        values = {}
        for key, value in arguments.items():
            if isinstance(value, np.ndarray):
                kind = self.dtype if value.dtype.kind == "f" else value.dtype
                value = tf.constant(value, kind)
            is_tensor = value is None or isinstance(value, tf.Tensor)
            values[key] = Value(self, value) if is_tensor else value
        result = rule.formula(self, **values)
        if result.error:
            raise result.error
        return result


def arguments(rule, d: Draw, **known) -> dict:
    """Drawn arguments of a rule, beside those that are known."""
    name = rule.formula.__name__
    for key in [key for key in rule.parameters if key not in known]:
        if rule.defaults.get(key) is not None and d.of(0, 1, 2, 3) == 0:
            # An absent one is its default where it is no operand.
            setting = isinstance(rule.kinds.get(key), OneOf | Size | Window)
            known[key] = rule.defaults[key] if setting else None
        elif (name, key) in DRAWN:
            known[key] = DRAWN[name, key](d, known)
        elif key in rule.kinds:
            known[key] = d.kind(rule.kinds[key], known)
        else:
            before = [d.of(1, 2, 3) for _ in range(d.of(0, 1, 2, 3, 3, 3, 3, 4))]
            known[key] = d.tensor([*before, d.of(1, 3, 16, 24)])
    return known


def _identity(x, power: int = 0):
    """x out of an op that is converted: by weights that scale back what it is scaled by."""
    if x.shape.rank not in (2, 4):
        return x
    eye = np.eye(x.shape[-1]) * 2.0**power
    x = x * tf.constant(2.0**-power, x.dtype) if power else x
    if x.shape.rank == 2:
        return x @ tf.constant(eye, x.dtype)
    weights = np.pad(eye[None, None], [(1, 1), (1, 1), (0, 0), (0, 0)])
    return tf.nn.conv2d(x, tf.constant(weights, x.dtype), 1, "SAME")


class Around:
    """What stands around a formula whose graph goes through all passes, drawn.

    Attributes:
        used: which part of the formula, or what it reads, is another result, or read or ordered
            outside; None: none.
    """

    def __init__(self, d: Draw):
        self.power, self.is_after = d.of(0, 0, 0, 70, -70), d.of(True, False)
        self.before = [d.of(True, True, False) for _ in range(3)]
        self.dtype = d.of(*[tf.float32] * 9, tf.float64)
        self.depth = d.of(0, 0, 0, 0, 1, 2, 3)
        self.used = d.of(None, None, d.integers(100))
        self.use = d.of("fetched", "read", "ordered")

    def run(self, formula, inputs: dict, dtype) -> list:
        """The results; `formula` gives what it computes of tensors of such a type."""
        before = {
            key: tf.cast(_identity(x, self.power) if is_before else x, dtype)
            for (key, x), is_before in zip(inputs.items(), self.before, strict=False)
        }
        run, result = formula(before)
        y, results = result.tensor, []
        parts = [v.tensor for v in run.values if not v.error and v.sites < result.sites]
        parts += before.values()
        if self.used is not None:
            part = parts[self.used % len(parts)]
            if self.use == "ordered":
                with tf.control_dependencies([part]):
                    y = tf.identity(y)
            elif part.dtype == dtype:
                results = [part if self.use == "fetched" else tf.nn.softsign(part)]
        if tf.executing_eagerly():
            self.channels = y.shape[3] if self.is_after and y.shape.rank == 4 else 0
        if self.channels:
            y.set_shape([None, None, None, self.channels])  # as people know how many there are
            y = _identity(tf.abs(tf.cast(y, inputs["x"].dtype)))
        return [tf.cast(y, inputs["x"].dtype) for y in (y, *results)]

    def nested(self, compute, x, shapes: list, depth: int) -> list:
        """What is computed, in as many conditions of x or loops."""
        if depth == 0:
            return compute()
        inner = functools.partial(self.nested, compute, x, shapes, depth - 1)
        zeros = [tf.zeros(shape) for shape in shapes]
        if (depth + self.is_after) % 2:
            return tf.cond(tf.reduce_any(x < 1e38), inner, lambda: zeros)
        opens = [tf.TensorShape([]), *(tf.TensorShape([None] * len(shape)) for shape in shapes)]
        start = [tf.constant(0), *zeros]
        return tf.while_loop(lambda i, *_: i < 1, lambda i, *_: [i + 1, *inner()], start, opens)[1:]


def _fault(got, wanted, exact, largest: float, whole: bool) -> str:
    """What is wrong with `got`; TensorFlow's own error is what it has in float32 beside float64.

    Where all passes run and it overflows in one of them alone, nothing is right.
    """
    if wanted.shape != got.shape:
        return f"shape {got.shape} for {wanted.shape}"
    with np.errstate(all="ignore"):
        exact = exact.astype(np.float32)
        known = (np.isnan(wanted) == np.isnan(exact)) & (np.isinf(wanted) == np.isinf(exact))
        error = np.nan_to_num(np.abs(wanted - exact))
        # Beside an infinity nothing is near: it is one, or wrong.
        sizes = largest + np.abs(np.where(np.isfinite(wanted), wanted, 0))
        worst = np.max(error / sizes, initial=0.0, where=known) if whole else 0.0
        allowed = (1e-5 + 8.0 * worst) * sizes + 32.0 * error
        right = (wanted == got) | np.isnan(wanted) & np.isnan(got)
        right |= np.abs(wanted - got) <= allowed
        right |= ~known & whole
    return "" if right.all() else f"{got[~right][0]} for {wanted[~right][0]}"


def _count(concrete, ops) -> int:
    return sum(node.op in ops for node in all_nodes(concrete))


class Case:
    """A formula with drawn arguments: `outcome` is what happened, `fault` what is wrong with it.

    Args:
        monkeypatch: lets this rule alone look; None: all passes run, and what stands around the
            formula is drawn.
    """

    def __init__(self, rule, seed: int, spoil: bool, monkeypatch=None):
        self.rule, self.seed, self.results = rule, seed, []
        d = Draw(seed)
        self.arguments = arguments(rule, d)
        self.around = None if monkeypatch else Around(d)
        self.outcome, self.fault = self._outcome(d, spoil, monkeypatch)

    def _run(self, tensors: dict, dtype, spoilt: int) -> tuple[Run, Value]:
        run = Run(Draw(self.seed, 1), dtype, spoilt)
        return run, run.of(self.rule, self.arguments | tensors)

    def _compute(self, tensors: dict, dtype, spoilt: int) -> list:
        formula = functools.partial(self._run, dtype=dtype, spoilt=spoilt)
        if self.around:
            return self.around.run(formula, tensors, dtype)
        return [formula(tensors)[1].tensor]

    def _outcome(self, d: Draw, spoil: bool, monkeypatch) -> tuple[str, str]:
        tensors = {key: self.arguments[key] for key in self.rule.tensors}
        behind = self.around is None and self.rule.formula.__name__ in BEHIND
        spoilt, moved, dtype = -1, False, tf.float32
        if self.around:  # Weights that are zero make NaN of what is infinite.
            tensors = {key: np.nan_to_num(x, posinf=1.0, neginf=-1.0) for key, x in tensors.items()}
            dtype = self.around.dtype
        known = {k: tf.constant(v) for k, v in tensors.items()}
        try:  # What is wanted, and how far rounding errors grow in it.
            if spoil:
                spoilt = d.of(*sorted(self._run(known, tf.float32, -1)[1].sites))
                moved = self.around is None and self._run(known, tf.float32, spoilt)[0].moved
            wanted = [y.numpy() for y in self._compute(known, dtype, spoilt)]
        except _ERRORS:
            return "unfit", ""
        try:
            wide = {k: tf.constant(v, tf.float64) for k, v in tensors.items()}
            exact = [y.numpy() for y in self._compute(wide, tf.float64, spoilt)]
        except _ERRORS:  # of an op that float64 does not have
            exact = wanted

        def build(*args):
            if behind:
                args = [tf.raw_ops.Neg(x=x, name="ours") for x in args]
            known = dict(zip(tensors, args, strict=True))
            compute = functools.partial(self._compute, known, dtype, spoilt)
            if self.around:
                shapes = [y.shape for y in wanted]
                return self.around.nested(compute, known["x"], shapes, self.around.depth)
            return compute()

        # Open sizes of two tensors may differ, so those are known.
        opens = len(tensors) == 1
        opened = [
            [None if opens and d.of(0, 1, 2) == 0 else n for n in x.shape] for x in tensors.values()
        ]
        specs = [
            tf.TensorSpec([*own[:-1], *x.shape[-1:]])
            for own, x in zip(opened, tensors.values(), strict=True)
        ]
        try:
            concrete = tf.function(build, autograph=False).get_concrete_function(*specs)
        except (ValueError, tf.errors.OpError):  # Eagerly TensorFlow sometimes takes more.
            if not self.around:
                raise
            return "unfit", ""
        if monkeypatch:
            passes = (*getattr(self.rule, "before", ()), self._apply, place_reorders)
            monkeypatch.setattr(order, "PASSES", passes)
        known = [-x if behind else x for x in tensors.values()]
        hits = self.rule.hits
        rewritten = optimize_concrete(concrete, options=_STRICT).concrete
        got = [y.numpy() for y in rewritten(*map(tf.constant, known))]
        if self.around:
            left = [_count(function, self.rule.ROOTS) for function in (concrete, rewritten)]
            fired = self.rule.hits > hits or left[1] < left[0]
        else:
            kept = [result for result in self.results if not isinstance(result, str)]
            fired = bool(kept)
        if not fired and not self.around:
            return (f"declined: {self.results[0]}", "") if self.results else ("missed", "")
        if moved:
            return "fired", "a number that is not the formula's"
        x = np.abs(tensors["x"])
        largest = max(np.max(x, initial=1, where=np.isfinite(x)), 1)
        faults = [
            _fault(*values, largest, bool(self.around))
            for values in zip(got, wanted, exact, strict=True)
        ]
        return "fired" if fired else "missed", next(filter(None, faults), "")

    def _apply(self, body, context) -> None:
        """The pass that lets this rule alone look at each node, the last ones first."""
        for node in reversed(body.view.topological()):
            if node.name == "ours" or node.name.startswith("ours_"):
                steps = (eltwise("linear", alpha=-1.0, beta=0.0),)
                channels = (body.shapes.shape(node.ref) or (1,))[-1]
                self._put(
                    Idiom(node.name, node.inputs[0], steps, frozenset({node.name})), channels, body
                )
        for node in reversed(body.view.topological()):
            if node.name in body.view and node.op in self.rule.ROOTS and node.payload is None:
                result = self.rule.find(node, body, context)
                self.results += [] if result is None else [result]
                if isinstance(result, Replacement):
                    if "layout" in {field.name for field in fields(result.payload)}:
                        plain = replace(result.payload, layout=NHWC)
                        result = replace(result, payload=plain)
                    result.put(body)
                elif isinstance(result, Idiom):
                    self._put(result, body.shapes.shape(result.src)[-1], body)

    @staticmethod
    def _put(idiom: Idiom, channels: int, body) -> None:
        payload = Eltwise(origin=idiom.root, channels=channels, steps=idiom.steps, layout=NHWC)
        Replacement(payload, idiom.inputs, idiom.root, idiom.nodes).put(body)
