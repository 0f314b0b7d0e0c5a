"""Weights in NumPy's memory, which TensorFlow reads where it lies, are followed as they change."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

BLOCKED = (1, 2, 8, 8, 16)


def _rnn(cell):
    def run(x, kernel, recurrent):
        return bd.ops.rnn(x, kernel, recurrent, cell=cell).dst

    return run


def _rnn_gradient(x, kernel, recurrent):
    x = tf.convert_to_tensor(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = bd.ops.rnn(x, kernel, recurrent, cell="lstm", training=True).dst
    return tape.gradient(y, x)


# name -> (op of the activation and its weights, shape of the activation, shapes of the weights)
OPS = {
    "conv": (lambda x, w: bd.ops.conv(x, w, padding="SAME"), BLOCKED, [(3, 3, 32, 32)]),
    "conv_transpose": (
        lambda x, w: bd.ops.conv_transpose(x, w, strides=2, crops=[[1, 1], [1, 1]]),
        BLOCKED,
        [(4, 4, 32, 32)],
    ),
    "conv_volume": (
        lambda x, w: bd.ops.conv_volume(x, w, depth=2, padding="SAME"),
        (2, 2, 8, 8, 16),
        [(3, 3, 3, 32, 32)],
    ),
    "conv_depthwise": (
        lambda x, w, d: bd.ops.conv_depthwise(x, w, d, padding="SAME"),
        BLOCKED,
        [(1, 1, 32, 32), (3, 3, 1, 32)],
    ),
    "inner_product of few rows": (bd.ops.inner_product, (2, 32), [(32, 48)]),
    "inner_product of many rows": (bd.ops.inner_product, (24, 32), [(32, 48)]),
    "packed_matmul": (bd.ops.packed_matmul, (24, 32), [(32, 48)]),
    "vanilla": (_rnn("vanilla"), (2, 3, 16), [(16, 16), (16, 16)]),
    "lstm": (_rnn("lstm"), (1, 3, 16), [(16, 64), (16, 64)]),
    "gru": (_rnn("gru"), (8, 3, 16), [(16, 48), (16, 48)]),
    "rnn's gradient": (_rnn_gradient, (2, 3, 16), [(16, 64), (16, 64)]),
}


def aligned(array):
    """A copy at a boundary from which TensorFlow takes arrays without copying them."""
    memory = np.empty(array.nbytes + 64, np.uint8)
    begin = -memory.ctypes.data % 64
    copy = memory[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def from_dlpack(array):
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__())


def as_it_lies(array, take=tf.stop_gradient):
    """A tensor in the array's memory."""
    tensor = take(array)
    assert np.shares_memory(tensor._numpy(), array)
    return tensor


class Case:
    def __init__(self, name, integers):
        self.op, src, shapes = OPS[name]
        self.x = tf.constant(integers(*src) / 8)
        # Its kernels are not those of eager calls, so that these see one weight after the other.
        self.reference = tf.function(self.op)
        self.draw = lambda: [integers(*shape) / 16 for shape in shapes]
        self.arrays = [aligned(values) for values in self.draw()]

    def check(self, ours, weights):
        """`ours` against the op on weights that nobody has seen before."""
        expected = self.reference(self.x, *[tf.constant(np.array(w)) + 0 for w in weights])
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-4)

    def changes(self):
        """Changes the arrays in place: all values, one, each array for itself, in turn."""
        for i in range(9):
            if i % 3 == 2:
                array = self.arrays[i // 3 % len(self.arrays)]
                array[...] = array.max() - array
            elif i % 3 == 0:
                self.arrays[i // 3 % len(self.arrays)].flat[-1] += 1
            for _ in range(3):
                yield


@pytest.fixture(params=OPS)
def case(request, integers):
    return Case(request.param, integers)


def test_arrays(case):
    for _ in case.changes():
        case.check(case.op(case.x, *case.arrays), case.arrays)


@pytest.mark.parametrize("take", [tf.stop_gradient, from_dlpack])
def test_tensors_in_their_memory(case, take):
    tensors = [as_it_lies(array, take) for array in case.arrays]
    for _ in case.changes():
        case.check(case.op(case.x, *tensors), case.arrays)


def test_captured_tensors_in_their_memory(case):
    tensors = [as_it_lies(array) for array in case.arrays]
    function = tf.function(lambda: case.op(case.x, *tensors))
    for _ in case.changes():
        case.check(function(), case.arrays)


def test_constants_are_copies(case):
    first = [array.copy() for array in case.arrays]
    constants = [tf.constant(array) for array in case.arrays]
    for _ in case.changes():
        case.check(case.op(case.x, *constants), first)


def test_variables_that_take_their_memory(case):
    variables = [tf.Variable(array) for array in case.arrays]
    for variable, array in zip(variables, case.arrays, strict=True):
        variable.assign(as_it_lies(array))
    function = tf.function(lambda: case.op(case.x, *variables))
    for _ in case.changes():
        case.check(function(), [v.numpy() for v in variables])


def test_variables_that_are_updated(case):
    """In eager calls and in a function, between updates of every kind, each variable for itself."""
    variables = [tf.Variable(array) for array in case.arrays]
    function = tf.function(lambda: case.op(case.x, *variables))
    optimizer = tf.keras.optimizers.SGD(0.25)
    updates = [
        lambda v, values: v.assign(values),
        lambda v, values: v.assign_add(tf.ones_like(v) / 4),
        lambda v, values: v.assign_sub(tf.constant(values) / 4),
        lambda v, values: v.scatter_nd_update([[0]], values[None, 0]),
        lambda v, values: v.assign(aligned(values)),
        lambda v, values: optimizer.apply_gradients([(tf.ones_like(v), v)]),
    ]
    optimizer.build(variables)
    for update, at in itertools.product(updates, range(len(variables))):
        update(variables[at], case.draw()[at].astype(np.float32))
        for _ in range(3):
            case.check(function(), [v.numpy() for v in variables])
            case.check(case.op(case.x, *variables), [v.numpy() for v in variables])


@pytest.mark.parametrize("name", sorted(OPS.keys() - {"rnn's gradient"}))
@pytest.mark.parametrize("use_resource", [False, True])
def test_reference_variables_are_refused(name, use_resource):
    """Assigning one writes into the memory that a pack was made of; others take new memory."""
    function, shape, weights = OPS[name]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = [
            tf.compat.v1.Variable(tf.ones(one), use_resource=use_resource) for one in weights
        ]
        x = tf.ones(shape)
        if not use_resource:
            with pytest.raises(tf.errors.InvalidArgumentError, match="use_resource=True"):
                function(x, *variables)
            return
        y = function(x, *variables)
        changes = [variable.assign(variable / 64.0) for variable in variables]
        session.run(tf.compat.v1.global_variables_initializer())
        before = [session.run(y) for _ in range(3)][-1]
        session.run(changes)
        assert np.abs(session.run(y) - before).max() > 1e-2
