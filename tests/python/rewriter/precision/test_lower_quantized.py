"""Models that were quantized elsewhere: which ops work on bytes, how far off the numbers are."""

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn.python.rewriter import Options

STRICT = Options(strict=True)
_FAST, _SLOW = "avx512_vnni", "avx2"  # CPUs that multiply bytes, and that do not


@pytest.fixture(autouse=True)
def on_a_cpu_of_bytes(on_isa):
    on_isa(_FAST)


class Filters:
    """Filters that a model holds on a grid of each channel, as training for quantization does."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def __call__(self, *shape, op="channel"):
        fan_in = np.prod(shape[:2]) if shape[-1] == 1 else np.prod(shape[:-1])
        values = (self.rng.standard_normal(shape) / np.sqrt(fan_in)).astype("float32")
        held = tf.Variable(values)
        if op is None:
            return lambda: held
        if op == "tensor":
            most = float(np.abs(values).max())
            return lambda: tf.quantization.fake_quant_with_min_max_vars(
                held, -most, most, narrow_range=True
            )
        if op == "both ways":  # -128 steps are the least number
            least, most = values.min() * 1.1, values.max()
            return lambda: tf.raw_ops.QuantizeAndDequantizeV2(
                input=held, input_min=least, input_max=most, range_given=True
            )
        most = np.abs(values).reshape(-1, shape[-1]).max(axis=0)
        return lambda: tf.quantization.fake_quant_with_min_max_vars_per_channel(
            held, -most, most, narrow_range=True
        )


@pytest.fixture
def filters():
    return Filters()


def rounded(x, low, high, **options):
    return tf.quantization.fake_quant_with_min_max_vars(x, low, high, **options)


def batch_norm(x, seed=3):
    rng, channels = np.random.default_rng(seed), x.shape[-1]
    gamma, beta, mean = (rng.standard_normal(channels).astype("float32") for _ in range(3))
    variance = rng.random(channels).astype("float32") + 0.5
    return tf.compat.v1.nn.fused_batch_norm(
        x, gamma, beta, 0.3 * mean, variance, is_training=False
    )[0]


def steps_off(result, step, *shape, count=4):
    """(the greatest distance in steps, the part of the elements that are the same)."""
    x = tf.constant(np.random.default_rng(7).uniform(-1, 1, (count, *shape)).astype("float32"))
    wanted, got = result.original(x), result.concrete(x)
    assert np.ptp(wanted) > 20 * step
    off = np.abs(got.numpy() - wanted.numpy()) / step
    return off.max(), (off < 1e-3).mean()


def every_kind(filters):
    """An image, batch normalisation, a residual, pooling, concatenation, a head."""
    stem, one, two, depthwise, other, last = (
        filters(3, 3, 3, 32),
        filters(3, 3, 32, 32),
        filters(3, 3, 32, 32),
        filters(3, 3, 32, 1, op="tensor"),
        filters(1, 1, 32, 32, op="both ways"),
        filters(3, 3, 64, 48),
    )
    dense = filters(48, 10, op="tensor")

    def network(x):
        x = rounded(x, -1.0, 1.0)
        x = rounded(tf.nn.relu6(batch_norm(tf.nn.conv2d(x, stem(), 2, "SAME"))), 0.0, 6.0)
        y = rounded(tf.nn.relu6(batch_norm(tf.nn.conv2d(x, one(), 1, "SAME"))), 0.0, 6.0)
        y = rounded(batch_norm(tf.nn.conv2d(y, two(), 1, "SAME")), -6.0, 5.0)
        x = rounded(tf.nn.relu(x + y), 0.0, 7.0)
        x = tf.nn.max_pool2d(x, 2, 2, "SAME")
        y = batch_norm(tf.nn.depthwise_conv2d(x, depthwise(), [1, 1, 1, 1], "SAME"))
        y = rounded(tf.nn.relu(y), 0.0, 5.0)
        y = rounded(tf.nn.conv2d(y, other(), 1, "SAME"), -4.0, 4.0)
        y = rounded(tf.concat([x, y], axis=3), -4.0, 7.0)
        y = rounded(tf.nn.relu(tf.nn.conv2d(y, last(), 1, "SAME")), 0.0, 8.0)
        y = rounded(tf.reduce_mean(y, axis=[1, 2]), 0.0, 4.1)  # at 4.0 one in 72 means is a tie
        return rounded(y @ dense(), -5.0, 5.0)

    return network


def test_a_network_of_every_kind_of_layer(rewrite, filters):
    network = every_kind(filters)
    result = rewrite(network, [None, 24, 24, 3], options=STRICT)
    assert result.types("Conv") == [("u8", "u8")] * 6
    assert result.types("Eltwise") == result.types("Pool") == [("u8", "u8")]
    assert result.types("Concat") == [("u8", "u8")]
    # The image and what stands around the product round by themselves.
    assert result.ops["FakeQuantWithMinMaxVars"] == 3
    assert result.report.precision.count == 7 and not result.report.declined
    assert len(result.report.reorders) == 1
    most, same = steps_off(result, 10 / 255, 24, 24, 3, count=16)
    assert most < 1.01 and same > 0.98


_ROUNDINGS = {
    "vars": lambda x: rounded(x, -3.0, 2.0),
    "args": lambda x: tf.quantization.fake_quant_with_min_max_args(x, -3.0, 2.0),
    "narrow": lambda x: rounded(x, -3.0, 2.0, narrow_range=True),
    "of 5 bits": lambda x: rounded(x, -3.0, 2.0, num_bits=5),
    "both ways": lambda x: tf.raw_ops.QuantizeAndDequantizeV2(
        input=x, input_min=-2.5, input_max=2.0, range_given=True
    ),
    "both ways, narrow": lambda x: tf.raw_ops.QuantizeAndDequantizeV4(
        input=x, input_min=-2.5, input_max=2.0, range_given=True, narrow_range=True
    ),
    "both ways, unsigned": lambda x: tf.raw_ops.QuantizeAndDequantizeV3(
        input=x, input_min=-2.5, input_max=2.0, signed_input=False, num_bits=8
    ),
}
_STEPS = {"of 5 bits": 5 / 31, "narrow": 5 / 254, "both ways, narrow": 2.5 / 127}
_STEPS |= {"both ways": 2.5 / 128, "both ways, unsigned": 2 / 255}


@pytest.mark.parametrize("isa", [_FAST, "avx2_vnni", _SLOW])
@pytest.mark.parametrize("name", _ROUNDINGS)
def test_every_rounding_keeps_its_own_steps(rewrite, filters, on_isa, name, isa):
    on_isa(isa)
    one, two = filters(5, 5, 32, 32), filters(1, 1, 32, 32)
    rounding = _ROUNDINGS[name]

    def network(x):
        x = rounding(tf.nn.conv2d(rounding(x), one(), 1, "SAME"))
        return rounding(tf.nn.conv2d(x, two(), 1, "SAME"))

    result = rewrite(network, [None, 9, 9, 32], options=STRICT)
    assert result.types("Conv") == [("u8", "u8")] * 2
    most, same = steps_off(result, _STEPS.get(name, 5 / 255), 9, 9, 32)
    assert most < 1.01 and same > 0.99


_LEFT = {
    "weights": ("its weights are not quantized", lambda x: rounded(x, -3.0, 3.0), None),
    "source": ("what it reads is not quantized", lambda x: x, "channel"),
    "range": (
        "what it reads is not quantized",
        lambda x: tf.raw_ops.QuantizeAndDequantizeV2(input=x, input_min=0.0, input_max=0.0),
        "channel",
    ),
    "bits": ("what it reads is not quantized", lambda x: rounded(x, -3, 3, num_bits=12), "channel"),
}


@pytest.mark.parametrize("name", _LEFT)
def test_what_is_not_understood_stays_float32_and_says_why(rewrite, filters, name):
    reason, rounding, op = _LEFT[name]
    one, two = filters(3, 3, 32, 32, op=op), filters(3, 3, 32, 32, op=op)

    def network(x):
        y = tf.nn.relu(tf.nn.conv2d(rounding(x), one(), 1, "SAME"))
        return tf.nn.conv2d(rounding(y), two(), 1, "SAME")

    result = rewrite(network, [None, 9, 9, 32], options=STRICT)
    assert result.types("Conv") == [("f32", "f32")] * 2
    assert len([note for note in result.report.notes if reason in note]) == 2
    x = np.random.default_rng(7).uniform(-1, 1, (2, 9, 9, 32)).astype("float32")
    wanted, got = result.original(tf.constant(x)), result.concrete(tf.constant(x))
    # A step more or less of the second source, by the other order of the sums of the first.
    assert np.abs(got.numpy() - wanted.numpy()).max() < 0.02


def test_readers_of_floats_get_what_the_bytes_stand_for(rewrite, filters):
    one, two = filters(3, 3, 32, 32), filters(3, 3, 32, 32)

    def network(x):
        y = rounded(tf.nn.relu(tf.nn.conv2d(rounded(x, -1.0, 1.0), one(), 1, "SAME")), 0.0, 4.0)
        z = tf.nn.conv2d(y, two(), 1, "SAME")
        return tf.sort(y, axis=3) + rounded(z, -3.0, 3.0)

    result = rewrite(network, [None, 9, 9, 32], options=STRICT)
    assert result.types("Conv") == [("u8", "u8")] * 2
    most, same = steps_off(result, 6 / 255, 9, 9, 32)
    assert most < 1.7 and same > 0.98


def test_in_loops_and_branches_too(rewrite, filters):
    one = filters(3, 3, 32, 32)

    def network(x):
        def body(i, y):
            return i + 1, rounded(tf.nn.conv2d(rounded(y, -3.0, 3.0), one(), 1, "SAME"), -3.0, 3.0)

        return tf.while_loop(lambda i, y: i < 2, body, (0, x))[1]

    result = rewrite(network, [2, 9, 9, 32], options=STRICT)
    assert result.types("Conv") == [("u8", "u8")]
    assert result.report.precision.count == 1
    most, same = steps_off(result, 6 / 255, 9, 9, 32, count=2)
    assert most < 1.01 and same > 0.98


def test_calibration_takes_what_the_model_says_first(rewrite, filters):
    """What has no steps of its own gets them from data, and the loss is of all."""
    one, two, three = (filters(3, 3, 32, 32, op=op) for op in ("channel", "channel", None))

    def network(x):
        x = rounded(tf.nn.conv2d(rounded(x, -1.0, 1.0), one(), 1, "SAME"), -3.0, 3.0)
        x = tf.nn.relu(tf.nn.conv2d(x, two(), 1, "SAME"))
        return tf.nn.conv2d(x, three(), 1, "SAME")

    data = np.random.default_rng(7).uniform(-1, 1, (16, 9, 9, 32)).astype("float32")
    options = Options(strict=True, precision="int8")
    result = rewrite(network, [None, 9, 9, 32], options=options, calibration=data)
    assert [source for source, _ in result.types("Conv")] == ["u8"] * 3
    assert result.report.precision.count == 3
    assert result.report.precision.outputs[0].snr > 30


@pytest.mark.parametrize("isa", [_FAST, _SLOW])
@pytest.mark.parametrize("degenerate", ["source", "channel", "weights", "result"])
def test_ranges_of_nothing(rewrite, filters, on_isa, degenerate, isa):
    """A range from zero to zero, a channel of zeros, weights of zeros: what TensorFlow makes."""
    on_isa(isa)
    values = np.random.default_rng(0).standard_normal((3, 3, 32, 32)).astype("float32") / 17
    values[..., 3] *= degenerate != "channel"
    values *= degenerate != "weights"
    held, most = tf.Variable(values), np.abs(values).reshape(-1, 32).max(axis=0)
    reach = {"source": 0.0}.get(degenerate, 1.0), {"result": 0.0}.get(degenerate, 3.0)

    def network(x):
        kernel = tf.quantization.fake_quant_with_min_max_vars_per_channel(
            held, -most, most, narrow_range=True
        )
        y = tf.nn.conv2d(rounded(x, -reach[0], reach[0]), kernel, 1, "SAME")
        return rounded(y + np.linspace(-1, 1, 32, dtype="float32"), -reach[1], reach[1])

    result = rewrite(network, [None, 9, 9, 32], options=STRICT)
    x = tf.constant(np.random.default_rng(7).uniform(-1, 1, (2, 9, 9, 32)).astype("float32"))
    wanted, got = result.original(x).numpy(), result.concrete(x).numpy()
    assert np.isfinite(wanted).all()
    off = np.abs(got - wanted) / (2 * (reach[1] or 1.0) / 255)
    assert off.max() < 1.01 and (off < 1e-3).mean() > 0.98


@pytest.mark.parametrize("isa", [_FAST, _SLOW])
def test_a_range_of_one_number_that_is_not_zero_is_left_to_tensorflow(
    rewrite, filters, on_isa, isa
):
    """It divides zero by zero there."""
    on_isa(isa)
    one = filters(3, 3, 32, 32)
    result = rewrite(
        lambda x: rounded(tf.nn.conv2d(rounded(x, -1, 1), one(), 1, "SAME"), 1.0, 1.0),
        [None, 9, 9, 32],
        options=STRICT,
    )
    x = tf.ones((1, 9, 9, 32))
    np.testing.assert_array_equal(result.concrete(x), result.original(x))


@pytest.mark.parametrize("isa", [_FAST, _SLOW])
def test_an_empty_batch(rewrite, filters, on_isa, isa):
    on_isa(isa)
    result = rewrite(every_kind(filters), [None, 24, 24, 3], options=STRICT)
    assert result.concrete(tf.zeros((0, 24, 24, 3))).shape == (0, 10)


def test_products_of_int32_are_left_to_tensorflow(rewrite):
    """As quantize_saved_model of TensorFlow writes them: bytes, cast, less the zero point."""
    kernel = np.random.default_rng(0).integers(-127, 128, (3, 3, 8, 16)).astype("int8")

    def network(x):
        q = tf.cast(tf.clip_by_value(tf.round(x * 40.0) + 3.0, -128.0, 127.0), tf.int8)
        source, weights = tf.cast(q, tf.int32) - 3, tf.cast(tf.constant(kernel), tf.int32)
        y = tf.raw_ops.Conv2D(input=source, filter=weights, strides=[1] * 4, padding="SAME")
        return tf.cast(y, tf.float32) * 0.01

    result = rewrite(network, [1, 6, 6, 8], options=STRICT)
    assert result.reason("Conv2D") == "dtype int32, only float32 is implemented"
    x = tf.constant(np.random.default_rng(7).uniform(-1, 1, (1, 6, 6, 8)).astype("float32"))
    np.testing.assert_array_equal(result.concrete(x), result.original(x))
