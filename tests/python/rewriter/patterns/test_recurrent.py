"""Keras's recurrent layers become one op each; what deviates stays, with a reason."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import tf_keras
from graph_nodes import all_nodes

import tf_blockdnn as bd

LAYERS = {
    "LSTM": (keras.layers.LSTM, {}),
    "GRU": (keras.layers.GRU, {}),
    "GRU before": (keras.layers.GRU, {"reset_after": False}),
    "SimpleRNN": (keras.layers.SimpleRNN, {}),
}
each_kind = pytest.mark.parametrize("kind", LAYERS)


def make(kind, units=9, **kwargs):
    layer, options = LAYERS[kind]
    return layer(units, **options, **kwargs)


def randomise(model):
    rng = np.random.default_rng(2)
    model.set_weights([rng.standard_normal(w.shape) / 2 for w in model.get_weights()])
    return model


def count(report):
    return report.count("BlockdnnRnn")


def loops(function):
    concrete = (
        function.get_concrete_function() if hasattr(function, "get_concrete_function") else function
    )
    return sum(op.type in ("While", "StatelessWhile") for op in concrete.graph.get_operations())


def rewritten(function, *specs):
    """The function's rewrite."""
    return bd.rewriter.optimize_concrete(tf.function(function).get_concrete_function(*specs))


def check(model, x, expected=1):
    """Exactly `expected` loops are replaced, none is left, and the numbers are the model's."""
    spec = tf.TensorSpec([None, None, *x.shape[2:]])
    result = rewritten(lambda x: model(x, training=False), spec)
    assert count(result.report) == expected, result.report.summary()
    # The concatenation of two directions is all that stays beside the loops.
    assert all(name.endswith("/concat") for name, _ in result.report.declined)
    assert loops(result.concrete) == 0
    np.testing.assert_allclose(result.concrete(tf.constant(x)), model(x), rtol=0, atol=5e-6)
    types = [node.op for node in all_nodes(result.concrete)]
    assert types.count("BlockdnnRnn") == expected
    return result


SETTINGS = {
    "the last step": {},
    "all steps": {"return_sequences": True},
    "no bias": {"use_bias": False, "return_sequences": True},
    # A product for each gate, with its columns of a matrix.
    "gate by gate": {"implementation": 1, "return_sequences": True},
    "gate by gate, no bias": {"implementation": 1, "use_bias": False},
    **{name: {"activation": name} for name in ("relu", "sigmoid", "linear")},
}
CASES = [
    (kind, name)
    for kind in LAYERS
    for name, options in SETTINGS.items()
    if kind != "SimpleRNN" or "implementation" not in options  # It has no gates.
]


@pytest.mark.parametrize("kind, name", CASES)
def test_a_layer(floats, kind, name):
    layer = make(kind, **SETTINGS[name])
    check(randomise(keras.Sequential([keras.Input((None, 5)), layer])), floats(3, 6, 5))


_KNOWN = (("all steps", 1), ("all steps", 6), ("no bias", 6), ("gate by gate", 1))


# Keras adds the products of a batch that is known to be one as a product and a bias.
@pytest.mark.parametrize(
    "kind, name, steps",
    [(kind, *known) for kind in LAYERS for known in _KNOWN if (kind, known[0]) in CASES],
)
def test_known_sizes(floats, kind, name, steps):
    layer = make(kind, **SETTINGS[name] | {"return_sequences": True})
    x = tf.constant(floats(1, steps, 5))
    y = layer(x)
    result = rewritten(lambda x: layer(x), tf.TensorSpec([1, steps, 5]))
    assert count(result.report) == 1 and loops(result.concrete) == 0, result.report.summary()
    np.testing.assert_allclose(result.concrete(x), y, rtol=0, atol=5e-6)
    assert result.concrete.outputs[0].shape.as_list() == [1, steps, 9]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "GRU before"])
def test_hard_gates(floats, kind):
    gates = "hard_sigmoid"
    model = keras.Sequential([keras.Input((None, 5)), make(kind, recurrent_activation=gates)])
    result = check(randomise(model), 3 * floats(2, 4, 5))
    (op,) = [row for row in result.report.converted if row.op == "BlockdnnRnn"]
    assert "gates hard_sigmoid" in op.details


LEGACY = {
    "LSTM": lambda **k: tf_keras.layers.LSTM(9, **k),
    "GRU": lambda **k: tf_keras.layers.GRU(9, **k),
    "GRU before": lambda **k: tf_keras.layers.GRU(9, reset_after=False, **k),
    "GRU linear": lambda **k: tf_keras.layers.GRU(9, activation="linear", **k),
    "SimpleRNN": lambda **k: tf_keras.layers.SimpleRNN(9, **k),
    "LSTMCell": lambda **k: tf_keras.layers.RNN(tf_keras.layers.LSTMCell(9), **k),
}


# On CPUs tf_keras runs LSTM and GRU as a function of its own, which must be inlined; both rows of
# a GRU's bias come to the loop as tensors of their own.
@pytest.mark.parametrize("kind", LEGACY)
def test_layers_of_keras_2(floats, kind):
    layers, new = tf_keras.layers, LEGACY[kind]
    layer = layers.Bidirectional(new(return_sequences=True))
    model = tf_keras.Sequential([layers.Input((None, 5)), layers.Masking(), layer])
    x = floats(4, 7, 5)
    x[0, 4:] = x[1, :3] = 0
    check(randomise(model), x, expected=2)


def test_keras_2_is_optimised_strictly(floats, tmp_path):
    layers = tf_keras.layers
    model = tf_keras.Sequential([layers.Input((6, 5)), layers.GRU(9)])
    x = floats(3, 6, 5)
    expected = randomise(model)(x)
    fast = bd.optimize(model, options=bd.Options(strict=True))
    assert count(fast.report) == 1
    np.testing.assert_allclose(fast(x), expected, rtol=0, atol=5e-6)
    model.save(tmp_path / "in")
    report = bd.optimize_saved_model(
        str(tmp_path / "in"), str(tmp_path / "out"), options=bd.Options(strict=True)
    )
    assert str(report).count("recurrent layer") >= 1
    loaded = tf.saved_model.load(str(tmp_path / "out"))
    (y,) = loaded.signatures["serving_default"](tf.constant(x)).values()
    np.testing.assert_allclose(y, expected, rtol=0, atol=5e-6)


def export_dynamic_rnn(folder, cell, both_directions, weights):
    """A SavedModel with tf.compat.v1's loops over rows of given lengths."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        x, rows = (
            v1.placeholder(*spec) for spec in [("float32", [None, None, 5]), ("int32", [None])]
        )
        options = {"dtype": tf.float32, "sequence_length": rows}
        if both_directions:
            y, _ = v1.nn.bidirectional_dynamic_rnn(cell(), cell(), x, **options)
            y, state = tf.concat(y, 2), None
        else:
            y, state = v1.nn.dynamic_rnn(cell(), x, **options)
        session.run(v1.global_variables_initializer())
        for variable in v1.global_variables():
            session.run(variable.assign(weights(*variable.shape)))
        outputs = {"y": y} if state is None else {"y": y, "state": tf.nest.flatten(state)[0]}
        v1.saved_model.simple_save(session, folder, {"x": x, "rows": rows}, outputs)


@pytest.mark.parametrize("cell", ["LSTMCell", "GRUCell", "SimpleRNNCell"])
@pytest.mark.parametrize("both_directions", [False, True])
def test_dynamic_rnn_of_a_saved_model(floats, tmp_path, cell, both_directions):
    folders = [str(tmp_path / name) for name in ("in", "out")]
    make_cell = lambda: getattr(tf_keras.layers, cell)(9)  # noqa: E731
    export_dynamic_rnn(folders[0], make_cell, both_directions, floats)
    report = bd.optimize_saved_model(*folders, options=bd.Options(strict=True))
    assert str(report).count("recurrent layer") >= 1
    x, rows = tf.constant(floats(4, 7, 5)), tf.constant([6, 0, 2, 5])  # no row is full
    before, after = (tf.saved_model.load(f).signatures["serving_default"] for f in folders)
    result = bd.rewriter.optimize_concrete(before)
    assert count(result.report) == 1 + both_directions and loops(result.concrete) == 0
    expected, actual = (f(x=x, rows=rows) for f in (before, after))
    for name, value in expected.items():
        np.testing.assert_allclose(actual[name], value, rtol=0, atol=5e-6)


@each_kind
@pytest.mark.parametrize("zeros", [False, True])
def test_masks(floats, kind, zeros):
    model = keras.Sequential(
        [
            keras.Input((None, 5)),
            keras.layers.Masking(),
            make(kind, return_sequences=True, zero_output_for_mask=zeros),
        ]
    )
    x = floats(4, 7, 5)
    x[0, 4:] = x[1, :3] = x[2] = 0
    check(randomise(model), x)


@each_kind
@pytest.mark.parametrize("merge", ["concat", "sum"])
def test_both_directions_and_stacks(floats, kind, merge):
    model = keras.Sequential(
        [
            keras.Input((None, 5)),
            keras.layers.Bidirectional(make(kind, return_sequences=True), merge_mode=merge),
            keras.layers.Bidirectional(make(kind, 6), merge_mode=merge),
        ]
    )
    check(randomise(model), floats(3, 6, 5), expected=4)


@each_kind
def test_states(floats, kind):
    layer = make(kind, return_sequences=True, return_state=True)
    x = tf.constant(floats(3, 6, 5))
    states = [tf.constant(floats(3, 9)) for _ in layer.state_size]
    expected = layer(x, initial_state=states)
    specs = [tf.TensorSpec([None, None, 5])] + [tf.TensorSpec([None, 9])] * len(states)
    result = rewritten(lambda x, *states: layer(x, initial_state=states), *specs)
    assert count(result.report) == 1 and loops(result.concrete) == 0
    for ours, theirs in zip(result.concrete(x, *states), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=5e-6)


class Peephole(keras.layers.LSTMCell):
    """An LSTM with a little more."""

    def call(self, inputs, states, training=False):
        h, new = super().call(inputs, states, training=training)
        return h + 0.01 * states[1], [h + 0.01 * states[1], new[1]]


class Leaky(keras.layers.GRUCell):
    """A GRU that forgets a part of its state."""

    def call(self, inputs, states, training=False):
        h, _ = super().call(inputs, [0.9 * states[0]], training=training)
        return h, [h]


@pytest.mark.parametrize(
    "layer, reason",
    [
        (lambda: keras.layers.LSTM(9, activation="selu"), "not one of Keras's"),
        (lambda: keras.layers.LSTM(9, activation="hard_sigmoid"), "gates of hard_sigmoid"),
        (lambda: keras.layers.GRU(9, activation="elu"), "it has Elu"),
        (lambda: keras.layers.RNN(Peephole(9)), "not one of Keras's"),
        (lambda: keras.layers.RNN(Leaky(9)), "not one of Keras's"),
        (
            lambda: keras.layers.RNN([keras.layers.LSTMCell(3), keras.layers.LSTMCell(9)]),
            "carries 4 states",
        ),
    ],
)
def test_what_deviates_stays(floats, layer, reason):
    model = randomise(keras.Sequential([keras.Input((None, 5)), layer()]))
    x = tf.constant(floats(2, 4, 5))
    result = rewritten(lambda x: model(x, training=False), tf.TensorSpec([None, None, 5]))
    assert count(result.report) == 0 and loops(result.concrete) == 1
    assert any(reason in why for _, why in result.report.declined), result.report.summary()
    np.testing.assert_allclose(result.concrete(x), model(x), rtol=0, atol=1e-6)


def test_another_hard_sigmoid_stays(floats):
    """That of Keras 2 is 0.2 x + 0.5 between 0 and 1."""
    layer = tf_keras.layers.LSTM(9, recurrent_activation="hard_sigmoid")
    model = randomise(tf_keras.Sequential([tf_keras.layers.Input((None, 5)), layer]))
    x = tf.constant(floats(2, 4, 5))
    result = rewritten(lambda x: model(x, training=False), tf.TensorSpec([None, None, 5]))
    assert count(result.report) == 0 and loops(result.concrete) == 1
    assert any("it has Maximum, Minimum" in why for _, why in result.report.declined)
    np.testing.assert_allclose(result.concrete(x), model(x), rtol=0, atol=1e-6)


def test_other_loops_are_not_mentioned():
    def power(x):
        return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))[1]

    result = rewritten(power, tf.TensorSpec([4]))
    assert count(result.report) == 0 and not result.report.declined


def test_crnn_converts_as_one(floats):
    model = keras.Sequential(
        [
            keras.Input((16, 24, 3)),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D(2),
            keras.layers.Conv2D(32, 3, padding="same", activation="relu"),
            keras.layers.MaxPooling2D((8, 1)),
            keras.layers.Reshape((12, 32)),
            keras.layers.Bidirectional(keras.layers.LSTM(20, return_sequences=True)),
            keras.layers.Dense(11),
        ]
    )
    x = tf.constant(floats(2, 16, 24, 3))
    result = rewritten(lambda x: model(x, training=False), tf.TensorSpec([2, 16, 24, 3]))
    assert count(result.report) == 2 and loops(result.concrete) == 0
    assert result.report.count("BlockdnnConv") == 2, result.report.summary()
    np.testing.assert_allclose(result.concrete(x), model(x), rtol=1e-4, atol=1e-5)


def test_deep_speech_converts_as_one(floats):
    layers = keras.layers
    blocks = []
    for filters, strides in [(32, (2, 2)), (32, (1, 2))]:
        blocks += [
            layers.Conv2D(filters, (11, 5), strides, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(20.0),
        ]
    blocks.append(layers.Reshape((-1, 8 * 32)))
    for _ in range(3):
        blocks += [
            layers.Bidirectional(
                layers.SimpleRNN(24, activation="relu", return_sequences=True), merge_mode="sum"
            ),
            layers.BatchNormalization(),
        ]
    model = keras.Sequential([keras.Input((None, 32, 1)), *blocks, layers.Dense(29)])
    x = tf.constant(floats(2, 30, 32, 1))
    result = rewritten(lambda x: model(x, training=False), tf.TensorSpec([2, 30, 32, 1]))
    assert count(result.report) == 6 and loops(result.concrete) == 0
    assert result.report.count("BlockdnnConv") == 2, result.report.summary()
    assert not {"Conv2D", "While"} & {node.op for node in all_nodes(result.concrete)}
    np.testing.assert_allclose(result.concrete(x), model(x), rtol=1e-4, atol=1e-4)
