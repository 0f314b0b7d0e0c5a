"""Products without pairs: packed_matmul and recurrent layers with algorithm="direct"."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa
LARGE = np.float32(1e19)  # its square is no float32


def test_matmul_of_large_rows(floats):
    a, b = floats(40, 64), floats(64, 48)
    a[7] *= LARGE
    wanted = a.astype(np.float64) @ b
    y = bd.ops.packed_matmul(a, b, how="constant direct")
    np.testing.assert_allclose(y, wanted, atol=1e-5 * abs(wanted).max(1, keepdims=True).max())
    np.testing.assert_allclose(y[:7], wanted[:7], atol=1e-5 * abs(wanted[:7]).max())


@pytest.mark.parametrize("cell", ["vanilla", "lstm", "gru"])
def test_recurrent_layers_of_large_sources(cell, floats):
    """Gates of huge sums are 0 or 1; nothing is NaN, and other samples do not notice."""
    gates = {"vanilla": 1, "lstm": 4, "gru": 3}[cell]
    src, kernel = floats(16, 3, 64), floats(64, gates * 32)
    recurrent = floats(32, gates * 32) / 8
    options = dict(cell=cell, reset_after=False, how="direct", return_sequences=True)
    alone, _ = bd.ops.rnn(src, kernel, recurrent, **options)
    spoiled = src.copy()
    spoiled[5] *= LARGE
    y, _ = bd.ops.rnn(spoiled, kernel, recurrent, **options)
    assert np.isfinite(y).all()
    others = np.arange(16) != 5
    np.testing.assert_array_equal(np.asarray(y)[others], np.asarray(alone)[others])


def test_every_row_by_itself(floats):
    """The bits of a row do not depend on how many there are."""
    a, b = floats(37, 300), floats(300, 50)
    whole = bd.ops.packed_matmul(a, b, how="constant direct").numpy()
    for count in (1, 3, 8):
        y = bd.ops.packed_matmul(a[:count], b, how="constant direct")
        np.testing.assert_array_equal(y, whole[:count])
    src, kernel, recurrent = floats(9, 5, 40), floats(40, 128), floats(32, 128)
    whole = bd.ops.rnn(src, kernel, recurrent, cell="lstm", how="direct").dst.numpy()
    for count in (1, 3, 8):
        y = bd.ops.rnn(src[:count], kernel, recurrent, cell="lstm", how="direct").dst
        np.testing.assert_array_equal(y, whole[:count])


def test_gradients_have_it_too(floats):
    def algorithms(kind, function, *inputs):
        traced = tf.function(lambda *xs: tf.gradients(function(*xs), xs))
        graph = traced.get_concrete_function(*map(tf.constant, inputs)).graph
        return [
            op.get_attr("algorithm").decode() for op in graph.get_operations() if op.type == kind
        ]

    def product(a, b):
        return bd.ops.packed_matmul(a, b, how="direct")

    found = algorithms("BlockdnnPackedMatmul", product, floats(4, 8), floats(8, 16))
    assert found == ["direct"] * 2

    def layer(x, w, u):
        return bd.ops.rnn(x, w, u, cell="vanilla", how="direct").dst

    data = floats(2, 3, 8), floats(8, 16), floats(16, 16)
    for kind in ("BlockdnnRnn", "BlockdnnRnnGrad"):
        assert set(algorithms(kind, layer, *data)) == {"direct"}


def test_optimize_reaches_recurrent_layers(floats):
    model = keras.Sequential([keras.Input((4, 64)), keras.layers.LSTM(32)])
    fast = bd.optimize(model, options=bd.Options(algorithm="direct"))
    (layer,) = [item for item in fast.report.converted if item.op == "BlockdnnRnn"]
    assert layer.algorithm == "direct"
    x = floats(16, 4, 64)
    x[5] *= LARGE
    np.testing.assert_allclose(fast(x), model(x), atol=1e-5)
