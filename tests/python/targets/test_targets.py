"""What `optimize` takes beside models and signatures: paths, modules, functions without one."""

import copy
import gc
import pickle
import tempfile
import threading

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd


@keras.saving.register_keras_serializable("somebody")
class Registered(keras.layers.Layer):
    def call(self, x):
        return x * 2.0


class Custom(keras.layers.Layer):
    def call(self, x):
        return x * 2.0


@pytest.fixture
def kernel(weights):
    return weights(3, 3, 3, 16)


@pytest.mark.parametrize("name", ["model.keras", "model.h5"])
def test_keras_files(functional, pictures, same, tmp_path, name):
    functional.save(tmp_path / name)
    for path in (tmp_path / name, str(tmp_path / name)):
        fast = bd.optimize(path)
        same(fast(pictures), functional(pictures))
        assert fast.report.count("BlockdnnConv") == 1


def test_what_is_loaded_is_called_in_graphs(functional, pictures, same, tmp_path):
    """The functions that its graph calls stay, though what was read from the folder is gone."""
    bd.optimize(functional).save(tmp_path / "fast")
    fast, wanted = bd.load(tmp_path / "fast"), functional(pictures)
    gc.collect()
    (name,) = fast.concrete.structured_outputs
    same(tf.function(lambda x: fast(x)[name])(pictures), wanted)
    (got,) = tf.data.Dataset.from_tensors(pictures).map(lambda x: fast(x)[name])
    same(got, wanted)


@pytest.mark.parametrize("layer", [Custom, Registered])
def test_custom_objects(pictures, same, tmp_path, layer):
    model = keras.Sequential([keras.Input([16, 16, 3]), keras.layers.Conv2D(16, 3), layer()])
    model.save(tmp_path / "model.keras")
    if layer is Custom:
        with pytest.raises(ValueError, match=r"custom object Custom: give custom_objects=\{'Cus"):
            bd.optimize(tmp_path / "model.keras")
    fast = bd.optimize(tmp_path / "model.keras", custom_objects={"Custom": Custom})
    same(fast(pictures), model(pictures))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("none.keras", "none.keras: no such file"),
        ("nowhere", "nowhere: no such file or folder"),
        ("text.keras", "text.keras: not a file that Keras wrote"),
        ("text.h5", "text.h5: not a file that Keras wrote"),
        ("empty", "empty: not a SavedModel"),
        ("text.onnx", "text.onnx: an ONNX file: onnx2tf makes a SavedModel of it"),
    ],
)
def test_bad_paths(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    for text in ("text.keras", "text.h5", "text.onnx"):
        (tmp_path / text).write_text("nothing of use")
    with pytest.raises(ValueError, match=message) as error:
        bd.optimize(tmp_path / name)
    assert "\n" not in str(error.value)


def test_a_module(kernel, same, pictures):
    class Plain(tf.Module):
        def __call__(self, x):
            return tf.nn.conv2d(x, kernel, 1, "SAME")

    class Traced(tf.Module):
        __call__ = tf.function(Plain.__call__, input_signature=None)

    wanted = Plain()(pictures)
    signature = [tf.TensorSpec([None, None, None, 3])]
    for module in (Plain(), Traced()):
        same(bd.optimize(module)(pictures), wanted)
        same(bd.optimize(module, input_signature=signature)(pictures), wanted)
    with pytest.raises(TypeError, match="cannot optimise a Module: give a keras.Model"):
        bd.optimize(tf.Module())


def test_a_function_without_a_signature(kernel, same, pictures):
    @tf.function
    def function(x, scale=1.0, more=None):
        y = tf.nn.conv2d(x, kernel, 1, "SAME") * scale
        return {"y": y if more is None else y + more["b"][0]}

    fast = bd.optimize(function)
    assert fast.report.converted == [] and "first call" in fast.report.notes[0]
    calls = [
        ((pictures,), {}),
        ((tf.constant(pictures),), {}),
        ((pictures[:2],), {}),
        ((pictures, 2.0), {}),
        ((), {"x": pictures, "more": {"b": [tf.constant(2.0)]}}),
    ]
    for args, kwargs in calls * 2:
        same(fast(*args, **kwargs), function(*args, **kwargs))
    assert len(fast.calls) == 4
    assert all(one.report.count("BlockdnnConv") == 1 for one in fast.calls)
    weights = {id(one.trackables[0]) for one in fast.calls}
    assert len(weights) == 2  # doubled for the scale of 2, else the same
    same(tf.function(lambda x: fast(x)["y"])(pictures[:3]), function(pictures[:3])["y"])
    assert len(fast.calls) == 5
    with pytest.raises(ValueError, match="called with 5 signatures.*input_signature="):
        fast.save("nowhere")


def test_concrete_functions_of_a_result(kernel, same, pictures):
    """By the methods of a tf.function."""
    spec, x = tf.TensorSpec([8, 16, 16, 3]), tf.constant(pictures)

    def convolve(x):
        return tf.nn.conv2d(x, kernel, 1, "SAME")

    original = tf.function(convolve)
    fast = bd.optimize(original)
    assert fast.input_signature is None and fast.experimental_get_tracing_count() == 0
    concrete = fast.get_concrete_function(spec)
    assert concrete is fast.get_concrete_function(x) is fast.get_concrete_function()
    same(concrete(x), original(x))
    assert "BlockdnnConv" in str(concrete.graph.as_graph_def())
    assert concrete.structured_input_signature[0][0].is_compatible_with(spec)
    text = fast.pretty_printed_concrete_signatures()
    assert "float32" in text and "(8, 16, 16, 3)" in text
    fast(x[:3])
    assert fast.experimental_get_tracing_count() == 2
    with pytest.raises(ValueError, match="called with 2 signatures"):
        fast.get_concrete_function()
    fast = bd.optimize(original, input_signature=[spec])
    assert fast.input_signature == (spec,)
    assert fast.get_concrete_function() is fast.concrete is fast.get_concrete_function(spec)


def test_a_new_weight_reaches_no_result(kernel, pictures):
    fast = bd.optimize(tf.function(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME")))
    before = fast(pictures)
    kernel.assign(kernel * 2.0)
    np.testing.assert_array_equal(fast(pictures), before)


@pytest.mark.parametrize("kind", ["function", "concrete", "module", "SavedModel"])
def test_a_copy_of_a_function_is_itself(kernel, pictures, same, tmp_path, kind):
    """As of Python's own; of what it would pickle, one line says what to do."""

    class Network(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, 16, 16, 3])])
        def __call__(self, x):
            return tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))

    network = Network()
    network.kernel = kernel
    tf.saved_model.save(network, str(tmp_path), signatures=network.__call__)
    targets = {
        "function": network.__call__,
        "concrete": network.__call__.get_concrete_function(),
        "module": network,
        "SavedModel": tmp_path,
    }
    fast = bd.optimize(targets[kind])
    held = {"fast": fast}
    for one in (copy.copy(fast), copy.deepcopy(fast), copy.deepcopy(held)["fast"]):
        assert one is fast
    if kind == "SavedModel":
        same(pickle.loads(pickle.dumps(fast))(pictures), fast(pictures))
        return
    with pytest.raises(TypeError, match="^an optimised function cannot be pickled[^\n]*save"):
        pickle.dumps(fast)


@pytest.mark.parametrize("kind", ["function", "module", "keras", "endpoint"])
def test_signatures_are_of_one_moment(kernel, floats, same, kind):
    """Whenever they are converted."""
    x, mark = tf.constant(floats(2, 16, 16, 3)), tf.Variable(2.0)

    class Network(tf.Module):
        @tf.function
        def __call__(self, x, twice=False):
            y = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
            return y * mark if twice else y

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = keras.layers.Conv2D(16, 3)

        def call(self, x, twice=False):
            return self.layer(x) * (2.0 if twice else 1.0)

    target = Model() if kind == "keras" else Network()
    target(x)
    variables = target.trainable_variables if kind == "keras" else [kernel]
    if kind == "function":
        target = target.__call__
    if kind == "endpoint":
        target.network = tf.function(lambda x, twice: target(x, True), autograph=False)
        target.network(x, True)
        target.held = [kernel, mark]
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(target, folder, signatures=target.__call__.get_concrete_function(x))
            target = tf.saved_model.load(folder)
        variables = target.held[:1]
    fast = bd.optimize(target)
    call = (
        (lambda of: of.network(x, True)) if kind == "endpoint" else (lambda of: of(x, twice=True))
    )
    wanted = np.asarray(call(target))
    for variable in variables:
        variable.assign(variable * 2.0 + 0.1)
    assert np.max(np.abs(wanted - call(target))) > 0.1
    same(call(fast), wanted)


def test_a_variable_that_nobody_could_see_is_named(floats):
    made = []

    @tf.function
    def function(x):
        if not made:
            made.append(tf.Variable(tf.ones([3, 3, 3, 16]), name="hidden"))
        return tf.nn.conv2d(x, made[0], 1, "SAME") * seen

    seen = tf.Variable(2.0)
    fast = bd.optimize(function)
    fast(tf.constant(floats(1, 8, 8, 3)))
    notes = [note for note in fast.report.notes if "could not see" in note]
    assert len(notes) == 1 and notes[0].startswith("hidden: optimize could not see them")


def test_a_module_that_cannot_be_called(kernel, same, pictures):
    class Detector(tf.Module):
        @tf.function
        def detect(self, x):
            return tf.nn.conv2d(x, kernel, 1, "SAME")

    module = Detector()
    with pytest.raises(
        TypeError, match=r"^a Detector cannot be .*: optimize\(module.detect\) takes"
    ):
        bd.optimize(module)
    same(bd.optimize(module.detect)(pictures), module.detect(pictures))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"input_signature": 3}, "input_signature must be a list of tf.TensorSpec, .*not an int"),
        ({"verify": "numbers"}, "verify must be a bool, or the largest difference, .* 'numbers'"),
        ({"verify": -1.0}, "verify must be a bool, or the largest difference, .* not -1.0"),
        ({"verify": float("nan")}, "verify must be a bool, or the largest difference, .* not nan"),
        ({"exclude": ["("]}, "exclude: not a regular expression: '\\('"),
        ({"exclude": 3}, r"exclude must be a list of names, such as \['name'\], not 3"),
        ({"options": {"strict": True}}, r"options must be tf_blockdnn.Options\(...\), not {'str"),
    ],
)
def test_bad_options(functional, arguments, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        bd.optimize(functional, **arguments)


def test_calls_with_other_arguments(kernel, pictures):
    signature = [tf.TensorSpec([None, 16, 16, 3], name="x")]
    function = tf.function(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"), input_signature=signature)
    fast = bd.optimize(function)
    for given in ((), (pictures, pictures)):
        with pytest.raises(TypeError, match=r"; the function takes \w+: float32 \(None, 16"):
            fast(*given)
    for given, kind in ((None, "NoneType"), ([[1.0], [2.0, 3.0]], "list"), (object(), "object")):
        with pytest.raises(TypeError, match=rf"^argument 0 must be float32 .*, 3\), got {kind}$"):
            fast(given)


def test_load_takes_folders(functional, tmp_path):
    functional.save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match="a file that Keras wrote; tf_blockdnn.optimize reads it"):
        bd.load(tmp_path / "model.keras")


def test_a_function_that_calls_its_own_result(kernel, pictures):
    """Traced with a lock that its own call wants once more; it must not wait for itself."""
    made = []

    @tf.function
    def function(x):
        y = tf.nn.conv2d(x[:1], kernel, 1, "SAME")
        return y if x.shape[0] == 1 else tf.concat([y, made[0](x[1:])], 0)

    made.append(bd.optimize(function))
    made[0](pictures[:1])
    got = []
    thread = threading.Thread(target=lambda: got.append(made[0](pictures[:3])), daemon=True)
    thread.start()
    thread.join(30)
    wanted = tf.nn.conv2d(pictures[:3], kernel, 1, "SAME")
    np.testing.assert_allclose(got[0], wanted, atol=1e-4)


def test_first_calls_from_eight_threads(kernel, pictures, in_threads):
    fast = bd.optimize(tf.function(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME")))
    given = [pictures[: 1 + i % 4] * (1.0 + i) for i in range(8)]
    got = in_threads(8, lambda i: [fast(given[i]) for _ in range(5)])
    assert len(fast.calls) == 4
    for results, x in zip(got, given, strict=True):
        for result in results:
            np.testing.assert_allclose(result, tf.nn.conv2d(x, kernel, 1, "SAME"), atol=1e-3)


def test_handles_are_arguments(kernel, pictures):
    """A resource and a variant have no NumPy dtype."""
    scale = tf.Variable(2.0)
    specs = [tf.TensorSpec([], tf.resource), tf.TensorSpec([], tf.variant)]

    @tf.function(input_signature=[*specs, tf.TensorSpec([None, 16, 16, 3])])
    def function(handle, numbers, x):
        factor = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        return tf.nn.conv2d(x, kernel, 1, "SAME"), factor, numbers

    fast = bd.optimize(function)
    assert fast.report.count("BlockdnnConv") == 1
    shape = tf.constant([], tf.int32)
    numbers = tf.raw_ops.TensorListFromTensor(tensor=tf.ones([1]), element_shape=shape)
    for x in (pictures, tf.constant(pictures)):
        y, factor, _ = fast(scale.handle, numbers, x)
        np.testing.assert_allclose(y, tf.nn.conv2d(x, kernel, 1, "SAME"), atol=1e-4)
        assert factor == 2.0


_RAGGED, _SPARSE = tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.sparse.from_dense([[0.0, 1.0]])
_ARGUMENTS = {
    "int": (lambda y, n: y * tf.cast(n, tf.float32), tf.constant(3)),
    "int of Python": (lambda y, n: y * n, 3),
    "bool": (lambda y, b: tf.where(b, y, -y), tf.constant(True)),
    "bool of Python": (lambda y, b: y if b else -y, False),
    "string": (lambda y, s: y * tf.strings.to_number(s), tf.constant("2.5")),
    "string of Python": (lambda y, s: y * float(len(s)), "abc"),
    "ragged": (lambda y, r: y * tf.reduce_sum(r), _RAGGED),
    "sparse": (lambda y, s: y * tf.sparse.reduce_sum(s), _SPARSE),
    "variable": (lambda y, v: y * v, tf.Variable(2.0)),
    "dtype": (lambda y, d: tf.cast(y, d), tf.float64),
    "range": (lambda y, r: y * len(r), range(2)),
    "nest": (lambda y, d: y * d["a"][0] + d["b"], {"a": (tf.constant(2.0),), "b": 1.0}),
}


@pytest.mark.parametrize("kind", _ARGUMENTS)
def test_arguments_of_all_kinds(kernel, pictures, kind):
    use, argument = _ARGUMENTS[kind]
    function = tf.function(lambda x, given: use(tf.nn.conv2d(x, kernel, 1, "SAME"), given))
    fast = bd.optimize(function)
    for _ in range(2):
        np.testing.assert_allclose(
            fast(pictures, argument), function(pictures, argument), atol=1e-3
        )
    assert len(fast.calls) == 1 and fast.report.count("BlockdnnConv") == 1


def test_a_pruned_graph_of_version_1(floats, same):
    """It has no signature, and is called by its tensors."""
    v1, kernel = tf.compat.v1, floats(3, 3, 3, 16)
    with tf.Graph().as_default() as graph:
        gain = v1.placeholder(tf.float32, [], name="gain")
        image = v1.placeholder(tf.float32, [None, 6, 6, 3], name="image")
        tf.nn.relu(tf.nn.conv2d(image, kernel, 1, "SAME") * gain, name="scores")
    whole = v1.wrap_function(lambda: tf.import_graph_def(graph.as_graph_def(), name=""), [])
    values, two = tf.constant(floats(2, 6, 6, 3)), tf.constant(2.0)
    several = whole.prune(["image:0", "gain:0"], ["scores:0"])
    named = whole.prune({"i": "image:0", "g": "gain:0"}, {"s": "scores:0"})
    for original, kwargs in ((several, {}), (named, {"image": values, "gain": two})):
        args = () if kwargs else (values, two)
        fast = bd.optimize(original, options=bd.Options(strict=True))
        assert fast.report.count("BlockdnnConv") == 1
        got, wanted = fast(*args, **kwargs), original(*args, **kwargs)
        tf.nest.map_structure(same, got, wanted)
