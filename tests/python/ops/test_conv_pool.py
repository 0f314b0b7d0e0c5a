"""A convolution that pools its result: the bits of the two ops, the numbers of TensorFlow."""

import numpy as np
import pytest
import references
import tensorflow as tf
from blocked_numpy import Blocked
from hypothesis import given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa

_RELU = "binary(add,channel,#0);eltwise(relu)"


def check(src, weights, **options):
    """Against the same by two ops; returns the result."""
    ours = bd.ops.conv(src, weights, pool=2, **options)
    oc = weights.shape[3]
    whole = bd.ops.conv(src, weights, **options)
    two = bd.ops.pool(whole, "max", 2, strides=2, channels=oc)
    np.testing.assert_array_equal(ours, two)
    Blocked.unpack(ours, oc)  # its tail is zero
    return ours


@pytest.mark.parametrize("algorithm", ["direct", "winograd", "auto"])
@pytest.mark.parametrize("size", [(2, 2), (7, 12), (16, 15), (3, 21)])
@pytest.mark.parametrize("channels", [(16, 32), (20, 37)])
def test_equals_two_ops_and_tensorflow(algorithm, size, channels, integers, blocked):
    ic, oc = channels
    x, weights, bias = integers(2, *size, ic), integers(3, 3, ic, oc), integers(oc)
    ours = check(blocked.pack(x), weights, post_ops=_RELU, args=[bias], algorithm=algorithm)
    wanted = tf.nn.max_pool2d(tf.nn.relu(references.conv(x, weights) + bias), 2, 2, "VALID")
    tolerance = 0 if algorithm == "direct" else 1e-5
    np.testing.assert_allclose(
        blocked.unpack(ours, oc), wanted, rtol=0, atol=tolerance * max(1, np.max(wanted))
    )


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_convolution(data):
    """Windows, strides, groups, layouts and chains of which few can pool their tiles."""
    size = st.integers(1, 20)
    n, h, w = data.draw(st.integers(1, 3)), data.draw(size), data.draw(size)
    groups = data.draw(st.sampled_from([1, 1, 3]))
    ic, oc = groups * data.draw(size), groups * data.draw(size)
    rng = np.random.default_rng(h * w)
    floats = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    plain = data.draw(st.booleans())
    x = floats(n, h, w, ic)
    kernel = data.draw(st.sampled_from([(1, 1), (3, 3), (5, 5), (1, 3), (7, 1), (2, 4)]))
    check(
        x if plain else Blocked.pack(x),
        floats(*kernel, ic // groups, oc),
        src_layout="nhwc" if plain else "nChw16c",
        groups=groups,
        strides=data.draw(st.integers(1, 2)),
        algorithm=data.draw(st.sampled_from(["auto", "winograd", "direct", "auto_small"])),
        post_ops=data.draw(
            st.sampled_from(
                [
                    "",
                    "eltwise(relu)",
                    "eltwise(clip,alpha=-1,beta=1)",
                    "eltwise(swish)",
                    "eltwise(leaky_relu,alpha=0.1)",
                ]
            )
        ),
    )


def test_nan_passes_as_in_two_ops(floats, blocked):
    x = floats(1, 12, 12, 16)
    x[0, [2, 7, 11], [3, 4, 11]] = np.nan
    ours = check(blocked.pack(x), floats(3, 3, 16, 16), post_ops="eltwise(relu)")
    assert np.isnan(ours).any()


def test_operands_have_the_shape_before_pooling(floats, blocked):
    src, weights = blocked.pack(floats(2, 9, 6, 16)), floats(3, 3, 16, 20)
    residual = blocked.pack(floats(2, 9, 6, 20))
    check(src, weights, post_ops="sum(#0,scale=0.5);eltwise(relu)", args=[residual])
    check(src, weights, post_ops="sum()", dst=residual)


@pytest.mark.parametrize("mode", ["user", "library"])
@pytest.mark.parametrize("algorithm", ["direct", "winograd"])
def test_weights_of_a_bundle_and_scratchpads(mode, algorithm, floats, blocked):
    src, weights = blocked.pack(floats(1, 12, 12, 24)), floats(3, 3, 24, 48)
    wanted = check(src, weights, algorithm=algorithm)
    bundle = np.concatenate([floats(5), weights.ravel()])
    for _ in range(3):
        ours = bd.ops.conv(
            src,
            bundle,
            pool=2,
            channels=24,
            weights_shape=weights.shape,
            weights_offset=5,
            constant_weights=True,
            scratchpad_mode=mode,
            algorithm=algorithm,
        )
        np.testing.assert_array_equal(ours, wanted)


def test_empty_and_unknown_shapes():
    weights = np.ones((3, 3, 16, 32), np.float32)
    for n, h, w in ((0, 8, 8), (2, 1, 8), (2, 8, 1)):
        none = bd.ops.conv(np.zeros((n, 1, h, w, 16), np.float32), weights, pool=2)
        assert none.shape == (n, 2, h // 2, w // 2, 16)

    @tf.function(input_signature=[tf.TensorSpec([None, 1, None, 9, 16])])
    def function(x):
        y = bd.ops.conv(x, weights, pool=[2, 2])
        assert y.shape.as_list() == [None, 2, None, 4, 16]
        return y

    for n, h in ((1, 4), (3, 7)):
        assert function(tf.zeros((n, 1, h, 9, 16))).shape == (n, 2, h // 2, 4, 16)


def test_memory_is_known_before():
    """The whole result only where it is made."""
    shapes = (1, 4, 56, 56, 16), (3, 3, 64, 64)
    tiles = bd.ops.memory_plan("conv", *shapes, threads=2, pool=2, post_ops="eltwise(relu)")
    assert tiles.algorithm.startswith("winograd") and "unpooled" not in tiles.pieces
    for changes in (dict(algorithm="direct"), dict(post_ops="eltwise(tanh)")):
        whole = bd.ops.memory_plan("conv", *shapes, threads=2, pool=2, **changes)
        assert whole.pieces["unpooled"].bytes == 4 * 64 * 56 * 56


ERRORS = [
    (dict(pool=3), r"pool must be \[2, 2\] or nothing; got \[3, 3\]: use an op of its own"),
    (dict(pool=[2, 1]), r"pool must be \[2, 2\]"),
    (dict(pool=(2, 2, 2)), r"pool must be an integer or \[height, width\]"),
    (dict(pool="2"), r"pool must be an integer or \[height, width\]"),
    (dict(pool=2, dst_layout="nhwc"), "pool needs dst_layout nChw16c; reorder its result"),
    (
        dict(pool=2, post_ops="sum(#0)", args=[tf.zeros((1, 1, 4, 4, 16))]),
        r"shape and layout of dst before pooling, \[1,1,8,8,16\]; got \[1,1,4,4,16\]",
    ),
]


@pytest.mark.parametrize("changes, message", ERRORS, ids=lambda value: str(value)[:40])
def test_errors(changes, message):
    """One line, when it runs and while a graph is built."""
    src, weights = tf.zeros((1, 1, 8, 8, 16)), tf.zeros((3, 3, 16, 16))
    call = lambda: bd.ops.conv(src, weights, **changes)  # noqa: E731
    for run in (call, tf.function(call, autograph=False)):
        with pytest.raises((tf.errors.InvalidArgumentError, ValueError), match=message):
            run()
