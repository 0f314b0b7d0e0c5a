"""Loops over time steps whose body is drawn from the patterns of recurrent cells.

The cells are no formulas: gates are slices of one tensor, and a variable is read in each step. So
their patterns are computed as they stand, each spelling with TensorFlow's ops, in a loop as Keras
has it.
"""

import inspect

import numpy as np
import tensorflow as tf
from formulas import SIBLINGS, Draw

from tf_blockdnn.python.graph import Any, Binding, OneOf, Op
from tf_blockdnn.python.graph.match import Numbers, Scalar
from tf_blockdnn.python.options import Options
from tf_blockdnn.python.rewriter import optimize_concrete
from tf_blockdnn.python.rewriter.patterns.products.recurrent import CELLS, Gates, X

_GATES = {"lstm": 4, "vanilla": 1, "gru": 3}
# cell, its number -> the patterns of recurrent.py
LOOPS = {f"{cell[0]} {i}": cell for i, cell in enumerate(CELLS)}


class _Step:
    """A step of a cell: its patterns, computed with the tensors that stand for their operands."""

    def __init__(self, draw: Draw, units: int, spoilt: int, known: dict, tensors: dict):
        self.draw, self.units, self.left = draw, units, spoilt
        self.known, self.tensors, self.activations = known, tensors, {}

    def of(self, pattern):
        if pattern not in self.tensors:
            self.tensors[pattern] = self._compute(pattern)
        return self.tensors[pattern]

    def _compute(self, pattern):
        if isinstance(pattern, Any):
            value = self.known[pattern.name]
            return value.read_value() if isinstance(value, tf.Variable) else value
        if isinstance(pattern, Scalar):
            return tf.constant(pattern.value)
        if isinstance(pattern, Numbers):
            return pattern.values
        if isinstance(pattern, Binding):
            self.activations |= pattern.values
            return self.of(pattern.pattern)
        if isinstance(pattern, Gates):
            return self._gates(pattern)
        if isinstance(pattern, OneOf):
            ways = [way for way in pattern.patterns if self._agrees(way)]
            at = self.draw.integers(len(ways))
            try:
                return self.of(ways[at])
            except ValueError:  # a bias of another rank, say
                return self.of(ways[at - 1])
        return self._op(pattern)

    def _agrees(self, way) -> bool:
        """Whether each activation of that name is of one kind."""
        values = way.values.items() if isinstance(way, Binding) else ()
        return all(self.activations.get(name, kind) == kind for name, kind in values)

    def _op(self, pattern: Op):
        inputs, name = [self.of(arg) for arg in pattern.args], self.draw.of(*sorted(pattern.ops))
        self.left -= 1
        if self.left == 0:
            name = self.draw.of(*SIBLINGS.get(name, name).split())
        function, attributes = getattr(tf.raw_ops, name), dict(pattern.attributes)
        if "squeeze_dims" in attributes:
            attributes["axis"] = attributes.pop("squeeze_dims")
        names = inspect.signature(function).parameters
        outputs = function(**dict(zip(names, inputs, strict=False)), **attributes)
        return outputs[pattern.port] if isinstance(outputs, list) else outputs

    def _gates(self, gates: Gates):
        source, n, end = self.of(gates.source), gates.n, gates.last * self.units
        if gates.last == gates.k + 1 and self.draw.of(0, 1):
            if self.draw.of(0, 1):
                return tf.split(source, n, gates.rank - 1)[gates.k]
            return tf.split(source, [self.units] * n, gates.rank - 1)[gates.k]
        return source[..., gates.k * self.units : end if gates.last < n else None]


class Loop:
    """One cell over drawn steps: `fired`, and `fault`, what is wrong with the numbers."""

    def __init__(self, name: str, seed: int, spoil: bool):
        cell, _, self.patterns, bias = LOOPS[name]
        d = self.draw = Draw(seed, sum(map(ord, name)))
        self.seed, self.units, n = (seed, 1), d.of(1, 5, 9), _GATES[cell]
        self.shape = [d.of(1, 3), d.of(1, 4), d.of(2, 5)]
        self.spoilt = d.integers(1, 12) if spoil else 0
        width = n * self.units
        shapes = {"W": [self.shape[2], width], "U": [self.units, width]}
        rows = [2, width] if cell == "gru" and LOOPS[name][1] else [width]
        shapes |= {key: rows if key == "b" else [width] for key in bias}
        kind = d.of(tf.constant, tf.Variable)
        self.weights = {
            key: kind(d.uniform(-0.6, 0.6, shape).astype("f")) for key, shape in shapes.items()
        }
        x = d.standard_normal(self.shape).astype(np.float32)
        function = tf.function(self.run, autograph=False)
        concrete = function.get_concrete_function(tf.TensorSpec(self.shape))
        result = optimize_concrete(concrete, options=Options(strict=True))
        self.fired = result.report.count("BlockdnnRnn") == 1
        pairs = zip(result.concrete(tf.constant(x)), concrete(tf.constant(x)), strict=True)
        near = [np.allclose(got, wanted, rtol=1e-5, atol=1e-5) for got, wanted in pairs]
        self.fault = "" if all(near) else f"seed {seed}: other numbers"

    def run(self, x):
        """All outputs, and the last states."""
        batch, steps, _ = self.shape
        source = tf.TensorArray(tf.float32, steps).unstack(tf.transpose(x, [1, 0, 2]))
        outputs = tf.TensorArray(tf.float32, steps, element_shape=[batch, self.units])
        zeros = [tf.zeros([batch, self.units])] * len(self.patterns)

        def body(at, outputs, *states):
            known = self.weights | dict(zip("hc", states, strict=False))
            step = _Step(Draw(*self.seed), self.units, self.spoilt, known, {X: source.read(at)})
            new = [step.of(pattern) for pattern in self.patterns]
            return at + 1, outputs.write(at, new[0]), *new

        loop = tf.while_loop(lambda at, *_: at < steps, body, (0, outputs, *zeros))
        return tf.transpose(loop[1].stack(), [1, 0, 2]), *loop[2:]
