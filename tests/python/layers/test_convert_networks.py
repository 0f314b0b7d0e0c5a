"""bd.layers.convert of networks with transposed and 3-D layers: one blocked region each."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from compared import close, ops_of, step

import tf_blockdnn as bd
from tf_blockdnn.python import native

L = keras.layers


def twice(x, filters, conv):
    for _ in range(2):
        x = conv(filters, 3, padding="same", use_bias=False)(x)
        x = L.Activation("relu")(L.BatchNormalization()(x))
    return x


def unet():
    """Two levels; up by a transposed convolution, then by upsampling."""
    image = keras.Input((16, 12, 3))
    a = twice(image, 20, L.Conv2D)
    b = twice(L.MaxPooling2D()(a), 24, L.Conv2D)
    x = twice(L.MaxPooling2D()(b), 32, L.Conv2D)
    x = L.Conv2DTranspose(24, 2, strides=2)(x)
    x = twice(L.Concatenate()([x, b]), 24, L.Conv2D)
    x = L.UpSampling2D(interpolation="bilinear")(x)
    x = twice(L.Concatenate()([x, a]), 20, L.Conv2D)
    return keras.Model(image, L.Conv2D(2, 1)(x))


def unet_of_volumes():
    volume = keras.Input((8, 8, 4, 1))
    a = twice(volume, 16, L.Conv3D)
    x = twice(L.MaxPooling3D()(a), 20, L.Conv3D)
    x = L.Conv3DTranspose(16, 2, strides=2)(x)
    x = twice(L.Concatenate()([x, a]), 16, L.Conv3D)
    return keras.Model(volume, L.Conv3D(2, 1)(x))


def generator():
    """DCGAN's: https://arxiv.org/abs/1511.06434."""
    noise = keras.Input((10,))
    x = L.Reshape((2, 2, 32))(L.Dense(2 * 2 * 32, use_bias=False)(noise))
    for filters in (24, 16):
        x = L.Conv2DTranspose(filters, 5, strides=2, padding="same", use_bias=False)(x)
        x = L.LeakyReLU()(L.BatchNormalization()(x))
    x = L.Conv2DTranspose(3, 5, strides=2, padding="same", activation="tanh")(x)
    return keras.Model(noise, x)


def convnext():
    """Two blocks of ConvNeXt's kind: normalised over the channels, Dense for 1x1 convolutions."""
    image = keras.Input((16, 16, 3))
    x = L.LayerNormalization(epsilon=1e-6)(L.Conv2D(24, 4, strides=4)(image))
    for _ in range(2):
        y = L.LayerNormalization(epsilon=1e-6)(L.DepthwiseConv2D(7, padding="same")(x))
        y = L.Conv2D(24, 1)(L.Conv2D(48, 1, activation="gelu")(y))
        x = L.Add()([x, y])
    return keras.Model(image, L.Dense(4)(L.GlobalAveragePooling2D()(x)))


# Reorders while it predicts and while it trains: DCGAN's first convolution reads a plain tensor,
# its last writes one, neither of which the op does (and back again for the gradients).
NETWORKS = {
    "unet": (unet, 0),
    "volumes": (unet_of_volumes, 0),
    "dcgan": (generator, 1),
    "convnext": (convnext, 0),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_one_region(name, floats):
    """Every layer inside is replaced, nothing is reordered, and results and gradients agree."""
    keras.utils.set_random_seed(3)
    build, reorders = NETWORKS[name]
    model = build()
    fast = bd.layers.convert(model)
    assert set(fast.conversion.kept.values()) <= {"no blocked form"}
    assert fast.conversion.reorders == []
    x = floats(2, *model.input_shape[1:])
    ops = ops_of(lambda: fast(x, training=False))
    assert ops.count("BlockdnnReorder") == reorders and "BlockdnnEltwise" not in ops
    for training in (False, True):
        expected, got = step(model, [x], training), step(fast, [x], training)
        close(got[0], expected[0], "result", 1e-4)
        for i, (g, e) in enumerate(zip(got[1], expected[1], strict=True)):
            close(g, e, f"gradient {i}", 1e-3)
    loaded = keras.models.model_from_json(fast.to_json())
    loaded.set_weights(fast.get_weights())
    np.testing.assert_array_equal(loaded(x), fast(x))


@pytest.mark.parametrize(
    "layer, why",
    [
        (L.Conv3D(8, 3, groups=2, padding="same"), "no kernel for groups or dilations"),
        (L.Conv3D(8, 3, dilation_rate=2, padding="same"), "no kernel for groups or dilations"),
        (L.LayerNormalization(axis=[1, 2, 3]), "a normalisation over other axes"),
    ],
)
def test_kept(layer, why, floats):
    """Arguments without a kernel stay with Keras."""
    volume = keras.Input((4, 5, 6, 4))
    x = layer(L.Conv3D(8, 3, padding="same")(volume))
    model = keras.Model(volume, x)
    fast = bd.layers.convert(model)
    assert why in fast.conversion.kept[layer.name]
    x = floats(2, 4, 5, 6, 4)
    close(fast(x), model(x), "result")


def _network(policy="float32"):
    layers, before = keras.layers, keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        keras.utils.set_random_seed(0)
        return keras.Sequential(
            [
                keras.Input((12, 12, 3)),
                layers.Conv2D(32, 3, use_bias=False),
                layers.BatchNormalization(),
                layers.Activation("swish"),  # nothing turns at zero, where gradients would jump
                layers.DepthwiseConv2D(3),
                layers.Conv2D(48, 1, activation="swish"),
                layers.Conv2D(32, 3, strides=2, padding="same"),
                layers.GlobalAveragePooling2D(),
                layers.Dense(64, activation="tanh"),
                layers.Dense(10, dtype="float32"),
            ]
        )
    finally:
        keras.config.set_dtype_policy(before)


@pytest.mark.parametrize(("isa", "in_bfloat16"), [("avx512", 0), ("avx512_bf16", 2)])
def test_mixed_bfloat16_forward_and_backward(monkeypatch, isa, in_bfloat16):
    """Weights and their gradients are float32, and nearer to float32's than Keras's own; products
    are those of bfloat16 where the CPU has them and no algorithm saves as much."""
    monkeypatch.setattr(native, "active_isa", lambda: isa)
    exact, theirs = _network(), _network("mixed_bfloat16")
    theirs.set_weights(exact.get_weights())
    ours = bd.layers.convert(theirs)
    x = np.random.default_rng(0).random((8, 12, 12, 3)).astype("float32")
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def step(model):
        with tf.GradientTape() as tape:
            y = model(x, training=True)
            value = loss(np.arange(8), y)
        return [y, *tape.gradient(value, model.trainable_variables)]

    for wanted, keras_own, got in zip(*map(step, (exact, theirs, ours)), strict=True):
        assert got.dtype == "float32"
        most = np.abs(wanted).max()
        off, own = (np.abs(values - wanted).max() / most for values in (got, keras_own))
        assert off < max(0.02, 1.2 * own)
    graph = tf.function(lambda x: ours(x, training=True)).get_concrete_function(x).graph
    convolutions = [op for op in graph.get_operations() if op.type == "BlockdnnConv"]
    assert [op.inputs[0].dtype for op in convolutions].count(tf.bfloat16) == in_bfloat16
    assert ours(x).dtype == theirs(x).dtype
    ours.compile("sgd", loss)
    ours.fit(x, np.arange(8), verbose=0)
    assert all(v.dtype == "float32" for v in ours.trainable_variables)


def test_a_converted_model_is_quantized_as_by_keras():
    theirs = _network()
    ours = bd.layers.convert(theirs)
    x = tf.constant(np.random.default_rng(0).random((8, 12, 12, 3)).astype("float32"))
    for model in (theirs, ours):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of layers that Keras does not quantize
            model.quantize("int8")
    assert ours.layers[-1].kernel.dtype == "int8"
    results = []
    for model in (theirs, ours):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = model(x)
        results.append((y, tape.gradient(y, x)))
    for wanted, got in zip(*results, strict=True):
        np.testing.assert_allclose(got, wanted, atol=2e-5 * np.abs(wanted).max())
    assert "quantize_rows" in str(tf.function(ours).get_concrete_function(x).graph.as_graph_def())
