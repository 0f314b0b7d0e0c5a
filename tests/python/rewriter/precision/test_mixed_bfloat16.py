"""Models that compute in bfloat16, as Keras's mixed_bfloat16 has them, run on it by our ops."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter import Options

keras = tf.keras
STRICT = Options(strict=True)


@pytest.fixture(autouse=True)
def on_a_cpu_of_bfloat16(on_isa):
    on_isa("avx512_bf16")


def built(policy):
    layers = keras.layers
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        keras.utils.set_random_seed(0)
        return keras.Sequential(
            [
                keras.Input((16, 16, 3)),
                layers.Conv2D(32, 3, use_bias=False),
                layers.BatchNormalization(),
                layers.ReLU(),
                layers.DepthwiseConv2D(3),
                layers.MaxPooling2D(),
                layers.Conv2D(128, 3, activation="swish"),
                layers.GlobalAveragePooling2D(),
                layers.LayerNormalization(),
                layers.Dense(256, activation="relu"),
                layers.Dense(10, dtype="float32"),
            ]
        )
    finally:
        keras.config.set_dtype_policy(before)


@pytest.fixture(scope="module")
def models():
    """(of float32, under mixed_bfloat16), of the same weights."""
    exact, mixed = built("float32"), built("mixed_bfloat16")
    mixed.set_weights(exact.get_weights())
    return exact, mixed


def images(count=8):
    return np.random.default_rng(0).random((count, 16, 16, 3)).astype("float32")


def test_a_model_is_nearer_to_float32_than_it_was(models, tmp_path):
    exact, mixed = models
    fast = bd.optimize(mixed, options=bd.Options(strict=True))
    x = images(64)
    wanted = exact(x).numpy()
    before, now = (np.abs(np.asarray(model(x)) - wanted).max() for model in (mixed, fast))
    assert 0 < now <= before < 0.05 * np.abs(wanted).max()
    assert [layer.dtype for layer in fast.report.precision.layers] == ["bfloat16"] * 4
    assert not fast.report.declined and len(fast.report.reorders) == 1
    fast.save(tmp_path / "model")
    size = sum(f.stat().st_size for f in (tmp_path / "model" / "variables").glob("*.data-*"))
    assert size < 0.6 * 4 * exact.count_params()


def test_where_bfloat16_is_slow_convolutions_are_of_float32(models, on_isa):
    on_isa("avx2")
    exact, mixed = models
    fast = bd.optimize(mixed, options=bd.Options(strict=True), verify=True)
    layers = fast.report.precision.layers
    assert [layer.dtype for layer in layers] == ["float32"] * 3 + ["bfloat16"]  # a product
    assert any(note.startswith("this CPU has no AVX512-BF16") for note in fast.report.notes)
    x = images()
    wanted = exact(x).numpy()
    before, now = (np.abs(np.asarray(model(x)) - wanted).max() for model in (mixed, fast))
    assert now < before / 2
    assert fast(x).dtype == mixed(x).dtype


def test_another_precision_begins_where_float32_does(models):
    fast = bd.optimize(models[1], precision="int8", calibration=images(32))
    assert fast.report.precision.precision == "int8" and fast.report.precision.count == 5
    assert fast.report.precision.outputs[0].snr > 20


def test_numbers_are_verified_as_those_of_bfloat16(models):
    assert bd.optimize(models[1], verify=True).report.precision.precision == "bf16"


def cast(values):
    return tf.cast(values, tf.bfloat16)


def random(*shape):
    values = np.random.default_rng(1).standard_normal(shape) / np.sqrt(np.prod(shape[:-1]))
    return tf.Variable(values.astype("float32"))


def test_arguments_and_results_keep_their_types(rewrite):
    filters = random(3, 3, 32, 32)

    def network(x):
        y = tf.nn.relu(tf.nn.conv2d(x, cast(filters), 1, "SAME"))
        return y, tf.cast(y, tf.int32), tf.nn.conv2d(y, cast(filters), 1, "SAME")

    result = rewrite(network, tf.TensorSpec([2, 8, 8, 32], tf.bfloat16), options=STRICT)
    assert result.types("Conv") == [("bf16", "bf16"), ("bf16", "f32")]
    x = cast(np.random.default_rng(0).standard_normal((2, 8, 8, 32)) * 3)
    wanted, got = result.original(x), result.concrete(x)
    assert [y.dtype for y in got] == [y.dtype for y in wanted]
    for i in (0, 2):
        one, other = (np.asarray(y[i]).astype("float32") for y in (wanted, got))
        assert np.abs(one - other).max() <= 2**-7 * np.abs(one).max()
    assert (np.asarray(wanted[1]) == np.asarray(got[1])).mean() > 0.99


def test_in_a_loop_and_among_what_has_no_wider_form(rewrite):
    filters = random(3, 3, 32, 32)

    def network(x):
        def body(i, y):
            y = tf.nn.conv2d(tf.sort(y, axis=3), cast(filters), 1, "SAME")
            return i + 1, y

        return tf.cast(tf.while_loop(lambda i, y: i < 2, body, (0, cast(x)))[1], tf.float32)

    result = rewrite(network, [2, 8, 8, 32], options=STRICT)
    assert len(result.types("Conv")) == 1
    x = np.random.default_rng(0).standard_normal((2, 8, 8, 32)).astype("float32")
    wanted, got = result.original(tf.constant(x)), result.concrete(tf.constant(x))
    assert np.abs(wanted - got).max() < 0.03 * np.abs(wanted).max()


def test_without_a_sum_of_products_nothing_changes(rewrite):
    result = rewrite(lambda x: tf.nn.relu(x) + cast(1.0), tf.TensorSpec([2, 3], tf.bfloat16))
    assert [node.attr["T"].type for node in result.nodes if node.op == "Relu"] == [14]
