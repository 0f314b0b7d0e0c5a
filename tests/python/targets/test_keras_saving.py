"""An optimised Keras model, and models around it, written, copied and loaded, or refused."""

import copy
import gc
import pickle

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd


@pytest.fixture
def enclosing(library, functional):
    """A functional model that has the optimised one as a layer."""
    x = library.Input([16, 16, 3])
    return library.Model(x, library.layers.Dense(2)(bd.optimize(functional)(x)))


def test_saved(functional, pictures, same, tmp_path):
    fast = bd.optimize(functional)
    fast.save(tmp_path / "fast")
    (got,) = bd.load(tmp_path / "fast")(pictures).values()
    same(got, functional(pictures))
    with pytest.raises(FileExistsError, match="fast exists: give overwrite=True"):
        fast.save(tmp_path / "fast", overwrite=False)


def test_exported(functional, pictures, same, tmp_path):
    """As Keras exports the original: with `serve`, as a method and as a signature."""
    bd.optimize(functional).export(tmp_path / "fast", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "fast"))
    same(loaded.serve(tf.constant(pictures)), functional(pictures))
    assert sorted(loaded.signatures) == ["serve", "serving_default"]
    same(bd.load(tmp_path / "fast")(pictures)["output_0"], functional(pictures))


def _two_results(library):
    x = library.Input([16, 16, 3], name="picture")
    y = library.layers.Conv2D(8, 3, activation="relu")(x)
    ends = [library.layers.Conv2D(2, 3, name=name)(y) for name in ("head", "tail")]
    return library.Model(x, ends)


def _results_by_key(library):
    x = library.Input([16, 16, 3], name="picture")
    heads = {"z": "head", "y": "tail"}  # of which "y" comes first for TensorFlow
    ends = {key: library.layers.Conv2D(2, 3, name=name)(x) for key, name in heads.items()}
    return library.Model(x, ends)


def _subclassed(library):
    class Subclassed(library.Model):
        def __init__(self):
            super().__init__()
            self.conv = library.layers.Conv2D(4, 3, name="head")

        def call(self, inputs):
            y = self.conv(inputs["picture"])
            return {"q": y, "p": y + 1.0 if library is keras else (y + 1.0, y * 2.0)}

    model = Subclassed()
    model({"picture": tf.zeros([1, 16, 16, 3])})
    return model


@pytest.mark.parametrize("make", [_two_results, _results_by_key, _subclassed])
@pytest.mark.parametrize("way", ["save", "tf.saved_model.save", "optimize_saved_model"])
def test_tensors_of_a_signature_have_the_same_names(
    library, make, way, pictures, same, tmp_path, monkeypatch
):
    """Keras 2 names results after their layers, Keras 3 unnamed inputs after their places."""
    exported = library is keras and way == "tf.saved_model.save"
    if make is _subclassed and (exported or way == "optimize_saved_model"):
        pytest.skip("only Keras 3's export writes a signature for it, and no file holds its class")
    model, plain, folder = make(library), str(tmp_path / "plain"), str(tmp_path / "fast")
    if library is keras and way != "tf.saved_model.save":
        model.export(plain, verbose=False)
    else:
        tf.saved_model.save(model, plain)
    if way == "save":
        bd.optimize(model).save(folder)
    elif way == "tf.saved_model.save":
        tf.saved_model.save(bd.optimize(model), folder)
    else:
        monkeypatch.setenv("TF_USE_LEGACY_KERAS", str(int(library is not keras)))
        model.save(tmp_path / "model.keras")
        bd.optimize_saved_model(tmp_path / "model.keras", folder)
    wanted = tf.saved_model.load(plain).signatures["serving_default"]
    (name,) = wanted.structured_input_signature[1]
    x = {name: tf.constant(pictures)}
    for load in (tf.saved_model.load, bd.load):
        same(dict(load(folder).signatures["serving_default"](**x)), dict(wanted(**x)))


def test_other_exports_are_refused(functional, tmp_path):
    fast = bd.optimize(functional)
    with pytest.raises(ValueError, match="^an optimised model is exported as a tf_saved_model, no"):
        fast.export(tmp_path / "fast.onnx", format="onnx")
    with pytest.raises(ValueError, match="^give input_signature to tf_blockdnn.optimize"):
        fast.export(tmp_path / "fast", input_signature=[tf.TensorSpec([1, 16, 16, 3])])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("save", ["save", "export"])
def test_an_enclosing_model_is_written_as_a_saved_model(enclosing, pictures, same, tmp_path, save):
    if save == "save":
        tf.saved_model.save(enclosing, str(tmp_path / "outer"))
    else:
        enclosing.export(str(tmp_path / "outer"))
    loaded = tf.saved_model.load(str(tmp_path / "outer"))
    (got,) = loaded.signatures["serving_default"](tf.constant(pictures)).values()
    same(got, enclosing(pictures))
    if save == "export":
        same(loaded.serve(tf.constant(pictures)), enclosing(pictures))
    (got,) = bd.load(tmp_path / "outer")(pictures).values()
    same(got, enclosing(pictures))


def test_a_subclassed_enclosing_model_is_exported(library, functional, pictures, same, tmp_path):
    class Around(library.Model):
        def __init__(self, inner):
            super().__init__()
            self.inner, self.dense = inner, library.layers.Dense(2)

        def call(self, x):
            return self.dense(self.inner(x))

    model = Around(bd.optimize(functional))
    wanted = model(pictures)
    fast = bd.optimize(model)
    same(fast(pictures), wanted)
    fast.export(tmp_path / "fast")
    loaded = tf.saved_model.load(str(tmp_path / "fast"))
    same(loaded.serve(tf.constant(pictures)), wanted)
    tf.saved_model.save(
        model,
        str(tmp_path / "outer"),
        signatures=tf.function(
            lambda x: model(x), input_signature=[tf.TensorSpec([None, 16, 16, 3])]
        ),
    )
    (got,) = bd.load(tmp_path / "outer")(pictures).values()
    same(got, wanted)


def as_file(model, library, folder):
    model.save(folder / "model.keras")
    return bd.load(folder / "model.keras")


def loaded_weights(model, library, folder):
    """Of a model around a result, whose own weights are not those of the result."""
    model.save_weights(folder / "of.weights.h5")
    again = library.models.model_from_json(model.to_json())
    again.load_weights(folder / "of.weights.h5")
    return again


COPIES = {
    "a file": as_file,
    "pickle": lambda model, library, folder: pickle.loads(pickle.dumps(model)),
    "clone_model": lambda model, library, folder: library.models.clone_model(model),
    "deepcopy": lambda model, library, folder: copy.deepcopy(model),
    "weights": loaded_weights,
}


@pytest.mark.parametrize("way", COPIES)
@pytest.mark.parametrize("is_inner", [False, True])
def test_the_original_and_the_options_come_back(
    library, functional, pictures, same, tmp_path, way, is_inner
):
    """With the weights that the result has, whatever the original has by then."""
    if way == "weights" and not is_inner:
        pytest.skip("a result by itself has no weights to save")
    model = bd.optimize(functional, options=bd.Options(algorithm="direct"))
    if is_inner:
        x = library.Input([16, 16, 3])
        model = library.Model(x, library.layers.Dense(2)(model(x)))
    wanted = model(pictures)
    functional.set_weights([2.0 * weight for weight in functional.get_weights()])
    before = functional.get_weights()
    again = COPIES[way](model, library, tmp_path)
    if is_inner and way == "clone_model":  # A clone has new weights: those of the Dense layer.
        again.set_weights(model.get_weights())
    same(again(pictures), wanted)
    same(again.predict(pictures, verbose=0), wanted)
    same(functional.get_weights(), before)
    if way != "clone_model":
        fast = next(one for one in (again, *again.layers) if hasattr(one, "optimized"))
        assert {one.algorithm for one in fast.report.converted} >= {"direct"}
        again.save(tmp_path / "twice.keras")
        same(bd.load(tmp_path / "twice.keras")(pictures), wanted)


@pytest.mark.parametrize("is_inner", [False, True])
def test_without_weights_nothing_is_computed(library, functional, pictures, is_inner):
    """In a process that has the configuration alone."""
    fast = bd.optimize(functional)
    model = fast
    if is_inner:
        x = library.Input([16, 16, 3])
        model = library.Model(x, fast(x))
    text = model.to_json().replace(fast.optimized.key, "of another process")
    with pytest.raises(ValueError, match="this optimised model was made of a configuration"):
        library.models.model_from_json(text)(pictures)


def test_what_a_configuration_cannot_hold(library, functional, pictures):
    fast = bd.optimize(functional, precision="int8", calibration=pictures)
    with pytest.raises(NotImplementedError, match="^calibration data are no part of a config"):
        fast.get_config()
    fast = bd.optimize(functional)
    with pytest.raises(ValueError, match="^an optimised model has no weights to load, set or"):
        fast.load_own_variables({"0": np.zeros(3)})
    del functional
    with pytest.raises(NotImplementedError, match="its options, and the original is gone: keep"):
        gone(library).get_config()


def gone(library):
    fast = bd.optimize(library.Sequential([library.Input([4]), library.layers.Dense(2)]))
    gc.collect()
    return fast


def test_a_result_of_a_class_of_the_users(library, pictures, same):
    @library.saving.register_keras_serializable("somebody")
    class Small(library.Model):
        def __init__(self, filters=8, **kwargs):
            super().__init__(**kwargs)
            self.filters, self.conv = filters, library.layers.Conv2D(filters, 3)

        def call(self, x):
            return self.conv(x)

        def get_config(self):
            return {"filters": self.filters}

    model = Small()
    wanted = model(pictures)
    again = pickle.loads(pickle.dumps(bd.optimize(model)))
    assert isinstance(again, Small) and again.report.count("BlockdnnConv") == 1
    same(again(pictures), wanted)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy])
def test_a_copy_is_a_model_of_the_same_functions(library, functional, pictures, same, way):
    functional.compile(loss="mse", metrics=["mae"])
    fast, x = bd.optimize(functional), tf.constant(pictures)
    wanted = functional(x)
    again = way(fast)
    assert again is not fast and again.name == fast.name and again.optimized is fast.optimized
    functional.set_weights([2.0 * weight for weight in functional.get_weights()])
    same([again(x), again.predict(pictures, verbose=0)], [wanted, wanted])
    again.compile(loss="mae")
    assert fast.loss == "mse" and np.max(again.evaluate(pictures, wanted, verbose=0)) < 1e-4


def test_files_of_layers_are_refused(enclosing, functional, tmp_path):
    """Of one around it Keras has opened the file by then, as for any layer without config."""
    with pytest.raises(NotImplementedError, match="^an optimised model has no layers, of whose"):
        enclosing.save(tmp_path / "outer.h5")
    with pytest.raises(ValueError, match="^[^\n]*an optimised model is written as a SavedModel"):
        bd.optimize(functional).save(tmp_path / "fast.h5")
    assert not (tmp_path / "fast.h5").exists()


def test_weights_are_those_of_the_original(functional, tmp_path):
    fast, file = bd.optimize(functional), str(tmp_path / "of.weights.h5")
    for run in (
        lambda: fast.set_weights(functional.get_weights()),
        lambda: fast.load_weights(file),
        lambda: fast.save_weights(file),
    ):
        with pytest.raises(ValueError, match="^an optimised model has no weights to load, set or"):
            run()
    assert not list(tmp_path.iterdir())
    assert fast.count_params() == 0 and np.size(fast.get_weights()) == 0
