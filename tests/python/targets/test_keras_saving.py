"""An optimised Keras model, and models around it, written, copied and loaded, or refused."""

import copy
import pickle

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd


@pytest.fixture
def enclosing(library, functional):
    """A functional model that has the optimised one as a layer."""
    x = library.Input([16, 16, 3])
    return library.Model(x, library.layers.Dense(2)(bd.optimize(functional)(x)))


def test_files_of_keras_are_refused(functional, tmp_path):
    fast = bd.optimize(functional)
    with pytest.raises(ValueError, match="fast.keras: .* is written as a SavedModel; give the"):
        fast.save(tmp_path / "fast.keras")
    assert not list(tmp_path.iterdir())


def test_saved(functional, pictures, same, tmp_path):
    fast = bd.optimize(functional)
    fast.save(tmp_path / "fast")
    same(bd.load(tmp_path / "fast")(pictures)["output_0"], functional(pictures))
    with pytest.raises(FileExistsError, match="fast exists: give overwrite=True"):
        fast.save(tmp_path / "fast", overwrite=False)


def test_exported(functional, pictures, same, tmp_path):
    """As Keras exports the original: with `serve`, as a method and as a signature."""
    bd.optimize(functional).export(tmp_path / "fast", verbose=False)
    loaded = tf.saved_model.load(str(tmp_path / "fast"))
    same(loaded.serve(tf.constant(pictures)), functional(pictures))
    assert sorted(loaded.signatures) == ["serve", "serving_default"]
    same(bd.load(tmp_path / "fast")(pictures)["output_0"], functional(pictures))


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


COPIES = {
    "get_config": lambda model, library: model.get_config(),
    "deepcopy": lambda model, library: copy.deepcopy(model),
    "copy": lambda model, library: copy.copy(model),
    "pickle": lambda model, library: pickle.dumps(model),
    "clone_model": lambda model, library: library.models.clone_model(model),
    "to_json": lambda model, library: model.to_json(),
}


@pytest.mark.parametrize("way", COPIES)
def test_what_would_need_layers_is_refused(library, functional, enclosing, way):
    is_own = way not in ("copy", "deepcopy")  # which shares what a result consists of
    for model in [bd.optimize(functional)] * is_own + [enclosing] * (way != "copy"):
        with pytest.raises(NotImplementedError, match="^an optimised model is a function.*export"):
            COPIES[way](model, library)


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


@pytest.mark.parametrize("name", ["outer.keras", "outer.h5"])
def test_an_enclosing_model_in_a_file_of_keras(enclosing, functional, tmp_path, name):
    """Of one around it Keras has opened the file by then, as for any layer without config."""
    with pytest.raises(NotImplementedError, match="^an optimised model is a function[^\n]*export"):
        enclosing.save(tmp_path / name)
    for path in tmp_path.iterdir():
        path.unlink()
    with pytest.raises(ValueError, match="^[^\n]*an optimised model is written as a SavedModel"):
        bd.optimize(functional).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


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
