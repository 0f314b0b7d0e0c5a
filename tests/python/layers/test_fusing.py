"""What a trace for inference makes of neighbouring layers, and that numbers and gradients stay."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from compared import close

import tf_blockdnn as bd
from tf_blockdnn.python.native import library

L = keras.layers


def kinds(model, x) -> dict:
    """type -> count of our ops that the results of inference need."""
    traced = tf.function(lambda x: model(x, training=False), autograph=False)
    graph = traced.get_concrete_function(x).graph
    wanted = [y.op.name for y in graph.outputs]
    nodes = tf.compat.v1.graph_util.extract_sub_graph(graph.as_graph_def(), wanted).node
    found: dict = {}
    for node in nodes:
        if node.op.startswith("Blockdnn") or node.op == "Pad":
            kind = node.op.removeprefix("Blockdnn")
            found[kind] = found.get(kind, 0) + 1
    return found


def normalised(x, activation="relu6"):
    return L.Activation(activation)(L.BatchNormalization()(x))


def stem(filters=20):
    image = keras.Input((16, 16, 3))
    return image, normalised(L.Conv2D(filters, 3, padding="same", use_bias=False)(image))


def bottleneck():
    """MobileNetV2's blocks, the second one strided behind zeros."""
    image, x = stem()
    y = normalised(L.Conv2D(36, 1, use_bias=False)(x))
    y = normalised(L.DepthwiseConv2D(3, padding="same", use_bias=False)(y))
    x = L.Add()([x, L.BatchNormalization()(L.Conv2D(20, 1, use_bias=False)(y))])
    y = L.ZeroPadding2D(((0, 1), (0, 1)))(normalised(L.Conv2D(36, 1)(x)))
    y = normalised(L.DepthwiseConv2D(3, strides=2, activation="relu")(y))
    return keras.Model(image, L.GlobalAveragePooling2D()(y))


def padded():
    """ResNet's beginning: zeros before the first convolution and before the maximum."""
    image = keras.Input((16, 16, 3))
    x = L.Conv2D(20, 7, strides=2)(L.ZeroPadding2D(3)(image))
    x = L.MaxPooling2D(3, strides=2)(L.ZeroPadding2D(1)(normalised(x, "relu")))
    return keras.Model(image, L.GlobalMaxPooling2D()(x))


def padded_not_clamped():
    """Zeros would win a maximum of negative numbers."""
    image, x = stem()
    x = L.MaxPooling2D(3, strides=2)(L.ZeroPadding2D(1)(L.Conv2D(20, 3)(x)))
    return keras.Model(image, L.GlobalMaxPooling2D()(x))


def read_twice():
    """A convolution and zeros that others read, too."""
    image, x = stem()
    x = L.Conv2D(36, 1, activation="relu")(x)
    a = L.DepthwiseConv2D(3, padding="same")(x)
    b = L.ZeroPadding2D(1)(x)
    c = L.DepthwiseConv2D(3)(b)
    d = L.GlobalAveragePooling2D()(b)
    return keras.Model(image, [L.GlobalMaxPooling2D()(L.Add()([a, c])), d])


def not_pairs():
    """Depthwise convolutions with two results a channel, and behind a 3x3 convolution."""
    image, x = stem()
    x = L.DepthwiseConv2D(3, depth_multiplier=2)(L.Conv2D(16, 1)(x))
    x = L.DepthwiseConv2D(3)(L.Conv2D(16, 3)(x))
    return keras.Model(image, L.GlobalMaxPooling2D()(x))


def blocks_of_vgg():
    """A 3x3 convolution whose Winograd tiles store maxima, and one behind a sum, which do not."""
    image = keras.Input((32, 32, 3))
    x = L.Conv2D(64, 3, padding="same", activation="relu")(image)
    x = L.MaxPooling2D()(L.Conv2D(64, 3, padding="same", activation="relu")(x))
    y = L.Add()([x, L.Conv2D(64, 3, padding="same")(x)])
    return keras.Model(image, L.GlobalMaxPooling2D()(L.MaxPooling2D()(y)))


def not_linear():
    """Normalisations behind an activation and behind a sum: post-ops."""
    image = keras.Input((16, 16, 3))
    x = L.BatchNormalization()(L.Conv2D(20, 3, padding="same", activation="relu")(image))
    x = L.BatchNormalization()(L.Add()([x, L.Conv2D(20, 3, padding="same")(x)]))
    return keras.Model(image, L.GlobalMaxPooling2D()(x))


def transposed():
    """Output channels are not the last axis of the weights; no gamma, no beta."""
    image, x = stem()
    x = L.BatchNormalization(scale=False)(L.Conv2DTranspose(24, 2, strides=2)(x))
    return keras.Model(image, L.GlobalMaxPooling2D()(x))


# network -> our ops, and Pads, that inference needs.
NETWORKS = {
    bottleneck: dict(Conv=2, ConvDepthwise=2, GlobalPool=1, FoldBatchNorm=5),
    padded: dict(Conv=1, Pool=1, GlobalPool=1, FoldBatchNorm=1),
    padded_not_clamped: dict(Conv=2, Pad=1, Pool=1, GlobalPool=1, FoldBatchNorm=1),
    read_twice: dict(Conv=4, Pad=1, GlobalPool=2, FoldBatchNorm=1),
    not_pairs: dict(Conv=5, GlobalPool=1, FoldBatchNorm=1),
    blocks_of_vgg: dict(Conv=3, Pool=1, GlobalPool=1),
    not_linear: dict(Conv=2, GlobalPool=1),
    transposed: dict(Conv=1, ConvTranspose=1, GlobalPool=1, FoldBatchNorm=2),
}


def is_winograd() -> bool:
    """Whether this CPU's library computes the 3x3 convolution of 32x32x64 so."""
    plan = bd.ops.memory_plan("conv", (2, 4, 32, 32, 16), (3, 3, 64, 64), padding="SAME")
    return plan.algorithm.startswith("winograd")


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_inference(network, floats):
    """The ops that remain, Keras's numbers, and its gradients through the traced function."""
    keras.utils.set_random_seed(3)
    model = network()
    rng = np.random.default_rng(1)
    for v in model.variables:
        low = 0.3 if "variance" in v.path else -0.6
        v.assign(rng.uniform(low, 0.8, v.shape))
    fast, x = bd.layers.convert(model), tf.constant(floats(2, *model.input_shape[1:]))
    wanted = dict(NETWORKS[network])
    if network is blocks_of_vgg and not is_winograd():
        wanted["Pool"] += 1
    assert kinds(fast, x) == wanted
    results = []
    for m in (model, fast):
        call = tf.function(lambda x, m=m: m(x, training=False), autograph=False)
        expected = tf.nest.flatten(call(x))
        variables = [v.value for v in m.trainable_variables]
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.add_n([tf.reduce_sum(tf.square(y)) for y in tf.nest.flatten(call(x))])
        results.append([*expected, *tape.gradient(loss, [x, *variables])])
    for i, (theirs, ours) in enumerate(zip(*results, strict=True)):
        close(ours, theirs, f"result {i}", 1e-4)


def test_folded_weights_follow():
    """Each new value of each variable that a normalisation folds, whether the weights are still
    looked at or held already; one element that no sample of the look sees is enough."""
    image = keras.Input((4, 4, 64))
    x = L.BatchNormalization()(L.Conv2D(96, 3, padding="same")(image))
    model = keras.Model(image, x)
    fast = bd.layers.convert(model)
    x = tf.ones((1, 4, 4, 64))
    call = tf.function(lambda x: fast(x, training=False), autograph=False)
    for calls in (1, 2, 3):
        for old, new in zip(model.variables, fast.variables, strict=True):
            for _ in range(calls):
                call(x)
            change = np.zeros(new.shape, np.float32)
            change.flat[-1] = 0.5
            new.value.assign_add(change)  # where it lies, unless that is held
            old.assign(new)
            close(call(x), model(x), f"{new.path} after {calls} calls")


def test_errors_of_folding():
    """Shapes that do not fit each other are refused."""
    rows = [tf.ones(8)] * 5
    fold = library().blockdnn_fold_batch_norm
    with pytest.raises(tf.errors.InvalidArgumentError, match="multiple of channels . inner = 8"):
        fold(tf.ones((3, 4)), *rows, channels=8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="input 3 must be .8.; got .9."):
        fold(tf.ones((3, 8)), *rows[:2], tf.ones(9), *rows[3:], channels=8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="epsilon must not be negative"):
        fold(tf.ones((3, 8)), *rows, channels=8, epsilon=-1.0)
