"""What is the user's stays as it was, whatever we make of it: its bytes, its settings, its uses."""

import gc
import os
import pathlib
import random
import warnings
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter.rewrite import UNTOUCHED
from tf_blockdnn.python.saved_model import rewrite_saved_model
from tf_blockdnn.python.targets import Settings
from tf_blockdnn.python.tensorflow_private import concrete_function, context, def_function

try:
    import tf_keras
except ImportError:
    tf_keras = None

_SPEC = tf.TensorSpec([None, 8, 8, 4], tf.float32, name="image")
_PLAIN = (int, float, str, bytes, bool, type(None))
_HOLDERS = (tf.Module, tf.Variable, keras.layers.Layer, keras.Variable, def_function.Function)
_HOLDERS += (concrete_function.ConcreteFunction,)  # Layers of Keras 2 are modules.


class Target(NamedTuple):
    """Attributes:
    given: to be optimised: an object or a path.
    call: the original, or None of a path.
    roots: what the user holds.
    """

    given: Any
    call: Any
    roots: tuple


def _functional(library):
    """Layers of several kinds; Keras gives a grouped convolution to XLA."""
    layers = library.layers
    x = library.Input([8, 8, 4], name="image")
    y = layers.BatchNormalization()(layers.Conv2D(16, 3, padding="same", groups=2)(x))
    y = layers.Dropout(0.5)(layers.ReLU()(y))
    y = layers.GlobalAveragePooling2D()(layers.Conv2D(16, 3)(y))
    return library.Model(x, layers.Dense(24)(y))


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.first, self.second = keras.layers.Conv2D(16, 3), keras.layers.Dense(24)
        self.notes = {"made": [1, 2]}

    def call(self, x):
        return self.second(tf.reduce_mean(self.first(x), [1, 2]))


class Network(tf.Module):
    """A branch and a loop in it call functions of their own."""

    def __init__(self):
        super().__init__()
        draw = np.random.default_rng(2).standard_normal
        self.kernel = tf.Variable(draw([3, 3, 4, 16]).astype(np.float32) / 6)
        self.inner = tf.Variable(draw([3, 3, 16, 16]).astype(np.float32) / 12)
        self.dense = tf.Variable(draw([16, 24]).astype(np.float32) / 4)
        self.notes = {"made": [1, 2]}

    def __call__(self, x):
        y = tf.nn.relu(tf.nn.conv2d(x, self.kernel, 1, "SAME"))
        convolve = lambda y: tf.nn.conv2d(y, self.inner, 1, "SAME")  # noqa: E731
        y = tf.cond(tf.reduce_sum(x) > 0.0, lambda: convolve(y), lambda: y - 1.0)
        y = tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, tf.nn.elu(y)), [0, y])[1]
        return tf.tensordot(convolve(y), self.dense, 1)


def _function(network, **options):
    return tf.function(network.__call__, autograph=False, **options)


def _saved(folder):
    network = Network()
    function = _function(network, input_signature=[_SPEC])
    signature = tf.function(lambda image: {"y": function(image)}, input_signature=[_SPEC])
    tf.saved_model.save(network, folder, signatures=signature)
    return folder


def _keras_3(folder):
    model = _functional(keras)
    return Target(model, model, (model,))


def _keras_3_own(folder):
    model = Subclassed()
    model(tf.ones([1, 8, 8, 4]))
    return Target(model, model, (model,))


def _keras_2(folder):
    model = _functional(tf_keras)
    return Target(model, model, (model,))


def _signed(folder):
    network = Network()
    function = _function(network, input_signature=[_SPEC])
    return Target(function, function, (network, function))


def _unsigned(folder):
    network = Network()
    function = _function(network)
    return Target(function, function, (network, function))


def _concrete(folder):
    network = Network()
    concrete = _function(network).get_concrete_function(_SPEC)
    return Target(concrete, concrete, (network, concrete))


def _module(folder):
    network = Network()
    return Target(network, network, (network,))


def _loaded(folder):
    loaded = tf.saved_model.load(_saved(folder))
    call = loaded.signatures["serving_default"]
    return Target(loaded, lambda image: call(image=image)["y"], (loaded, call))


def _path(folder):
    return Target(_saved(folder), None, ())


def _keras_file(folder):
    path = folder.with_suffix(".keras")
    _functional(keras).save(path)
    return Target(path, None, ())


_KINDS = {
    "Keras 3": _keras_3,
    "Keras 3, subclassed": _keras_3_own,
    "Keras 2": _keras_2,
    "tf.function with a signature": _signed,
    "tf.function": _unsigned,
    "ConcreteFunction": _concrete,
    "tf.Module": _module,
    "loaded SavedModel": _loaded,
    "SavedModel on disk": _path,
    "Keras file": _keras_file,
}
_ON_DISK = ("SavedModel on disk", "Keras file")


def _process() -> dict:
    mask = os.umask(0)
    os.umask(mask)
    threading = tf.config.threading
    return {
        "umask": mask,
        "folder": os.getcwd(),
        "environ": dict(os.environ),
        "collector": (gc.isenabled(), gc.get_threshold()),
        "filters": list(warnings.filters),
        "inter-op threads": threading.get_inter_op_parallelism_threads(),
        "intra-op threads": threading.get_intra_op_parallelism_threads(),
        "options": tf.config.optimizer.get_experimental_options(),
        "jit": tf.config.optimizer.get_jit(),
        "placement": tf.config.get_soft_device_placement(),
        "eager": (tf.config.functions_run_eagerly(), tf.executing_eagerly()),
        "random": (random.getstate(), str(np.random.get_state())),
        "float type": (keras.config.floatx(), keras.config.image_data_format()),
    }


def _functions() -> dict[str, bytes]:
    """What the eager context knows, by name."""
    known = context.context()
    names = known.list_function_names()
    return {name: _bytes(known.get_function_def(name)) for name in names}


def _registered() -> set[str]:
    """The names of functions, without those of ops that were called eagerly, which stay."""
    return {
        name
        for name in context.context().list_function_names()
        if not name.startswith("__wrapped__")
    }


def _bytes(proto) -> bytes:
    return proto.SerializeToString(deterministic=True)


def _held(roots) -> list:
    """The user's objects that can be reached by attributes, each before what it has."""
    holders, seen, waiting = [], set(), list(roots)
    for item in waiting:
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, (list, tuple, set)):
            waiting.extend(item)
        elif isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, _HOLDERS):
            holders.append(item)
            waiting.extend(getattr(item, "__dict__", {}).values())
    return holders


def _attributes(item) -> dict:
    def shown(value):
        if isinstance(value, (list, tuple)):
            return [shown(item) for item in value]
        if isinstance(value, dict):
            return {str(key): shown(item) for key, item in value.items()}
        return value if isinstance(value, _PLAIN) else (type(value).__name__, id(value))

    # TensorFlow notes there what it tracks, and whether a variable was read in a graph.
    names = (n for n in getattr(item, "__dict__", {}) if not n.startswith(("_self_", "_variable_")))
    return {name: shown(vars(item)[name]) for name in names}


def _objects(target: Target) -> dict:
    """label -> what can be compared of each object of the user's, and of each graph."""
    state = {}
    for place, item in enumerate(_held(target.roots)):
        label = f"{place} {type(item).__name__}"
        state[label] = _attributes(item)
        if isinstance(item, tf.Variable):
            state[f"{label} value"] = item.numpy().tobytes()
        if isinstance(item, concrete_function.ConcreteFunction):
            graph = item.graph
            state[f"{label} definition"] = _bytes(item.function_def)
            state[f"{label} graph"] = _bytes(graph.as_graph_def())
            names = graph.get_all_collection_keys()
            state[f"{label} collections"] = {k: graph.get_collection(k) for k in names}
            state[f"{label} attributes"] = _attributes(graph)
    return state


def _files(path) -> dict[str, bytes]:
    path = pathlib.Path(path)
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    return {str(p): p.read_bytes() for p in files}


@pytest.fixture
def image():
    return tf.constant(np.random.default_rng(0).standard_normal([2, 8, 8, 4]), tf.float32)


@pytest.fixture
def calibration():
    return np.random.default_rng(1).standard_normal([8, 8, 8, 4]).astype(np.float32)


def _call(fast, image):
    return fast(image=image) if hasattr(fast, "signatures") else fast(image)


def _use(target: Target, image, folder):
    """Everything that people do with a function: called, traced, mapped, differentiated, saved."""
    call = target.call
    results = {"called": call(image)}
    outer = tf.function(call, input_signature=[_SPEC])
    results["traced"] = outer(image)
    mapped = tf.data.Dataset.from_tensors(image).map(call)
    results["mapped"] = next(iter(mapped))
    with tf.GradientTape() as tape:
        tape.watch(image)
        total = tf.reduce_sum(call(image) ** 2.0)
    results["gradient"] = tape.gradient(total, image)
    holder = tf.Module()
    holder.held = list(target.roots)
    tf.saved_model.save(holder, folder, signatures={"serving_default": outer})
    loaded = tf.saved_model.load(folder).signatures["serving_default"]
    results["saved"] = next(iter(loaded(image=image).values()))
    return {use: np.array(result) for use, result in results.items()}


_OPTIONS = {
    "as it is": {},
    "compared": {"verify": True},
    "autotuned": {"options": bd.Options(autotune=True)},
    "live": {"weights": "live"},
    "bf16 weights": {"precision": "bf16-weights"},
    "int8": {"precision": "int8"},
    "int8 products": {"precision": "int8-dynamic"},
    "int4 weights": {"precision": "int4-weights"},
    "judged": {"precision": "int8", "max_loss": 0.5},
}
# Kinds differ in how they are read, held and called to compare, to choose and for samples. Other
# precisions change what comes behind that, which is tried with a model and a function.
_OF_ALL_KINDS = ("as it is", "compared", "autotuned", "live", "int8")
_WITH_ALL_OPTIONS = ("Keras 3", "tf.function")


@pytest.mark.parametrize("kind", [kind for kind in _KINDS if kind not in _ON_DISK])
def test_what_was_optimised_is_as_it_was(kind, image, calibration, tmp_path):
    gc.collect()
    strange = _registered()
    target = _KINDS[kind](tmp_path / "target")
    wanted = _use(target, image, tmp_path / "before")
    gc.collect()
    before = _objects(target) | _process() | _functions()
    for name in _OPTIONS if kind in _WITH_ALL_OPTIONS else _OF_ALL_KINDS:
        options = _OPTIONS[name]
        if options.get("precision") in ("int8", "int8-dynamic"):
            options = options | {"calibration": calibration}
        fast = bd.optimize(target.given, **options)
        _call(fast, image)
        assert fast.report.converted or name == "autotuned", name
        now = _objects(target) | _process() | _functions()
        assert [key for key in before if now.get(key) != before[key]] == [], name
        del fast
        gc.collect()
        assert _registered() <= _functions().keys(), name
    with bd.enabled(seconds=0, min_gain=0):
        np.testing.assert_allclose(target.call(image), wanted["called"], atol=1e-4)
    gc.collect()
    now = _objects(target) | _process() | _functions()
    assert [key for key in before if now.get(key) != before[key]] == [], "enabled"
    used = _use(target, image, tmp_path / "after")
    for use, result in wanted.items():
        np.testing.assert_array_equal(used[use], result, use)
    del target, before, now  # Nothing of ours holds what the user drops.
    gc.collect()
    assert _registered() <= strange


def test_what_layers_were_converted_from_is_as_it_was(image, tmp_path):
    target = _KINDS["Keras 3"](tmp_path / "target")
    wanted = _use(target, image, tmp_path / "before")
    gc.collect()
    before = _objects(target) | _process() | _functions()
    del before["random"]  # Keras draws a seed for each layer that it makes.
    converted = bd.layers.convert(target.given)
    converted.predict(image, verbose=0)
    now = _objects(target) | _process() | _functions()
    assert [key for key in before if now.get(key) != before[key]] == []
    used = _use(target, image, tmp_path / "after")
    for use, result in wanted.items():
        np.testing.assert_array_equal(used[use], result, use)


@pytest.mark.parametrize("kind", _ON_DISK)
def test_files_are_as_they_were(kind, image, calibration, tmp_path):
    path = _KINDS[kind](tmp_path / "target").given
    gc.collect()
    before = _files(path) | _process() | _functions()
    del before["random"]  # Keras draws a seed for each layer that it reads.
    done = {
        "optimize": lambda: bd.optimize(path),
        "int8": lambda: bd.optimize(path, precision="int8", calibration=calibration),
        "inspect": lambda: rewrite_saved_model(path, Settings()),
        "optimize_saved_model": lambda: bd.optimize_saved_model(path, tmp_path / "out"),
    }
    if kind == "SavedModel on disk":
        done["load"] = lambda: bd.load(path)
    for name, act in done.items():
        assert act() is not None
        gc.collect()
        now = _files(path) | _process() | _functions()
        assert [key for key in before if now.get(key) != before[key]] == [], name
        assert _registered() <= before.keys(), name


@pytest.mark.parametrize(
    "body",
    [
        lambda x, w: tf.reduce_sum(x, [1, 2]) * 2.0,  # The canonical form is a mean.
        lambda x, w: tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.transpose(x), lambda: x),
        lambda x, w: tf.nn.conv2d(x, tf.cast(w, tf.float64), 1, "SAME"),
        lambda x, w: tf.nn.relu(x)[..., ::2] + tf.cast(tf.reduce_sum(w), x.dtype),
    ],
)
@pytest.mark.parametrize(
    "options", [{}, {"weights": "live"}, {"options": bd.Options(autotune=True)}]
)
def test_what_has_nothing_to_convert_is_returned_as_it_was(body, options, image, tmp_path):
    kernel = tf.Variable(tf.random.stateless_normal([3, 3, 4, 16], [1, 2]))
    double = tf.TensorSpec([None, 8, 8, 4], tf.float64)
    function = tf.function(lambda image: {"y": body(image, kernel)}, input_signature=[double])
    concrete = function.get_concrete_function()
    before = _bytes(concrete.graph.as_graph_def())
    fast = bd.optimize(concrete, **options)
    assert fast.concrete is concrete and fast.report.converted == []
    assert UNTOUCHED in fast.report.notes
    image = tf.cast(image, tf.float64)
    wanted = function(image)["y"].numpy()
    del function, concrete
    gc.collect()  # Its weights are held.
    np.testing.assert_array_equal(fast(image)["y"], wanted)
    np.testing.assert_array_equal(tf.function(fast)(image)["y"], wanted)
    assert _bytes(fast.concrete.graph.as_graph_def()) == before
    kernel.assign(kernel * 2.0)
    fast.save(tmp_path)
    saved = tf.saved_model.load(tmp_path).signatures["serving_default"]
    np.testing.assert_array_equal(saved(image=image)["y"], fast(image)["y"])
