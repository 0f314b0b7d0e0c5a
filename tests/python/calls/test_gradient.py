"""Gradients through an optimised function run through the original."""

import gc

import keras
import pytest
import tensorflow as tf

import tf_blockdnn as bd


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
    with pytest.raises(tf.errors.InvalidArgumentError, match="has no gradient"):
        taped(loaded.double, tf.constant(pictures))
