"""One case of mixed graphs: a graph is built, rewritten, and both are run and compared."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pathlib
import tempfile
from types import SimpleNamespace

import numpy as np
import tensorflow as tf
from mixed_graphs import MixedBuilder

from tf_blockdnn.python.rewriter import Options, optimize_concrete
from tf_blockdnn.python.rewriter.verify import difference

_TOLERANCE = 5e-5


def _inputs(shape, batch, rng):
    return (
        tf.constant(rng.standard_normal([batch, *shape]), tf.float32),
        tf.constant(rng.integers(0, 6, [batch, 3])),
        tf.constant(bool(rng.integers(2))),
        tf.constant(["ab" * int(n) for n in rng.integers(0, 4, batch)]),
    )


def _effects(builder, function, inputs):
    """What the function returns, and what it leaves behind."""
    builder.log.assign(1)
    builder.state.assign([0.5])
    builder.printed.write_text("")
    outputs = [output.numpy() for output in function(*inputs)]
    return outputs, (int(builder.log), builder.state.numpy().tolist(), builder.printed.read_text())


def build(seed, index, folder):
    """The graph of that number and what was drawn for it."""
    rng = np.random.default_rng([seed, index])
    builder = MixedBuilder(lambda count: int(rng.integers(count)), folder / "printed.txt")
    shape = [int(n) for n in (rng.integers(4, 7), rng.integers(4, 7), rng.choice([3, 16, 20]))]
    specs = [
        tf.TensorSpec([None, *shape]),
        tf.TensorSpec([None, 3], tf.int64),
        tf.TensorSpec([], tf.bool),
        tf.TensorSpec([None], tf.string),
    ]
    function = tf.function(builder.build_mixed, autograph=False).get_concrete_function(*specs)
    return SimpleNamespace(builder=builder, function=function, shape=shape, rng=rng)


def check(seed, index, folder):
    """(nodes converted, what is wrong or None)."""
    case = build(seed, index, folder)
    rewritten = optimize_concrete(case.function, options=Options(strict=True))
    inputs = _inputs(case.shape, 1 + int(case.rng.integers(3)), case.rng)
    wanted, old_effects = _effects(case.builder, case.function, inputs)
    got, new_effects = _effects(case.builder, rewritten.concrete, inputs)
    converted = len(rewritten.report.converted)
    if old_effects != new_effects:
        return converted, f"effects {new_effects}, not {old_effects}"
    for i, (old, new) in enumerate(zip(wanted, got, strict=True)):
        if old.dtype != new.dtype or old.shape != new.shape:
            return converted, f"output {i}: {new.dtype}{new.shape}, not {old.dtype}{old.shape}"
        error = difference(old, new)
        if not error <= _TOLERANCE:
            return converted, f"output {i}: off by {error}"
    return converted, None


def run(case):
    """(nodes converted, finding or None) of (seed, index)."""
    if case is None:
        # TensorFlow's own rewriting takes max(x + x, x) for a LeakyRelu.
        tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        return tf.constant(0)
    with tempfile.TemporaryDirectory() as folder:
        try:
            return check(*case, pathlib.Path(folder))
        except Exception as error:
            return 0, f"{type(error).__name__}: {str(error)[:500]}"
