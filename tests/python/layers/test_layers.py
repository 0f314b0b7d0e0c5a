"""Each layer against Keras's of the same name: outputs, gradients, shapes, types, configuration."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from compared import check, pair

import tf_blockdnn as bd
from tf_blockdnn.python.layers.convert import reason_to_keep


def _dilates():
    """Whether TensorFlow computes dilated transposed convolutions here, as oneDNN does."""
    try:
        x, kernel = tf.ones((1, 2, 2, 1)), tf.ones((2, 2, 1, 1))
        tf.nn.conv2d_transpose(x, kernel, (1, 4, 4, 1), 1, "VALID", dilations=2)
    except tf.errors.InvalidArgumentError:
        return False
    return True


def _without_padding():
    """The arguments that say so, where this Keras takes them."""
    arguments = dict(filters=5, kernel_size=3, strides=2, output_padding=0)
    try:
        keras.layers.Conv2DTranspose(**arguments)
    except ValueError:
        return []
    return [arguments]


LINE, PLANE, CUBE = (2, 9, 20), (2, 7, 6, 20), (2, 5, 4, 6, 20)

# name -> (shapes of the inputs, a list of arguments)
CONVOLUTIONS = {
    "Conv1D": (
        [LINE],
        [
            dict(filters=18, kernel_size=3, padding="causal", dilation_rate=2),
            dict(filters=5, kernel_size=4, strides=2, activation="relu"),
        ],
    ),
    "Conv2D": (
        [PLANE],
        [
            dict(filters=18, kernel_size=3, padding="same", activation="relu"),
            dict(filters=33, kernel_size=(2, 3), strides=2, activation="gelu", use_bias=False),
            dict(filters=10, kernel_size=3, groups=5, activation="softmax"),
            dict(filters=4, kernel_size=3, dilation_rate=2, kernel_regularizer="l2"),
        ],
    ),
    "Conv3D": (
        [CUBE],
        [
            dict(filters=3, kernel_size=2, activation="tanh"),
            dict(filters=17, kernel_size=3, padding="same", activation="relu"),
            dict(filters=5, kernel_size=(3, 2, 3), strides=2, padding="same", use_bias=False),
            dict(filters=4, kernel_size=3, padding="same", dilation_rate=2),
        ],
    ),
    "DepthwiseConv1D": ([LINE], [dict(kernel_size=3, depth_multiplier=2, activation="swish")]),
    "DepthwiseConv2D": (
        [PLANE],
        [
            dict(kernel_size=3, strides=2, padding="same", activation="relu6"),
            dict(kernel_size=(3, 2), dilation_rate=2, use_bias=False),
        ],
    ),
    "SeparableConv1D": ([LINE], [dict(filters=7, kernel_size=3, strides=2, padding="same")]),
    "SeparableConv2D": (
        [PLANE],
        [dict(filters=17, kernel_size=3, depth_multiplier=2, activation="elu")],
    ),
    "Conv1DTranspose": ([LINE], [dict(filters=7, kernel_size=3, strides=2, padding="same")]),
    "Conv2DTranspose": (
        [PLANE],
        [
            dict(filters=18, kernel_size=2, strides=2, activation="relu"),
            dict(filters=5, kernel_size=3, strides=2, padding="same", activation="swish"),
            dict(filters=5, kernel_size=(1, 3), strides=(3, 2), output_padding=None),
            *_without_padding(),
            dict(filters=17, kernel_size=3, strides=2, padding="same", output_padding=1),
            *([dict(filters=5, kernel_size=3, dilation_rate=2)] if _dilates() else []),
        ],
    ),
    "Conv3DTranspose": (
        [CUBE],
        [
            dict(filters=3, kernel_size=2, strides=2, activation="relu"),
            dict(filters=17, kernel_size=3, strides=2, padding="same"),
            dict(filters=5, kernel_size=(3, 1, 2), strides=(1, 2, 2), use_bias=False),
            dict(filters=4, kernel_size=2, strides=2, output_padding=1, activation="tanh"),
        ],
    ),
}
OTHERS = {
    "Dense": ([PLANE], [dict(units=7, activation="softmax"), dict(units=17, activation="relu")]),
    "MaxPooling1D": ([LINE], [dict(pool_size=2), dict(pool_size=3, strides=2, padding="same")]),
    "MaxPooling2D": ([PLANE], [dict(), dict(pool_size=3, strides=(1, 2), padding="same")]),
    "MaxPooling3D": ([CUBE], [dict(), dict(pool_size=3, strides=(1, 2, 2), padding="same")]),
    "AveragePooling1D": ([LINE], [dict(pool_size=3, padding="same")]),
    "AveragePooling2D": ([PLANE], [dict(pool_size=3, strides=2, padding="same")]),
    "AveragePooling3D": ([CUBE], [dict(pool_size=3, padding="same")]),
    **{
        f"Global{kind}Pooling{rank}D": ([shape], [dict(), dict(keepdims=True)])
        for kind in ("Max", "Average")
        for rank, shape in ((1, LINE), (2, PLANE), (3, CUBE))
    },
    "BatchNormalization": (
        [PLANE],
        [dict(), dict(scale=False, momentum=0.5), dict(center=False), dict(axis=2)],
    ),
    "LayerNormalization": (
        [PLANE],
        [dict(), dict(axis=3, scale=False, epsilon=0.1), dict(center=False), dict(axis=[1, 2])],
    ),
    "Activation": (
        [PLANE],
        [
            dict(activation=a)
            for a in "relu elu selu tanh sigmoid silu gelu softplus softsign exponential "
            "hard_sigmoid hard_silu mish leaky_relu relu6 linear softmax".split()
        ],
    ),
    "ReLU": (
        [PLANE],
        [
            dict(),
            dict(max_value=6.0),
            dict(max_value=1.5),
            dict(negative_slope=0.25),
            dict(threshold=1.0, max_value=2.0),
        ],
    ),
    "LeakyReLU": ([PLANE], [dict(negative_slope=0.25)]),
    "ELU": ([PLANE], [dict(alpha=1.0), dict(alpha=0.5)]),
    "PReLU": ([PLANE], [dict(), dict(shared_axes=[1, 2]), dict(shared_axes=[1, 3])]),
    "Add": ([PLANE, PLANE, PLANE], [dict()]),
    "Multiply": ([PLANE, PLANE], [dict()]),
    "Concatenate": (
        [PLANE, PLANE],
        [dict(), dict(axis=1), dict(axis=-2)],
    ),
    "UpSampling2D": (
        [PLANE],
        [
            dict(),
            dict(size=(2, 3), interpolation="bilinear"),
            dict(size=(3, 2), interpolation="bicubic"),
        ],
    ),
    "ZeroPadding2D": ([PLANE], [dict(padding=((1, 2), (0, 3)))]),
}


def cases():
    for name, (shapes, many) in (CONVOLUTIONS | OTHERS).items():
        for arguments in many:
            yield pytest.param(name, shapes, arguments, id=f"{name}-{arguments}")


@pytest.mark.parametrize("name, shapes, arguments", list(cases()))
def test_blocked(name, shapes, arguments):
    """Between ToBlocked and FromBlocked."""
    check(name, shapes, True, **arguments)


@pytest.mark.parametrize(
    "name",
    "Conv1D Conv2D DepthwiseConv2D SeparableConv2D Conv2DTranspose BatchNormalization "
    "MaxPooling2D".split(),
)
def test_plain(name):
    """By itself a layer takes and gives plain tensors."""
    shapes, many = (CONVOLUTIONS | OTHERS)[name]
    check(name, shapes, False, **many[0])


@pytest.mark.parametrize(
    "name, shapes, arguments",
    [
        ("Activation", [CUBE], dict(activation="tanh")),
        ("BatchNormalization", [CUBE], dict()),
        ("BatchNormalization", [LINE], dict()),
        ("LayerNormalization", [CUBE], dict()),
        ("LayerNormalization", [LINE], dict()),
        ("PReLU", [CUBE], dict(shared_axes=[1, 2, 3])),
        ("Add", [CUBE, CUBE], dict()),
        ("Concatenate", [CUBE, CUBE], dict()),
        ("Concatenate", [CUBE, CUBE], dict(axis=1)),
        ("Concatenate", [CUBE, CUBE], dict(axis=2)),
        ("Concatenate", [LINE, LINE], dict()),
    ],
)
def test_lines_and_volumes(name, shapes, arguments):
    check(name, shapes, True, **arguments)


def test_dense_of_rows():
    check("Dense", [(4, 20)], False, units=17, activation="gelu")


@pytest.mark.parametrize("name", ["Add", "Multiply"])
def test_one_value_a_channel(name):
    check(name, [PLANE, (2, 1, 1, 20)], True)


def test_concatenate_other_channels():
    check("Concatenate", [PLANE, (2, 7, 6, 16), (2, 7, 6, 3)], True)


def test_channel_shuffle():
    """Blocked and plain as the definition: [groups, C / groups] transposed."""
    x = np.random.default_rng(0).standard_normal(PLANE).astype(np.float32)
    expected = x.reshape(2, 7, 6, 4, 5).swapaxes(3, 4).reshape(PLANE)
    np.testing.assert_array_equal(bd.layers.ChannelShuffle(4)(x), expected)
    y = bd.layers.ChannelShuffle(4)(bd.layers.ToBlocked()(x))
    np.testing.assert_array_equal(bd.layers.FromBlocked()(y), expected)
    with pytest.raises(ValueError, match="groups = 3 must divide the 20 channels"):
        bd.layers.ChannelShuffle(3)(x)
    with pytest.raises(ValueError, match="at least 1"):
        bd.layers.ChannelShuffle(0)


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("Conv2D", dict(filters=0, kernel_size=3)),
        ("Conv2D", dict(filters=4, kernel_size=3, groups=3)),
        ("Conv2D", dict(filters=4, kernel_size=3, strides=2, dilation_rate=2)),
        ("Conv2D", dict(filters=4, kernel_size=3, padding="half")),
        ("Conv2D", dict(filters=4, kernel_size=9)),
        ("Conv2D", dict(filters=4, kernel_size=3, groups=2, typo=1)),
        ("DepthwiseConv2D", dict(kernel_size=3, depth_multiplier=0)),
        ("BatchNormalization", dict(axis=7)),
        ("MaxPooling2D", dict(pool_size=0)),
    ],
    ids=str,
)
def test_errors_are_those_of_keras(name, arguments):
    def message(layers, blocked):
        with pytest.raises(Exception) as raised:
            x = tf.zeros((2, 5, 5, 6))
            x = bd.layers.ToBlocked()(x) if blocked else x
            getattr(layers, name)(**arguments, name="layer")(x)
        return type(raised.value), str(raised.value).replace("tf_blockdnn", "keras")

    expected = message(keras.layers, False)
    assert message(bd.layers, False) == expected
    assert message(bd.layers, True) == expected


class TestBlockedOrPlain:
    """A tensor that is not what a layer reads: one line that names the layer and the remedy."""

    def test_plain_layer_gets_blocked(self):
        layer = bd.layers.Conv2D(4, 3, name="first")
        layer(tf.zeros(PLANE))
        with pytest.raises(ValueError, match=r'"first" reads plain .* put bd.layers.FromBlocked'):
            layer(bd.layers.ToBlocked()(tf.zeros(PLANE)))

    def test_blocked_layer_gets_plain(self):
        layer = bd.layers.BatchNormalization(name="norm")
        layer(bd.layers.ToBlocked()(tf.zeros(PLANE)))
        match = r'"norm" reads blocked tensors of 20 .* put .*ToBlocked'
        with pytest.raises(ValueError, match=match):
            layer(tf.zeros(PLANE))

    def test_other_channels(self):
        layer = bd.layers.Activation("relu", name="act")
        layer(bd.layers.ToBlocked()(tf.zeros(PLANE)))
        match = r'"act" .* blocked of 24 channels: give it blocked_ch'
        with pytest.raises(ValueError, match=match):
            layer(bd.layers.ToBlocked()(tf.zeros((2, 7, 6, 24))))

    def test_nothing_says_how_many_channels(self):
        with pytest.raises(ValueError, match=r'"out" got a tensor that no blocked layer made'):
            bd.layers.FromBlocked(name="out")(tf.zeros((2, 2, 7, 6, 16)))

    def test_float64(self):
        layer = bd.layers.Conv2D(4, 3, dtype="float64", name="wide")
        with pytest.raises(ValueError, match=r'"wide" of dtype float64 cannot be blocked'):
            layer(bd.layers.ToBlocked()(tf.zeros(PLANE)))

    def test_through_a_data_set(self, floats):
        """What a layer reads is its configuration: a tensor may come from anywhere."""
        x, to_blocked = floats(*PLANE), bd.layers.ToBlocked()
        data = tf.data.Dataset.from_tensors(x).map(lambda x: to_blocked(x))
        conv = bd.layers.Conv2D(18, 3, blocked_channels=20)
        (batch,) = list(data)
        y = bd.layers.FromBlocked()(conv(batch))
        expected = tf.nn.conv2d(x, conv.kernel.value, 1, "VALID")
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)

    def test_inside_a_function(self, floats):
        """Marks pass between layers while a function is traced."""
        layers = [bd.layers.ToBlocked(), bd.layers.Conv2D(18, 3), bd.layers.FromBlocked()]
        x = floats(*PLANE)
        y = tf.function(lambda x: functools.reduce(lambda x, layer: layer(x), layers, x))(x)
        expected = tf.nn.conv2d(x, layers[1].kernel.value, 1, "VALID")
        np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)


def test_xla_is_refused():
    layer = bd.layers.Conv2D(4, 3, name="first")
    layer(tf.zeros(PLANE))
    with pytest.raises(ValueError, match=r'"first" cannot run in a function with jit_compile=True'):
        tf.function(layer, jit_compile=True)(tf.zeros(PLANE))


def test_xla_takes_a_dense_layer_that_keras_computes(floats):
    layer, x = bd.layers.Dense(4, dtype="mixed_bfloat16"), floats(3, 8)
    y = tf.cast(tf.function(layer, jit_compile=True)(x), tf.float32)
    np.testing.assert_allclose(y, tf.cast(layer(x), tf.float32), atol=0.02)
    layer, x = bd.layers.Dense(4, name="second"), floats(3, 8)
    layer.build(x.shape)
    for mode in (None, "int8"):
        if mode:
            layer.quantize(mode)
        with pytest.raises(ValueError, match='"second" cannot run in a function with jit_comp'):
            tf.function(layer, jit_compile=True)(x)


def test_what_only_later_versions_of_keras_have_is_not_needed(floats):
    """Keras 3.10 has neither renormalised moments nor windows and gates of attention."""
    norm, attention = keras.layers.BatchNormalization(), bd.layers.GroupQueryAttention(8, 4, 2)
    x = floats(1, 4, 16)
    wanted = attention(x, x)
    for layer, names in ((norm, "renorm"), (attention, "sliding_window use_gate")):
        for name in names.split():
            vars(layer).pop(name, None)
    assert reason_to_keep(norm) is None
    np.testing.assert_array_equal(attention(x, x), wanted)


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
@pytest.mark.parametrize("blocked", [False, True])
def test_mixed_precision(policy, blocked, floats):
    """Activations arrive and leave in the type of the policy; kernels compute in float32."""
    theirs, ours = pair(
        "Conv2D", [PLANE], blocked, filters=18, kernel_size=3, activation="gelu", dtype=policy
    )
    x = floats(*PLANE)
    expected, y = theirs(x), ours(x)
    assert ours.layers[-1].variable_dtype == "float32"
    assert blocked or y.dtype == expected.dtype
    exact = keras.activations.gelu(
        tf.nn.conv2d(x, theirs.layers[-1].kernel.value, 1, "VALID") + theirs.layers[-1].bias.value
    )
    error = np.abs(np.asarray(y, np.float32) - exact).max()
    assert error <= 0.01 * np.abs(exact).max()


def test_layers_without_weights_are_built_when_made():
    names = "MaxPooling2D GlobalAveragePooling2D ReLU UpSampling2D ZeroPadding2D Dense"
    for name in names.split():
        arguments = [3] if name == "Dense" else []
        ours = getattr(bd.layers, name)(*arguments)
        assert ours.built == getattr(keras.layers, name)(*arguments).built, name


def test_strides_of_numpy():
    x = tf.random.normal(PLANE)
    strides = (np.int64(2), np.int64(2))
    want = bd.layers.Conv2D(3, 3, strides=2, kernel_initializer="ones")(x)
    got = bd.layers.Conv2D(3, 3, strides=strides, kernel_initializer="ones")(x)
    np.testing.assert_array_equal(got, want)


def test_dense_takes_sparse_tensors():
    sparse = tf.sparse.from_dense([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    layer = bd.layers.Dense(4)
    np.testing.assert_allclose(layer(sparse), layer(tf.sparse.to_dense(sparse)), rtol=1e-6)
