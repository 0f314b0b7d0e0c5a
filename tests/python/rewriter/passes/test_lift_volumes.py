"""3-D networks run on slices of volumes, in blocks from the first convolution to the last."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from tf_blockdnn import Options
from tf_blockdnn.python.targets import optimize


def _network(size, *stack):
    return keras.Sequential([keras.Input(size), *stack])


@pytest.mark.parametrize("padding", ["same", "valid"])
@pytest.mark.parametrize(
    "kernel, strides", [(3, 1), (3, 2), (1, 1), ((1, 3, 3), 1), (2, (2, 1, 1))]
)
def test_every_window(kernel, strides, padding, of_keras):
    result = of_keras(
        _network(
            (6, 7, 8, 16),
            layers.Conv3D(32, kernel, strides=strides, padding=padding),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Conv3D(16, 3, padding="same", activation="elu"),
        )
    )
    assert result.blockdnn == {"ConvVolume": 2, "Reorder": 2} and "Conv3D" not in result.ops
    assert result.post_ops("BlockdnnConvVolume") == [
        "binary(add,channel);eltwise(relu)",
        "binary(add,channel);eltwise(elu)",
    ]


@pytest.mark.parametrize("kind", [layers.MaxPooling3D, layers.AveragePooling3D])
@pytest.mark.parametrize(
    "options",
    [
        {"pool_size": 2},
        {"pool_size": 3, "strides": 2, "padding": "same"},
        {"pool_size": (1, 2, 2)},
        {"pool_size": (3, 1, 1), "strides": (2, 1, 1), "padding": "same"},
    ],
    ids=str,
)
def test_pooling(options, kind, of_keras):
    """In two steps; the counts of means are products."""
    conv = layers.Conv3D
    result = of_keras(
        _network((7, 8, 6, 16), conv(20, 3, padding="same"), kind(**options), conv(16, 1))
    )
    size = options["pool_size"]
    depth, plane = (size, size) if isinstance(size, int) else (size[0], max(size[1:]))
    steps = (depth > 1) + (plane > 1)
    assert result.blockdnn == {"ConvVolume": 2, "Pool": steps, "Reorder": 2}
    assert not [node for node, _ in result.report.declined if "Pool" in node]


def test_a_network(of_keras):
    """First layers read plain volumes; residuals, concatenations and means stay in blocks."""
    x = y = keras.Input((8, 8, 8, 1))
    for filters in (16, 32):
        y = layers.Conv3D(filters, 3, padding="same", use_bias=False)(y)
        y = layers.ReLU()(layers.BatchNormalization()(y))
        y = layers.MaxPooling3D(2)(y)
    y = layers.Add()([y, layers.Conv3D(32, 3, padding="same", activation="relu")(y)])
    y = layers.Concatenate()([y, layers.Conv3D(16, 1)(y)])
    y = layers.Dense(5)(layers.GlobalAveragePooling3D()(layers.LeakyReLU()(y)))
    result = of_keras(keras.Model(x, y))
    assert result.blockdnn["ConvVolume"] == 4 and "Reorder" not in result.blockdnn
    assert {"Conv3D", "MaxPool3D", "MaxPool", "ConcatV2"}.isdisjoint(result.ops)


@pytest.mark.parametrize("pads, strides, fits", [(1, 1, True), ((0, 1), 2, True), (1, 2, False)])
def test_padded_and_normalised_by_ops_of_volumes(pads, strides, fits, rewrite, weights):
    """As Keras 2 and residual networks spell them; a Pad along the depth is the convolution's."""
    pads = [(0, 0), *[pads if isinstance(pads, tuple) else (pads, pads)] * 3, (0, 0)]

    def network(x):
        y = tf.nn.conv3d(x, weights(3, 3, 3, 16, 32), [1] * 5, "SAME")
        statistics = {"mean": weights(32), "variance": tf.abs(weights(32)) + 1}
        y = tf.compat.v1.nn.fused_batch_norm(
            *(y, weights(32), weights(32)), **statistics, is_training=False, data_format="NDHWC"
        )[0]
        y = tf.pad(tf.nn.relu(y), pads)
        return tf.nn.conv3d(y, weights(3, 3, 3, 32, 16), [1, *[strides] * 3, 1], "VALID")

    result = rewrite(network, [2, 8, 8, 6, 16])
    assert result.blockdnn == {"ConvVolume": 2, "Reorder": 2 if fits else 4}
    assert result.post_ops("BlockdnnConvVolume")[0] == "binary(add,channel);eltwise(relu)"


@pytest.mark.parametrize("convolved", [False, True])
@pytest.mark.parametrize("batch", [None, 1, 2])
def test_gates_of_volumes_are_those_of_their_slices(batch, convolved, rewrite, weights):
    """Squeeze and excite."""

    def network(x):
        y = tf.nn.conv3d(x, weights(3, 3, 3, 16, 32), [1] * 5, "SAME")
        gates = tf.reduce_mean(y, [1, 2, 3], keepdims=True)
        if convolved:
            gates = tf.nn.conv3d(gates, weights(1, 1, 1, 32, 32), [1] * 5, "SAME")
        else:
            gates = tf.reshape(gates, [-1, 32]) @ weights(32, 32)
        y *= tf.reshape(tf.sigmoid(gates), [-1, 1, 1, 1, 32])
        return tf.nn.conv3d(y, weights(3, 3, 3, 32, 16), [1] * 5, "SAME")

    result = rewrite(network, [batch, 3, 8, 6, 16])
    assert result.blockdnn["ConvVolume"] == 2 + convolved
    assert "Mul" not in [node.op for node in result.nodes if "repeated" not in node.name]


def test_two_readers_share_the_slices(rewrite, weights):
    """Of a volume that TensorFlow makes, which is in no slices."""
    filters = weights(1, 1, 1, 16, 16)

    def function(x):
        x = tf.nn.relu(tf.pad(x, [[0, 0], [1, 1], [1, 1], [1, 1], [0, 0]]))
        one, other = (tf.nn.conv3d(x, filters, [1] * 5, "SAME") for _ in range(2))
        return tf.nn.relu(one) + other

    assert rewrite(function, [None, 4, 5, 6, 16]).blockdnn == {"ConvVolume": 2, "Reorder": 2}


def _segmenting(channels):
    """A U of two levels: skips, poolings, strides, transposed convolutions, norms, gates."""
    x = keras.Input((None, None, None, channels))
    y = first = layers.ReLU()(layers.BatchNormalization()(layers.Conv3D(16, 3, padding="same")(x)))
    y = layers.MaxPooling3D(2)(y)
    y = layers.Conv3D(32, 3, padding="same", activation="relu")(y)
    y = layers.Conv3DTranspose(16, 2, strides=2)(y)
    y = layers.Concatenate()([y, first])
    y = layers.Conv3D(16, 3, padding="same", activation="elu")(y)
    gates = layers.GlobalAveragePooling3D(keepdims=True)(y)
    y = layers.Multiply()([y, layers.Dense(16, activation="sigmoid")(gates)])
    return keras.Model(x, layers.Conv3D(5, 3, padding="same")(y))


@pytest.mark.parametrize("channels", [1, 16])
def test_open_sizes(channels, result_of):
    """A network of volumes of any size runs in blocks, and is right for each."""
    model = _segmenting(channels)
    function = tf.function(model, autograph=False)
    result = result_of(function, tf.TensorSpec((None, None, None, None, channels)))
    assert result.blockdnn["ConvVolume"] == 4 and result.blockdnn["ConvTranspose"] == 2
    assert {"Conv3D", "Conv3DBackpropInputV2", "MaxPool3D"}.isdisjoint(result.ops)
    assert result.concrete(tf.ones((0, 4, 6, 8, channels))).shape == (0, 4, 6, 8, 5)
    random = np.random.default_rng(0)
    for shape in ((1, 4, 6, 8), (2, 2, 2, 2), (3, 8, 4, 4), (2, 6, 4, 10)):
        x = tf.constant(random.standard_normal((*shape, channels)), tf.float32)
        np.testing.assert_allclose(result.concrete(x), function(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    "shape", [(None, None, 6, 6), (2, None, 6, 6), (None, 4, None, None), (1, 5, None, 6)]
)
@pytest.mark.parametrize("kernel, strides", [((3, 3, 3), (2, 2, 2)), ((2, 1, 3), (1, 2, 1))])
def test_some_open_sizes(shape, padding, kernel, strides, weights, result_of):
    @tf.function(input_signature=[tf.TensorSpec((*shape, 16))])
    def function(x):
        y = tf.nn.conv3d(x, weights(*kernel, 16, 20), [1, *strides, 1], padding)
        y = tf.nn.max_pool3d(tf.nn.relu(y), (1, 2, 2), 1, "SAME")
        y = tf.nn.avg_pool3d(
            tf.nn.conv3d(y, weights(1, 1, 1, 20, 16), [1] * 5, padding), 2, 2, "SAME"
        )
        return tf.reduce_mean(y, [1, 2, 3])

    result = result_of(function)
    assert result.blockdnn["ConvVolume"] == 2 and result.blockdnn["Pool"] >= 2
    random = np.random.default_rng(0)
    for sizes in ((2, 4, 6, 6), (1, 5, 7, 6), (3, 9, 6, 6)):
        sizes = [known or size for known, size in zip(shape, sizes, strict=True)]
        x = tf.constant(random.standard_normal((*sizes, 16)), tf.float32)
        np.testing.assert_allclose(result.concrete(x), function(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "kernel, strides, padding",
    [(3, 2, "SAME"), (3, 1, "VALID"), (2, 2, "SAME"), (7, 2, "SAME"), (5, 1, "SAME")],
)
def test_transposed_of_open_sizes(kernel, strides, padding, weights, result_of):
    @tf.function(input_signature=[tf.TensorSpec((None, None, None, None, 16))])
    def function(x):
        y = tf.nn.conv3d(x, weights(3, 3, 3, 16, 16), [1] * 5, "SAME")
        grown = (kernel - strides) * (padding == "VALID")
        shape = [tf.shape(y)[0], *(tf.shape(y)[n] * strides + grown for n in (1, 2, 3)), 20]
        y = tf.nn.conv3d_transpose(
            y, weights(kernel, kernel, kernel, 20, 16), tf.stack(shape), strides, padding
        )
        return tf.nn.conv3d(y, weights(3, 3, 3, 20, 16), [1] * 5, "SAME")

    result = result_of(function)
    assert result.blockdnn["ConvVolume"] == 2
    random = np.random.default_rng(0)
    for sizes in ((2, 3, 4, 5), (1, 1, 2, 2)):
        x = tf.constant(random.standard_normal((*sizes, 16)), tf.float32)
        np.testing.assert_allclose(result.concrete(x), function(x), rtol=1e-4, atol=1e-5)
    grown = [size * strides + 2 * (padding == "VALID") for size in (3, 4, 5)]
    assert result.concrete(tf.ones((0, 3, 4, 5, 16))).shape == (0, *grown, 16)


@pytest.mark.parametrize("sizes", [(2, 4, 4, 4), (0, 4, 4, 4), (3, 6, 4, 5), (0, 9, 9, 9)])
def test_volumes_of_which_nothing_is_left(sizes, weights, result_of):
    """TensorFlow gives them the shape of their source where it uses oneDNN."""

    @tf.function(input_signature=[tf.TensorSpec((None, None, None, None, 16))])
    def function(x):
        y = tf.nn.relu(tf.nn.conv3d(x, weights(3, 3, 3, 16, 20), [1] * 5, "VALID"))
        return tf.nn.conv3d(y, weights(3, 3, 3, 20, 16), [1] * 5, "VALID")

    result = result_of(function)
    assert result.blockdnn["ConvVolume"] == 2
    batch, *volume = sizes
    shape = (batch, *(size - 4 for size in volume), 16)
    assert result.concrete(tf.ones((*sizes, 16))).shape == shape


def test_gradients_of_open_sizes(weights, result_of):
    @tf.function(input_signature=[tf.TensorSpec((None, None, None, None, 16))])
    def function(x):
        y = tf.nn.relu(tf.nn.conv3d(x, weights(3, 3, 3, 16, 20), [1, 2, 2, 2, 1], "SAME"))
        return tf.nn.conv3d(y, weights(2, 2, 2, 20, 16), [1] * 5, "VALID")

    result = result_of(function)
    assert result.blockdnn["ConvVolume"] == 2
    x = tf.constant(np.random.default_rng(0).standard_normal((2, 5, 6, 7, 16)), tf.float32)
    grads = []
    for call in (result.concrete, function):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(call(x) ** 2)
        grads.append(tape.gradient(y, x))
    np.testing.assert_allclose(*grads, rtol=1e-3, atol=1e-4)


def test_volumes_whose_number_nothing_tells_stay(weights, result_of):
    """They are slices of pictures that the function reads, of a depth that it reads, too."""

    @tf.function(input_signature=[tf.TensorSpec((None, 6, 6, 16)), tf.TensorSpec((), tf.int32)])
    def function(x, depth):
        volumes = tf.reshape(x, [-1, depth, 6, 6, 16])
        return tf.nn.conv3d(volumes, weights(3, 3, 3, 16, 16), [1] * 5, "SAME")

    result = result_of(function)
    assert "sizes of its volumes" in result.reason("Conv3D") and "Conv3D" in result.ops


def test_a_broadcast_over_the_depth_stays_right(rewrite, weights):
    filters = weights(3, 3, 3, 16, 16)

    def function(x):
        y = tf.nn.conv3d(x, filters, [1] * 5, "SAME")
        row = tf.nn.conv3d(x, filters[:, :, :], [1, 4, 1, 1, 1], "SAME")
        return tf.nn.relu(y + row)

    result = rewrite(function, [2, 4, 5, 6, 16])
    assert result.blockdnn["ConvVolume"]


def test_a_bias_of_the_depth_is_none_of_the_height(rewrite, weights, image):
    filters, bias = weights(3, 3, 3, 16, 16), weights(5)

    def function(x):
        y = tf.nn.relu(tf.nn.conv3d(x, filters, [1] * 5, "SAME"))
        return tf.nn.bias_add(y, bias, data_format="NCHW")

    result = rewrite(function, [2, 5, 5, 6, 16])
    result.assert_same(image(2, 5, 5, 6, 16))
    assert result.blockdnn["ConvVolume"] == 1


def test_infinite_weights_stay(rewrite):
    """A zero of the padding would make them NaN."""
    weights = np.full([3, 3, 3, 4, 16], 0.5, np.float32)
    weights[0, 0, 0] = np.inf
    result = rewrite(lambda x: tf.nn.conv3d(x, weights, [1] * 5, "SAME"), [2, 3, 4, 5, 4])
    assert "infinities" in result.reason("Conv3D")
    assert not result.blockdnn


@pytest.mark.parametrize("axes", [(1,), (2, 3), (3, 4), (1, 2, 3), (1, 2, 3, 4)], ids=str)
def test_maxima_that_keep_dimensions(axes, rewrite, weights):
    """Those of a plane are maxima of slices; the depth of a volume is no axis of its slices."""

    def function(x):
        return tf.reduce_max(
            tf.nn.conv3d(x, weights(3, 3, 3, 16, 16), [1] * 5, "SAME"), axes, keepdims=True
        )

    result = rewrite(function, [2, 4, 5, 6, 16])
    assert result.blockdnn["ConvVolume"]


def test_a_reshape_to_one_volume_counts_the_batch(rewrite, weights, image):
    """At batch 2 the volumes are one of twice the depth, and no volume of a batch of one."""
    kernel = weights(1, 3, 3, 16, 16)

    def function(x):
        x = tf.nn.conv3d(x, kernel, [1] * 5, "SAME")
        return tf.nn.conv3d(tf.reshape(x, [1, -1, 5, 6, 16]), kernel, [1] * 5, "SAME")

    result = rewrite(function, [None, 4, 5, 6, 16])
    for batch in (1, 2):
        result.assert_same(image(batch, 4, 5, 6, 16))


@pytest.mark.parametrize(
    "kernel, strides, padding, extra, planes",
    [
        (2, 2, "valid", None, 2),
        (3, 2, "valid", None, 2),
        (3, 2, "same", None, 2),
        (4, 2, "same", None, 2),
        (3, 2, "same", 1, 2),
        (3, 2, "same", (0, 1, 1), 2),  # an odd number of slices
        (5, 3, "same", None, 3),
        (2, 3, "valid", None, 2),  # of the third slice there is no tap
        ((1, 3, 3), (1, 2, 2), "same", None, 1),
        ((3, 2, 2), (1, 2, 2), "same", None, 1),
        ((7, 2, 2), 2, "same", None, 2),  # taps beyond both ends
    ],
)
def test_transposed(kernel, strides, padding, extra, planes, of_keras):
    """A transposed convolution of planes for each slice of a stride along the depth."""
    layer = layers.Conv3DTranspose(
        7, kernel, strides=strides, padding=padding, output_padding=extra, activation="relu"
    )
    result = of_keras(_network((3, 4, 5, 20), layer))
    assert result.blockdnn["ConvTranspose"] == planes
    assert not any("Backprop" in op for op in result.ops)


def test_transposed_by_one_is_a_convolution(of_keras):
    layer = layers.Conv3DTranspose(20, 3, padding="same")
    result = of_keras(_network((4, 5, 6, 16), layer))
    assert result.blockdnn["Conv"] == 1 and not result.blockdnn.get("ConvTranspose")


def test_transposed_between_convolutions(of_keras):
    x = keras.Input((4, 6, 6, 8))
    y = layers.Conv3D(24, 3, padding="same", activation="relu")(x)
    y = layers.Conv3DTranspose(16, 2, strides=2)(y)
    y = layers.BatchNormalization()(y)
    y = layers.Conv3D(4, 3, padding="same")(layers.ReLU()(y))
    result = of_keras(keras.Model(x, y))
    assert result.blockdnn["ConvVolume"] == 2 and result.blockdnn["ConvTranspose"] == 2


def test_transposed_loaded_and_live(image, tmp_path):
    """Its filters are parts of the weights, whose values may become others."""
    model = _network((3, 4, 4, 16), layers.Conv3DTranspose(16, 3, strides=2, padding="same"))
    x = image(1, 3, 4, 4, 16)
    live = optimize(model, options=Options(strict=True), weights="live")
    model.layers[0].kernel.assign(2 * model.layers[0].kernel)
    np.testing.assert_allclose(live(x), model(x), atol=1e-4)
    model.export(tmp_path / "model", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "model")
    fast = optimize(loaded.signatures["serving_default"], options=Options(strict=True))
    assert fast.report.count("BlockdnnConvTranspose") == 2
    (result,) = fast(x).values()
    np.testing.assert_allclose(result, model(x), atol=1e-4)


@pytest.mark.parametrize(
    "dtype, stride, size, reason",
    [
        (tf.float64, 2, 8, "only float32"),
        (tf.float32, 2, 7, "the size of its result"),
        (tf.float32, 17, 68, "strides above 16"),
    ],
)
def test_transposed_volumes_that_stay(dtype, stride, size, reason, rewrite):
    filters = np.random.default_rng(0).standard_normal([2, 2, 2, 4, 16])

    def function(x):
        shape = [2, size, 8, 8, 4]
        return tf.nn.conv3d_transpose(
            x, tf.constant(filters, dtype), shape, [stride, 2, 2], "VALID"
        )

    result = rewrite(function, tf.TensorSpec([2, 4, 4, 4, 16], dtype))
    assert not result.blockdnn and reason in result.reason("conv3d_transpose")
