"""bd.layers.convert: structure, numbers, and what a converted model can do."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from resident import usual_growth

import tf_blockdnn as bd

L = keras.layers


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.clear_session()
    keras.utils.set_random_seed(4)


def network():
    """Two results, a squeeze-and-excitation, a shuffle of everything that can be blocked."""
    image = keras.Input((17, 17, 3), name="image")
    x = L.ZeroPadding2D(1)(image)
    x = L.Conv2D(20, 3, strides=2, use_bias=False, name="stem", kernel_regularizer="l2")(x)
    x = L.BatchNormalization(name="stem_norm")(x)
    x = L.ReLU(6.0)(x)
    y = L.DepthwiseConv2D(3, padding="same", name="depthwise")(x)
    y = L.BatchNormalization(trainable=False, name="frozen")(y)
    y = L.Activation("swish")(y)
    s = L.GlobalAveragePooling2D()(y)
    s = L.Reshape((1, 1, 20))(s)
    s = L.Conv2D(20, 1, activation="sigmoid", name="gate")(s)
    y = L.Multiply()([y, s])
    x = L.Concatenate()([L.Add()([x, y]), y])
    mask = L.Conv2D(3, 1, activation="softmax", name="mask")(x)
    x = L.MaxPooling2D()(x)
    x = L.Conv2DTranspose(7, 2, strides=2, activation="gelu", name="up")(x)
    x = L.Flatten()(x)
    x = L.Dense(5, activation="softmax", name="label")(x)
    return keras.Model(image, [x, mask], name="network")


def randomised(model):
    rng = np.random.default_rng(1)
    for weight in model.weights:
        weight.assign(
            rng.uniform(0.1, 0.6, weight.shape)
            * rng.choice([-1, 1], weight.shape) ** ("variance" not in weight.path)
        )
    return model


def close(ours, theirs, rtol=3e-5):
    for a, b in zip(tf.nest.flatten(ours), tf.nest.flatten(theirs), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * max(1, np.abs(b).max()))


@pytest.fixture
def both(floats):
    model = randomised(network())
    return model, bd.layers.convert(model), floats(3, 17, 17, 3)


def test_structure(both):
    """One region: the layers in it read and write blocked, results are plain, names stay."""
    model, fast, _ = both
    said = fast.conversion
    assert said.replaced["stem"] == "Conv2D, plain to blocked"
    assert said.replaced["frozen"] == "BatchNormalization, blocked to blocked"
    assert said.replaced["mask"] == "Conv2D, blocked to plain"
    assert said.replaced["label"] == "Dense, plain to plain"
    assert said.kept["flatten"] == "no blocked form"
    assert said.kept["zero_padding2d"] == "no blocked layer before it"
    assert said.reorders == []
    assert len(said.replaced) == 15 and "flatten kept: no blocked form" in said.summary()
    assert fast.output_names == model.output_names
    assert [w.path for w in fast.weights] == [w.path for w in model.weights]
    assert fast.get_layer("frozen").trainable is False
    assert fast.get_layer("stem").kernel_regularizer.get_config() == {"l2": 0.01}
    assert fast.get_layer("stem").kernel is not model.get_layer("stem").kernel


def test_numbers(both):
    model, fast, x = both
    for training in (False, True):
        close(fast(x, training=training), model(x, training=training))
    close(fast.get_weights(), model.get_weights())
    close(fast.predict(x, verbose=0), model.predict(x, verbose=0))


def targets(model, x):
    rng = np.random.default_rng(0)
    return {
        name: rng.random(y.shape).astype(np.float32)
        for name, y in zip(model.output_names, model(x), strict=True)
    }


def test_fit_save_and_load(both, tmp_path):
    """Trains as the original, saves, loads, trains on; callbacks and checkpoints work."""
    model, fast, x = both
    y = targets(model, x)
    losses = {}
    for name, m in (("keras", model), ("blocked", fast)):
        m.compile("adam", {k: "mse" for k in y}, metrics={k: "mae" for k in y})
        best = keras.callbacks.ModelCheckpoint(tmp_path / f"{name}.keras")
        losses[name] = m.fit(x, y, epochs=3, verbose=0, callbacks=[best]).history["loss"]
        losses[name] += m.evaluate(x, y, verbose=0)
    assert fast.jit_compile is False
    np.testing.assert_allclose(losses["blocked"], losses["keras"], rtol=1e-4)
    loaded = keras.models.load_model(tmp_path / "blocked.keras")
    close(loaded(x), fast(x), 0)
    again = loaded.fit(x, y, epochs=1, verbose=0).history["loss"]
    close(again, fast.fit(x, y, epochs=1, verbose=0).history["loss"])
    model.set_weights(loaded.get_weights())  # and back into Keras's layers
    close(model(x), loaded(x))
    fast.save_weights(tmp_path / "w.weights.h5")
    model.load_weights(tmp_path / "w.weights.h5")
    close(model(x), fast(x))


def test_export(both, tmp_path):
    _, fast, x = both
    fast.export(tmp_path / "saved", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "saved")
    close(loaded.serve(x), fast(x))


def test_gradient_checkpointing(both):
    """tf.recompute_grad gives the gradients that a plain tape gives."""
    _, fast, x = both
    variables = [v.value for v in fast.trainable_variables]

    def gradients(call):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(call(tf.constant(x))[0][:, 0])
        return tape.gradient(loss, variables, unconnected_gradients="zero")

    close(gradients(tf.recompute_grad(lambda x: fast(x))), gradients(fast))


def test_distribution_strategy(floats):
    with tf.distribute.MirroredStrategy(["/cpu:0"]).scope():
        inputs = keras.Input((9, 9, 3))
        x = L.BatchNormalization()(L.Conv2D(20, 3)(inputs))
        model = keras.Model(inputs, L.GlobalMaxPooling2D()(x))
        fast = bd.layers.convert(model)
        fast.compile("sgd", "mse")
        model.compile("sgd", "mse")
    x, y = floats(4, 9, 9, 3), floats(4, 20)
    histories = [m.fit(x, y, epochs=2, verbose=0).history["loss"] for m in (fast, model)]
    np.testing.assert_allclose(histories[0], histories[1], rtol=1e-5)


def test_compiled_model_stays_compiled(floats):
    model = keras.Sequential([keras.Input((9, 9, 3)), L.Conv2D(4, 3), L.Flatten(), L.Dense(2)])
    model.compile("sgd", "mse")
    fast = bd.layers.convert(model)
    assert [*fast.conversion.replaced.values()] == [
        "Conv2D, plain to plain",
        "Dense, plain to plain",
    ]
    x, y = floats(4, 9, 9, 3), floats(4, 2)
    close(fast.train_on_batch(x, y), model.train_on_batch(x, y))
    with pytest.warns(UserWarning, match="doesn't support `jit_compile=True`"):
        fast.compile("sgd", "mse", jit_compile=True)


def test_sequential_without_input(floats):
    model = keras.Sequential([L.Conv2D(4, 3), L.BatchNormalization(), L.Flatten()])
    fast = bd.layers.convert(model)
    x = floats(2, 9, 9, 3)
    fast.build(x.shape)
    model.build(x.shape)
    fast.set_weights(model.get_weights())
    close(fast(x), model(x))
    assert list(fast.conversion.replaced) == [model.layers[0].name]


class Block(L.Layer):
    def __init__(self):
        super().__init__()
        self.convs = [L.Conv2D(8, 3, padding="same"), L.Conv2D(8, 3, padding="same")]

    def call(self, x):
        for conv in self.convs:
            x = conv(x)
        return x


class Subclassed(keras.Model):
    def __init__(self):
        super().__init__()
        self.stem = L.Conv2D(8, 3, activation="relu")
        self.block = Block()
        self.norm = L.BatchNormalization()
        self.head = L.Dense(3)

    def call(self, x, training=None):
        x = self.block(self.stem(x))
        x = self.norm(x, training=training)
        return self.head(tf.reduce_mean(x, [1, 2]))


def test_subclassed(floats):
    """The layers that it owns, also in lists and inside other layers; it trains as before."""
    x, y = floats(4, 9, 9, 3), floats(4, 3)
    model, fast = Subclassed(), Subclassed()
    for m in (model, fast):
        m(x)
        m.compile("sgd", "mse")
    fast.set_weights(model.get_weights())
    assert bd.layers.convert(fast) is fast
    owned = [layer for layer in fast._flatten_layers() if "blockdnn" in type(layer).__module__]
    assert len(owned) == len(fast.conversion.replaced) == 4
    assert len(fast.weights) == len(model.weights)
    close(fast(x), model(x))
    for _ in range(2):
        close(fast.train_on_batch(x, y), model.train_on_batch(x, y))
    close(fast.get_weights(), model.get_weights())


def test_slopes_of_prelu(floats):
    """A slope a channel is a post-op; slopes of single pixels stay with Keras."""
    image = keras.Input((9, 9, 3))
    x = L.PReLU("uniform", shared_axes=[1, 2], name="channels")(L.Conv2D(20, 3)(image))
    x = L.PReLU("uniform", name="pixels")(L.Conv2D(20, 3)(x))
    model = keras.Model(image, L.Conv2D(4, 3)(x))
    fast = bd.layers.convert(model)
    assert fast.conversion.replaced["channels"] == "PReLU, blocked to blocked"
    assert fast.conversion.kept["pixels"] == "no post-op for this activation"
    x = floats(2, 9, 9, 3)
    close(fast(x), model(x))
    unbuilt = bd.layers.convert(keras.Sequential([L.Conv2D(4, 3), L.PReLU(name="pixels")]))
    assert "pixels" in unbuilt.conversion.kept


def test_models_in_models(floats):
    inner = keras.Sequential([keras.Input((9, 9, 3)), L.Conv2D(20, 3), L.ReLU()], name="inner")
    image = keras.Input((9, 9, 3))
    model = keras.Model(image, L.Conv2D(4, 3, name="outer")(inner(image)))
    fast = bd.layers.convert(model)
    assert {"outer", "inner/" + inner.layers[0].name} <= set(fast.conversion.replaced)
    x = floats(2, 9, 9, 3)
    close(fast(x), model(x))


def test_shared_and_other_layers_are_kept(floats):
    image = keras.Input((9, 9, 3))
    shared = L.Conv2D(3, 3, padding="same", name="shared")
    x = shared(shared(image))
    x = L.Conv2D(4, 3, name="wide", dtype="float64")(x)
    x = L.Lambda(lambda x: x + 1, name="custom")(x)
    model = keras.Model(image, keras.ops.sum(x, axis=[1, 2]))
    fast = bd.layers.convert(model)
    assert fast.conversion.kept["shared"] == "called more than once"
    assert "float64" in fast.conversion.kept["wide"]
    assert fast.conversion.kept["custom"] == "no blocked form"
    x = floats(2, 9, 9, 3)
    close(fast(x), model(x))


def test_reorders_where_a_region_is_left(floats):
    """One reorder serves all plain readers."""
    image = keras.Input((9, 9, 3))
    x = L.Conv2D(20, 3, name="conv")(image)
    a = L.Cropping2D(1)(x)
    b = L.Cropping2D(2)(x)
    c = L.ReLU()(x)
    flat = [L.Flatten()(t) for t in (a, b, c)]
    model = keras.Model(image, L.Concatenate()(flat))
    fast = bd.layers.convert(model)
    assert fast.conversion.reorders == ["conv_from_blocked"]
    x = floats(2, 9, 9, 3)
    close(fast(x), model(x))


def test_not_a_model():
    with pytest.raises(TypeError, match="convert takes a keras.Model; got Conv2D"):
        bd.layers.convert(L.Conv2D(3, 3))


def digits():
    """scikit-learn's 1,797 images of 8 x 8 pixels, and their labels."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return data.images[..., None].astype(np.float32) / 16, data.target


def small_network():
    image = keras.Input((8, 8, 1))
    x = L.Conv2D(20, 3, padding="same", use_bias=False)(image)
    x = L.Activation("relu")(L.BatchNormalization()(x))
    x = L.Add()([x, L.Conv2D(20, 3, padding="same", activation="relu")(x)])
    x = L.MaxPooling2D()(x)
    x = L.SeparableConv2D(36, 3, padding="same", activation="swish")(x)
    return keras.Model(image, L.Dense(10, activation="softmax")(L.Flatten()(x)))


def test_memory_is_flat():
    """A step leaves less than 16 kB."""
    x, y = digits()
    fast = bd.layers.convert(small_network())
    fast.compile("sgd", "sparse_categorical_crossentropy")
    batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(16, True).repeat()

    def fit():
        fast.fit(batches, steps_per_epoch=250, epochs=1, verbose=0)

    assert usual_growth(fit) < 250 * 16 * 2**10


def in_float64(build):
    """What `build` returns, of layers that compute in float64."""
    policy = keras.config.dtype_policy()
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    try:
        return build()
    finally:
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy(policy)


def residual_network():
    """Twelve 3x3 convolutions, each with its statistics, six residual sums."""
    image = keras.Input((24, 24, 3))
    x = L.Conv2D(32, 3, padding="same", use_bias=False)(image)
    for _ in range(6):
        y = x
        for _ in range(2):
            y = L.Activation("relu")(L.BatchNormalization()(y))
            y = L.Conv2D(32, 3, padding="same", use_bias=False)(y)
        x = L.Add()([x, y])
    return keras.Model(image, L.Dense(10)(L.GlobalAveragePooling2D()(x)))


def test_forward_of_a_training_step_against_float64():
    """Logits lie as near to float64 as Keras's with `direct`, and within twice of it with `auto`,
    by the root of the mean square over 40 of them: single losses are draws of a lottery."""
    x = np.random.default_rng(2).normal(size=(4, 24, 24, 3)).astype("float32")
    model = residual_network()
    exact = in_float64(residual_network)
    exact.set_weights(model.get_weights())
    assert exact.layers[1].compute_dtype == "float64"
    models = {a: bd.layers.convert(model, algorithm=a) for a in ("direct", "auto")}
    wanted = np.asarray(exact(x.astype("float64"), training=True))
    assert wanted.dtype == np.float64

    def error(of):
        return np.sqrt(np.mean((np.asarray(of(x, training=True), np.float64) - wanted) ** 2))

    least = error(model)
    assert 0 < error(models["direct"]) < least
    assert error(models["auto"]) < 2 * least
