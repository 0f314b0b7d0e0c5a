"""What stands between two convolutions stays in blocks; what cannot, stays as it was.

The rows are spellings of users and of Keras. That the numbers of each rule are right, with any
sizes and constants, is what the rules' own test says (rules/test_rules.py).
"""

import inspect

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts

from tf_blockdnn import Options

STRICT = Options(strict=True)


@pytest.fixture
def between(rewrite):
    """between(middle, channels=24, sizes=(2, 8, 9)) -> Result of middle(a, ..) between two layers.

    Each argument is the maximum of a convolution, so that no move goes into its weights. Sources
    and weights are small integers: what is compared is exact, and ties are met.
    """

    def run(middle, channels=24, sizes=(2, 8, 9)):
        rng = np.random.default_rng(3)

        def convolve(x, count, size=1):
            kernel = rng.integers(-1, 2, (size, size, x.shape[-1], count))
            return tf.nn.conv2d(x, np.float32(kernel), 1, "SAME")

        def function(x):
            arguments = [
                tf.nn.max_pool2d(convolve(x, channels), 3, 1, "SAME")
                for _ in inspect.signature(middle).parameters
            ]
            return convolve(middle(*arguments), 24, 3)

        result = rewrite(function, [*sizes, 24], options=STRICT)
        x = np.float32(rng.integers(-2, 3, (sizes[0] or 2, 8, 9, 24)))
        result.assert_same(tf.constant(x))
        return result

    return run


def _by_groups(x, groups, order=(0, 1, 2, 4, 3), inside=tf.identity):
    """ShuffleNet's shuffle, of any image size."""
    shape, channels = tf.shape(x), x.shape[-1]
    split = tf.concat([shape[:3], [groups, channels // groups]], 0)
    return tf.reshape(inside(tf.transpose(tf.reshape(x, split), order)), shape)


def _group_norm(x, groups):
    y = tf.reshape(x, [-1, 8, 9, groups, x.shape[-1] // groups])
    mean, variance = tf.nn.moments(y, [1, 2, 4], keepdims=True)
    y = (y - mean) * tf.math.rsqrt(variance + 1e-5)
    return tf.reshape(y, tf.shape(x)) * np.linspace(0.5, 2, x.shape[-1], dtype="f") + 1.0


def _rms_norm(x):
    square = tf.reduce_mean(tf.square(x), -1, keepdims=True)
    return x * tf.math.rsqrt(square + 1e-5) * np.linspace(0.5, 2, x.shape[-1], dtype="f")


def _layer_norm(x):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    gamma = np.linspace(0.5, 2, x.shape[-1], dtype="f")
    return tf.nn.batch_normalization(x, mean, variance, gamma, gamma, 1e-3)


def _line(x, turns):
    """Pixels in one line, and as a picture of another form."""
    line = tf.reshape(x, [-1, 1, 72, x.shape[-1]])
    line = tf.transpose(tf.nn.relu(line), [0, 2, 1, 3]) if turns else line
    return tf.reshape(line, [-1, 9, 8, x.shape[-1]])


def _joined_and_cut(x):
    above, below = tf.split(tf.concat([x, tf.nn.relu(x)], 1), [7, 9], 1)
    left, right = tf.split(tf.concat([above, below, x], 1), [3, 6], 2)
    return tf.concat([right, left], 2)[:, 2:8]


_PADS = [[0, 0], [1, 2], [3, 0], [0, 0]]
_PIXELS = np.float32(np.random.default_rng(4).integers(-2, 3, (1, 8, 9, 32)))
# name -> what is computed of one tensor or two.
WHOLE = {
    # Rows and columns.
    "a zero pad": lambda x: tf.pad(x, _PADS),
    "a cut to a size": lambda x: x[:, :4, 2:],
    "a pad and a cut": lambda x: tf.pad(x, _PADS)[:, 1:, 1:],
    "reflected": lambda x: tf.pad(x, [[0, 0], [1, 2], [3, 0], [0, 0]], "REFLECT"),
    "padded with a constant": lambda x: tf.pad(x, _PADS, constant_values=-2.5),
    "a roll": lambda x: tf.roll(x, 3, 1),
    "a tile": lambda x: tf.tile(x, [1, 2, 3, 1]),
    "every second": lambda x: x[:, ::2, 1::2],
    "split rows": lambda x: tf.split(x, [2, 6], 1)[1],
    "rows joined and cut": _joined_and_cut,
    "a line": lambda x: _line(x, False),
    "a turned line": lambda x: _line(x, True),
    # Channels.
    "a roll of channels": lambda x: tf.roll(x, 5, 3),
    "repeated channels": lambda x: tf.tile(x, [1, 1, 1, 2]),
    "gathered runs": lambda x: tf.gather(x, [*range(7, 20), *range(0, 7)], axis=3),
    "a part from channel 3 on": lambda x: x[..., 3:14],
    "an odd split": lambda x: tf.split(x, [5, x.shape[3] - 5], -1)[1],
    "joined at odd places": lambda x: tf.concat([x[..., :7], x, x[..., 1:4]], 3),
    "exchanged halves": lambda x: tf.concat(tf.split(x, 2, -1)[::-1], -1),
    "a shuffle": lambda x: _by_groups(x, 4),
    "a shuffle of known sizes": lambda x: tf.reshape(
        tf.transpose(tf.reshape(x, [-1, 8, 9, 2, x.shape[3] // 2]), [0, 1, 2, 4, 3]), tf.shape(x)
    ),
    "groups": lambda x: tf.reshape(
        tf.nn.relu(tf.reshape(x, [-1, 8, 9, 4, x.shape[3] // 4]))
        * np.linspace(1, 2, 4, dtype="f").reshape(1, 1, 1, 4, 1),
        tf.shape(x),
    ),
    "a group norm": lambda x: _group_norm(x, 2),
    "a norm of one group": lambda x: _group_norm(x, 1),
    "an instance norm": lambda x: _group_norm(x, x.shape[3]),
    "a layer norm": _layer_norm,
    "an rms norm": _rms_norm,
    # Sizes.
    "repetitions": lambda x: tf.repeat(tf.repeat(x, 2, 1), 3, 2),
    "repeated rows": lambda x: tf.repeat(x, 2, 1),
    "enlarged": lambda x: tf.image.resize(x, [2, 3] * tf.shape(x)[1:3]),
    "repetitions of Keras": lambda x: keras.layers.UpSampling2D((2, 3))(x),
    "enlarged by Keras": lambda x: keras.layers.UpSampling2D((3, 1), interpolation="bilinear")(x),
    "the nearest of another size": lambda x: tf.image.resize(x, [11, 5], "nearest"),
    # Comparisons, choices by them, and functions of two tensors.
    "a number of a comparison": lambda a, b: tf.cast(a > b, tf.float32),
    "of a constant": lambda a, b: b * tf.cast(np.arange(a.shape[3], dtype="f") >= a, tf.float32),
    "a choice": lambda a, b: tf.where(a >= b, a, 2.0 * b),
    "a plane over channels": lambda x: x * tf.sigmoid(tf.reduce_mean(x, 3, keepdims=True)),
    "a plane of another batch": lambda x: x * tf.reduce_mean(x, 3, keepdims=True)[:1],
    "channels of another batch": lambda x: x * tf.reduce_mean(x, [1, 2], keepdims=True)[:1],
    "a bias that is computed": lambda x: tf.nn.bias_add(x, tf.reduce_max(x, [1, 2])[0]),
    "a row over columns": lambda x: x - tf.sigmoid(tf.reduce_max(x, 1, keepdims=True)),
    "a constant of pixels": lambda x: x * _PIXELS[..., : x.shape[3]] + _PIXELS[0, :, :, :1],
    "a slope a pixel": lambda x: tf.nn.relu(x) - _PIXELS[0, ..., : x.shape[3]] * tf.nn.relu(-x),
    "hard shrinkage": lambda a, b: tf.where(tf.abs(a) > 3.0, a, 0.0) + b,
}


# Vectors of channels are padded; planes would put 0 times infinity into channels of no use.
_IN_WHOLE_BLOCKS = ("a group norm", "a norm of one group", "an instance norm")
_IN_WHOLE_BLOCKS += ("a plane of another batch", "channels of another batch")
_IN_WHOLE_BLOCKS += ("a bias that is computed",)
_OPEN = ("a zero pad", "reflected", "padded with a constant", "a roll", "a tile", "every second")
_OPEN += ("a shuffle", "repetitions", "enlarged", "a choice", "a layer norm")


@pytest.mark.parametrize(
    "name, channels, sizes",
    [
        *((name, 32 if name in _IN_WHOLE_BLOCKS else 24, (2, 8, 9)) for name in WHOLE),
        *((name, 32, (None,) * 3) for name in _OPEN),
        ("a norm of one group", 32, (1, 8, 9)),
        ("a bias that is computed", 32, (1, 8, 9)),
    ],
)
def test_nothing_is_reordered_for_it(between, name, channels, sizes):
    result = between(WHOLE[name], channels, sizes)
    assert len(result.report.reorders) <= 2, result.report.summary()
    declined = [reason for _, reason in result.report.declined if "not folded into" not in reason]
    assert not declined, result.report.summary()


# name -> what is computed, and the op that stays.
STAYS = {
    "sums of channels": (lambda x: x * tf.reduce_sum(x, 3, keepdims=True), "Sum"),
    "pixels in another order": (lambda x: tf.transpose(x, [0, 2, 1, 3]), "Transpose"),
    "a shuffle of rows": (lambda x: _by_groups(x, 4, (0, 2, 1, 4, 3)), "Transpose"),
    "work within a shuffle": (
        lambda x: _by_groups(x, 4, inside=tf.math.bessel_i0e),
        "BesselI0e",
    ),
    "a shuffle of pixels": (
        lambda x: tf.reshape(
            tf.transpose(tf.reshape(x, [-1, 8, 18, 3, 4]), [0, 1, 2, 4, 3]), [-1, 8, 9, 24]
        ),
        "Transpose",
    ),
    "what mixes groups": (
        lambda x: tf.reshape(
            tf.reduce_max(y := tf.reshape(x, [-1, 8, 9, 4, 6]), 4, keepdims=True) * y, tf.shape(x)
        ),
        "Max",
    ),
    "padded channels": (lambda x: tf.pad(x, [[0, 0], [0, 0], [0, 0], [0, 3]])[..., :24], "Pad"),
    "rows and channels cut": (lambda x: x[:, 1:-1, :, 8:20], "StridedSlice"),
    "every second channel": (lambda x: x[..., ::2], "StridedSlice"),
}


@pytest.mark.parametrize("name", STAYS)
def test_what_has_no_blocked_form_stays(between, name):
    middle, op = STAYS[name]
    result = between(middle)
    assert result.ops[op] == 1 and "Shuffle" not in result.blockdnn
    assert result.report.declined


def test_what_repeats_an_open_number_of_times_stays(between):
    result = between(lambda x: tf.tile(x, [tf.shape(x)[0], 1, 1, 1]), 24, (None, 8, 9))
    assert result.ops["Tile"] == 1


def test_a_choice_keeps_infinities_and_nan_of_what_is_left_out(between):
    def choose(x):
        y = x / 4.0
        return tf.where(y > 1.0, tf.math.log(y - 1.0), tf.sqrt(1.0 - y))

    result = between(choose)
    assert not result.ops["SelectV2"]


@pytest.mark.parametrize(
    "again, stays", [(lambda condition, y: condition, 1), (lambda _, y: y > 0.5, 0)]
)
def test_a_condition_that_is_read_elsewhere_stays(rewrite, conv, again, stays):
    """One that is written twice does not."""

    def function(x):
        y = conv(x, 16, 1)
        condition = y > 0.5
        return conv(tf.where(condition, y, 0.0), 16, 1), again(condition, y)

    result = rewrite(function, [1, 8, 8, 16], options=STRICT)
    assert (result.ops["SelectV2"], result.ops["Greater"]) == (stays, 1)


def test_a_constant_by_a_tensor_is_one_division(between):
    """A product with the reciprocal would overflow where the quotient does not."""
    result = between(lambda a, b: 4.0 / (tf.abs(a) + 1.0) + b)
    assert "binary(rdiv,scalar)" in ";".join(result.post_ops("BlockdnnEltwise"))


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("size", [9, None])
def test_sums_of_masks_are_counts(rewrite, image, keepdims, size):
    """TensorFlow sums the blocks; a mean times the number of pixels is not exact."""
    kernel = np.eye(20, dtype=np.float32)[None, None]

    def function(x):
        seen = tf.cast(tf.nn.conv2d(x, kernel, 1, "SAME") > 0.3, tf.float32)
        return tf.nn.conv2d(seen, kernel, 1, "SAME"), tf.reduce_sum(seen, [1, 2], keepdims=keepdims)

    result = rewrite(function, [None, size, 7, 20])
    assert (result.ops["Sum"], result.ops["Mean"], result.ops["Squeeze"]) == (1, 0, not keepdims)
    assert any("Sum" in item.node for item in result.report.converted)
    x = image(3, 9, 7, 20)
    for wanted, got in zip(result.original(x), result.concrete(x), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("op, channels", [("AddV2", 20), ("Mul", 20), ("Mul", 1), ("Sub", 20)])
def test_sizes_may_differ(rewrite, image, conv, op, channels):
    """TensorFlow spreads a picture of one pixel over the other, if it is one, in blocks as well;
    not what has no such form. A gate of pixels has one channel."""
    width = 32 if channels == 1 else channels

    def function(x, y):
        both = getattr(tf.raw_ops, op)(x=conv(x, width), y=conv(y, channels), name="both")
        return conv(both, 20)

    result = rewrite(function, [2, None, None, 3], [2, None, None, 3], options=STRICT)
    if op == "Sub":
        assert "not proven to be of one size" in result.reason("both")
    else:
        assert not result.report.declined and result.blockdnn["Reorder"] == 1
    result.assert_same(image(2, 6, 7, 3), image(2, 6, 7, 3))
    result.assert_same(image(2, 6, 7, 3), image(2, 1, 1, 3))


def test_an_infinite_gate_is_in_no_unused_channel(rewrite, weights, conv):
    """Where a block has some, 0 times it would be NaN there, and in what is summed over a block."""
    kernel = weights(1, 1, 20, 16)

    def function(x, gate):
        y = tf.multiply(tf.nn.relu(conv(x, 20)) + 1.0, gate, name="gated")
        return tf.nn.conv2d(y * tf.reduce_mean(y, 3, keepdims=True), tf.abs(kernel), 1, "SAME")

    result = rewrite(function, [None, None, None, 3], [None, None, None, 1])
    assert result.reason("gated")
    gate = np.ones((1, 6, 7, 1), np.float32)
    gate[0, 3, 3] = np.inf
    (values,) = tf.nest.flatten(result.concrete(tf.ones([1, 6, 7, 3]), tf.constant(gate)))
    assert np.isposinf(values[0, 3, 3]).all()
    assert np.isinf(values).sum() == 16 and not np.isnan(values).any()


def test_infinite_channels_of_another_batch_are_in_no_unused_channel(rewrite, weights, conv):
    kernel = weights(1, 1, 20, 16)

    def function(x, numbers):
        y = tf.multiply(tf.nn.relu(conv(x, 20)) + 1.0, numbers, name="scaled")
        return tf.nn.conv2d(y * tf.reduce_mean(y, 3, keepdims=True), tf.abs(kernel), 1, "SAME")

    result = rewrite(function, [None, 6, 7, 3], [None, 1, 1, 20])
    assert not result.report.declined
    numbers = np.ones((1, 1, 1, 20), np.float32)
    numbers[..., 3] = np.inf
    (values,) = tf.nest.flatten(result.concrete(tf.ones([2, 6, 7, 3]), tf.constant(numbers)))
    assert np.isposinf(values).all()


def test_a_sum_of_open_sizes_is_reordered_once(rewrite, conv):
    """As in the step of a recurrent layer of pictures, whose batches are not known to be one."""

    def function(x, y):
        return tf.nn.relu(conv(x, 20) + conv(y, 20))

    result = rewrite(function, [None, 6, 7, 3], [None, 6, 7, 3], options=STRICT)
    assert result.blockdnn == {"Conv": 2, "Eltwise": 1, "Reorder": 1}


@pytest.mark.parametrize("spec", [[None, 6, 7, 3], [2, None, None, 3]], ids=str)
def test_dense_on_pictures_is_a_convolution(rewrite, weights, conv, spec):
    layer = keras.layers.Dense(40, activation="relu")
    layer.build([None, None, None, 40])
    layer.set_weights([weights(40, 40), weights(40)])
    result = rewrite(lambda x: conv(layer(conv(x, 40)), 24), spec)
    assert result.blockdnn == {"Conv": 3, "Reorder": 1}
    assert "binary(add,channel);eltwise(relu)" in result.post_ops()


@converts([None, 6, 7, 3], some={"Conv": 2, "InnerProduct": 1})
def test_a_product_that_is_read_flat_stays(x, weights, conv):
    flat = tf.matmul(tf.reshape(conv(x, 40), [-1, 40]), weights(40, 40))
    return conv(tf.reshape(flat, [-1, 6, 7, 40]) + tf.reduce_max(flat), 24)


@converts([None, 8, 8, 3], some={"Reorder": 0}, report={"joined": [("concat", "2 of 2")]})
def test_a_part_is_written_into_a_concatenation(x, conv):
    a, b = tf.split(tf.nn.max_pool2d(conv(x, 64), 3, 1, "SAME"), [16, 48], axis=-1)
    return conv(tf.concat([b, conv(a, 20, 1)], axis=-1), 8)


def test_large_means_do_not_cost_digits(rewrite, conv):
    result = rewrite(
        lambda x: conv(_group_norm(conv(x, 32) + 1000.0, 8), 8), [2, 8, 9, 3], tolerance=2e-3
    )  # TensorFlow's own error
    assert result.blockdnn["Conv"] == 2
