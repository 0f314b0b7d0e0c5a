"""What the rewriter's tests share: small graphs in, structure and numbers out."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from graph_nodes import all_nodes

from tf_blockdnn import Options
from tf_blockdnn.python import native
from tf_blockdnn.python.rewriter import optimize_concrete
from tf_blockdnn.python.rewriter.verify import difference


class Result:
    """A rewritten function with its original."""

    def __init__(self, original, **options):
        self.original = original
        rewritten = optimize_concrete(original, **options)
        self.concrete, self.trackables = rewritten.concrete, rewritten.trackables
        self.report = rewritten.report
        self.before = ()  # arguments that come before those of `assert_same`

    @property
    def ops(self):
        """op -> count in the rewritten graph, functions in its library included."""
        return collections.Counter(node.op for node in self.nodes)

    @property
    def nodes(self):
        """All nodes of the rewritten graph, those in functions of its library included."""
        return all_nodes(self.concrete)

    @property
    def blockdnn(self):
        """ "Conv", "Eltwise", ... -> count in the rewritten graph."""
        ops = sorted(self.ops.items())
        return {op[8:]: n for op, n in ops if op.startswith("Blockdnn") and op != "BlockdnnRegion"}

    def types(self, op):
        """(source, result) of each of our ops of that kind: "f32", "u8" or "bf16"."""
        names = {1: "f32", 4: "u8", 14: "bf16"}
        attributes = [node.attr for node in self.nodes if node.op == f"Blockdnn{op}"]
        return [(names[attr["T"].type], names[attr["dst_type"].type]) for attr in attributes]

    def post_ops(self, op="BlockdnnConv"):
        """The post_ops attribute of each node of that op, without offsets, in order."""
        nodes = [n for n in self.nodes if n.op == op]
        texts = [node.attr["post_ops"].s.decode() for node in nodes]
        return [";".join(_without_operand(e) for e in text.split(";") if e) for text in texts]

    def reason(self, part):
        """The reason for the one declined node whose name contains `part`."""
        reasons = [reason for node, reason in self.report.declined if part in node]
        assert len(reasons) == 1, self.report.declined
        return reasons[0]

    def assert_same(self, *args, tolerance=1e-5, **kwargs):
        """Runs both on the arguments; structure, dtypes and numbers must agree."""
        args = (*self.before, *args)
        wanted, got = self.original(*args, **kwargs), self.concrete(*args, **kwargs)
        tf.nest.assert_same_structure(wanted, got)
        for old, new in zip(tf.nest.flatten(wanted), tf.nest.flatten(got), strict=True):
            if old is None:
                assert new is None
                continue
            assert old.dtype == new.dtype
            assert difference(old.numpy(), new.numpy()) <= tolerance


def _without_operand(entry):
    words = entry[entry.index("(") + 1 : -1].split(",")
    kept = [word for word in words if not word.startswith("#")]
    return f"{entry[: entry.index('(')]}({','.join(kept)})"


def _draw(shape):
    """Standard normal values of that shape; an open batch is 2, an open size some number."""
    sizes = [(2, 7, 6, 5, 4, 3)[i] if n is None else n for i, n in enumerate(shape)]
    return tf.constant(np.random.default_rng(11).standard_normal(sizes), tf.float32)


@pytest.fixture
def rewrite():
    """rewrite(function, spec, ..., tolerance=1e-5, **options) -> Result of that trace.

    A spec is a TensorSpec, or the shape of a float32 tensor. If all are shapes, both functions run
    on drawn tensors and have to agree within the tolerance; None compares nothing. What computes
    in a lower precision is compared by the tests of that.
    """

    def run(function, *specs, tolerance=1e-5, **options):
        signature = [s if isinstance(s, tf.TensorSpec) else tf.TensorSpec(s) for s in specs]
        concrete = tf.function(function, autograph=False).get_concrete_function(*signature)
        result = Result(concrete, **options)
        precise = tolerance is not None and result.report.precision is None
        if precise and signature and not any(isinstance(spec, tf.TensorSpec) for spec in specs):
            result.assert_same(*(_draw(spec.shape) for spec in signature), tolerance=tolerance)
        return result

    return run


@pytest.fixture
def attention(rewrite):
    """attention(function, *arrays, shapes=None, ops=1) -> Result with that many ops of attention.

    It has the `attr` of the first one, its `layouts`, and `reasons` of what is declined. Numbers
    are equal; a size of None is open.
    """

    def run(function, *arrays, shapes=None, ops=1):
        shapes = shapes or [array.shape for array in arrays]
        specs = [tf.TensorSpec(s, a.dtype) for s, a in zip(shapes, arrays, strict=True)]
        result = rewrite(function, *specs, options=Options(strict=True))
        result.reasons = " / ".join(reason for _, reason in result.report.declined)
        assert result.ops["BlockdnnAttention"] == ops, result.reasons
        assert not ops or not {"Softmax", "SelectV2", "Tile"} & {*result.ops}
        result.assert_same(*arrays)
        for node in [node for node in result.nodes if node.op == "BlockdnnAttention"][:1]:
            layouts = (node.attr[f"{name}_layout"].s.decode() for name in ("q", "k", "v", "dst"))
            result.attr, result.layouts = node.attr, " ".join(layouts)
        return result

    return run


@pytest.fixture
def conv(weights):
    """conv(x, channels, size=3, strides=1, padding="SAME"): by weights that it makes."""

    def convolve(x, channels, size=3, strides=1, padding="SAME"):
        return tf.nn.conv2d(x, weights(size, size, x.shape[-1], channels), strides, padding)

    return convolve


@pytest.fixture
def rewrite_beside(rewrite, weights):
    """`rewrite` beside a product of ours: what has nothing to convert would not be touched."""
    matrix = weights(32, 32)

    def run(function, *specs, **options):
        both = lambda rows, *args: (rows @ matrix, function(*args))  # noqa: E731
        result = rewrite(both, [2, 32], *specs, **options)
        assert result.blockdnn["InnerProduct"] >= 1, result.report.summary()
        result.before = (tf.ones([2, 32]),)
        return result

    return run


@pytest.fixture
def on_isa(monkeypatch):
    """on_isa(isa): the rewriter takes this CPU for one of that ISA."""
    return lambda isa: monkeypatch.setattr(native, "active_isa", lambda: isa)


@pytest.fixture
def result_of():
    """result_of(function, *args, **kwargs) -> Result of that trace.

    Of a concrete function: result_of(function, **options).
    """

    def run(function, *args, **kwargs):
        if isinstance(function, tf.types.experimental.ConcreteFunction):
            return Result(function, **kwargs)
        return Result(function.get_concrete_function(*args, **kwargs))

    return run


@pytest.fixture
def of_keras(result_of, image):
    """of_keras(model, *sizes) -> Result of a Keras model with drawn weights; numbers are equal.

    The sizes, of one sample, stand for open ones.
    """

    def run(model, *sizes):
        rng = np.random.default_rng(3)
        for weight in model.weights:
            low = 0.5 if "variance" in weight.path else -0.3
            weight.assign(rng.uniform(low, low + 0.6, weight.shape))
        function = tf.function(lambda x: model(x, training=False), autograph=False)
        concrete = function.get_concrete_function(tf.TensorSpec(model.input_shape))
        result = result_of(concrete, options=Options(strict=True))
        result.assert_same(image(2, *(sizes or model.input_shape[1:])))
        return result

    return run
