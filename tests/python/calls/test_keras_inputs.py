"""An optimised Keras model matches and casts its inputs as the original does."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

GIVEN = {"zz": np.full((2, 3), 5.0, np.float32), "aa": np.full((2, 3), 1.0, np.float32)}


def two_inputs(library, structure):
    zz, aa = library.Input([3], name="zz"), library.Input([3], name="aa")
    inputs = {"dict": {"zz": zz, "aa": aa}, "sorted": {"aa": aa, "zz": zz}, "list": [zz, aa]}
    return library.Model(inputs[structure], library.layers.Subtract()([zz, aa]))


@pytest.mark.parametrize("structure", ["dict", "sorted", "list"])
def test_names_decide(library, structure):
    model = two_inputs(library, structure)
    fast = bd.optimize(model)
    for given in (GIVEN, dict(reversed(GIVEN.items())), {k: tf.constant(GIVEN[k]) for k in GIVEN}):
        np.testing.assert_array_equal(fast(given), np.full((2, 3), 4.0))
        np.testing.assert_array_equal(fast(given), model(given))
        np.testing.assert_array_equal(fast.predict(given, verbose=0), np.full((2, 3), 4.0))
    with pytest.raises(ValueError, match="inputs must be named .*, got .*bb"):
        fast({"zz": GIVEN["zz"], "bb": GIVEN["aa"]})


def test_more_names_than_a_list_has_inputs(library):
    model = two_inputs(library, "list")
    given = {**GIVEN, "other": GIVEN["aa"]}
    np.testing.assert_array_equal(bd.optimize(model)(given), np.full((2, 3), 4.0))


@pytest.mark.parametrize("dtype", ["float64", "float16", "int32", "int64", "uint8", "bool"])
def test_casts(library, functional, same, integers, dtype):
    fast, values = bd.optimize(functional), integers(2, 16, 16, 3, low=0).astype(dtype)
    assert fast.report.count("BlockdnnConv") == 1
    same(fast(values), functional(values))
    same(fast(tf.constant(values)), functional(values))
    sequential = library.Sequential([library.Input([16, 16, 3]), library.layers.Conv2D(16, 3)])
    same(bd.optimize(sequential)(tf.constant(values)), sequential(values))


def test_a_last_axis_of_one_comes_and_goes(library):
    x = library.Input([5, 1])
    fast = bd.optimize(library.Model(x, library.layers.Flatten()(x)))
    values = np.ones((2, 5), np.float32)
    np.testing.assert_array_equal(fast(values), values)
    np.testing.assert_array_equal(fast(tf.constant(values)), values)


def test_metrics_are_its_own(functional, pictures, library):
    metric = library.metrics.MeanAbsoluteError()
    functional.compile("sgd", "mse", metrics=[metric])
    bd.optimize(functional).evaluate(pictures, np.zeros((8, 4), np.float32), verbose=0)
    assert float(metric.count) == 0.0


def test_steps_of_the_users_are_not_lost_in_silence(library, pictures, same):
    class Task(library.Model):
        def predict_step(self, data):
            return super().predict_step(data) + 100.0

        def test_step(self, data):
            return {"own": 1.0}

    x = library.Input([16, 16, 3])
    task = Task(x, library.layers.Conv2D(16, 3)(x))
    task.compile("sgd", "mse")
    fast = bd.optimize(task)
    same(fast(pictures), task(pictures))
    for run in (fast.predict, fast.predict_on_batch):
        with pytest.raises(NotImplementedError, match="Task has a predict_step of its own"):
            run(pictures)
    for run in (fast.evaluate, fast.test_on_batch):
        with pytest.raises(NotImplementedError, match="or evaluate of the original"):
            run(pictures, pictures)
