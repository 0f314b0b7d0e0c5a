"""Functions that run as one op, in the calling thread: the same values, memory and errors."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from resident import usual_growth

import tf_blockdnn as bd
from tf_blockdnn.python.native import library
from tf_blockdnn.python.targets.eager import eager_path


def in_line(concrete, *inputs):
    """Runs any function through the op, whatever it holds."""
    types = [output.dtype for output in concrete.outputs]
    flat = [*inputs, *concrete.captured_inputs]
    return library().blockdnn_region(flat, Tout=types, f=concrete.name)


# Elementwise ops that write into their operands' memory where nobody else needs it.
_OPS = [tf.add, tf.multiply, tf.subtract, lambda a, b: tf.nn.relu(a) + b, lambda a, b: tf.abs(a)]


@settings(max_examples=60)
@given(st.data())
def test_random_graphs_keep_what_is_read_again(data):
    steps = data.draw(
        st.lists(
            st.tuples(st.integers(0, 4), st.integers(0, 99), st.integers(0, 99)),
            min_size=1,
            max_size=12,
        )
    )
    returned = data.draw(st.lists(st.integers(0, 99), min_size=1, max_size=4))
    start = np.linspace(-1, 1, 24, dtype=np.float32).reshape(4, 6)
    variable = tf.Variable(start[::-1])

    def body(x):
        values = [x, variable.read_value(), tf.constant(start * 0.5)]
        for op, a, b in steps:
            values.append(_OPS[op](values[a % len(values)], values[b % len(values)]))
        return [values[i % len(values)] for i in returned]

    function = tf.function(body).get_concrete_function(tf.TensorSpec([4, 6]))
    x = tf.constant(start)
    wanted = [value.numpy() for value in body(x)]
    for _ in range(2):
        for value, got in zip(wanted, in_line(function, x), strict=True):
            np.testing.assert_array_equal(got, value)
    np.testing.assert_array_equal(x, start)
    np.testing.assert_array_equal(variable, start[::-1])


@pytest.fixture
def small_network():
    kernels = [tf.Variable(tf.random.stateless_normal([3, 3, 16, 16], [i, 7])) for i in range(3)]

    @tf.function(input_signature=[tf.TensorSpec([None, 9, 9, 16])])
    def function(x):
        for kernel in kernels:
            x = tf.nn.relu(tf.nn.conv2d(x, kernel * 0.1, 1, "SAME")) + x
        return tf.nn.softmax(tf.reduce_mean(x, [1, 2]))

    return function


def image(n, seed=3):
    return tf.random.stateless_normal([n, 9, 9, 16], [seed, 5])


def test_an_optimised_function_is_one_op(small_network):
    fast = bd.optimize(small_network)
    ops = {op.type for op in fast.concrete.graph.get_operations()}
    assert ops <= {"BlockdnnRegion", "ReadVariableOp", "Placeholder", "Identity", "NoOp"}
    for n in (1, 2, 5):  # dynamic sizes
        np.testing.assert_allclose(fast(image(n)), small_network(image(n)), atol=1e-6)
        np.testing.assert_allclose(fast(image(n)), fast.concrete(image(n)), atol=1e-7)


def test_a_new_value_of_a_variable_is_read():
    variable = tf.Variable([1.0, 2.0])
    function = tf.function(lambda x: x + variable).get_concrete_function(tf.TensorSpec([2]))
    np.testing.assert_array_equal(in_line(function, tf.zeros([2]))[0], [1, 2])
    variable.assign([3.0, 4.0])
    np.testing.assert_array_equal(in_line(function, tf.zeros([2]))[0], [3, 4])


def test_released_calls_leave_no_memory():
    kernel = tf.Variable(tf.random.normal([3, 3, 512, 512]))

    @tf.function(input_signature=[tf.TensorSpec([1, 8, 8, 512])])
    def function(x):
        return tf.nn.conv2d(x, kernel, 1, "SAME")

    x = tf.zeros([1, 8, 8, 512])
    packed = 4 * 16 * 512 * 512  # bytes of F(2x2), the smallest that a call may hold
    assert usual_growth(lambda: bd.optimize(function)(x), rounds=3) < packed


def test_inside_a_function_the_op_gives_the_same():
    inner = tf.function(lambda x: (x + 1.0, x * 2.0)).get_concrete_function(tf.TensorSpec([3]))
    outer = tf.function(lambda x: in_line(inner, x))
    np.testing.assert_array_equal(outer(tf.ones([3]))[1], [2, 2, 2])


@pytest.mark.parametrize(
    "body",
    [
        lambda x: tf.linalg.matmul(x, x),  # TensorFlow's remapper may fuse it
        lambda x: tf.while_loop(lambda i: i < 3.0, lambda i: [i + 1.0], [x[0, 0]])[0],
        lambda x: tf.random.uniform([2]) + x[0, 0],
    ],
    ids=["matmul", "loop", "random"],
)
def test_what_gains_from_the_executor_keeps_it(body):
    function = tf.function(body).get_concrete_function(tf.TensorSpec([2, 2]))
    assert eager_path(function, pack=list)([tf.ones([2, 2])]) is NotImplemented


def test_an_error_names_its_node():
    def body(x):
        return tf.reshape(x, [4, 2], name="into_pairs") + 1.0

    function = tf.function(body).get_concrete_function(tf.TensorSpec([None]))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"9 values.*node into_pairs"):
        in_line(function, tf.zeros([9]))
    np.testing.assert_array_equal(in_line(function, tf.zeros([8]))[0], np.ones([4, 2]))


def test_asynchronous_ops_are_refused():
    def body(x):
        return tf.while_loop(lambda i: i < 3.0, lambda i: [i + 1.0], [x])[0]

    function = tf.function(body).get_concrete_function(tf.TensorSpec([]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="is asynchronous"):
        in_line(function, tf.zeros([]))


def test_a_function_that_is_not_there():
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.NotFoundError), match="nowhere"):
        library().blockdnn_region([tf.zeros([1])], Tout=[tf.float32], f="nowhere")


def test_wrong_numbers_of_inputs_and_outputs():
    function = tf.function(lambda x: x + 1.0).get_concrete_function(tf.TensorSpec([2]))
    two = [tf.zeros([2])] * 2
    with pytest.raises(tf.errors.InvalidArgumentError, match="takes 1 .* got 2"):
        library().blockdnn_region(two, Tout=[tf.float32], f=function.name)
    with pytest.raises(tf.errors.InvalidArgumentError, match="returns 1 .* got 2"):
        library().blockdnn_region(two[:1], Tout=[tf.float32] * 2, f=function.name)
    with pytest.raises(tf.errors.InvalidArgumentError, match="argument 0 is float, got int32"):
        library().blockdnn_region([tf.zeros([2], tf.int32)], Tout=[tf.float32], f=function.name)
