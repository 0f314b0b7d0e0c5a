"""`optimize`: targets, calls, saving, options."""

import gc
import types

import keras
import numpy as np
import pytest
import tensorflow as tf
from graph_nodes import all_nodes

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter import VerificationError, verify
from tf_blockdnn.python.targets import optimize

_SAME = {"strides": 1, "padding": "SAME"}


@pytest.fixture
def module(weights):
    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.kernel = weights(3, 3, 3, 20)
            self.dense = weights(20, 4)

        @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3], name="picture")])
        def __call__(self, picture):
            y = tf.nn.relu(tf.nn.conv2d(picture, self.kernel, **_SAME))
            return {"scores": tf.matmul(tf.reduce_mean(y, [1, 2]), self.dense)}

    return Module()


def test_tracing_is_timed_apart(module):
    x = keras.Input((8, 8, 3))
    model = keras.Model(x, keras.layers.Conv2D(8, 3)(x))
    for traced in (optimize(module.__call__), optimize(model)):
        report = traced.report
        assert report.seconds > 0 and report.tracing_seconds > 0
        assert f"; TensorFlow traced it in {report.tracing_seconds * 1e3:.0f} ms)" in str(report)
    concrete = module.__call__.get_concrete_function()
    report = optimize(concrete).report
    assert report.tracing_seconds == 0 and "traced" not in str(report)


def test_arrays_keywords_and_tapes_work_like_tensors(module, image):
    fast = optimize(module.__call__)
    x = image(1, 6, 6, 3)
    wanted = fast(x)["scores"].numpy()
    np.testing.assert_array_equal(fast(x.numpy())["scores"], wanted)
    np.testing.assert_array_equal(fast(x.numpy().tolist())["scores"], wanted)
    np.testing.assert_array_equal(fast(picture=x)["scores"], wanted)
    with tf.GradientTape():
        np.testing.assert_array_equal(fast(x)["scores"], wanted)
    outer = tf.function(lambda x: fast(x)["scores"] * 2.0)
    np.testing.assert_allclose(outer(x), 2.0 * wanted)


def test_wrong_arguments_name_what_is_wanted(module, image):
    fast = optimize(module.__call__)
    with pytest.raises(TypeError, match=r"float32 \(None, None, None, 3\), got float32 \(1, 2\)"):
        fast(image(1, 2))
    with pytest.raises(TypeError, match="got int32"):
        fast(tf.zeros([1, 6, 6, 3], tf.int32))
    with pytest.raises(TypeError):
        fast(image(1, 6, 6, 3), image(1, 6, 6, 3))


def test_other_targets_are_refused():
    with pytest.raises(TypeError, match="a keras.Model, a tf.function"):
        optimize(3)


def test_results_are_no_targets(module, tmp_path):
    tf.saved_model.save(module, str(tmp_path), signatures=module.__call__)
    for target in (optimize(module.__call__), optimize(tmp_path), bd.load(tmp_path)):
        with pytest.raises(TypeError, match="an Optimized(Function|Model) is optimised already"):
            optimize(target)


@pytest.mark.parametrize("algorithm", ["direct", "winograd"])
def test_the_algorithm_reaches_every_convolution(module, algorithm):
    fast = optimize(module.__call__, options=bd.Options(algorithm=algorithm))
    assert fast.report.converted[0].algorithm == algorithm
    (conv,) = [node for node in all_nodes(fast.concrete) if node.op == "BlockdnnConv"]
    assert conv.attr["algorithm"].s == algorithm.encode()


def test_checking_numbers(module, monkeypatch):
    assert optimize(module.__call__, verify=True).report.converted
    monkeypatch.setattr(verify, "difference", lambda wanted, got: 1.0)
    with pytest.raises(VerificationError, match="output .*scores.* differs by 1 of"):
        optimize(module.__call__, verify=True)


def test_a_loaded_saved_model_keeps_all_signatures(module, tmp_path, image):
    other = tf.function(lambda x: {"twice": x * 2.0}).get_concrete_function(
        tf.TensorSpec([None], name="x")
    )
    signatures = {"serving_default": module.__call__.get_concrete_function(), "double": other}
    tf.saved_model.save(module, str(tmp_path / "in"), signatures=signatures)
    loaded = tf.saved_model.load(str(tmp_path / "in"))
    fast = optimize(loaded)
    x = image(2, 6, 6, 3)
    wanted = loaded.signatures["serving_default"](picture=x)["scores"]
    np.testing.assert_allclose(fast(x)["scores"], wanted, atol=1e-5)
    np.testing.assert_allclose(fast(picture=x)["scores"], wanted, atol=1e-5)
    assert fast.report.count("BlockdnnConv") == 1
    np.testing.assert_array_equal(fast.signatures["double"](tf.ones([3]))["twice"], [2, 2, 2])

    fast.save(tmp_path / "out")
    again = tf.saved_model.load(str(tmp_path / "out"))
    assert set(again.signatures) == {"serving_default", "double"}
    old = loaded.signatures["serving_default"]
    new = again.signatures["serving_default"]
    assert str(new.structured_input_signature) == str(old.structured_input_signature)
    assert str(new.structured_outputs) == str(old.structured_outputs)
    np.testing.assert_allclose(new(picture=x)["scores"], wanted, atol=1e-5)


def test_signatures_with_the_same_weights_share_a_bundle(module, tmp_path):
    signatures = {name: module.__call__.get_concrete_function() for name in ("one", "two")}
    tf.saved_model.save(module, str(tmp_path), signatures=signatures)
    fast = optimize(tf.saved_model.load(str(tmp_path)))
    one, two = (fast.signatures[name].trackables[0] for name in ("one", "two"))
    assert one is two


def test_the_saved_bundle_is_one_variable(module, tmp_path):
    fast = optimize(module.__call__)
    fast.save(tmp_path)
    shapes = dict(tf.train.list_variables(str(tmp_path / "variables" / "variables")))
    sizes = sorted(np.prod(shape) for shape in shapes.values() if shape)
    assert sizes == [20 * 4, 3 * 3 * 3 * 20 + 4]  # the dense layer; the kernel, padded to 16


def test_originals_may_go_away(weights, image):
    """The result holds on to what it captures."""

    def make():
        kernel, scale = tf.Variable(tf.ones([1, 1, 16, 16])), tf.Variable(3.0)
        function = tf.function(lambda x, y: (tf.nn.conv2d(x, kernel, **_SAME), y * scale))
        specs = [tf.TensorSpec([1, 2, 2, 16]), tf.TensorSpec([])]
        return optimize(function, input_signature=specs)

    for fast in (make(), make().concrete, make().get_concrete_function()):
        gc.collect()
        conv, product = fast(tf.ones([1, 2, 2, 16]), tf.constant(2.0))
        assert conv.numpy().max() == 16.0 and product.numpy() == 6.0
    assert fast.variables  # Gradients and SavedModels ask for them.


def test_a_failure_of_the_rewriter_keeps_the_function(module, monkeypatch):
    def fail(*args):
        raise RuntimeError("no such graph\nsecond line")

    monkeypatch.setattr("tf_blockdnn.python.rewriter.rewrite.rebuild", fail)
    with pytest.warns(RuntimeWarning, match="failed in rebuild: RuntimeError: no such graph"):
        fast = optimize(module.__call__, options=bd.Options(strict=False))
    assert fast.report.converted == []
    ((_, reason),) = fast.report.declined
    assert reason == "the rewriter failed in rebuild: RuntimeError: no such graph"
    with pytest.raises(RuntimeError, match="no such graph"):
        optimize(module.__call__, options=bd.Options(strict=True))
    shape = [size or 4 for size in fast.concrete.inputs[0].shape]
    x = tf.random.normal(shape)
    np.testing.assert_array_equal(fast(x)["scores"], module(x)["scores"])


@pytest.mark.parametrize("results", [None, (), {"none": [None]}], ids=["None", "()", "nested"])
def test_a_function_without_results(results):
    @tf.function
    def function(x):
        tf.nn.conv2d(x, tf.ones([3, 3, 3, 16]), **_SAME)
        return results

    fast = optimize(function, options=bd.Options(strict=True))
    assert fast(tf.ones([1, 4, 4, 3])) == results
    assert fast.report.declined[0][1] == "it has no results and no side effects"


def test_a_loaded_model_reads_only_what_it_uses(module, tmp_path):
    """Its signature names every read of a variable as a side effect: only those of the bundle and
    of the dense weights, which are in use, may stay."""
    tf.saved_model.save(module, str(tmp_path), signatures=module.__call__)
    fast = optimize(tf.saved_model.load(str(tmp_path)))
    nodes = fast.signatures["serving_default"].concrete.graph.as_graph_def().node
    assert [node.op for node in nodes].count("ReadVariableOp") == 2


def test_results_in_a_graph_have_the_sizes_of_arguments(weights):
    """Decoders behind a model may need them, as the boxes of KerasHub's detectors do."""
    kernel = weights(3, 3, 16, 16)

    @tf.function(input_signature=[tf.TensorSpec([None, None, 6, 16]), tf.TensorSpec([None, 2])])
    def function(x, other):
        y = tf.nn.conv2d(x, kernel, **_SAME)
        return {
            "same": y,
            "half": tf.nn.max_pool2d(y, 2, 2, "SAME"),
            "pixels": tf.reshape(tf.reduce_mean(y, 1), [-1, 16]),
            "other": tf.tile(other, [1, 3]),
            "positive": tf.boolean_mask(other, other[:, 0] > 0),
        }

    fast, seen = optimize(function), {}
    assert fast.report.count("BlockdnnConv") == 1

    @tf.function
    def around(x, other):
        results = fast(x, other)
        seen.update({name: result.shape.as_list() for name, result in results.items()})
        return results

    results = around(tf.ones([3, 5, 6, 16]), tf.ones([5, 2]))
    assert seen["same"] == [3, 5, 6, 16] and seen["half"] == [3, 3, 3, 16]
    assert seen["pixels"] == [18, 16]
    assert seen["other"] == [5, 6] and seen["positive"] == [None, 2]
    for name, shape in seen.items():
        assert results[name].shape.is_compatible_with(shape), name
    around.get_concrete_function(tf.TensorSpec([3, None, 6, 16]), tf.TensorSpec([None, 2]))
    assert seen["same"] == [3, None, 6, 16] and seen["half"] == [3, None, 3, 16]
    assert seen["other"] == [None, 6] and seen["positive"] == [None, 2]


def test_an_option_that_means_nothing_is_an_error(functional, tmp_path):
    spec, function = tf.TensorSpec([1, 2]), tf.function(lambda x: x)
    concrete = function.get_concrete_function(spec)
    with pytest.raises(ValueError, match="^input_signature means nothing to a ConcreteFunction"):
        bd.optimize(concrete, input_signature=[spec])
    for target in (functional, function):
        with pytest.raises(ValueError, match="^custom_objects means nothing to a"):
            bd.optimize(target, custom_objects={"Layer": object})
    folder = tmp_path / "in"
    bd.optimize(functional).save(folder)
    for target in (folder, tf.saved_model.load(str(folder))):
        with pytest.raises(ValueError, match="^input_signature means nothing to a"):
            bd.optimize(target, input_signature=[spec])
    with pytest.raises(ValueError, match="^custom_objects mean nothing to .*, which Keras"):
        bd.optimize_saved_model(folder, tmp_path / "out", custom_objects={"Layer": object})
    with pytest.raises(ValueError, match="^input_signature has 2 entries; .* takes one argument"):
        bd.optimize(functional, input_signature=[spec, spec])


def test_over_a_function(weights, pictures, same):
    kernel = weights(3, 3, 3, 8)

    @bd.optimize
    def plain(x):
        """A network."""
        return tf.nn.conv2d(x, kernel, 1, "SAME")

    @bd.optimize(weights="live", exclude=[".*"], options=bd.Options(memory="low"))
    @tf.function
    def excluded(x):
        return tf.nn.conv2d(x, kernel, 1, "SAME")

    same(plain(pictures), excluded(pictures))
    assert plain.report.count("BlockdnnConv") == 1 and not excluded.report.converted
    assert (plain.__name__, plain.__doc__) == ("plain", "A network.")


def _table():
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [10, 20]), -1)


_TABLE, _HOLDER = _table(), types.SimpleNamespace(tables=[_table()])


def _nested():
    table = {"a": [_table()]}

    def find(key):
        return table["a"][0].lookup(key)

    return lambda key: find(key)


class _Plain:
    def __init__(self):
        self.table = _table()

    def find(self, key):
        return self.table.lookup(key)


_FINDS = {
    "a global": lambda key: _TABLE.lookup(key),
    "of a global": lambda key: _HOLDER.tables[0].lookup(key),
    "a nested closure": _nested(),
    "of a plain object": _Plain().find,
    "a tf.function": tf.function(lambda key: _TABLE.lookup(key)),
}


@pytest.mark.parametrize("name", _FINDS)
def test_tables_are_found_wherever_they_are(name, weights, floats, tmp_path):
    kernel, find = weights(3, 3, 3, 16), _FINDS[name]

    @tf.function(input_signature=[tf.TensorSpec([1, 8, 8, 3]), tf.TensorSpec([1], tf.int32)])
    def function(x, key):
        return tf.nn.conv2d(x, kernel, 1, "SAME"), find(key)

    bd.optimize(function).save(tmp_path)
    loaded = tf.saved_model.load(str(tmp_path))
    got = loaded.signatures["serving_default"](x=tf.ones([1, 8, 8, 3]), key=tf.constant([2]))
    assert 20 in [value.numpy().flat[0] for value in got.values()]
