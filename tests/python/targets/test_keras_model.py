"""The result for a Keras model is a Keras model, of the Keras that the original came from."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd


@pytest.fixture
def subclass(library):
    class Small(library.Model):
        def __init__(self):
            super().__init__()
            self.conv = library.layers.Conv2D(16, 3, activation="relu")

        def call(self, x):
            return self.conv(x)

    return Small


def test_it_is_a_model_of_the_same_keras(library, functional, pictures, same):
    fast = bd.optimize(functional)
    assert isinstance(fast, library.Model) and fast.report.count("BlockdnnConv") == 1
    same(fast(tf.constant(pictures)), functional(pictures))
    same(fast(pictures), functional(pictures))
    with pytest.raises(ValueError, match="call the original for what it does with training=True"):
        fast(pictures, training=True)
    with tf.GradientTape():  # as a frozen layer of a model that is trained
        same(fast(pictures, training=True), functional(pictures))


def test_predict_and_evaluate(library, functional, pictures, same):
    functional.compile("sgd", "mse", metrics=["mae"])
    fast, steps = bd.optimize(functional), []

    class Count(library.callbacks.Callback):
        def on_predict_batch_end(self, batch, logs=None):
            steps.append(batch)

    got = fast.predict(pictures, batch_size=3, verbose=0, callbacks=[Count()])
    same(got, functional.predict(pictures, verbose=0))
    # Keras's own step makes eager calls, which are faster than those of a function.
    assert not isinstance(fast.predict_function, tf.types.experimental.PolymorphicFunction)
    assert steps == [0, 1, 2]
    labels = np.zeros((8, 4), np.float32)
    wanted = functional.evaluate(pictures, labels, verbose=0)
    same(fast.evaluate(pictures, labels, verbose=0), wanted)


@pytest.mark.parametrize("is_compiled", [True, False], ids=["before", "after"])
def test_losses_and_metrics_go_by_names_of_results(library, pictures, is_compiled):
    x = library.Input([16, 16, 3])
    ends = [library.layers.Conv2D(2, 3, name=name)(x) for name in ("head", "tail")]
    model = library.Model(x, ends)
    losses = {"loss": {"head": "mse", "tail": "mae"}, "metrics": {"tail": ["mse"]}}
    if is_compiled:
        model.compile(**losses)
    fast = bd.optimize(model)
    if not is_compiled:
        model.compile(**losses)
        fast.compile(**losses)
    labels = {name: np.ones([8, 14, 14, 2], np.float32) for name in ("head", "tail")}
    wanted = model.evaluate(pictures, labels, verbose=0, return_dict=True)
    got = fast.evaluate(pictures, labels, verbose=0, return_dict=True)
    assert got.keys() == wanted.keys()
    np.testing.assert_allclose([*got.values()], [*wanted.values()], rtol=1e-4)


def test_progress_is_keras_own(functional, pictures, capsys):
    bd.optimize(functional).predict(pictures, batch_size=4)
    assert "2/2" in capsys.readouterr().out


def test_a_layer_of_another_model(library, functional, pictures, same):
    fast = bd.optimize(functional)
    x = library.Input([16, 16, 3])
    outer = library.Model(x, library.layers.Dense(2)(fast(x)))
    wanted = outer.layers[-1](functional(pictures))
    same(outer(pictures), wanted)
    same(outer.predict(pictures, verbose=0), wanted)
    assert fast.count_params() == 0 and len(outer.trainable_variables) == 2
    outer.compile("sgd", "mse")
    outer.fit(pictures, np.zeros((8, 2)), verbose=0)  # trains the layer after it


def test_in_dataset_map(functional, pictures, same):
    fast = bd.optimize(functional)
    batches = tf.data.Dataset.from_tensor_slices(pictures).batch(4).map(fast)
    same(np.concatenate(list(batches.as_numpy_iterator())), functional(pictures))


def test_a_subclassed_model_that_was_called(subclass, pictures, same):
    model = subclass()
    model(pictures)
    fast = bd.optimize(model)
    same(fast(pictures[:3]), model(pictures[:3]))
    assert fast.report.count("BlockdnnConv") == 1


@pytest.mark.filterwarnings("ignore:.*does not have a .build")
def test_a_subclassed_model_that_keras_built(subclass, pictures, same):
    model = subclass()
    model.build((None, 16, 16, 3))
    fast = bd.optimize(model)
    same(fast(pictures[:3]), model(pictures[:3]))
    assert fast.report.count("BlockdnnConv") == 1


def test_a_subclassed_model_of_unknown_shapes(subclass, pictures, same):
    model = subclass()
    with pytest.raises(ValueError, match="call the model or build it first, or give input_sig"):
        bd.optimize(model)
    fast = bd.optimize(model, input_signature=[tf.TensorSpec([None, 16, 16, 3])])
    same(fast(pictures), model(pictures))


def test_an_optimised_model_again(functional, pictures, same):
    again = bd.optimize(bd.optimize(functional))
    same(again(pictures), functional(pictures))
    same(again.predict(pictures, verbose=0), functional(pictures))


def test_inputs_outputs_and_shapes(library, functional, pictures, same):
    fast = bd.optimize(functional)
    assert repr(fast).startswith(f"<optimized Keras model {fast.name}: converted: 100 %")
    assert fast.input_shape == tuple(functional.input_shape)
    assert fast.output_shape == tuple(functional.output_shape)
    for batch in (None, 5):
        shape = (batch, *functional.input_shape[1:])
        assert fast.compute_output_shape(shape) == tuple(functional.compute_output_shape(shape))
    rebuilt = library.Model(fast.inputs, fast.outputs)
    same(rebuilt.predict(pictures, verbose=0), functional(pictures))


def test_shapes_of_many_inputs_and_outputs(library, floats):
    a, b = library.Input([8, 8, 3], name="zz"), library.Input([8, 8, 3], name="aa")
    y = library.layers.Conv2D(16, 3)(library.layers.add([a, 2.0 * b]))
    model = library.Model([a, b], [y, library.layers.GlobalAveragePooling2D()(y)])
    fast = bd.optimize(model)
    assert fast.report.count("BlockdnnConv") == 1
    assert [tuple(tensor.shape) for tensor in fast.inputs] == [(None, 8, 8, 3)] * 2
    assert fast.output_shape == [(None, 6, 6, 16), (None, 16)]
    shapes = fast.compute_output_shape([(2, 8, 8, 3)] * 2)
    assert list(shapes) == [(2, 6, 6, 16), (2, 16)]


@pytest.mark.parametrize("weights", ["snapshot", "live"])
def test_a_model_whose_variables_a_strategy_distributes(library, pictures, weights, same, tmp_path):
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    with strategy.scope():
        x = library.Input([16, 16, 3])
        y = library.layers.BatchNormalization()(library.layers.Conv2D(16, 3)(x))
        model = library.Model(x, y)
    fast, wanted = bd.optimize(model, weights=weights), model(pictures)
    same(fast(pictures), wanted)
    same(strategy.run(tf.function(fast), [tf.constant(pictures)]), wanted)
    model.set_weights([value * 0.5 for value in model.get_weights()])
    same(fast(pictures), wanted if weights == "snapshot" else model(pictures))
    fast.save(tmp_path / "fast")
    (got,) = bd.load(tmp_path / "fast")(pictures).values()
    same(got, fast(pictures))
