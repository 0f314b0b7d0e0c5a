"""bd.layers.convert: recurrent layers of Keras become those on packed weights."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from compared import ops_of

import tf_blockdnn as bd

L = keras.layers
STEPS, WIDTH = 6, 5


def around(cell, **options):
    return L.RNN(cell, name="r", **options)


def both_ways(layer, **options):
    return L.Bidirectional(layer, name="r", **options)


# A layer of Keras, and the class that it becomes.
CONVERTED = {
    "LSTM": (lambda: L.LSTM(9, return_sequences=True, name="r"), bd.layers.LSTM),
    "GRU": (lambda: L.GRU(9, go_backwards=True, name="r"), bd.layers.GRU),
    "GRU before": (lambda: L.GRU(9, reset_after=False, implementation=1, name="r"), bd.layers.GRU),
    "SimpleRNN": (lambda: L.SimpleRNN(9, activation="relu", name="r"), bd.layers.SimpleRNN),
    "no bias": (lambda: L.LSTM(9, use_bias=False, implementation=1, name="r"), bd.layers.LSTM),
    "RNN of LSTMCell": (lambda: around(L.LSTMCell(9), return_sequences=True), bd.layers.RNN),
    "RNN of GRUCell": (
        lambda: around(L.GRUCell(9, reset_after=False), go_backwards=True),
        bd.layers.RNN,
    ),
    "RNN of SimpleRNNCell": (lambda: around(L.SimpleRNNCell(9)), bd.layers.RNN),
    "Bidirectional": (
        lambda: both_ways(L.LSTM(9, return_sequences=True), merge_mode="sum"),
        L.Bidirectional,
    ),
    "Bidirectional of two": (
        lambda: both_ways(L.GRU(9), backward_layer=L.RNN(L.LSTMCell(4), go_backwards=True)),
        L.Bidirectional,
    ),
}


@keras.saving.register_keras_serializable()
class OwnCell(L.LSTMCell):
    pass


class OwnLSTM(L.LSTM):
    pass


# A layer of Keras, and why it stays.
KEPT = {
    "activation": (lambda: L.LSTM(9, activation="selu", name="r"), "its activation is selu"),
    "gates": (
        lambda: L.GRU(9, recurrent_activation="softplus", name="r"),
        "its recurrent_activation is softplus",
    ),
    "type": (lambda: L.LSTM(9, dtype="float64", name="r"), "float64"),
    "cell": (lambda: around(OwnCell(9)), "its cell is a OwnCell"),
    "layer": (lambda: OwnLSTM(9, name="r"), "no packed form of a OwnLSTM"),
    "stack": (lambda: around([L.LSTMCell(9), L.LSTMCell(4)]), "its cell is a StackedRNNCells"),
    "inside": (lambda: both_ways(L.LSTM(9, activation="selu")), "its activation is selu"),
    "ours": (lambda: bd.layers.LSTM(9, name="r"), "a layer of tf_blockdnn already"),
    "around ours": (lambda: both_ways(bd.layers.LSTM(9)), "a layer of tf_blockdnn already"),
}


def model_of(layer):
    """The layer behind a mask, with weights of which none is zero."""
    model = keras.Sequential([keras.Input((STEPS, WIDTH)), L.Masking(), layer])
    rng = np.random.default_rng(2)
    model.set_weights([rng.standard_normal(w.shape) / 3 for w in model.get_weights()])
    return model


def packed_in(layer) -> list:
    inside = (
        [layer.forward_layer, layer.backward_layer] if hasattr(layer, "merge_mode") else [layer]
    )
    return [type(x) for x in inside if "blockdnn" in type(x).__module__]


@pytest.fixture
def x(floats):
    x = floats(3, STEPS, WIDTH)
    x[0, 4:] = x[1, :2] = 0  # masked
    return x


@pytest.mark.parametrize("name", CONVERTED)
def test_becomes_packed(x, name, tmp_path):
    make, cls = CONVERTED[name]
    model = model_of(make())
    fast = bd.layers.convert(model)
    new = fast.get_layer("r")
    assert fast.conversion.replaced["r"] == f"{cls.__name__}, plain to plain"
    assert type(new) is cls and len(packed_in(new)) == (2 if cls is L.Bidirectional else 1)
    ops = ops_of(fast, x)
    assert ops.count("BlockdnnRnn") == len(packed_in(new)) and "While" not in ops
    assert "BlockdnnRnn" not in ops_of(model, x)
    np.testing.assert_allclose(fast(x), model(x), rtol=0, atol=3e-6)
    # Weights are copies, and go back and forth between both forms.
    assert all(a is not b for a, b in zip(fast.weights, model.weights, strict=True))
    model.save_weights(tmp_path / "w.weights.h5")
    fast.set_weights([0 * w for w in model.get_weights()])
    assert np.abs(fast(x) - model(x)).max() > 0.01
    fast.load_weights(tmp_path / "w.weights.h5")
    np.testing.assert_allclose(fast(x), model(x), rtol=0, atol=3e-6)


@pytest.mark.parametrize("name", KEPT)
def test_stays_with_reason(x, name):
    make, reason = KEPT[name]
    model = model_of(make())
    fast = bd.layers.convert(model)
    assert reason in fast.conversion.kept["r"] and not fast.conversion.replaced
    assert type(fast.get_layer("r")) is type(model.get_layer("r"))
    np.testing.assert_allclose(fast(x), model(x), rtol=0, atol=3e-6)


@pytest.mark.parametrize("name", ["GRU before", "RNN of LSTMCell", "Bidirectional of two"])
def test_trains_as_before(x, name):
    model = model_of(CONVERTED[name][0]())
    fast = bd.layers.convert(model)
    y = np.random.default_rng(1).standard_normal(model(x).shape)
    histories = []
    for m in (model, fast):
        m.compile("sgd", "mse")
        histories.append(m.fit(x, y, epochs=3, verbose=0, shuffle=False).history["loss"])
    np.testing.assert_allclose(*histories, rtol=1e-5)
    assert histories[0][-1] < histories[0][0]


def test_states_that_stay_and_are_given(floats):
    """A stateful layer begins with zeros, as a clone does; a state may be a tensor of the model."""
    state, sequence = keras.Input((9,), batch_size=2), keras.Input((4, 3), batch_size=2)
    y = L.GRU(9, stateful=True, return_sequences=True, name="a")(sequence)
    y = L.GRU(9, name="b")(y, initial_state=state)
    model = keras.Model([sequence, state], y)
    model([floats(2, 4, 3), floats(2, 9)])
    fast = bd.layers.convert(model)
    assert set(fast.conversion.replaced) == {"a", "b"}
    model.get_layer("a").reset_state()
    for _ in range(2):
        given = [floats(2, 4, 3), floats(2, 9)]
        np.testing.assert_allclose(fast(given), model(given), rtol=0, atol=3e-6)


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.rnn = L.RNN(L.GRUCell(7), return_sequences=True)
        self.both = L.Bidirectional(L.LSTM(7))

    def call(self, x):
        return self.both(self.rnn(x))


def test_subclassed(x):
    model, fast = Subclassed(), Subclassed()
    expected = model(x)
    fast(x)
    fast.set_weights(model.get_weights())
    bd.layers.convert(fast)
    assert len(fast.conversion.replaced) == 2 and type(fast.rnn) is bd.layers.RNN
    np.testing.assert_allclose(fast(x), expected, rtol=0, atol=3e-6)


def test_direct_reaches_every_layer():
    """`convert(..., algorithm="direct")`: in the ops, in configs, and in what these make again."""
    model = keras.Sequential(
        [
            keras.Input((6, 8, 3)),
            keras.layers.Conv2D(16, 3, padding="same"),
            keras.layers.DepthwiseConv2D(3, padding="same"),
            keras.layers.Conv2DTranspose(16, 2),
            keras.layers.Reshape((7, -1)),
            keras.layers.Bidirectional(keras.layers.LSTM(8, return_sequences=True)),
            keras.layers.GRU(8),
        ]
    )
    fast = bd.layers.convert(model, algorithm="direct")
    again = keras.models.clone_model(fast)
    for converted in (fast, again):
        traced = tf.function(converted.call).get_concrete_function(tf.ones([1, 6, 8, 3]))
        named = [op for op in traced.graph.get_operations() if "algorithm" in op.node_def.attr]
        assert len(named) >= 5
        assert {op.get_attr("algorithm") for op in named} == {b"direct"}
    with pytest.raises(ValueError, match="algorithm must be one of"):
        bd.layers.convert(model, algorithm="fastest")
