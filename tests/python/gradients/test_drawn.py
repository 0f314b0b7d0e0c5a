"""Gradients of drawn calls: in a drawn direction they are the slope of the definition in float64.

The definitions are those that results are compared with, so that what is drawn there is
differentiated here, once and twice, eagerly and in graphs that know some sizes.
"""

import os
from dataclasses import replace

import numpy as np
import pytest
import tensorflow as tf
from call import BLOCK, Array, Draw, blocks, plain_channels
from definitions import OPS
from make_call import attrs_of, definitions, plain
from valid_calls import MAKERS

from tf_blockdnn.python import gradients
from tf_blockdnn.python.native import library

_EXAMPLES = int(os.environ.get("TF_BLOCKDNN_EXAMPLES", "630"))
_SEED = int(os.environ.get("TF_BLOCKDNN_SEED", "0"))
DRAWN = [op for op in MAKERS if op in OPS and op.removeprefix("Blockdnn") in gradients.OPS]
DRAWN.remove("BlockdnnRnn")  # test_rnn.py has Keras's own, which take less time


class Moved:
    """A call, and two directions in which its inputs of float32 move."""

    def __init__(self, call, d):
        self.call, self.values = call, [array.draw() for array in call.arrays()]
        self.attrs = {name: plain(value) for name, value in attrs_of(call).items()}
        self.places = [i for i, x in enumerate(self.values) if x.dtype == np.float32]
        self.arrays = [call.arrays()[i] for i in self.places]
        self.directions = [
            [replace(array, seed=d.seed(), values=None).draw() for array in self.arrays]
            for _ in range(2)
        ]

    def result(self, *inputs):
        """The first result of the op where its inputs of float32 are these."""
        inputs = dict(zip(self.places, inputs, strict=True))
        values = iter([inputs.get(i, x) for i, x in enumerate(self.values)])
        definition, arguments, inferred = definitions()[self.call.op], {}, set()
        for argument, group in zip(definition.input_arg, self.call.inputs, strict=True):
            taken = [next(values) for _ in group]
            is_list = argument.number_attr or argument.type_list_attr
            arguments[argument.name] = taken if is_list else taken[0]
            inferred |= {argument.number_attr, argument.type_attr, argument.type_list_attr}
        arguments |= {name: value for name, value in self.attrs.items() if name not in inferred}
        name = "".join(f"_{c.lower()}" if c.isupper() else c for c in self.call.op)[1:]
        results = getattr(library(), name)(**arguments)
        return results if tf.is_tensor(results) else results[0]

    def derivatives(self, dy, *inputs):
        """The gradients by the inputs, and those of their sum along the first direction."""
        with tf.GradientTape() as outer:
            outer.watch(inputs)
            with tf.GradientTape() as tape:
                tape.watch(inputs)
                y = self.result(*inputs)
            first = tape.gradient(y, inputs, output_gradients=dy)
            along = [
                tf.reduce_sum(dx * way)
                for dx, way in zip(first, self.directions[0], strict=True)
                if dx is not None
            ]
        if not along or "softsign" in str(self.attrs):  # of which TensorFlow has no second one
            return first, None
        return first, outer.gradient(along, inputs)

    def expected(self, *steps):
        """The definition, so far in each direction, and the inputs there."""
        values = [x.astype(np.float64) if x.dtype == np.float32 else x for x in self.values]
        for step, direction in zip(steps, self.directions, strict=False):
            for i, way in zip(self.places, direction, strict=True):
                values[i] += step * way
        return OPS[self.call.op](self.attrs, *values), values

    def loss(self, dy, *steps):
        """The sum of the result times `dy`. Beside a part the result is what `into` holds."""
        expected, values = self.expected(*steps)
        inside = plain_channels(dy, expected.layout, expected.channels, expected.part)
        total = np.sum(expected.values * inside, dtype=np.float64)
        if expected.part:
            first = expected.part[0] // BLOCK
            written = range(first, first + blocks(expected.channels))
            total += np.sum(np.delete(values[-1] * dy, written, 1))
        return total

    def assert_slope(self, derivatives, direction, wanted, near):
        terms = [
            np.ravel(dx * way)
            for dx, way in zip(derivatives, self.directions[direction], strict=True)
            if dx is not None
        ]
        terms = np.concatenate(terms or [np.zeros(1)]).astype(np.float64)
        assert abs(terms.sum() - wanted) < near + 1e-4 * np.linalg.norm(terms), self.call


def _tail(array, dx):
    blocked = array.channels is not None and len(array.shape) > 2
    channels = blocks(array.channels) * BLOCK if blocked else 0
    return plain_channels(dx, "nChw16c", channels)[..., array.channels :] if blocked else 0


def _open(moved, rank, d):
    """`derivatives` in a graph that has to know only the channels of the source."""
    shapes = [list(array.shape) for array in moved.arrays]
    for axis in range(len(shapes[0]) - 1):
        if axis != 1 or moved.arrays[0].channels is None:
            shapes[0][axis] = d.of(shapes[0][axis], None)
    specs = [tf.TensorSpec([None] * rank), *map(tf.TensorSpec, shapes)]
    return tf.function(moved.derivatives, input_signature=specs, autograph=False)


def check(call, d):
    """Compares the call's derivatives with differences; whether there was something to compare."""
    moved = Moved(call, d)
    xs = [tf.constant(moved.values[i]) for i in moved.places]
    if not xs or 0 in xs[0].shape[1:] or (y := moved.result(*xs)).dtype != tf.float32:
        return False
    expected, _ = moved.expected()
    total = call.attrs.get("dst_part") or [0, expected.channels if expected else BLOCK]
    is_blocked = expected and expected.layout == "nChw16c"
    dy = Array(tuple(y.shape), d.seed(), channels=total[1] if is_blocked else None).draw()
    derivatives = _open(moved, dy.ndim, d) if d.chance(0.1) else moved.derivatives
    first, second = derivatives(dy, *xs)
    for array, dx in zip(moved.arrays, first, strict=True):
        assert dx is None or dx.shape == array.shape, call
        assert dx is None or not np.any(_tail(array, dx) if y.shape.num_elements() else dx), call
    if expected is None or not dy.size or not np.isfinite(expected.values).all():
        return False
    # TensorFlow resizes in float32; since that is linear, steps may be long.
    exact = expected.values.dtype == np.float64
    near = 1e-5 * (1 + abs(moved.loss(dy)))
    step = 1e-6 if exact else 1.0
    wanted = (moved.loss(dy, step) - moved.loss(dy, -step)) / (2 * step)
    moved.assert_slope(first, 0, wanted, near)
    if second is None or d.chance(0.7):
        return True

    def curve(step):
        signs = [(a, b) for a in (-1, 1) for b in (-1, 1)]
        return sum(a * b * moved.loss(dy, a * step, b * step) for a, b in signs) / (2 * step) ** 2

    step = 1e-4 if exact else 1.0
    wanted, closer = curve(step), curve(step / 2)
    if abs(wanted - closer) < near:  # else there is a kink between
        moved.assert_slope(second, 1, closer, 2 * near)
    return True


@pytest.mark.each_isa
@pytest.mark.parametrize("op", DRAWN)
def test_slopes(op):
    count = _EXAMPLES // len(DRAWN)
    compared = sum(check(MAKERS[op](d := Draw(_SEED, index)), d) for index in range(count))
    assert compared
