"""Constant subgraphs: what counts as constant, and in which precision it is evaluated."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python.graph import Constants, GraphView, Ref, Variable


class _Reads:
    """A variable that counts how often it is read."""

    def __init__(self, value):
        self.value, self.count = np.asarray(value, np.float32), 0

    def variable(self):
        return Variable(self.value.shape, self)

    def __call__(self):
        self.count += 1
        return self.value


def _graph(build, values, fetches=("out",)):
    graph = tf.Graph()
    with graph.as_default():
        handles = [
            tf.compat.v1.placeholder(tf.resource, [], name=f"v{i}") for i in range(len(values))
        ]
        build(*handles)
    view = GraphView(graph.as_graph_def(), [Ref(name) for name in fetches])
    reads = {f"v{i}": _Reads(value) for i, value in enumerate(values)}
    variables = {name: read.variable() for name, read in reads.items()}
    return Constants(view, variables), reads


def _read(handle, name=None):
    return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32, name=name)


def test_arithmetic_is_done_in_float64():
    constants, _ = _graph(
        lambda v: tf.math.rsqrt(_read(v) + np.float32(1e-3), name="out"), [[3.0, 1e-8]]
    )
    value = constants.value(Ref("out"))
    expected = 1 / np.sqrt(np.float64(np.float32([3.0, 1e-8])) + np.float64(np.float32(1e-3)))
    assert value.dtype == np.float64
    np.testing.assert_allclose(value, expected, rtol=1e-15)


def test_moving_data_keeps_the_dtype():
    constants, _ = _graph(
        lambda v: tf.squeeze(tf.reshape(_read(v), [1, 1, 1, 4]), [0, 1, 2], name="out"),
        [np.arange(4)],
    )
    value = constants.value(Ref("out"))
    assert value.dtype == np.float32 and value.shape == (4,)


def test_a_placeholder_is_not_constant():
    def build():
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        tf.add(x, 1.0, name="out")

    constants, _ = _graph(build, [])
    assert not constants.is_constant(Ref("out"))
    assert constants.value(Ref("out")) is None


def test_an_assigned_variable_is_not_constant():
    def build(v):
        _read(v, "out")
        tf.raw_ops.AssignAddVariableOp(resource=v, value=tf.ones([2]))

    constants, reads = _graph(build, [[1.0, 2.0]])
    assert not constants.is_read_only("v0")
    assert constants.value(Ref("out")) is None
    assert reads["v0"].count == 0


def test_asking_does_not_read_and_values_are_read_once():
    constants, reads = _graph(lambda v: tf.negative(_read(v), name="out"), [[1.0, 2.0]])
    assert constants.is_constant(Ref("out"))
    assert reads["v0"].count == 0
    constants.value(Ref("out"))
    constants.value(Ref("out"))
    assert reads["v0"].count == 1


def test_scalar_does_not_read_large_variables():
    constants, reads = _graph(lambda v: tf.negative(_read(v), name="out"), [np.zeros(1000)])
    assert constants.scalar(Ref("out")) is None
    assert reads["v0"].count == 0


def test_scalar_of_a_variable_with_one_element():
    constants, _ = _graph(lambda v: tf.multiply(_read(v), 2.0, name="out"), [[1.5]])
    assert constants.scalar(Ref("out")) == 3.0


@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.gather(x, [[2, 0], [1, 1]]),
        lambda x: tf.gather(x, [1, 0, 1], axis=-1),
        lambda x: tf.gather(x, tf.zeros([0], tf.int64)),
        lambda x: tf.where([[True], [False], [True]], x, -1.0),
        lambda x: tf.where(tf.less([1, 5], 3), x, 7.0),
        lambda x: x + tf.fill([3, 2], 2.0) * tf.cast(tf.not_equal([0, 1], 1), tf.float32),
        lambda x: keras.ops.slice_update(x, [1, 0], tf.constant([[8.0]])),
        lambda x: keras.ops.slice_update(x, [5, -3], x[:2] * 9),
        lambda x: tf.gather(x, [[1], [0], [0]], batch_dims=1),
        lambda x: tf.split(x, [1, 2])[1] + tf.unstack(tf.reshape(x, [3, 2]))[2],
        lambda x: tf.matmul(x, x, transpose_b=True) + tf.pad(x, [[0, 0], [1, 0]]),
        lambda x: tf.einsum("ab,cb->ac", x, tf.nn.leaky_relu(x - 2.0, 0.5)),
        lambda x: tf.where(tf.logical_not(tf.greater([1, 5], 3)), x, tf.ones_like(x)),
        lambda x: (
            tf.roll(tf.reverse(x, [0]), [1, 4], [0, 1]) * tf.tile([[2.0], [3.0], [4.0]], [1, 2])
        ),
    ],
)
def test_values_are_those_of_tensorflow(build):
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    constants, _ = _graph(lambda v: tf.identity(build(_read(v)), name="out"), [x])
    np.testing.assert_array_equal(constants.value(Ref("out")), build(tf.constant(x)))


def test_what_raises_in_each_call_has_no_value():
    constants, _ = _graph(lambda v: tf.gather(_read(v), [0, 7], name="out"), [np.ones([2, 3])])
    assert constants.value(Ref("out")) is None
    assert not constants.is_constant(Ref("out"))


@pytest.mark.parametrize(
    "build",
    [
        lambda x: tf.cast(x * 3.0, tf.int32),
        lambda x: tf.less(x, 1.0) | tf.not_equal(x * 3.0, 1.0),
        lambda x: tf.sign(x * 3.0 - 1.0) + tf.round(x * 1.5),
        lambda x: tf.cast(tf.argmax(tf.stack([x * 3.0, tf.ones_like(x)])), tf.float32) * x,
        lambda x: tf.floor(x * 3.0) * 0.1 + tf.sort(x),
        lambda x: tf.random.stateless_uniform([1], [1, 2]) * x,
    ],
)
def test_what_jumps_is_computed_as_the_graph_computes_it(build):
    """Rounded as float64 it may lie on the other side of a bound: 1/3 * 3 is 1 in float32 alone."""
    x = np.float32([1 / 3])
    constants, _ = _graph(lambda v: tf.identity(build(_read(v)), name="out"), [x])
    np.testing.assert_array_equal(
        constants.value(Ref("out")).astype(np.float32), build(tf.constant(x)).numpy()
    )


@pytest.mark.parametrize("build", [lambda x: x + tf.random.uniform([1]), lambda x: x + _given(x)])
def test_what_is_another_in_each_call_is_no_constant(build):
    constants, _ = _graph(lambda v: tf.identity(build(_read(v)), name="out"), [[1 / 3]])
    assert not constants.is_constant(Ref("out"))


def _given(x):
    """A number that each call may replace."""
    return tf.compat.v1.placeholder_with_default(tf.ones_like(x), x.shape)
