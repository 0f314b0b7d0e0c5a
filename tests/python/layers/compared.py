"""Compares a layer of bd.layers with Keras's of the same name and arguments."""

import keras
import numpy as np
import tensorflow as tf

import tf_blockdnn as bd


def pair(name, shapes, blocked, **arguments):
    """(Keras's model of one layer, ours with the same weights), for inputs of these shapes."""

    def model(layers, around):
        inputs = [keras.Input(shape[1:]) for shape in shapes]
        xs = [bd.layers.ToBlocked()(x) for x in inputs] if around else inputs
        y = getattr(layers, name)(**arguments)(xs if len(xs) > 1 else xs[0])
        if around and bd.layers.convert.__globals__["channels_of"](y) is not None:
            y = bd.layers.FromBlocked()(y)
        return keras.Model(inputs, y)

    theirs, ours = model(keras.layers, False), model(bd.layers, blocked)
    rng = np.random.default_rng(5)
    weights = [rng.uniform(0.2, 1, w.shape).astype(np.float32) for w in theirs.weights]
    theirs.set_weights(weights)
    ours.set_weights(weights)
    return theirs, ours


def step(model, inputs, training):
    """(output, gradients of a random sum of it by inputs and weights, weights after the call)."""
    inputs = [tf.constant(x) for x in inputs]
    variables = [v.value for v in model.trainable_variables]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = model(inputs if len(inputs) > 1 else inputs[0], training=training)
        rng = np.random.default_rng(9)
        loss = tf.reduce_sum(y * rng.standard_normal(y.shape).astype(np.float32))
    return y, tape.gradient(loss, [*inputs, *variables]), model.get_weights()


def with_gradients(layer, inputs, **options) -> list:
    """[result, gradients of a sum of its sines by inputs and weights]."""
    inputs = [tf.convert_to_tensor(x) for x in inputs]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = layer(*inputs, **options)
        loss = tf.reduce_sum(tf.sin(tf.cast(y, tf.float32)))
    return [y, *tape.gradient(loss, [*inputs, *layer.trainable_weights])]


def ops_of(function, *inputs) -> list:
    """The types of the ops in its trace."""
    specs = [tf.TensorSpec(x.shape, x.dtype) for x in inputs]
    graph = tf.function(function).get_concrete_function(*specs).graph
    return [op.type for op in graph.get_operations()]


def close(ours, theirs, what, rtol=3e-5):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, what
    limit = rtol * max(1.0, np.abs(theirs).max(initial=0))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=limit, err_msg=what)


def check(name, shapes, blocked, *, positive=False, **arguments):
    """Outputs, gradients, moving averages, shapes, types and configuration agree."""
    theirs, ours = pair(name, shapes, blocked, **arguments)
    assert ours.output_shape == theirs.output_shape
    rng = np.random.default_rng(2)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    for training in (False, True):
        expected, got = step(theirs, inputs, training), step(ours, inputs, training)
        close(got[0], expected[0], f"{name}, training {training}")
        for i, (g, e) in enumerate(zip(got[1], expected[1], strict=True)):
            close(g, e, f"{name}: gradient {i}, training {training}")
        for g, e in zip(got[2], expected[2], strict=True):
            close(g, e, f"{name}: weights, training {training}")
    own = next(x for x in ours.layers if type(x).__name__ == name and x.name != "input")
    their = next(x for x in theirs.layers if type(x).__name__ == name)
    config, expected = own.get_config(), their.get_config()
    config.pop("blocked_channels", None)
    for c in (config, expected):
        c.pop("name")
    assert config == expected
    again = type(own).from_config(own.get_config())
    assert again.get_config() == own.get_config()
    assert [w.name for w in own.weights] == [w.name for w in their.weights]
    assert own.supports_jit is False
