"""Shuffle in each blocked layout, its gradients, and shapes that a graph does not know."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd
from tf_blockdnn.python.ops.records import Shuffle

pytestmark = pytest.mark.each_isa

FLOATS = [tf.float32, tf.float64, tf.bfloat16, tf.float16]
# Spatial axes and lanes of a block.
BLOCKED = {f"nC{axes}{b}c": (len(axes), b) for axes in ("w", "hw", "dhw") for b in (8, 16)}


def model(x, axis, group):
    """The definition, entry by entry."""
    x = np.asarray(x)
    entries = x.shape[axis]
    order = [None] * entries
    for u in range(entries // group):
        for v in range(group):
            order[u + v * (entries // group)] = u * group + v
    return np.take(x, order, axis)


def pack(x, block):
    """Channels-first [N, C, ...] -> [N, ceil(C / block), ..., block] with a zero tail."""
    n, c, *space = x.shape
    padded = np.zeros((n, -(-c // block) * block, *space), x.dtype)
    padded[:, :c] = x
    return np.moveaxis(padded.reshape(n, -(-c // block), block, *space), 2, -1).copy()


def draw(shape, dtype=tf.float32):
    """Values that all bits take part in."""
    bits = np.random.default_rng(17).integers(0, 256, (*shape, dtype.size), np.uint8)
    if dtype in FLOATS:  # no NaN, which would not be equal to itself
        return bits[..., 0].astype(np.float32).astype(dtype.as_numpy_dtype)
    return bits.view(dtype.as_numpy_dtype).reshape(shape)


def test_twelve_channels_in_three_groups():
    """ShuffleNet's g = 3: channels 0, 4 and 8 come first. That is G = C / g = 4."""
    channels = np.arange(12)
    assert bd.ops.shuffle(channels, 0, 12 // 3).numpy().tolist() == [
        *(0, 4, 8),
        *(1, 5, 9),
        *(2, 6, 10),
        *(3, 7, 11),
    ]
    assert bd.ops.shuffle(channels, 0, 3).numpy().tolist() == [
        *(0, 3, 6, 9),
        *(1, 4, 7, 10),
        *(2, 5, 8, 11),
    ]


def test_other_axes_of_a_blocked_tensor():
    x = draw((4, 20, 6, 9))
    for axis, group in [(0, 2), (2, 3), (3, 3), (-1, 3), (-4, 2)]:
        y = bd.ops.shuffle(pack(x, 16), axis, group, layout="nChw16c", channels=20)
        np.testing.assert_array_equal(y, pack(model(x, axis, group), 16))


@pytest.mark.parametrize("group", [2, 17, 1, 34])
def test_rubbish_in_the_tail_does_not_come_through(group):
    x = draw((1, 34, 3, 5))
    blocked = pack(x, 16)
    blocked[:, 2, ..., 2:] = 7
    y = bd.ops.shuffle(blocked, 1, group, layout="nChw16c", channels=34)
    np.testing.assert_array_equal(y, pack(model(x, 1, group), 16))


@settings(max_examples=100)
@given(
    layout=st.sampled_from(sorted(BLOCKED)),
    factors=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    dtype=st.sampled_from([tf.float32, tf.uint8, tf.float16, tf.int64]),
    n=st.integers(0, 3),
    data=st.data(),
)
def test_blocked_is_the_packed_plain_one(layout, factors, dtype, n, data):
    rank, block = BLOCKED[layout]
    space = data.draw(st.lists(st.integers(0, 4), min_size=rank, max_size=rank), label="space")
    group, channels = factors[0], factors[0] * factors[1]
    x = draw((n, channels, *space), dtype)
    blocked, options = pack(x, block), {"layout": layout, "channels": channels}
    y = bd.ops.shuffle(blocked, 1, group, **options)
    np.testing.assert_array_equal(y, pack(model(x, 1, group), block))
    np.testing.assert_array_equal(y, bd.ops.shuffle(blocked, 1 - x.ndim, group, **options))
    back = Shuffle.run(y, axis=1, group=group, backward=True, **options)
    np.testing.assert_array_equal(back, blocked)


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_gradient(dtype):
    x, weights = tf.constant(draw((4, 12, 3), dtype)), tf.constant(draw((4, 12, 3), dtype)[::-1])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = bd.ops.shuffle(x, 1, 3) * weights
    expected = Shuffle.run(weights, axis=1, group=3, backward=True)
    np.testing.assert_array_equal(tape.gradient(y, x), expected)


def test_shapes_unknown_until_it_runs():
    @tf.function(input_signature=[tf.TensorSpec(None)])
    def shuffle(x):
        return bd.ops.shuffle(x, -2, 3)

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, None])])
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = bd.ops.shuffle(x, 1, 3)
            assert y.shape.as_list() == [None] * 4
        return tape.gradient(y, x, y)

    for shape in [(6, 2), (2, 3, 6, 5), (12, 9, 1), (2, 12, 40)]:
        x = draw(shape)
        np.testing.assert_array_equal(shuffle(x), model(x, -2, 3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="group = 3 must divide the 4 entries"):
        shuffle(tf.zeros((4, 2)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="axis = -2 is out of range"):
        shuffle(tf.zeros(3))
    for channels in (3, 12, 60):
        x = draw((2, channels, 3, 2))
        np.testing.assert_array_equal(gradient(x), x)


def test_static_shape_is_kept():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.int8, [None, 5, 12])
        y = bd.ops.shuffle(x, -1, 3)
        assert y.shape.as_list() == [None, 5, 12]
        assert y.dtype == tf.int8


def test_what_moves_nothing_copies_nothing():
    x = tf.constant(draw((3, 12)))
    for group in (1, 12):
        y = bd.ops.shuffle(x, 1, group)
        np.testing.assert_array_equal(y, x)
        assert np.shares_memory(memoryview(y), memoryview(x))


def test_saved_model(tmp_path):
    class Shuffler(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None, None, 24])])
        def __call__(self, x):
            return bd.ops.shuffle(x, -1, 3)

    tf.saved_model.save(
        Shuffler(),
        str(tmp_path / "model"),
        options=tf.saved_model.SaveOptions(experimental_custom_gradients=True),
    )
    loaded = tf.saved_model.load(str(tmp_path / "model"))
    x = tf.constant(draw((2, 5, 24)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded(x)
    np.testing.assert_array_equal(y, model(x, -1, 3))
    np.testing.assert_array_equal(tape.gradient(y, x, y), x)
