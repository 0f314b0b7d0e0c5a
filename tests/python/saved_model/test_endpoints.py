"""Functions that are attributes of a SavedModel stay, and are optimised."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd


@pytest.fixture
def x(floats):
    return tf.constant(floats(2, 8, 8, 3))


def same(got, wanted):
    tf.nest.map_structure(lambda g, w: np.testing.assert_allclose(g, w, atol=1e-4), got, wanted)


class Module(tf.Module):
    def __init__(self, kernel):
        self.kernel, self.count = kernel, tf.Variable(0)
        initializer = tf.lookup.KeyValueTensorInitializer([1, 2], [10, 20])
        self.table = tf.lookup.StaticHashTable(initializer, -1)

    @tf.function
    def __call__(self, x, training=False):
        y = tf.nn.conv2d(x, self.kernel, 1, "SAME")
        return {"y": 0.5 * y if training else y}

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3])])
    def encode(self, image):
        return tf.nn.relu(tf.nn.conv2d(image, self.kernel, 2, "SAME")), tf.shape(image)[0]

    @tf.function
    def pair(self, inputs, *, scale, keys=("a", "b")):
        y = tf.nn.conv2d(inputs[keys[0]], self.kernel, 1, "SAME")
        return y * scale + inputs[keys[1]][0]

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3]), tf.TensorSpec([])])
    def scaled(self, image, by=2.0):
        return tf.nn.conv2d(image, self.kernel, 2, "SAME") * by

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def look(self, key):
        return self.table.lookup(key)

    @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
    def add(self, by):
        self.count.assign_add(by)
        return self.count.read_value()

    @tf.function(input_signature=[])
    def number(self):
        return self.count.read_value()


@pytest.fixture
def module(weights, x):
    made = Module(weights(3, 3, 3, 16))
    made(x), made(x, training=True)
    made.pair({"a": x, "b": [tf.ones([2, 8, 8, 16])]}, scale=tf.constant(2.0))
    made.ready = made.encode.get_concrete_function()
    return made


def check(loaded, module, x):
    """All but `__call__`, which of an OptimizedModel is its default signature."""
    pair = {"a": x, "b": [tf.ones([2, 8, 8, 16])]}
    same(loaded.encode(x), module.encode(x))
    same(loaded.ready(x), module.encode(x))
    same(loaded.pair(pair, scale=tf.constant(2.0)), module.pair(pair, scale=tf.constant(2.0)))
    for args, kwargs in (((x,), {}), ((x, 3.0), {}), ((), {"by": tf.constant(3.0), "image": x})):
        same(loaded.scaled(*args, **kwargs), module.scaled(*args, **kwargs))
    same(loaded.look(tf.constant([2, 5])), module.look(tf.constant([2, 5])))
    before = int(loaded.number())
    assert int(loaded.add(tf.constant(3))) == before + 3 == int(loaded.number())


def check_saved(folder, module, x):
    loaded = tf.saved_model.load(str(folder))
    check(loaded, module, x)
    for kwargs in ({}, {"training": False}, {"training": True}):
        same(loaded(x, **kwargs), module(x, **kwargs))
    for endpoint in (loaded.encode, loaded.pair, loaded.__call__):
        for concrete in endpoint.concrete_functions:
            library = concrete.graph.as_graph_def().library.function
            assert any(n.op == "BlockdnnRegion" for f in library for n in f.node_def)


def test_methods_of_a_module(module, x, tmp_path):
    tf.saved_model.save(module, str(tmp_path / "in"), signatures=module.encode)
    bd.optimize_saved_model(tmp_path / "in", tmp_path / "out")
    check_saved(tmp_path / "out", module, x)
    for i, name in enumerate(("in", "out")):
        fast = bd.load(tmp_path / name)
        check(fast, module, x)
        assert fast.encode.report.count("BlockdnnConv") == 1 - i  # the second has regions
        fast.save(tmp_path / f"again_{name}")
        check_saved(tmp_path / f"again_{name}", module, x)
    with pytest.raises(
        AttributeError, match="SavedModel has __call__, add, encode, look, number, pair, r"
    ):
        _ = fast.nothing


def test_attributes_that_are_no_functions(module, x, tmp_path):
    """As tf.saved_model.load gives them: variables, tables, assets, parts, lists."""
    (tmp_path / "words").write_text("a")
    module.words = tf.saved_model.Asset(str(tmp_path / "words"))
    module.part, module.bias = tf.Module(), [tf.Variable(1.0), tf.Variable(2.0)]
    module.part.scale = tf.Variable(3.0)
    tf.saved_model.save(module, str(tmp_path / "in"), signatures=module.encode)
    loaded = tf.saved_model.load(str(tmp_path / "in"))
    for fast in (bd.load(tmp_path / "in"), bd.optimize(loaded)):
        same(fast.kernel, module.kernel)
        same([*fast.bias, fast.part.scale], [1.0, 2.0, 3.0])
        assert fast.table.resource_handle is not None and fast.words.asset_path.numpy().endswith(
            b"words"
        )
        fast.add(tf.constant(4))  # which the variable of this object knows
        assert int(fast.count) == 4 == int(fast.number())
        before = fast.encode(x), fast(x)
        fast.kernel.assign(tf.zeros_like(fast.kernel))  # which no snapshot does
        same((fast.encode(x), fast(x)), before)
        fast.save(tmp_path / "out")
    assert not hasattr(tf.saved_model.load(str(tmp_path / "out")), "words")


class Counted(tf.Module):
    def __init__(self, kernel):
        self.kernel, self.count = kernel, tf.Variable(0)
        self.seen = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, -1)

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3]), tf.TensorSpec([], tf.int64)])
    def serve(self, x, key):
        y = tf.nn.conv2d(x, self.kernel, 1, "SAME")
        return {"y": y, "n": self.count.assign_add(1), "seen": self.seen.lookup(key)}

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3]), tf.TensorSpec([], tf.int64)])
    def find(self, x, key):
        return {"y": tf.nn.conv2d(x, self.kernel, 1, "SAME"), "seen": self.seen.lookup(key)}

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def put(self, key):
        self.seen.insert(key, 2 * key)
        return self.count.read_value()


@pytest.mark.parametrize("name", ["serve", "find"])
def test_signatures_and_attributes_share_state(weights, x, tmp_path, name):
    module, key = Counted(weights(3, 3, 3, 16)), tf.constant(4, tf.int64)
    tf.saved_model.save(module, str(tmp_path / "in"), signatures=getattr(module, name))
    bd.optimize_saved_model(tmp_path / "in", tmp_path / "out")
    for load, folder in ((tf.saved_model.load, "in"), (bd.load, "in"), (bd.load, "out")):
        fast = load(str(tmp_path / folder))
        serve = fast.signatures["serving_default"]
        serve(x=x, key=key)
        assert int(fast.put(key)) == (name == "serve")
        assert int(serve(x=x, key=key)["seen"]) == 8


@pytest.mark.parametrize("kind", ["snapshot", "live"])
def test_of_an_object_that_is_loaded(module, x, tmp_path, kind):
    tf.saved_model.save(module, str(tmp_path / "in"), signatures=module.encode)
    fast = bd.optimize(tf.saved_model.load(str(tmp_path / "in")), weights=kind)
    check(fast, module, x)
    fast.save(tmp_path / "out")
    check_saved(tmp_path / "out", module, x)


def test_keras_endpoints(x, tmp_path):
    a, b = keras.Input([8, 8, 3], name="a"), keras.Input([8, 8, 3], name="b")
    model = keras.Model([a, b], keras.layers.Conv2D(4, 3)(keras.layers.Subtract()([a, b])))
    model.export(tmp_path / "exported", verbose=False)
    archive = keras.export.ExportArchive()
    archive.track(model)
    spec = tf.TensorSpec([None, 8, 8, 3])
    archive.add_endpoint("both", lambda pair: model(pair), input_signature=[[spec, spec]])
    archive.add_endpoint("serve", lambda x: {"out": model([x, 2.0 * x])}, input_signature=[spec])
    archive.write_out(tmp_path / "archive", verbose=False)
    bd.optimize(model).export(tmp_path / "result")
    for name in ("exported", "archive"):
        bd.optimize_saved_model(tmp_path / name, tmp_path / f"{name}_fast")
    for name in ("exported_fast", "result"):
        layer = keras.layers.TFSMLayer(tmp_path / name, call_endpoint="serve")
        same(layer([x, 2.0 * x]), model([x, 2.0 * x]))
    loaded = tf.saved_model.load(str(tmp_path / "archive_fast"))
    same(loaded.both([x, 2.0 * x]), model([x, 2.0 * x]))
    same(loaded.serve(x)["out"], model([x, 2.0 * x]))


def test_arguments_of_endpoints_are_cast_and_named_as_the_originals(module, x, tmp_path):
    """A ConcreteFunction also takes the names of its tensors, which may be others."""
    image = tf.TensorSpec([None, 8, 8, 3], name="pixels")
    module.ready = tf.function(lambda x: module.encode(x)).get_concrete_function(image)
    tf.saved_model.save(module, str(tmp_path), signatures=module.encode)
    original, fast = tf.saved_model.load(str(tmp_path)), bd.load(tmp_path)
    for loaded in (original, fast, bd.optimize(original)):
        same(loaded.encode(x.numpy().astype(np.float64)), module.encode(x))
        same(loaded.encode(image=x), module.encode(x))
        same(loaded.ready(x=x), module.encode(x))
        same(loaded.ready(pixels=x), module.encode(x))
    same(bd.optimize(module.ready)(pixels=x), module.encode(x))


@pytest.mark.parametrize("change", [lambda x: tf.cast(x, tf.float64), lambda x: x[..., :2]])
def test_other_arguments_of_endpoints_are_one_line(module, x, tmp_path, change):
    tf.saved_model.save(module, str(tmp_path), signatures=module.encode)
    fast, other = bd.load(tmp_path), change(x)
    with pytest.raises(
        TypeError, match=r"^argument 0 must be float32 \(None, 8, 8, 3\), got[^\n]*$"
    ):
        fast.encode(other)
    saved = r"^it was saved for [^\n]*scale=float32[^\n]*, not for [^\n]*scale=float32 \(\)\)$"
    with pytest.raises(ValueError, match=saved):
        fast.pair({"a": other, "b": [tf.ones([2, 8, 8, 16])]}, scale=tf.constant(2.0))
