"""src and dst as parts of wider tensors: the same bits as with tensors of their own."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa

conv = functools.partial(bd.ops.conv, padding="SAME")


def test_a_part_may_be_read_by_the_op_that_overwrites_it(blocked, floats):
    x = tf.constant(blocked.pack(floats(2, 5, 5, 32)))
    joined = bd.ops.eltwise(
        x, "eltwise(abs)", channels=16, src_part=(0, 32), dst_part=(16, 32), into=x
    )
    np.testing.assert_array_equal(joined[:, 0], x[:, 0])
    np.testing.assert_array_equal(joined[:, 1], np.abs(x[:, 0]))


@pytest.mark.parametrize("batch", [1, 3])
def test_chain_of_parts_is_the_concatenation(batch, floats, blocked):
    x, w = blocked.pack(floats(batch, 6, 5, 32)), floats(3, 3, 32, 48)

    @tf.function
    def joined(x):
        whole = bd.ops.conv(x, w, dst_part=(16, 112), padding="SAME")
        whole = bd.ops.concat([x[:, :1]], channels=[16], dst_part=(0, 112), into=whole)
        whole = bd.ops.pool(
            x, "avg", 3, padding="SAME", channels=32, dst_part=(64, 112), into=whole
        )
        # Reads what the convolution wrote, before the last part.
        return bd.ops.eltwise(
            whole, "eltwise(relu)", channels=16, src_part=(16, 112), dst_part=(96, 112), into=whole
        )

    parts = [
        x[:, :1],
        bd.ops.conv(x, w, padding="SAME"),
        bd.ops.pool(x, "avg", 3, padding="SAME", channels=32),
    ]
    parts.append(np.maximum(parts[1][:, :1], 0))
    np.testing.assert_array_equal(joined(x), np.concatenate(parts, 1))


def test_concat_of_any_channels_into_a_part(floats, blocked):
    values = [floats(2, 3, 4, c) for c in (5, 12, 16)]
    into = floats(2, 3, 4, 49)
    joined = bd.ops.concat(
        [blocked.pack(v) for v in values],
        channels=(5, 12, 16),
        dst_part=(16, 49),
        into=blocked.pack(into),
    )
    expected = np.concatenate([into[..., :16], *values], 3)
    np.testing.assert_array_equal(blocked.unpack(joined, 49), expected)


def test_empty_batch():
    wide = tf.zeros((0, 5, 7, 9, 16))
    options = dict(src_part=(32, 80), dst_part=(32, 80), into=wide)
    joined = bd.ops.pool(wide, "max", 2, channels=48, padding="SAME", **options)
    assert joined.shape == wide.shape


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(src_part=(32, 64)), r"src_part \[32, 64\] of 40 channels reaches beyond the whole"),
        (dict(src_part=(-16, 72)), "reaches beyond the whole tensor"),
        (dict(dst_part=(8, 48)), "must start and end at multiples of 16 channels"),
        (dict(dst_part=(0, 64)), "must start and end at multiples of 16 channels"),
        (dict(src_part=(32, 72)), r"src must be nChw16c, \[N, 5, H, W, 16\] for 72 channels"),
        (dict(dst_part=(0, 40), into=tf.zeros((2, 1, 7, 9, 16))), "into must have the shape of"),
        (dict(dst_part=(0, 40), dst_layout="nhwc"), "needs layout nChw16c; add a reorder"),
    ],
)
def test_errors(options, message, floats):
    x, weights = tf.zeros((2, 3, 7, 9, 16)), floats(3, 3, 40, 40)

    def call():
        return bd.ops.conv(x, weights, **options, padding="SAME")

    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call()
    with pytest.raises(ValueError, match=message):
        tf.function(call).get_concrete_function()


def test_malformed_parts():
    with pytest.raises(ValueError, match="src_part must be"):
        bd.ops.eltwise(tf.zeros((1, 1, 2, 2, 16)), "", channels=16, src_part=(1, 2, 3))


LISTED = [1, 3, 4]  # of 6 blocks


# name -> an op of a tensor, of what draws weights, and options
OF_LISTED = {
    "pointwise": lambda x, w, **o: conv(x, w(1, 1, 48, 40), **o),
    "strided": lambda x, w, **o: conv(x, w(1, 1, 48, 32), strides=2, **o),
    "paired": lambda x, w, **o: conv(x, w(1, 1, 48, 64), how="paired", **o),
    "direct": lambda x, w, **o: conv(x, w(3, 3, 48, 16), how="direct", **o),
    "winograd": lambda x, w, **o: conv(x, w(3, 3, 48, 16), how="winograd", **o),
    "plain": lambda x, w, **o: conv(x, w(1, 1, 48, 2), dst_layout="nhwc", **o),
    "depthwise": lambda x, w, **o: conv(x, w(3, 3, 1, 48), groups=48, **o),
    "conv_depthwise": lambda x, w, **o: bd.ops.conv_depthwise(
        x, w(1, 1, 48, 32), w(3, 3, 32, 1), padding="SAME", **o
    ),
}


@pytest.mark.parametrize("name", OF_LISTED)
def test_listed_blocks(name, floats, blocked):
    """The same bits as of a tensor of these blocks; NaN in all others."""
    x = floats(2, 15, 17, 96)
    wide = np.full_like(blocked.pack(x), np.nan)
    wide[:, LISTED] = blocked.pack(x)[:, LISTED]
    expected, got = (
        OF_LISTED[name](x, lambda *shape: np.random.default_rng(1).standard_normal(shape, "f"), **o)
        for x, o in ((wide[:, LISTED], {}), (wide, {"src_part": (0, 96), "src_blocks": LISTED}))
    )
    np.testing.assert_array_equal(got, expected)
    assert np.isfinite(expected).all()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"src_part": (0, 96), "src_blocks": [3, 1, 4]}, "must ascend"),
        ({"src_part": (0, 96), "src_blocks": [1, 1, 4]}, "must ascend"),
        ({"src_part": (0, 96), "src_blocks": [1, 3, 6]}, "below 6"),
        ({"src_part": (0, 96), "src_blocks": [-1, 3, 4]}, "must ascend"),
        ({"src_part": (0, 96), "src_blocks": [1, 3]}, "2 blocks of 16 channels"),
        ({"src_part": (16, 96), "src_blocks": [1, 3, 4]}, "src_part = \\[16, 96\\]"),
        ({"src_blocks": [0, 1, 2]}, "must ascend"),
    ],
)
def test_wrong_listed_blocks(options, message, floats):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
        bd.ops.conv(floats(1, 6, 5, 5, 16), floats(1, 1, 48, 16), **options, padding="SAME")
