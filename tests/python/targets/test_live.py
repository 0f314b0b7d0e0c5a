"""`optimize(..., weights="live")`: the original goes on training, and its result follows."""

import gc
import threading
import weakref

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter.rewrite import Rewrite


@pytest.fixture
def network(library):
    """A network with batch normalisation, and a step of its training."""
    layers = library.layers
    model = library.Sequential(
        [
            library.Input([16, 16, 3]),
            layers.Conv2D(16, 3, use_bias=False),
            layers.BatchNormalization(momentum=0.5),
            layers.ReLU(),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.Conv2D(24, 3, padding="same", activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(4),
        ]
    )
    model.compile(library.optimizers.Adam(0.05), "mse")
    return model


@pytest.fixture
def folded(monkeypatch):
    """How often the passes have run."""
    runs, original = [], Rewrite.write

    def count(*args):
        runs.append(args)
        return original(*args)

    monkeypatch.setattr(Rewrite, "write", count)
    return runs


def _train(model, pictures):
    model.train_on_batch(pictures, np.ones((len(pictures), 4), np.float32))


def test_training_reaches_every_way_to_call_it(network, pictures, same, folded):
    fast = bd.optimize(network, weights="live")
    assert fast.report.count("BlockdnnConv") >= 2
    outer = tf.function(lambda x: fast(x) * 2.0)
    before = len(folded)
    for _ in range(3):
        was = network(pictures).numpy()
        _train(network, pictures)
        wanted = network(pictures).numpy()
        assert np.abs(wanted - was).max() > 1e-2
        same(fast(tf.constant(pictures)), wanted)
        same(fast(pictures), wanted)
        same(fast.concrete(tf.constant(pictures)), wanted)
        same(fast.predict(pictures, verbose=0), wanted)
        same(outer(pictures), 2.0 * wanted)
    assert len(folded) == before + 3  # once a change, and nothing was made anew


@pytest.mark.parametrize("call", ["predict", "evaluate", "outer", "concrete"])
def test_each_way_notices_by_itself(network, pictures, same, call):
    fast = bd.optimize(network, weights="live")
    fast.compile(loss="mse")
    labels = np.ones((8, 4), np.float32)
    outer = tf.function(lambda x: fast(x))
    calls = {
        "predict": lambda model: model.predict(pictures, verbose=0),
        "evaluate": lambda model: model.evaluate(pictures, labels, verbose=0),
        "outer": lambda model: outer(pictures) if model is fast else model(pictures),
        "concrete": lambda m: (m.concrete if m is fast else m)(tf.constant(pictures)),
    }
    for _ in range(3):
        same(calls[call](fast), calls[call](network))
        _train(network, pictures)


def test_moving_statistics(network, pictures, same):
    fast = bd.optimize(network, weights="live")
    fast(pictures)
    network(10.0 * pictures, training=True)  # which moves nothing else
    same(fast(pictures), network(pictures))


def test_loading_and_setting(library, network, pictures, same, tmp_path, folded):
    fast = bd.optimize(network, weights="live")
    was = fast(pictures).numpy()
    network.save_weights(tmp_path / "first.weights.h5")
    before = len(folded)
    network.load_weights(tmp_path / "first.weights.h5")
    np.testing.assert_array_equal(fast(pictures), was)
    assert len(folded) == before  # the same values are no change
    network.set_weights([0.5 * weight + 0.1 for weight in network.get_weights()])
    same(fast(pictures), network(pictures))
    network.load_weights(tmp_path / "first.weights.h5")
    np.testing.assert_allclose(fast(pictures), was, atol=1e-6)


def test_a_call_without_a_change_folds_nothing(network, pictures, folded):
    fast = bd.optimize(network, weights="live")
    before = len(folded)
    for _ in range(5):
        fast(pictures)
        fast.predict(pictures, verbose=0)
    assert len(folded) == before


def test_signs_of_weights_follow(weights, image, same):
    kernel, x = weights(3, 3, 16, 16), image(1, 6, 6, 16)

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 16])], autograph=False)
    def function(x):
        return tf.nn.conv2d(x, tf.sign(kernel), 1, "SAME")

    fast = bd.optimize(function, weights="live")
    assert fast.report.count("BlockdnnConv") == 1
    same(fast(x), function(x))
    kernel.assign(-kernel[::-1])
    same(fast(x), function(x))


def _scaled(kernel, scale):
    """A convolution and a maximum by a variable, which becomes an attribute of the op."""
    y = lambda x: tf.minimum(tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")), scale)  # noqa: E731
    return tf.function(y, input_signature=[tf.TensorSpec([None, 6, 6, 16])], autograph=False)


def test_another_graph(weights, image, same):
    """A value that decides about the graph: whoever traced the old one is told."""
    kernel, slope, x = weights(3, 3, 16, 16), tf.Variable(0.25), image(1, 6, 6, 16)
    spec = [tf.TensorSpec([None, 6, 6, 16])]

    @tf.function(input_signature=spec, autograph=False)
    def function(x):
        y = tf.nn.conv2d(x, kernel, 1, "SAME")
        return tf.maximum(y, slope * y)  # an attribute of the op

    fast = bd.optimize(function, weights="live")
    outer = tf.function(lambda x: fast(x))
    same(outer(x), function(x))
    was = fast.calls[0].current
    slope.assign(0.5)
    with pytest.raises(tf.errors.FailedPreconditionError, match="trace the function that calls"):
        outer(x)
    same(fast(x), function(x))
    assert fast.calls[0].current is not was
    same(tf.function(lambda x: fast(x))(x), function(x))


def test_a_model_with_another_graph_predicts(library, pictures, same):
    class Leaky(library.layers.Layer):
        def build(self, shape):
            self.slope = self.add_weight(name="slope", shape=(), initializer="ones")

        def call(self, x):
            return tf.maximum(x, tf.convert_to_tensor(self.slope) * x)

    model = library.Sequential([library.Input([16, 16, 3]), library.layers.Conv2D(16, 3), Leaky()])
    fast = bd.optimize(model, weights="live")
    for slope in (0.5, 0.3, 0.2):
        was = fast.concrete
        model.layers[-1].slope.assign(slope)
        same(fast.predict(pictures, verbose=0), model.predict(pictures, verbose=0))
        assert fast.concrete is not was


def test_sparse_updates(weights, image, same):
    """They write where the variable is."""
    kernel = weights(3, 3, 16, 16)
    function, x = _scaled(kernel, tf.Variable(6.0)), image(1, 6, 6, 16)
    fast = bd.optimize(function, weights="live")
    for value in (1.0, 2.0, 3.0):
        same(fast(x), function(x))
        rows = tf.fill([1, 3, 16, 16], value)
        kernel.scatter_update(tf.IndexedSlices(rows, tf.constant([1])))
        same(fast(x), function(x))


def test_memory_of_numpy(image, same):
    """A variable may lie in an array, at an address that TensorFlow likes, which changes later."""
    room = np.zeros(9 * 256 + 16, np.float32)
    start = -room.ctypes.data // 4 % 16
    array = room[start : start + 9 * 256].reshape(3, 3, 16, 16)
    kernel, x = tf.Variable(tf.zeros([3, 3, 16, 16])), image(1, 6, 6, 16)
    function = _scaled(kernel, tf.Variable(6.0))
    kernel.assign(array)
    fast = bd.optimize(function, weights="live")
    for value in (0.5, 0.25):
        same(fast(x), function(x))
        array[...] = value
        same(fast(x), function(x))


def test_every_kind_of_target(weights, image, same, tmp_path):
    kernel, x = weights(3, 3, 16, 16), image(2, 6, 6, 16)
    most = tf.Variable(6.0)
    function = _scaled(kernel, most)
    module = tf.Module()
    module.kernel, module.most, module.call = kernel, most, function
    tf.saved_model.save(module, tmp_path / "model", signatures={"call": function})
    loaded = tf.saved_model.load(tmp_path / "model")

    class Callable(tf.Module):
        def __call__(self, x):
            return tf.nn.conv2d(x, kernel, 1, "SAME")

    free = tf.function(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"))
    callable_module = Callable()
    cases = [
        (function, function, kernel),
        (function.get_concrete_function(), function, kernel),
        (free, free, kernel),
        (callable_module, callable_module, kernel),
        (loaded, loaded.signatures["call"], loaded.kernel),
    ]
    for target, original, variable in cases:
        fast = bd.optimize(target, weights="live")
        for _ in range(2):
            got, wanted = fast(x), original(x)
            same(tf.nest.flatten(got), tf.nest.flatten(wanted))
            variable.assign(variable * 0.5 + 0.1)
    same(bd.optimize(free, weights="live")(x[:1]), free(x[:1]))


def test_threads_call_while_another_trains(weights, image):
    """Each result is that of one value of all weights, and the last is that of the last."""
    kernel, bias = tf.Variable(tf.ones([3, 3, 16, 16])), tf.Variable(tf.ones([16]))
    spec = [tf.TensorSpec([None, 1, 1, 16])]
    function = tf.function(
        lambda x: tf.nn.conv2d(x, kernel, 1, "SAME") + bias, input_signature=spec
    )
    fast, x, errors, done = bd.optimize(function, weights="live"), tf.ones([1, 1, 1, 16]), [], []
    assert fast.report.count("BlockdnnConv") == 1

    def call():
        try:
            while not done:
                y = fast(x).numpy()
                assert (y == y.flat[0]).all() and y.flat[0] % 1 == 0, y
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for value in range(2, 8):
        kernel.assign(tf.fill([3, 3, 16, 16], float(value)))
        bias.assign(tf.fill([16], float(value)))
        assert fast(x).numpy().flat[0] == 17 * value
    done.append(True)
    for thread in threads:
        thread.join()
    assert not errors, errors
    np.testing.assert_array_equal(fast(x), function(x))


def test_low_precision(network, pictures):
    fast = bd.optimize(network, weights="live", precision="bf16-weights")
    for _ in range(2):
        wanted = network(pictures).numpy()
        np.testing.assert_allclose(fast(pictures), wanted, atol=0.02 * np.abs(wanted).max())
        _train(network, pictures)


def test_an_enclosing_graph_keeps_it(network, pictures, same):
    fast = bd.optimize(network, weights="live")
    spec = tf.TensorSpec([8, 16, 16, 3])
    outer = tf.function(lambda x, fast=fast: fast(x)).get_concrete_function(spec)
    outer(tf.constant(pictures))
    del fast
    gc.collect()
    _train(network, pictures)
    same(outer(tf.constant(pictures)), network(pictures))


def test_an_exported_model_around_it(library, network, pictures, same, tmp_path):
    fast = bd.optimize(network, weights="live")
    x = library.Input([16, 16, 3])
    outer = library.Model(x, library.layers.Activation("relu")(fast(x)))
    outer.export(tmp_path / "outer")
    wanted = outer(pictures).numpy()
    loaded = tf.saved_model.load(tmp_path / "outer")
    _train(network, pictures)
    same(loaded.serve(tf.constant(pictures)), wanted)  # that of then
    same(outer(pictures), np.maximum(network(pictures), 0.0))


def test_it_goes_with_all_that_it_holds(network, pictures):
    fast = bd.optimize(network, weights="live")
    tf.function(lambda x, fast=fast: fast(x))(pictures)
    held = weakref.ref(fast.optimized.main)
    del fast
    gc.collect()
    assert held() is None


def test_wrong_values(network, tmp_path):
    with pytest.raises(
        ValueError, match=r"weights must be one of \('snapshot', 'live'\), not 'li'"
    ):
        bd.optimize(network, weights="li")
    with pytest.raises(ValueError, match='weights="live" needs a model or function that') as error:
        bd.optimize(tmp_path / "model.keras", weights="live")
    assert "\n" not in str(error.value)
