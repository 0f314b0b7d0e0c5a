"""`bd.callbacks`: `fit` and `evaluate` by the optimised model, in both versions of Keras."""

import importlib

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.targets.live import LiveCall


@pytest.fixture(params=["keras", "tf_keras"])
def library(request):
    return importlib.import_module(request.param)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    return rng.standard_normal((20, 12, 12, 3)).astype("f"), rng.integers(0, 3, 20)


@pytest.fixture
def fast_calls(monkeypatch):
    """What calls of optimised functions were traced or run."""
    calls, run = [], LiveCall.run
    monkeypatch.setattr(LiveCall, "run", lambda *given: calls.append(given) or run(*given))
    return calls


def _model(library, step=None, **options):
    """Without BatchNormalization where there is a step, which would move its means."""
    library.utils.set_random_seed(3)
    layers = library.layers
    x = layers.Input((12, 12, 3))
    y = layers.Conv2D(16, 3, kernel_regularizer="l2", **options)(x)
    y = layers.BatchNormalization()(y) if step is None else y
    y = layers.Dropout(0.5)(layers.ReLU()(y))
    y = layers.Dense(3)(layers.Flatten()(y))
    members = {} if step is None else {"test_step": step}
    model = type("Mine", (library.Model,), members)(x, y)
    loss = library.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, metrics=["accuracy"])
    return model


def _fit(model, data, callbacks, epochs=3):
    """What is logged while and after training; batches of the last are smaller."""
    options = dict(validation_data=data, validation_batch_size=8, batch_size=8, verbose=0)
    logs = model.fit(*data, epochs=epochs, callbacks=callbacks, **options).history
    lone = model.evaluate(*data, callbacks=callbacks, return_dict=True, verbose=0)
    return logs | {f"lone {name}": value for name, value in lone.items()}


def _assert_same(got, wanted):
    assert got.keys() == wanted.keys()
    for name, values in wanted.items():
        np.testing.assert_allclose(got[name], values, rtol=1e-4, err_msg=name)


def test_validates_by_the_weights_of_each_epoch(library, data, fast_calls):
    wanted = _fit(_model(library), data, [])
    callback = bd.callbacks.Optimized()
    _assert_same(_fit(_model(library), data, [callback]), wanted)
    assert fast_calls and callback.report.count("BlockdnnConv") == 1


def test_a_step_of_the_class_runs_the_model_where_it_trains(library, data, fast_calls):
    """As for the uncertainty of dropout."""

    def step(self, inputs):
        x, _ = inputs
        calls = {"fast": self(x, training=False), "dropped": self(x, training=True)}
        return {name: tf.reduce_mean(tf.square(value)) for name, value in calls.items()}

    got = _fit(_model(library, step), data, [bd.callbacks.Optimized()], 1)
    assert fast_calls and got["val_fast"] != got["val_dropped"]
    wanted = _fit(_model(library, step), data, [], 1)
    for name in ("val_fast", "lone fast"):
        np.testing.assert_allclose(np.array(got[name]), np.array(wanted[name]), rtol=1e-4)


def test_another_loss_and_other_weights(library, data, fast_calls):
    model, callback = _model(library), bd.callbacks.Optimized()
    _fit(model, data, [callback], 1)
    model.compile("sgd", library.losses.SparseCategoricalCrossentropy(), metrics=["accuracy"])
    model.set_weights([2 * value for value in model.get_weights()])
    fast_calls.clear()
    got = model.evaluate(*data, callbacks=[callback], return_dict=True, verbose=0)
    assert fast_calls
    _assert_same(got, model.evaluate(*data, return_dict=True, verbose=0))


def test_what_cannot_be_is_tested_as_ever(library, data):
    wanted = _fit(_model(library, activity_regularizer="l2"), data, [], 1)
    callback = bd.callbacks.Optimized()
    with pytest.warns(UserWarning, match="layers add losses as they are called"):
        got = _fit(_model(library, activity_regularizer="l2"), data, [callback], 1)
    _assert_same(got, wanted)
    assert callback.report is None
