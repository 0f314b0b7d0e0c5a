"""Gradients through an optimised function are those of what ran, with the weights that it has."""

import gc
import weakref

import keras
import numpy as np
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


def test_it_is_of_the_weights_that_ran(functional, pictures, same):
    """Whatever has become of the original's, whose gradient was twice as large before."""
    fast, x = bd.optimize(functional), tf.constant(pictures)
    wanted = taped(functional, x)
    functional.set_weights([2.0 * weight for weight in functional.get_weights()])
    same(taped(fast, x), wanted)
    same(tf.function(lambda x: taped(fast, x))(x), wanted)


def test_effects_happen_once_and_draws_are_the_same(weights, floats, same):
    kernel, count = weights(3, 3, 3, 16), tf.Variable(0.0, trainable=False)

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3])])
    def function(x):
        count.assign_add(1.0)
        noise = tf.random.uniform([1, 8, 8, 16])
        return noise * tf.nn.conv2d(x, kernel, 1, "SAME"), noise

    fast, x = bd.optimize(function), tf.constant(floats(1, 8, 8, 3))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, noise = fast(x)
        plain = noise * tf.nn.conv2d(x, kernel, 1, "SAME")
    same(tape.gradient(y, x), tape.gradient(plain, x))
    assert float(count) == 1.0


def test_nested_and_persistent_tapes_and_jacobians(functional, pictures, same):
    fast, x = bd.optimize(functional), tf.constant(pictures[:1])

    def slopes(function):
        with tf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = function(x)
            first = inner.gradient(y, x)
        return outer.gradient(first, x), outer.gradient(y, x), outer.jacobian(y, x)

    for got, wanted in zip(slopes(fast), slopes(functional), strict=True):
        same(got, wanted)


@pytest.mark.parametrize("wrapped", [lambda ask: ask, tf.function], ids=["eager", "traced"])
def test_recomputed_at_the_first_call(wrapped, weights, floats, same):
    """That traces the original, by whose weights nobody wants a gradient."""
    kernel, x = weights(3, 3, 3, 16), tf.constant(floats(1, 8, 8, 3))
    function = tf.function(lambda x: tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME")))
    fast = bd.optimize(function)
    recomputed = tf.recompute_grad(lambda x: fast(x))
    same(wrapped(lambda x: taped(recomputed, x))(x), taped(function, x))
    assert fast.report.count("BlockdnnConv") == 1


@pytest.mark.parametrize("axis", [[3], [1, 2], [-1, 1]])
@pytest.mark.parametrize("keepdims", [True, False])
def test_logsumexp_has_the_gradient_of_its_formula(axis, keepdims, weights, floats, same):
    """Which takes off and adds a maximum that TensorFlow does not differentiate."""
    kernel, x = weights(3, 3, 3, 16), tf.constant(floats(2, 8, 8, 3))

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3])])
    def function(x):
        y = tf.nn.conv2d(x, kernel, 1, "SAME")
        return tf.reduce_logsumexp(y, axis, keepdims)

    fast = bd.optimize(function)
    assert fast.report.count("BlockdnnConv") == 1
    same(fast(x), function(x))
    same(taped(fast, x), taped(function, x))


def test_through_complex_numbers(weights, floats, same):
    """Which stand at the edges of regions, since nothing of ours computes with them."""
    matrix, x = weights(16, 24), tf.constant(floats(5, 16))

    @tf.function(input_signature=[tf.TensorSpec([None, 16])])
    def function(x):
        y = tf.cast(tf.matmul(x, matrix), tf.complex64)
        return tf.abs(tf.signal.fft(y)), tf.matmul(tf.math.real(y), matrix, transpose_b=True), y

    fast = bd.optimize(function)
    assert fast.report.count("BlockdnnInnerProduct") == 2
    for place in range(3):
        same(*(taped(lambda x: tf.abs(f(x)[place]), x) for f in (fast, function)))  # noqa: B023


@tf.custom_gradient
def rounded(x):
    return tf.round(x), lambda dy: dy


@tf.custom_gradient
def reversed_gradient(x):
    return tf.identity(x), lambda dy: -dy


OWN_GRADIENTS = {
    "a straight-through estimator": lambda y: y + tf.stop_gradient(tf.tanh(y) - y),
    "nothing goes back": tf.stop_gradient,
    "a custom gradient": rounded,
    "a reversed one": reversed_gradient,
    "passed through": tf.grad_pass_through(tf.tanh),
    "a variance of another mean": lambda y: tf.math.squared_difference(
        y, tf.stop_gradient(tf.reduce_mean(y, [1, 2], keepdims=True))
    ),
    "a sum of exponentials of other maxima": lambda y: (
        tf.math.log(
            tf.reduce_sum(tf.exp(y - tf.stop_gradient(tf.reduce_max(y, 1, keepdims=True))), 2)
        )
        + tf.squeeze(tf.stop_gradient(tf.reduce_max(y, 2, keepdims=True)), 2)
    ),
    "in a loop": lambda y: tf.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, y + tf.stop_gradient(y * y)), (0, y)
    )[1],
}


@pytest.mark.parametrize("name", OWN_GRADIENTS)
def test_a_gradient_of_its_own(name, weights, floats, tmp_path):
    """What the formulas do not say is refused, in one line, by whoever asks for it alone."""
    kernel, own = weights(3, 3, 3, 16), OWN_GRADIENTS[name]

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3])])
    def function(x):
        return tf.nn.relu(own(tf.nn.conv2d(x, kernel, 1, "SAME")))

    fast, x = bd.optimize(function), tf.constant(floats(1, 8, 8, 3))
    assert fast.report.count("BlockdnnConv") == 1
    np.testing.assert_allclose(fast(x), function(x), atol=1e-5)
    message = "the function has a gradient of its own at .*: take the gradient of the original"
    for ask in (taped, tf.function(taped)):
        with pytest.raises(NotImplementedError, match=message):
            ask(fast, x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        loss = tf.reduce_sum(tf.stop_gradient(fast(x))) * tf.reduce_sum(x)
    assert tape.gradient(loss, x) is not None
    fast.save(tmp_path)
    loaded, again = tf.saved_model.load(str(tmp_path)), bd.load(tmp_path)
    for saved in (loaded.signatures["serving_default"], again):
        with pytest.raises((NotImplementedError, LookupError), match=message[:40]):
            taped(lambda x, saved=saved: saved(x=x)["output_0"], x)


ORDINARY_GRADIENTS = {
    "silu": tf.nn.silu,
    "silu with beta": lambda y: tf.nn.silu(y, 1.5),
    "moments": lambda y: sum(tf.nn.moments(y, [1, 2], keepdims=True)) * y,
    "of integers": lambda y: y * tf.cast(tf.stop_gradient(tf.argmax(y, -1)), tf.float32)[..., None],
    "of a constant": lambda y: y * tf.stop_gradient(tf.constant(2.0)),
}


@pytest.mark.parametrize("name", ORDINARY_GRADIENTS)
def test_a_gradient_that_the_formulas_say(name, weights, floats, same, tmp_path):
    """How TensorFlow writes some functions changes nothing of their gradient."""
    kernel, own = weights(3, 3, 3, 16), ORDINARY_GRADIENTS[name]

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 3])])
    def function(x):
        return own(tf.nn.conv2d(x, kernel, 1, "SAME"))

    fast, x = bd.optimize(function), tf.constant(floats(1, 8, 8, 3))
    same(taped(fast, x), taped(function, x))
    module = tf.Module()
    module.function, module.kernel = function, kernel
    tf.saved_model.save(module, str(tmp_path), signatures=function)
    loaded = bd.load(tmp_path)
    same(taped(lambda x: loaded(x)["output_0"], x), taped(function, x))


def test_low_precision_has_none(functional, pictures):
    fast, x = bd.optimize(functional, precision="bf16"), tf.constant(pictures)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = fast(x)
        behind = tf.reduce_sum(tf.stop_gradient(y)) * x
    assert tape.gradient(behind, x) is not None
    with pytest.raises(NotImplementedError, match='^precision="bf16" has no gradient: take the'):
        tape.gradient(y, x)


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


def test_the_original_is_not_needed(weights, floats, same):
    kernel = weights(3, 3, 3, 16)

    def make():
        held = tf.Variable(kernel)
        signature = [tf.TensorSpec([None, 8, 8, 3])]
        return bd.optimize(
            tf.function(lambda x: tf.nn.conv2d(x, held, 1, "SAME"), input_signature=signature)
        )

    fast = make()
    gc.collect()
    x = tf.constant(floats(1, 8, 8, 3))
    same(taped(fast, x), taped(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"), x))


def test_an_optimised_saved_model(functional, pictures, same, tmp_path):
    """Nobody has its original: the gradient goes back through the ops of its regions."""
    bd.optimize(functional).save(tmp_path / "fast")
    x, fast = tf.constant(pictures), bd.load(tmp_path / "fast")
    (name,) = fast.concrete.structured_outputs
    same(taped(lambda x: fast(x)[name], x), taped(functional, x))
    loaded = tf.saved_model.load(str(tmp_path / "fast"))
    signature = loaded.signatures["serving_default"]
    same(taped(lambda x: signature(x)[name], x), taped(functional, x))


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


@pytest.mark.filterwarnings("ignore:precision=")  # of this machine or network it may change nothing
@pytest.mark.parametrize("precision", [None, "bf16"])
def test_weights_of_the_original_have_none(functional, pictures, library, precision):
    """Not None, which an optimizer leaves out in silence: an error where it is used."""
    fast, x = bd.optimize(functional, precision=precision), tf.constant(pictures)
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


def test_conditions_in_loops_know_their_variables(weights, floats, same):
    """TensorFlow asks what variable a branch is given, which functions of Grappler do not say."""
    kernel = tf.Variable(weights(3, 3, 3, 3))

    @tf.function(input_signature=[tf.TensorSpec([None, 6, 6, 3]), tf.TensorSpec([], tf.int32)])
    def function(x, steps):
        for step in tf.range(steps):
            if step % 2 == 1:
                x += tf.nn.conv2d(x, kernel, 1, "SAME")
        return x

    fast, x = bd.optimize(function, weights="live"), tf.constant(floats(1, 6, 6, 3))
    assert fast.report.count("BlockdnnConv") == 1

    def slopes(called):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            loss = tf.reduce_sum(called(x, 4) ** 2)
        return tape.gradient(loss, x)

    same(taped(lambda x: fast(x, 4), x), taped(lambda x: function(x, 4), x))
    same(slopes(fast), slopes(function))
