"""`bd.enable` as programs that know nothing of it meet it: nothing changes but the time."""

import json
import logging

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from tensorflow.python.eager.polymorphic_function.concrete_function import ConcreteFunction

import tf_blockdnn as bd
from tf_blockdnn.python import enable as module

CALL_FLAT = ConcreteFunction._call_flat
AT_ONCE = {"seconds": 0, "min_gain": 0}
BOTH_KERAS = pytest.mark.parametrize("framework", [keras, tf_keras])


@pytest.fixture(autouse=True)
def _off_afterwards():
    yield
    bd.disable()
    assert ConcreteFunction._call_flat is CALL_FLAT


@pytest.fixture
def images(floats):
    return floats(8, 8, 8, 3)


@pytest.fixture
def network(weights):
    """A tf.function with a convolution that reads a variable."""
    kernel = weights(3, 3, 3, 16)

    @tf.function
    def network(x):
        return tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))

    network.kernel = kernel
    return network


def make_model(framework):
    layers = framework.layers
    return framework.Sequential(
        [
            framework.Input((8, 8, 3)),
            layers.Conv2D(16, 3, activation="relu"),
            layers.BatchNormalization(),
            layers.GlobalAveragePooling2D(),
            layers.Dense(4),
        ]
    )


def states() -> list[str]:
    return [one.state for one in bd.report().functions]


def reason() -> str:
    """Why the one function that is left was left."""
    (left,) = [one for one in bd.report().functions if one.state == "left"]
    return left.reason


def close(got, want) -> bool:
    return np.allclose(got, want, rtol=1e-4, atol=1e-5)


@BOTH_KERAS
def test_predict_follows_training_and_loading(framework, images, tmp_path):
    model = make_model(framework)
    file = tmp_path / ("model.weights.h5" if framework is keras else "checkpoint")
    model.save_weights(file)
    first = model.predict(images, verbose=0)
    model.compile("sgd", "mse")
    bd.enable(**AT_ONCE)
    assert close(model.predict(images, verbose=0), first)
    assert states() == ["optimized"]
    model.fit(images, np.ones((8, 4), np.float32), epochs=2, verbose=0)
    trained = model.predict(images, verbose=0)
    assert not close(trained, first)
    assert "left" in states(), "training"
    model.load_weights(file)
    assert close(model.predict(images, verbose=0), first)
    bd.disable()
    assert np.array_equal(model.predict(images, verbose=0), first)


@BOTH_KERAS
def test_a_loaded_saved_model(framework, images, tmp_path):
    model = make_model(framework)
    want = model(images).numpy()
    if framework is keras:
        model.export(tmp_path, verbose=False)
    else:
        model.save(tmp_path, save_format="tf")
    loaded = tf.saved_model.load(tmp_path)
    signature, call = loaded.signatures["serving_default"], getattr(loaded, "serve", loaded)
    with bd.enabled(**AT_ONCE):
        (got,) = signature(tf.constant(images)).values()
        assert close(got, want) and close(call(tf.constant(images)), want)
        assert states() == ["optimized", "optimized"]
    assert not any(hasattr(signature, name) for name in (module._MARK,))


def test_nested_functions_are_one(network, images):
    inner = network

    @tf.function
    def outer(x):
        return {"sum": tf.reduce_sum(inner(x)), "twice": [inner(x) * 2]}

    want = outer(images)
    with bd.enabled(**AT_ONCE):
        got = outer(images)
    assert states() == ["optimized"]
    assert isinstance(got, dict) and isinstance(got["twice"], list)
    assert close(got["sum"], want["sum"]) and close(got["twice"][0], want["twice"][0])


def test_a_function_is_optimised_once_its_calls_have_taken_long(network, images, monkeypatch):
    now = iter(range(10_000))
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(now))
    bd.enable(seconds=3, min_gain=0)
    for _ in range(4):
        network(images)
    assert states() == ["waiting"], "the first call does not count"
    network(images)
    assert states() == ["optimized"]


@pytest.mark.parametrize("min_gain, state", [(1e-9, "optimized"), (1e9, "left")])
def test_both_take_turns_until_the_faster_is_known(network, images, min_gain, state):
    want = network(images)
    bd.enable(seconds=0, min_gain=min_gain)
    for _ in range(2 * module._TURNS):
        assert states() in ([], ["tried"])
        assert close(network(images), want)
    assert states() == [state]
    (one,) = bd.report().functions
    assert one.original_ms > 0 and one.optimized_ms > 0
    assert one.reason == ("not faster" if state == "left" else "")
    assert close(network(images), want)


def test_a_tape_sees_the_original(network, images):
    bd.enable(**AT_ONCE)
    network(images)
    with tf.GradientTape() as tape:
        y = network(images)
    assert tape.gradient(y, network.kernel) is not None
    assert states() == ["optimized", "left"], "and so is the gradient"


def left_functions():
    kernel = tf.Variable(tf.ones((3, 3, 3, 4)))
    total = tf.Variable(0.0)

    def convolve(x):
        return tf.nn.conv2d(x, kernel, 1, "SAME")

    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(convolve(x) ** 2)
        return tape.gradient(loss, [kernel])[0]

    def assign(x):
        total.assign_add(1.0)
        return convolve(x)

    def show(x):
        tf.print("", end="")
        return convolve(x)

    def draw(x):
        return convolve(x + tf.random.normal(tf.shape(x)))

    return {
        "it computes gradients": tf.function(train),
        "it assigns variables": tf.function(assign),
        "(PrintV2) acts outside": tf.function(show),
        "(RandomStandardNormal) acts outside of it or draws": tf.function(draw),
        "XLA compiles it": tf.function(convolve, jit_compile=True),
        "nothing in it is converted": tf.function(lambda x: x + 1.0),
    }


@pytest.mark.parametrize("why", left_functions())
def test_what_is_left_says_why(why, images):
    function = left_functions()[why]
    tf.random.set_seed(1)
    bd.enable(**AT_ONCE)
    got = [function(images) for _ in range(2)]
    bd.disable()
    function = left_functions()[why]
    tf.random.set_seed(1)
    want = [function(images) for _ in range(2)]
    assert all(np.array_equal(one, other) for one, other in zip(got, want, strict=True))
    assert states() == ["left"] and why in reason()


def test_a_distribution_strategy(images):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        model = make_model(keras)
    want = model.predict(images, verbose=0)
    bd.enable(**AT_ONCE)
    assert np.array_equal(model.predict(images, verbose=0), want)
    assert "optimized" not in states()


def test_errors_of_the_program_are_unchanged(weights):
    kernel = weights(4, 4)

    @tf.function(input_signature=[tf.TensorSpec((None, 4)), tf.TensorSpec((), tf.int32)])
    def network(x, limit):
        tf.debugging.assert_less(tf.shape(x)[0], limit, "too many")
        return tf.matmul(x, kernel)

    def message(*arguments) -> tuple:
        with pytest.raises((tf.errors.InvalidArgumentError, TypeError, ValueError)) as caught:
            network(*arguments)
        return type(caught.value), str(caught.value), caught.value.__context__ is None

    calls = [(tf.ones((3, 4)), 2), (tf.ones((3, 5)), 9), (tf.ones((3, 4)),)]
    want = [message(*call) for call in calls]
    bd.enable(**AT_ONCE)
    network(tf.ones((1, 4)), 2)
    assert states() == ["optimized"]
    assert [message(*call) for call in calls] == want


def test_a_failure_of_ours_leaves_the_function(network, images, monkeypatch, caplog):
    want = network(images)
    bd.enable(**AT_ONCE)
    network(images)
    traced = next(iter(module._switch.marked)).__dict__[module._MARK]
    monkeypatch.setattr(type(traced._call.current), "run", lambda *_: 1 / 0)
    assert np.array_equal(network(images), want)
    assert states() == ["left"] and "ZeroDivisionError" in reason()
    assert [one.levelno for one in caplog.records] == [logging.WARNING]
    monkeypatch.setattr(module, "convert", lambda *_: 1 / 0)
    bd.enable(**AT_ONCE)
    assert np.array_equal(network(images), want)
    assert states() == ["left"] and "optimizing it failed: ZeroDivisionError" in reason()


def test_weights_that_change_at_every_call(network, images):
    bd.enable(**AT_ONCE)
    for step in range(8):
        network.kernel.assign(tf.fill((3, 3, 3, 16), float(step)))
        got = network(images)
    bd.disable()
    assert close(got, network(images))
    assert reason() == "its weights change almost as often as it is called"


def test_threads(network, images, in_threads):
    want = network(images)
    bd.enable(seconds=0)
    right = in_threads(4, lambda i: all(close(network(images), want) for _ in range(20)))
    assert all(right) and len(states()) == 1 and states() != ["waiting"]


def test_explicit_results_and_saving_go_on(network, images, tmp_path):
    concrete = network.get_concrete_function(tf.TensorSpec((None, 8, 8, 3)))
    want = concrete(tf.constant(images))
    bd.enable(**AT_ONCE)
    concrete(tf.constant(images))
    fast = bd.optimize(network, input_signature=[tf.TensorSpec((None, 8, 8, 3))], verify=True)
    assert close(fast(images), want) and close(tf.function(fast)(images), want)
    assert states() == ["optimized", "left"] and reason() == "it has ops of tf_blockdnn already"
    holder = tf.Module()
    holder.kernel, holder.call = network.kernel, network
    tf.saved_model.save(holder, tmp_path, signatures=concrete)
    ops = [op.type for op in concrete.graph.get_operations()]
    assert "Conv2D" in ops and not any(op.startswith("Blockdnn") for op in ops)
    bd.disable()
    assert close(tf.saved_model.load(tmp_path).call(tf.constant(images)), want)


def test_nested_blocks_and_report(network, images):
    bd.enable(seconds=1e9)
    with bd.enabled(**AT_ONCE):
        network(images)
        assert states() == ["optimized"]
    network(images)
    assert states() == ["waiting"]
    data = json.loads(bd.report().to_json())
    assert [one["name"] for one in data["functions"]] == ["network"]
    assert bd.report().summary().startswith("0 functions optimized, 0 left, 1 not called")


def test_what_needs_data_is_refused():
    with pytest.raises(ValueError, match="give them to bd.optimize"):
        bd.enable(options=bd.Options(precision="int8"))
