"""Which tensors get low precision, where reorders stand, and what the numbers lose."""

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python.rewriter import Options


@pytest.fixture
def weights():
    rng = np.random.default_rng(0)

    def make(*shape):
        fan_in = np.prod(shape[:2]) if shape[-1] == 1 else np.prod(shape[:-1])
        return tf.constant((rng.standard_normal(shape) / np.sqrt(fan_in)).astype("float32"))

    return make


@pytest.fixture
def images():
    return np.random.default_rng(1).standard_normal((40, 16, 16, 32)).astype("float32")


@pytest.fixture
def lower(rewrite, images):
    def run(function, precision, **options):
        chosen = Options(precision=precision, strict=True, **options)
        return rewrite(function, [None, 16, 16, 32], options=chosen, calibration=images)

    return run


def residual(weights):
    """A block of ResNet between two convolutions."""
    filters = [weights(3, 3, 32, 32) for _ in range(4)]

    def network(x):
        first = tf.nn.relu(tf.nn.conv2d(x, filters[0], 1, "SAME"))
        y = tf.nn.relu(tf.nn.conv2d(first, filters[1], 1, "SAME"))
        y = tf.nn.relu(tf.nn.conv2d(y, filters[2], 1, "SAME") + first)
        return tf.nn.conv2d(y, filters[3], 2, "SAME")

    return network


def inverted(weights):
    """Two blocks of MobileNetV2."""
    expand = [weights(1, 1, 32, 96) for _ in range(2)]
    depthwise = [weights(3, 3, 96, 1) for _ in range(2)]
    project = [weights(1, 1, 96, 32) for _ in range(2)]

    def network(x):
        for e, d, p in zip(expand, depthwise, project, strict=True):
            y = tf.nn.relu6(tf.nn.conv2d(x, e, 1, "SAME"))
            y = tf.nn.relu6(tf.nn.depthwise_conv2d(y, d, [1, 1, 1, 1], "SAME"))
            x = tf.nn.conv2d(y, p, 1, "SAME") + x
        return x

    return network


def excited(weights):
    """Two blocks of EfficientNet."""
    expand = [weights(1, 1, 32, 96) for _ in range(2)]
    depthwise = [weights(3, 3, 96, 1) for _ in range(2)]
    squeeze = [(weights(1, 1, 96, 8), weights(1, 1, 8, 96)) for _ in range(2)]
    project = [weights(1, 1, 96, 32) for _ in range(2)]

    def network(x):
        for e, d, (r, s), p in zip(expand, depthwise, squeeze, project, strict=True):
            y = tf.nn.silu(tf.nn.conv2d(x, e, 1, "SAME"))
            y = tf.nn.silu(tf.nn.depthwise_conv2d(y, d, [1, 1, 1, 1], "SAME"))
            z = tf.reduce_mean(y, [1, 2], keepdims=True)
            z = tf.sigmoid(tf.nn.conv2d(tf.nn.silu(tf.nn.conv2d(z, r, 1, "SAME")), s, 1, "SAME"))
            x = tf.nn.conv2d(y * z, p, 1, "SAME") + x
        return x

    return network


def added(weights):
    """Two blocks of YOLO, whose shortcuts stand behind the activations."""
    narrow = [weights(1, 1, 32, 16) for _ in range(2)]
    wide = [weights(3, 3, 16, 32) for _ in range(2)]
    first, last = weights(3, 3, 32, 32), weights(1, 1, 32, 32)

    def network(x):
        x = tf.nn.silu(tf.nn.conv2d(x, first, 1, "SAME"))
        for n, w in zip(narrow, wide, strict=True):
            y = tf.nn.silu(tf.nn.conv2d(x, n, 1, "SAME"))
            x = x + tf.nn.silu(tf.nn.conv2d(y, w, 1, "SAME"))
        return tf.nn.conv2d(x, last, 1, "SAME")

    return network


@pytest.mark.parametrize("precision", ["int8", "bf16"])
@pytest.mark.parametrize(
    ("block", "count", "reorders"),
    [(residual, 4, 1), (inverted, 6, 2), (excited, 6, 2), (added, 6, 1)],
)
def test_blocks_stay_low_precision_from_the_input_to_the_head(
    weights, lower, block, count, reorders, precision
):
    result = lower(block(weights), precision)
    dtype = {"int8": "u8", "bf16": "bf16"}[precision]
    convolutions = result.types("Conv")
    assert convolutions.count((dtype, dtype)) == count - 1
    assert convolutions.count((dtype, "f32")) == 1  # the head
    # The input changes type and layout at once; the head leaves as float32.
    assert len(result.report.reorders) == reorders
    assert result.report.precision.count == count
    (output,) = result.report.precision.outputs
    assert output.snr > {"int8": 28, "bf16": 40}[precision]
    assert result.report.precision.samples > 0


@pytest.mark.parametrize("precision", ["int8", "bf16"])
def test_squeeze_and_excitation_reads_and_scales_low_precision_tensors(weights, lower, precision):
    result = lower(excited(weights), precision)
    dtype = {"int8": "u8", "bf16": "bf16"}[precision]
    assert result.types("GlobalPool") == [(dtype, "f32")] * 2
    assert result.types("Eltwise") == [(dtype, dtype)] * 2
    assert result.blockdnn["SqueezeExcite"] == 2


def test_between_float32_it_is_the_one_op(weights, lower):
    result = lower(excited(weights), "int8", max_loss=1e-5)
    assert result.blockdnn["SqueezeExcite"] == 2
    assert not result.blockdnn.keys() & {"GlobalPool", "Eltwise"}


@pytest.mark.parametrize("precision", ["int8", "bf16"])
def test_the_numbers_are_close(weights, lower, images, precision):
    result = lower(residual(weights), precision)
    result.assert_same(tf.constant(images[:3]), tolerance={"int8": 0.06, "bf16": 0.02}[precision])


def test_pooling_and_concatenation_go_along(lower, conv):
    def network(x):
        y = tf.nn.relu(conv(x, 32))
        y = tf.nn.max_pool2d(y, 3, 2, "SAME")
        y = tf.concat([y, conv(y, 16, 1)], axis=3)
        return conv(y, 32, 1)

    result = lower(network, "int8")
    assert result.types("Pool") == result.types("Concat") == [("u8", "u8")]
    assert len(result.report.reorders) == 1  # on the way in
    assert result.report.precision.outputs[0].snr > 30


@pytest.mark.parametrize("precision, least", [("int8", 25), ("bf16", 40)])
def test_branches_write_into_a_concatenation(lower, precision, least, conv):
    """An average that it alone reads has its bytes, too; a maximum keeps its source's."""

    def network(x):
        y = tf.nn.relu(conv(x, 32))
        branches = [
            tf.nn.relu(conv(y, 16, 1)),
            tf.nn.relu(6.0 * conv(y, 32)),
            tf.nn.avg_pool2d(y, 3, 1, "SAME"),
            tf.nn.max_pool2d(y, 3, 1, "SAME"),
        ]
        return conv(tf.concat(branches, axis=3), 32, 1)

    result = lower(network, precision)
    maximum_joins = precision == "bf16"
    assert [done for _, done in result.report.joined] == ["4 of 4" if maximum_joins else "3 of 4"]
    assert len(result.types("Concat")) == (not maximum_joins)  # copies the maximum
    assert len(result.report.reorders) == 1
    assert result.report.precision.outputs[0].snr > least
    if precision == "int8":
        scales = [layer.scale for layer in result.report.precision.layers]
        assert scales[1] == scales[2] != scales[0]  # the concatenation's


@pytest.mark.parametrize("is_read_twice", [False, True])
def test_what_moves_values_into_a_concatenation_writes_them_there(lower, is_read_twice, conv):
    """What it alone reads has the concatenation's bytes; what others read, its own."""

    def network(x):
        y = tf.nn.relu(0.5 * conv(x, 32, 3, 2))
        z = tf.nn.relu(conv(x, 16, 1))
        joined = [tf.image.resize(y, [16, 16], "nearest"), tf.nn.max_pool2d(z, 3, 1, "SAME")]
        y = conv(y, 32, 3, 2) if is_read_twice else 0.0
        picture = tf.concat([*joined, tf.nn.relu(conv(x, 16, 1))], axis=3)
        return conv(picture, 32) + tf.reduce_mean(y)

    result = lower(network, "int8")
    written = "2 of 3" if is_read_twice else "3 of 3"
    assert [done for _, done in result.report.joined] == [written]
    assert result.report.precision.outputs[0].snr > 25


@pytest.mark.parametrize("precision, kind", [("int8", 6), ("bf16", 14)])
def test_products_of_a_row_a_picture_keep_their_weights(weights, lower, precision, kind, conv):
    """Behind pooling and behind one another."""

    def network(x):
        y = tf.reduce_mean(tf.nn.relu(conv(x, 32)), axis=[1, 2])
        return tf.matmul(tf.nn.relu(tf.matmul(y, weights(32, 10))), weights(10, 10))

    result = lower(network, precision)
    kinds = [n.attr["weights_type"].type for n in result.nodes if n.op == "BlockdnnInnerProduct"]
    assert kinds == [kind, kind]
    name = {"int8": "int8", "bf16": "bfloat16"}[precision]
    assert [layer.dtype for layer in result.report.precision.layers][1:] == [name, name]
    assert result.report.precision.outputs[0].snr > 25


def test_what_has_no_low_precision_form_reads_float32(lower, conv):
    def network(x):
        y = conv(x, 32)
        return conv(tf.sort(y, axis=3), 32)

    result = lower(network, "int8")
    assert result.types("Conv") == [("u8", "f32"), ("u8", "f32")]
    assert result.report.precision.outputs[0].snr > 30


def test_a_network_without_a_convolution_stays_as_it_is(lower, images):
    result = lower(lambda x: tf.nn.max_pool2d(tf.nn.relu(x), 2, 2, "VALID"), "int8")
    assert result.report.precision.count == 0
    result.assert_same(tf.constant(images[:2]), tolerance=0)


def test_what_joins_and_pools_is_left_where_it_is_float32(weights, lower):
    """Layers that stay float32 are fused as ever."""
    result = lower(inverted(weights), "int8", max_loss=1e-5)
    assert result.report.precision.count == 0
    assert result.blockdnn["ConvDepthwise"] == 2


def test_the_layers_that_lose_most_stay_float32(weights, lower):
    best = lower(inverted(weights), "int8").report.precision
    budget = 10 ** (-(best.outputs[0].snr + 3) / 20)
    result = lower(inverted(weights), "int8", max_loss=budget).report.precision
    assert 0 < result.count < best.count
    assert result.is_within(budget)


def test_a_channel_of_zeros_and_a_constant_channel(weights, lower):
    filters = np.array(weights(3, 3, 32, 32))
    filters[..., 3] = 0.0
    bias = np.zeros(32, np.float32)
    bias[3] = 2.5

    def network(x):
        y = tf.nn.relu(tf.nn.conv2d(x, filters, 1, "SAME") + bias)
        return tf.nn.conv2d(y, tf.constant(filters), 1, "SAME")

    assert lower(network, "int8").report.precision.outputs[0].snr > 30


def test_weights_of_nothing_but_zeros(lower, images):
    zeros = tf.zeros((3, 3, 32, 32))

    def network(x):
        return tf.nn.conv2d(tf.nn.conv2d(x, zeros, 1, "SAME"), zeros, 1, "SAME")

    result = lower(network, "int8")
    result.assert_same(tf.constant(images[:2]), tolerance=0)


def test_loops_are_lowered_where_no_ranges_are_needed(lower, conv):
    def network(x):
        return tf.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, tf.nn.relu(conv(y, 32))), (0, x)
        )[1]

    assert lower(network, "bf16").report.precision.count == 1
    assert lower(network, "int8").report.precision.count == 0


def test_fused_steps_and_batch_norm(lower, conv):
    scale = tf.constant(np.linspace(0.1, 4, 32, dtype="float32"))

    def network(x):
        for _ in range(2):
            y = conv(x, 32)
            y = tf.nn.batch_normalization(y, 0.1 * scale, scale, scale, scale, 1e-3)
            x = y * tf.sigmoid(y)
        return x

    result = lower(network, "int8")
    assert result.report.precision.count == 2
    assert result.report.precision.outputs[0].snr > 30
