"""Gradients through an optimised function run through the original."""

import gc
import weakref

import keras
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.calls.gradient import with_gradient


def taped(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(function(x) ** 2)
    return tape.gradient(loss, x)


def test_eager_traced_and_symbolic(functional, pictures, same):
    fast, x = bd.optimize(functional), tf.constant(pictures)
    wanted = taped(functional, x)
    assert float(tf.reduce_max(tf.abs(wanted))) > 1e-3
    same(taped(fast, x), wanted)
    same(tf.function(lambda x: taped(fast, x))(x), wanted)
    same(tf.function(lambda x: tf.gradients(tf.reduce_sum(fast(x) ** 2), x)[0])(x), wanted)
    assert any("original" in note for note in fast.report.notes)


def test_second_order(functional, pictures, same):
    fast, x = bd.optimize(functional), tf.constant(pictures)

    def twice(function):
        with tf.GradientTape() as tape:
            tape.watch(x)
            slope = tf.reduce_sum(taped(function, x) ** 2)
        return tape.gradient(slope, x)

    same(twice(fast), twice(functional))


def test_several_inputs_and_outputs(weights, same, floats):
    kernel = weights(3, 3, 16, 16)
    specs = [tf.TensorSpec([None, 8, 8, 16]), tf.TensorSpec([], tf.int32), tf.TensorSpec([])]

    @tf.function(input_signature=specs)
    def function(x, shift, scale):
        y = tf.nn.conv2d(x, kernel, 1, "SAME")
        return {"y": y * scale, "rolled": tf.roll(x, shift, 1), "index": shift + 1}

    fast, values = bd.optimize(function), [tf.constant(floats(2, 8, 8, 16)), tf.constant(2)]

    def slopes(function):
        scale = tf.Variable(3.0)
        with tf.GradientTape() as tape:
            tape.watch(values[0])
            got = function(*values, scale)
            loss = tf.reduce_sum(got["y"] ** 2) + tf.reduce_sum(got["rolled"])
        return tape.gradient(loss, [values[0], scale])

    same(slopes(fast), slopes(function))


def test_the_original_is_not_kept(weights, floats):
    def make():
        kernel = weights(3, 3, 3, 16)
        signature = [tf.TensorSpec([None, 8, 8, 3])]
        return bd.optimize(
            tf.function(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"), input_signature=signature)
        )

    fast = make()
    gc.collect()
    with pytest.raises(LookupError, match="original, which is gone: keep a reference"):
        taped(fast, tf.constant(floats(1, 8, 8, 3)))


def test_a_path_is_read_again(functional, pictures, same, tmp_path):
    functional.save(tmp_path / "model.h5")
    x = tf.constant(pictures)
    same(taped(bd.optimize(tmp_path / "model.h5"), x), taped(functional, x))


def test_an_optimised_saved_model(functional, pictures, same, tmp_path):
    """Nobody has its original: the gradient goes back through the ops of its regions."""
    bd.optimize(functional).save(tmp_path / "fast")
    x, fast = tf.constant(pictures), bd.load(tmp_path / "fast")
    same(taped(lambda x: fast(x)["output_0"], x), taped(functional, x))
    loaded = tf.saved_model.load(str(tmp_path / "fast"))
    signature = loaded.signatures["serving_default"]
    same(taped(lambda x: signature(x)["output_0"], x), taped(functional, x))


def test_an_optimised_recurrent_saved_model(floats, same, tmp_path):
    model = keras.Sequential([keras.Input((5, 3)), keras.layers.LSTM(4), keras.layers.Dense(2)])
    bd.optimize(model).save(tmp_path / "fast")
    fast, x = bd.load(tmp_path / "fast"), tf.constant(floats(2, 5, 3))
    same(taped(lambda x: fast(x)["output_0"], x), taped(model, x))


def test_a_saved_function_of_the_users(functional, pictures, same, tmp_path):
    fast, module = bd.optimize(functional), tf.Module()
    module.held = fast.trackables
    module.double = tf.function(
        lambda x: 2.0 * fast(x), input_signature=[tf.TensorSpec([None, 16, 16, 3])]
    )
    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))
    same(loaded.double(pictures), 2.0 * functional(pictures))
    x = tf.constant(pictures)
    same(taped(loaded.double, x), taped(lambda x: 2.0 * functional(x), x))


def by_weights(function, x, variables):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(function(x) ** 2)
    return tape.gradient(loss, variables)


def test_weights_of_the_original_have_none(functional, pictures, library):
    """Not None, which an optimizer leaves out in silence: an error where it is used."""
    fast, x = bd.optimize(functional), tf.constant(pictures)
    assert by_weights(functional, x, functional.trainable_variables)[0] is not None
    for again in (lambda x: fast(x), lambda x: sum(fast(x) for _ in range(8))):
        with pytest.raises(NotImplementedError, match="^an optimised function has no gradient by"):
            gradients = by_weights(again, x, functional.trainable_variables)
            optimizer = library.optimizers.SGD()
            optimizer.apply_gradients(zip(gradients, functional.trainable_variables, strict=True))
    with pytest.raises(NotImplementedError, match="train the original, then call tf_blockdnn.opt"):
        weight = functional.trainable_variables[0]
        tf.function(lambda x: tf.convert_to_tensor(by_weights(fast, x, weight)))(x)
    with pytest.raises(NotImplementedError, match="^an optimised function has no gradient by"):
        print(by_weights(fast, x, functional.trainable_variables[0]))


def test_weights_of_others_have_theirs(functional, pictures, same):
    """What stands before and behind an optimised model trains, in and outside of functions."""
    fast, x = bd.optimize(functional), tf.constant(pictures)
    both = scale, shift = tf.Variable(2.0), tf.Variable(1.0)

    def slopes(function):
        return by_weights(lambda x: sum(function(x * scale) for _ in range(8)) + shift, x, both)

    same(slopes(fast), slopes(functional))
    same(tf.function(lambda: slopes(fast))(), slopes(functional))


def test_what_stands_behind_needs_no_original(library, functional, pictures):
    """Nothing goes back through an optimised model for variables behind it."""
    fast, shift = bd.optimize(functional), tf.Variable(1.0)
    fast._first._differentiable = with_gradient(fast._first._run_flat, lambda: None)
    x = tf.constant(pictures)
    assert by_weights(lambda x: fast(x) + shift, x, shift) is not None


def test_no_graph_is_kept(functional, pictures):
    """Functions around an optimised one leave nothing behind, as around any other."""
    fast, graphs = bd.optimize(functional), []

    def around():
        function = tf.function(lambda x: fast(x) * 2.0)
        concrete = function.get_concrete_function(tf.TensorSpec([None, 16, 16, 3]))
        graphs.append(weakref.ref(concrete.graph))
        return function(pictures)

    around()
    gc.collect()
    assert graphs[0]() is None
