"""bd.ops.rnn against Keras's layers of the same weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.ops.products.rnn import pack_count

pytestmark = pytest.mark.each_isa

KERAS = {"vanilla": keras.layers.SimpleRNN, "lstm": keras.layers.LSTM, "gru": keras.layers.GRU}
# Outputs are of magnitude 1. Sums of up to `units` products differ in their order, and the
# difference grows a little from step to step.
TOLERANCE = {"rtol": 1e-4, "atol": 2e-5}


def reference(cell, inputs, units, **kwargs):
    """A Keras layer with weights that are not zero anywhere."""
    layer = KERAS[cell](units, return_state=True, **kwargs)
    layer.build((None, None, inputs))
    rng = np.random.default_rng(3)
    layer.set_weights(
        [
            (rng.standard_normal(w.shape) / np.sqrt(max(1, w.shape[0]))).astype(np.float32)
            for w in layer.get_weights()
        ]
    )
    return layer


def weights_of(layer):
    return [tf.constant(w) for w in layer.get_weights()]


def gradients(function, tensors):
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        outputs = function()
        loss = tf.add_n(
            [
                tf.reduce_sum(
                    y * tf.reshape(tf.cos(tf.range(tf.size(y), dtype=tf.float32)), tf.shape(y))
                )
                for y in outputs
            ]
        )
    return tape.gradient(loss, tensors)


@pytest.mark.parametrize("cell, reset_after", [(c, True) for c in KERAS] + [("gru", False)])
@pytest.mark.parametrize(
    "go_backwards, sequences, masked, zeros, training",
    [
        (False, True, False, False, True),
        (True, True, True, False, False),
        (False, False, True, False, True),
        (True, False, False, False, False),
        (False, True, True, True, True),
    ],
)
def test_gradients_equal_keras(
    floats, cell, reset_after, go_backwards, sequences, masked, zeros, training
):
    batch, steps, inputs, units = 5, 4, 6, 19
    options = {"reset_after": reset_after} if cell == "gru" else {}
    common = {
        "go_backwards": go_backwards,
        "return_sequences": sequences,
        "zero_output_for_mask": zeros,
    }
    layer = reference(cell, inputs, units, **common, **options)
    x = tf.constant(floats(batch, steps, inputs))
    states = [tf.constant(floats(batch, units)) for _ in range(2 if cell == "lstm" else 1)]
    mask = tf.constant(np.arange(batch * steps).reshape(batch, steps) % 4 != 0) if masked else None
    variables = [w.value for w in layer.trainable_variables]
    expected = gradients(
        lambda: layer(x, initial_state=states, mask=mask), [x, *states, *variables]
    )
    weights = weights_of(layer)

    def ours():
        y, ends = bd.ops.rnn(
            x,
            *weights,
            cell=cell,
            initial_state=states,
            mask=mask,
            training=training,
            **common,
            **options,
        )
        return [y, *ends]

    for mine, theirs in zip(gradients(ours, [x, *states, *weights]), expected, strict=True):
        scale = np.max(np.abs(theirs)) + 1e-3
        np.testing.assert_allclose(mine / scale, theirs / scale, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    "cell, reset_after, turned, sequences, zeros",
    [
        ("lstm", True, 0, 1, 0),
        ("lstm", True, 1, 0, 0),
        ("gru", True, 1, 1, 1),
        ("gru", True, 0, 1, 0),
        ("gru", False, 1, 0, 0),
        ("vanilla", True, 1, 1, 1),
    ],
)
def test_second_derivatives_equal_keras(floats, cell, reset_after, turned, sequences, zeros):
    """Those of a loss of gradients by all inputs, masked where steps are turned."""
    options = {"go_backwards": bool(turned), "return_sequences": bool(sequences)}
    options |= {"zero_output_for_mask": bool(zeros)}
    options |= {"reset_after": reset_after} if cell == "gru" else {}
    layer, x = reference(cell, 3, 5, **options), tf.constant(floats(2, 4, 3))
    states = [tf.constant(floats(2, 5)) for _ in range(2 if cell == "lstm" else 1)]
    mask = tf.constant(np.arange(8).reshape(2, 4) % 4 != 1) if turned else None
    variables, weights = [w.value for w in layer.trainable_variables], weights_of(layer)

    def theirs():
        return layer(x, initial_state=states, mask=mask)

    def ours():
        y, ends = bd.ops.rnn(x, *weights, cell=cell, initial_state=states, mask=mask, **options)
        return [y, *ends]

    expected = gradients(lambda: gradients(theirs, [x, *states, *variables]), [x, *variables])

    def second():
        return gradients(lambda: gradients(ours, [x, *states, *weights]), [x, *weights])

    for run in (second, tf.function(second, autograph=False)):
        found = run()
        for mine, wanted in zip(found, expected, strict=True):
            scale = np.max(np.abs(wanted)) + 1e-3
            np.testing.assert_allclose(mine / scale, wanted / scale, rtol=0, atol=1e-4)


@pytest.mark.parametrize("batches", [(None, 1, None), (1, None, None), (None, None, 1)])
def test_second_derivatives_of_sizes_that_one_operand_knows(floats, batches):
    """The batch is open elsewhere; a loop keeps the shapes that it begins with."""
    src, state, mask = (tf.constant(v) for v in (floats(1, 3, 4), floats(1, 5), [[True] * 3]))
    kernel, recurrent = tf.constant(floats(4, 5)), tf.constant(floats(5, 5))

    def second(src, state, mask):
        def ours():
            masked = {"cell": "vanilla", "initial_state": (state,), "mask": mask}
            return [bd.ops.rnn(src, kernel, recurrent, **masked).dst]

        return gradients(lambda: gradients(ours, [src, state]), [src, state])

    operands = (src, state, mask)
    specs = [
        tf.TensorSpec([batch, *x.shape[1:]], x.dtype)
        for batch, x in zip(batches, operands, strict=True)
    ]
    found = tf.function(second, input_signature=specs, autograph=False)(*operands)
    for mine, wanted in zip(found, second(*operands), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("cell", list(KERAS))
def test_forward_mode(floats, cell):
    """In a function, too, of which TensorFlow makes the forward mode with all tapes stopped."""
    layer, x = reference(cell, 3, 5), tf.constant(floats(2, 4, 3))
    weights, found = weights_of(layer), []
    ours = lambda x: tf.reduce_sum(bd.ops.rnn(x, *weights, cell=cell).dst)  # noqa: E731
    theirs = lambda x: tf.reduce_sum(layer(x)[0])  # noqa: E731
    for function in (theirs, ours, tf.function(ours, autograph=False)):
        with tf.autodiff.ForwardAccumulator(x, tf.cos(x)) as accumulator:
            y = function(x)
        found.append(accumulator.jvp(y))
    np.testing.assert_allclose(found[1:], [found[0]] * 2, rtol=1e-4)


@pytest.mark.parametrize(
    "activation, gates",
    [("tanh", "hard_sigmoid"), ("relu", "tanh"), ("sigmoid", "sigmoid"), ("linear", "sigmoid")],
)
def test_gradients_of_activations(floats, activation, gates):
    x, w, u = (tf.constant(v) for v in (floats(3, 4, 5), floats(5, 28) / 3, floats(7, 28) / 3))
    options = {"activation": activation, "recurrent_activation": gates}
    layer = keras.layers.LSTM(7, use_bias=False, return_state=True, **options)
    layer.build((3, 4, 5))
    layer.set_weights([w, u])
    expected = gradients(lambda: layer(x), [x, *[v.value for v in layer.weights]])

    def ours():
        y, ends = bd.ops.rnn(x, w, u, cell="lstm", **options)
        return [y, *ends]

    for mine, theirs in zip(gradients(ours, [x, w, u]), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)


# The table of the design document: N * T packings become 1, and 2 N T become 2 N.
@pytest.mark.parametrize("cell", list(KERAS))
def test_packs_once_for_inference_and_twice_a_training_step(floats, cell):
    w, u, b = [tf.Variable(v) for v in weights_of(reference(cell, 4, 8))]
    x = tf.constant(floats(2, 30, 4))

    @tf.function
    def infer(x):
        return bd.ops.rnn(x, w, u, b, cell=cell).dst

    before = pack_count()
    for _ in range(5):
        first = infer(x)
    assert pack_count() - before == 1

    @tf.function
    def train(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(bd.ops.rnn(x, w, u, b, cell=cell, training=True).dst)
        for variable, gradient in zip([w, u, b], tape.gradient(loss, [w, u, b]), strict=True):
            variable.assign_sub(0.1 * gradient)

    before, iterations = pack_count(), 4
    for _ in range(iterations):
        train(x)
    assert pack_count() - before == 2 * iterations
    # New weights are seen.
    before = pack_count()
    assert np.max(np.abs(infer(x) - first)) > 1e-3
    assert pack_count() - before == 1
    np.testing.assert_allclose(
        infer(x), bd.ops.rnn(x, *[v + 0 for v in (w, u, b)], cell=cell).dst, **TOLERANCE
    )


def test_empty_batch():
    w, u = tf.ones([4, 32]), tf.ones([8, 32])
    y, (h, c) = bd.ops.rnn(tf.zeros([0, 3, 4]), w, u, cell="lstm", return_sequences=True)
    assert y.shape == (0, 3, 8) and h.shape == c.shape == (0, 8)


def test_bad_arguments():
    x, w, u = tf.zeros([2, 3, 4]), tf.zeros([4, 32]), tf.zeros([8, 32])
    for options, message in [
        ({"cell": "lstm", "initial_state": [tf.zeros([2, 8])]}, "begins with 2 states or none"),
        ({"cell": "vanilla", "restore_order": True}, "restore_order belongs to go_backwards"),
        ({"cell": "lstm", "activation": "selu"}, "selu"),
        ({"cell": "peephole"}, "peephole"),
    ]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            bd.ops.rnn(x, w, u, **options)


def test_shapes_known_and_unknown(floats):
    w, u = floats(4, 24), floats(8, 24)
    for shape, known in [
        ([2, 3, 4], [2, 3, 8]),
        ([None, None, 4], [None, None, 8]),
        (None, [None, None, 8]),
    ]:
        run = tf.function(
            lambda x: bd.ops.rnn(x, w, u, cell="gru", return_sequences=True).dst,
            input_signature=[tf.TensorSpec(shape)],
        )
        assert run.get_concrete_function().outputs[0].shape.as_list() == known
        assert run(floats(2, 3, 4)).shape == (2, 3, 8)


@pytest.mark.parametrize("sequences", [False, True])
def test_no_steps(sequences):
    """The states go through, there and back; the last output is zero."""
    states = [tf.random.normal([2, 8]) for _ in range(2)]
    with tf.GradientTape() as tape:
        tape.watch(states)
        dst, after = bd.ops.rnn(
            tf.zeros([2, 0, 4]), tf.ones([4, 32]), tf.ones([8, 32]), cell="lstm",
            initial_state=states, return_sequences=sequences,
        )  # fmt: skip
        loss = tf.reduce_sum(dst) + tf.reduce_sum(after[0]) + 2 * tf.reduce_sum(after[1])
    np.testing.assert_array_equal(dst, np.zeros([2, 0, 8] if sequences else [2, 8]))
    for state, last in zip(states, after, strict=True):
        np.testing.assert_array_equal(state, last)
    for factor, gradient in enumerate(tape.gradient(loss, states), 1):
        np.testing.assert_array_equal(gradient, np.full([2, 8], factor))


def test_two_biases_of_cudnn():
    src, bias = tf.random.normal([2, 3, 4]), tf.random.normal([2, 32])
    weights = tf.random.normal([4, 32]), tf.random.normal([8, 32])
    both = bd.ops.rnn(src, *weights, bias, cell="lstm").dst
    one = bd.ops.rnn(src, *weights, tf.reduce_sum(bias, 0), cell="lstm").dst
    np.testing.assert_array_equal(both, one)
