"""Weights of recurrent layers stored in low precision: types, numbers, size, what stays float32."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter.precision.quantize import snr

keras = tf.keras
_TYPES = {"bf16": "bfloat16", "bf16-weights": "bfloat16", "int8-weights": "int8"}
_ROUNDED = {"bf16": ", rows rounded"}
each_precision = pytest.mark.parametrize("precision", _TYPES)


def model_of(*layers, features=48):
    keras.utils.set_random_seed(3)
    return keras.Sequential([keras.Input((None, features)), *layers])


def sequences(batch=2, steps=7, features=48):
    rng = np.random.default_rng(0)
    return tf.constant(rng.standard_normal((batch, steps, features)).astype("float32"))


def layer_types(report):
    return [layer.dtype for layer in report.precision.layers]


def off(wanted, got):
    wanted, got = np.asarray(wanted), np.asarray(got)
    return np.abs(got - wanted).max() / np.abs(wanted).max()


@each_precision
@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
def test_each_kind(kind, precision):
    model = model_of(getattr(keras.layers, kind)(64, return_sequences=True))
    fast = bd.optimize(model, precision=precision, options=bd.Options(strict=True))
    assert layer_types(fast.report) == [_TYPES[precision]]
    (item,) = fast.report.converted
    assert item.op == "BlockdnnRnn"
    assert item.details.endswith(f"weights {_TYPES[precision]}{_ROUNDED.get(precision, '')}")
    x = sequences()
    assert 0 < off(model(x), fast(x)) < (0.04 if precision == "int8-weights" else 0.02)


@each_precision
def test_both_directions_and_the_head(precision, tmp_path):
    lstm = keras.layers.LSTM(96, return_sequences=True)
    model = model_of(keras.layers.Bidirectional(lstm), keras.layers.GRU(96), keras.layers.Dense(5))
    fast = bd.optimize(model, precision=precision, options=bd.Options(strict=True))
    assert layer_types(fast.report)[:3] == [_TYPES[precision]] * 3
    assert fast.report.count("BlockdnnRnn") == 3
    x = sequences()
    assert off(model(x), fast(x)) < 0.1
    fast.save(tmp_path / "model")
    np.testing.assert_allclose(bd.load(tmp_path / "model")(x)["output_0"], fast(x), atol=1e-6)
    size = sum(file.stat().st_size for file in (tmp_path / "model").rglob("*") if file.is_file())
    part = 0.25 if precision == "int8-weights" else 0.5
    assert size < part * 4 * model.count_params() + 100_000  # the graph itself


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "SimpleRNN"])
@pytest.mark.parametrize("batch", [1, 3, 16])
def test_rounded_rows_keep_their_digits_over_long_sequences(kind, batch):
    model = model_of(
        getattr(keras.layers, kind)(64, return_sequences=True),
        getattr(keras.layers, kind)(64, return_sequences=True, go_backwards=True),
    )
    fast = bd.optimize(model, precision="bf16", options=bd.Options(strict=True))
    assert fast.report.precision.count == 2
    x = sequences(batch, 500)
    wanted, got = tf.function(model)(x), fast(x)
    assert 40 < snr(wanted, got) < 70
    assert 40 < snr(wanted[:, -1], got[:, -1])


@each_precision
def test_masks_and_states(precision):
    keras.utils.set_random_seed(3)
    tokens = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 24, mask_zero=True)(tokens)
    y, *states = keras.layers.LSTM(40, return_sequences=True, return_state=True)(x)
    y = keras.layers.GRU(40, go_backwards=True)(y, initial_state=states[:1])
    model = keras.Model(tokens, [y, *states])
    fast = bd.optimize(model, precision=precision, options=bd.Options(strict=True))
    assert layer_types(fast.report) == [_TYPES[precision]] * 2
    ids = np.random.default_rng(0).integers(1, 20, (8, 9))
    ids[1, 4:], ids[2] = 0, 0  # nothing of the third counts
    for wanted, got in zip(model(ids), fast(ids), strict=True):
        assert snr(wanted, got) > (30 if precision == "int8-weights" else 40)
        np.testing.assert_allclose(got[2], wanted[2], atol=1e-6)


@pytest.mark.parametrize("precision", ["bf16", "int8-weights"])
def test_a_layer_that_loses_too_much_stays_float32(precision):
    model = model_of(keras.layers.LSTM(64, return_sequences=True), keras.layers.GRU(64))
    data = np.asarray(sequences(16))
    fast = bd.optimize(model, precision=precision, calibration=data, max_loss=1e-6)
    assert layer_types(fast.report) == ["float32"] * 2
    assert off(model(data), fast(data)) < 1e-5


@each_precision
def test_weights_of_nothing_but_zeros(precision):
    zeros = {"kernel_initializer": "zeros", "recurrent_initializer": "zeros"}
    model = model_of(keras.layers.LSTM(32, bias_initializer="ones", **zeros))
    fast = bd.optimize(model, precision=precision, options=bd.Options(strict=True))
    np.testing.assert_allclose(fast(sequences()), model(sequences()), atol=1e-6)


@each_precision
def test_weights_that_are_no_numbers_stay_float32(precision):
    model = model_of(keras.layers.GRU(16))
    first, *others = model.get_weights()
    first[0, 0] = np.inf
    model.set_weights([first, *others])
    fast = bd.optimize(model, precision=precision)
    assert fast.report.precision.count == 0 and fast.report.count("BlockdnnRnn") == 1


def dense(*units, features=100, **options):
    keras.utils.set_random_seed(3)
    layers = [keras.layers.Dense(n, bias_initializer="normal", **options) for n in units]
    return keras.Sequential([keras.Input((features,)), *layers])


def rows(count, features=100):
    return np.random.default_rng(1).standard_normal((count, features)).astype("float32")


def test_products_of_4_bits(tmp_path):
    """Whatever the rows, with K that no group divides; saved, they take a sixth of the memory."""
    model = dense(300, 257, features=301)
    fast = bd.optimize(model, precision="int4-weights", options=bd.Options(strict=True))
    assert layer_types(fast.report) == ["int4"] * 2
    assert [item.details for item in fast.report.converted] == [
        "301->300 int4 in groups of 128; binary(add,channel)",
        "300->257 int4 in groups of 128; binary(add,channel)",
    ]
    x = rows(40, 301)
    wanted, got = np.asarray(model(x)), fast(x)
    assert 15 < snr(wanted, got) < 25
    for count in (0, 1, 3, 16, 21):
        assert fast(x[:count]).shape == (count, 257)
        np.testing.assert_allclose(fast(x[:count]), got[:count], atol=1e-4)
    fast.save(tmp_path / "model")
    np.testing.assert_array_equal(bd.load(tmp_path / "model")(x)["output_0"], got)
    stored = sum(file.stat().st_size for file in (tmp_path / "model" / "variables").iterdir())
    stored += sum(f.stat().st_size for f in (tmp_path / "model").rglob("*.weights"))
    assert stored < 4 * model.count_params() / 6 + 5_000


def test_what_is_no_product_is_int8_beside_4_bits():
    model = model_of(keras.layers.GRU(64), keras.layers.Dense(40))
    fast = bd.optimize(model, precision="int4-weights", options=bd.Options(strict=True))
    assert sorted(layer_types(fast.report)) == ["int4", "int8"]
    assert off(model(sequences()), fast(sequences())) < 0.3


def test_outliers_zeros_and_no_numbers_by_4_bits():
    model = dense(64)
    kernel, bias = model.get_weights()
    kernel[:50, 1], kernel[:, 2], kernel[3, 3] = 0.25, 0.0, 40.0
    model.set_weights([kernel, bias])
    fast = bd.optimize(model, precision="int4-weights")
    x = rows(3)
    wanted, got = np.asarray(model(x)), np.asarray(fast(x))
    np.testing.assert_allclose(got[:, 2], wanted[:, 2], atol=1e-6)
    assert snr(np.delete(wanted, 3, 1), np.delete(got, 3, 1)) > 15  # an outlier spoils its column
    for value in (np.inf, np.nan, 3e38):
        kernel[:2, 1] = value, -value
        model.set_weights([kernel, bias])
        with pytest.warns(RuntimeWarning, match="changed nothing") as warnings:
            kept = bd.optimize(model, precision="int4-weights")
        assert not any("encountered in" in str(warning.message) for warning in warnings)
        assert kept.report.precision.count == 0


_FORMS = {"in groups": {}, "in smaller groups": {"block_size": 64}, "a scale a channel": -1}


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("tokens", [False, True])
def test_what_keras_made_4_bits_stays_so(form, tokens, tmp_path):
    """Numbers, steps and zero points are the model's own; nothing is rounded again."""
    quantizers = pytest.importorskip("keras.quantizers")
    settings = _FORMS[form] if form != "a scale a channel" else {"block_size": -1}
    model = dense(256, 97, features=300)
    if tokens:
        model = keras.Sequential([keras.Input((7, 300)), *model.layers])
    model.quantize("int4", config=quantizers.Int4QuantizationConfig(**settings))
    fast = bd.optimize(model, options=bd.Options(strict=True))
    assert layer_types(fast.report) == ["int4"] * 2 and not fast.report.declined
    group = {"in groups": 128, "in smaller groups": 64}.get(form)
    names = [f"in groups of {group or size}" for size in (300, 256)]
    assert all(n in i.details for n, i in zip(names, fast.report.converted, strict=True))
    x = rows(6 * 7, 300).reshape(6, 7, 300) if tokens else rows(6, 300)
    wanted = np.asarray(model(x))
    assert off(wanted, fast(x)) < 5e-5
    fast.save(tmp_path / "model")
    assert off(wanted, bd.load(tmp_path / "model")(x)["output_0"]) < 5e-5


def test_what_gptq_made_4_bits_stays_so():
    """GPTQ rounds columns one after the other; what it leaves are numbers of 4 bits in groups."""
    configs = pytest.importorskip("keras.src.quantizers.gptq_config")
    layers = keras.layers
    embedding, block = layers.Embedding(50, 256), keras.Sequential([layers.Dense(256)])
    tokens = keras.Input((8,), dtype="int32")
    model = keras.Model(tokens, block(embedding(tokens)))
    config = configs.GPTQConfig(
        dataset=np.arange(4 * 8).reshape(4, 8),
        tokenizer=np.asarray,
        num_samples=4,
        sequence_length=8,
        quantization_layer_structure={
            "pre_block_layers": [embedding],
            "sequential_blocks": [block],
        },
    )
    model.quantize("gptq", config=config)
    fast = bd.optimize(model, options=bd.Options(strict=True))
    assert layer_types(fast.report) == ["int4"]
    assert "in groups of 128" in fast.report.converted[-1].details
    x = np.arange(8, dtype=np.int32)[None]
    assert off(np.asarray(model(x)), fast(x)) < 5e-5
