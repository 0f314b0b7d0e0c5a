"""Calls past TensorFlow's eager dispatch: when they are made, and that they change nothing."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python import tensorflow_private
from tf_blockdnn.python.targets.eager import eager_path
from tf_blockdnn.python.tensorflow_private import EagerFunctions, context, op_callbacks


@pytest.fixture
def network():
    kernel = tf.Variable(tf.random.stateless_normal([3, 3, 32, 32], [1, 7]) * 0.1)

    @tf.function(input_signature=[tf.TensorSpec([None, 9, 9, 32])])
    def function(x):
        y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
        return {"y": tf.nn.conv2d(y, kernel, 1, "SAME"), "double": y + y}

    function.kernel = kernel
    return function


def image(n=1, seed=3):
    return tf.random.stateless_normal([n, 9, 9, 32], [seed, 5])


class Counted:
    """Puts itself between a function and its eager path.

    `taken`: calls it has answered; `declined`: those that it has left to TensorFlow.
    """

    def __init__(self, fast):
        (call,) = fast.calls
        self._eager, self.taken, self.declined = call._eager, 0, 0
        call._eager = self

    def __call__(self, values):
        results = self._eager(values)
        self.taken += results is not NotImplemented
        self.declined += results is NotImplemented
        return results


def same(got, wanted):
    tf.nest.map_structure(np.testing.assert_array_equal, got, wanted)


def test_every_call_is_direct_and_the_same(network):
    fast = bd.optimize(network)
    calls = Counted(fast)
    for n in (1, 2, 1, 2):
        same(fast(image(n)), fast.concrete(image(n)))
    assert calls.taken == 4


@pytest.mark.parametrize("precision", ["int8", "bf16"])
def test_low_precision_networks_are_called_directly(network, precision):
    """Their weights lie in memory of float32, which a Bitcast reads as what they are."""
    calibration = [image()] if precision == "int8" else None
    fast = bd.optimize(
        network, precision=precision, calibration=calibration, options=bd.Options(strict=True)
    )
    assert "Bitcast" in {op.type for op in fast.concrete.graph.get_operations()}
    calls = Counted(fast)
    same(fast(image()), fast.concrete(image()))
    assert calls.taken == 1


def test_a_result_is_an_ordinary_tensor(network):
    fast = bd.optimize(network)
    fast(image())
    y = fast(image())["y"]
    kept = y.numpy().copy()
    assert y.device == fast.concrete(image())["y"].device
    for seed in range(3):
        fast(image(seed=seed))
    np.testing.assert_array_equal(y, kept)
    gone = weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None


def test_a_call_that_is_abandoned_holds_nothing_up(network):
    fast = bd.optimize(network)
    wanted = fast(image())
    for _ in range(3):
        fast(image())

    def fails(outputs):
        assert all(isinstance(output, tf.Tensor) for output in outputs)
        raise KeyboardInterrupt

    failing = eager_path(fast.concrete, fails)
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            failing((image(),))
    calls = Counted(fast)
    same(fast(image()), wanted)
    assert calls.taken == 1


def test_two_names_of_one_result(network):
    def twice(x):
        y = network(x)["y"]
        return {"b": y, "a": [y, y + 1.0], "x": x}

    fast = bd.optimize(tf.function(twice, input_signature=network.input_signature))
    calls = Counted(fast)
    for seed in range(4):
        same(fast(image(seed=seed)), fast.concrete(image(seed=seed)))
    assert calls.taken == 4


def test_arrays_and_variables_are_arguments_too(network):
    fast = bd.optimize(network)
    wanted, calls = fast(image()), Counted(fast)
    same(fast(image().numpy()), wanted)
    same(fast(tf.Variable(image())), wanted)
    assert calls.taken == 2


def test_only_arrays_that_have_to_be_converted_are_converted(network):
    fast = bd.optimize(network)
    plain = image(2).numpy()
    wanted, calls = fast(image(2)), Counted(fast)
    same(fast(plain), wanted)
    same(fast(x=plain), wanted)
    same(fast(plain[:0]), fast.concrete(image(2)[:0]))
    assert (calls.taken, calls.declined) == (3, 0)
    for other in (np.asfortranarray(plain), plain.astype(float), plain.tolist()):
        same(fast(other), wanted)
    assert (calls.taken, calls.declined) == (6, 3)
    with pytest.raises(TypeError, match=r"argument 0 must be float32 \(None, 9, 9, 32\), got fl"):
        fast(plain[0])


def test_a_result_does_not_change_with_the_array(network):
    fast = bd.optimize(tf.function(lambda x: (network(x), x), network.input_signature))
    array = image().numpy()
    kept, calls = array.copy(), Counted(fast)
    _, unchanged = fast(array)
    array[:] = 0
    np.testing.assert_array_equal(unchanged, kept)
    assert (calls.taken, calls.declined) == (1, 0)


def double_weights(fast):
    for variable in fast.trackables:
        variable.assign(variable * 2.0)


def test_a_new_value_of_a_variable_is_read(network):
    fast = bd.optimize(network, options=bd.Options(algorithm="direct"))
    before, calls = fast(image()), Counted(fast)
    double_weights(fast)
    np.testing.assert_allclose(fast(image())["y"], 4.0 * before["y"], rtol=1e-5)
    assert calls.taken == 1


def test_denormals_are_flushed_as_everywhere_in_tensorflow(network):
    network.kernel.assign(network.kernel * 1e-19)
    fast = bd.optimize(network)
    x = image() * 1e-19
    fast(x)
    calls = Counted(fast)
    same(fast(x), fast.concrete(x))
    assert calls.taken == 1


def test_what_fails_fails_with_tensorflows_message():
    def body(x):
        return tf.gather(tf.constant([1.0, 2.0]), x, name="pick")

    fast = bd.optimize(tf.function(body, input_signature=[tf.TensorSpec([1], tf.int32)]))
    (call,) = fast.calls
    call._eager = eager_path(fast.concrete, call._pack)
    np.testing.assert_array_equal(fast(tf.constant([1])), [2.0])
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match="indices"):
            fast(tf.constant([7]))


def test_tapes_and_tracing_take_tensorflows_way(network):
    fast = bd.optimize(network)
    wanted, calls = fast(image()), Counted(fast)
    with tf.GradientTape():
        same(fast(image()), wanted)
    same(tf.function(lambda x: fast(x))(image()), wanted)
    assert calls.taken == 0


def test_op_callbacks_see_the_call(network):
    fast = bd.optimize(network)
    wanted, calls, seen = fast(image()), Counted(fast), []

    def callback(op_type, inputs, attrs, outputs, op_name=None, graph=None):
        seen.append(op_type)

    op_callbacks.add_op_callback(callback)
    try:
        same(fast(image()), wanted)
    finally:
        op_callbacks.remove_op_callback(callback)
    assert calls.taken == 0 and seen


def test_queued_ops_are_waited_for(network):
    fast = bd.optimize(network, options=bd.Options(algorithm="direct"))
    before, calls = fast(image()), Counted(fast)
    with context.execution_mode(context.ASYNC):
        double_weights(fast)
        after = fast(image())["y"]
        np.testing.assert_allclose(after, 4.0 * before["y"], rtol=1e-5)
    assert calls.taken == 0


def test_many_threads_call_at_once(network, in_threads):
    fast = bd.optimize(network)
    wanted = [fast(image(1 + i % 3, i)) for i in range(6)]
    calls = Counted(fast)

    def run(i):
        for _ in range(20):
            same(fast(image(1 + i % 3, i)), wanted[i])

    in_threads(6, run)
    assert calls.taken > 100  # counted without a lock


def test_without_the_private_names_calls_go_on(network, monkeypatch):
    lacking = EagerFunctions("EagerTensor_Handle", {}, None)
    monkeypatch.setattr(tensorflow_private, "eager_functions", lambda: lacking)
    assert bd.info()["eager_path"] == "this TensorFlow has no EagerTensor_Handle"
    fast = bd.optimize(network)
    calls = Counted(fast)
    same(fast(image()), fast.concrete(image()))
    same(fast(image()), fast.concrete(image()))
    assert calls.taken == 0
