"""A 1x1 convolution with the depthwise one behind it: the bits of the two called one by one.

With "direct": the rounding of paired products depends on how a tensor is split into tasks.
"""

import numpy as np
import pytest
import tensorflow as tf
from blocked_numpy import Blocked
from hypothesis import given, settings
from hypothesis import strategies as st

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


def two(src, weights, depthwise_weights, post_ops="", depthwise_post_ops="", **window):
    """The same by two ops."""
    oc = weights.shape[3]
    shape = [*depthwise_weights.shape[:2], 1, oc]
    window = {"padding": "SAME"} | window
    args, depthwise_args = window.pop("args", ()), window.pop("depthwise_args", ())
    between = bd.ops.conv(src, weights, post_ops=post_ops, args=args, how="direct", padding="SAME")
    return bd.ops.conv(
        between,
        depthwise_weights,
        groups=oc,
        weights_shape=shape,
        post_ops=depthwise_post_ops,
        args=depthwise_args,
        **window,
    )


def check(src, weights, depthwise_weights, **options):
    options = {"padding": "SAME"} | options
    ours = bd.ops.conv_depthwise(src, weights, depthwise_weights, how="direct", **options)
    np.testing.assert_array_equal(ours, two(src, weights, depthwise_weights, **options))
    Blocked.unpack(ours, weights.shape[3])  # its tail is zero
    return ours


@settings(max_examples=60)
@given(data=st.data())
def test_any_sizes(data):
    """Real numbers, since the order of sums is the same."""
    size = st.integers(1, 30)
    n, h, w, ic, oc = (data.draw(s) for s in (st.integers(1, 3), size, size, size, size))
    kernel = [data.draw(st.sampled_from([1, 2, 3, 4, 5])) for _ in "hw"]
    rng = np.random.default_rng(h * w)
    floats = lambda *shape: rng.standard_normal(shape).astype(np.float32)  # noqa: E731
    check(
        Blocked.pack(floats(n, h, w, ic)),
        floats(1, 1, ic, oc),
        floats(*kernel, oc, 1),
        strides=[data.draw(st.integers(1, 3)) for _ in "hw"],
        dilations=data.draw(st.integers(1, 2)),
        padding=data.draw(st.sampled_from(["SAME", [[4, 4], [4, 6]], [[8, 5], [9, 4]]])),
        post_ops=data.draw(st.sampled_from(["", "eltwise(swish)", "eltwise(relu6)"])),
    )


def test_chains_of_both(floats, blocked):
    x, weights, filters = floats(2, 9, 8, 16), floats(1, 1, 16, 40), floats(3, 3, 40, 1)
    shift, other = floats(40), blocked.pack(floats(2, 9, 8, 40))
    gate = blocked.pack(floats(2, 1, 1, 40))
    check(
        blocked.pack(x),
        weights,
        filters,
        post_ops="binary(add,channel,#0);eltwise(swish);binary(mul,sample_channel,#1)",
        args=[shift, gate],
        depthwise_post_ops="binary(add,channel,#0);sum(#1);eltwise(relu)",
        depthwise_args=[shift, other],
    )
    check(
        blocked.pack(x),
        weights,
        filters,
        post_ops="sum(#0)",  # a tensor of the shape of what lies between: that is made whole
        args=[other],
        depthwise_post_ops="eltwise(tanh)",
    )


def test_the_sum_may_take_the_memory_of_dst(floats, blocked):
    src, dst = blocked.pack(floats(1, 6, 6, 16)), blocked.pack(floats(1, 6, 6, 16))
    weights, filters = floats(1, 1, 16, 16), floats(3, 3, 16, 1)
    ours = bd.ops.conv_depthwise(
        src,
        weights,
        filters,
        depthwise_post_ops="sum()",
        dst=dst,
        how="direct",
        padding="SAME",
    )
    wanted = two(src, weights, filters, "", "sum(#0)", depthwise_args=[dst])
    np.testing.assert_array_equal(ours, wanted)


@pytest.mark.parametrize("mode", ["user", "library"])
@pytest.mark.parametrize("constant", [False, True])
def test_weights_of_a_bundle_and_scratchpads(mode, constant, floats, blocked):
    src, weights, filters = floats(1, 12, 12, 24), floats(1, 1, 24, 48), floats(3, 3, 48, 1)
    bundle = np.concatenate([floats(5), weights.ravel(), filters.ravel()])
    for _ in range(3):
        ours = bd.ops.conv_depthwise(
            blocked.pack(src),
            bundle,
            bundle,
            weights_shape=[1, 1, 24, 48],
            weights_offset=5,
            depthwise_weights_shape=[3, 3, 1, 48],
            depthwise_weights_offset=5 + weights.size,
            how=f"{'constant' * constant} {mode} direct",
            padding="SAME",
        )
        np.testing.assert_array_equal(ours, two(blocked.pack(src), weights, filters))


def test_empty_and_unknown_shapes():
    weights, filters = np.ones((1, 1, 16, 32), np.float32), np.ones((3, 3, 32, 1), np.float32)
    none = bd.ops.conv_depthwise(
        np.zeros((0, 1, 8, 8, 16), np.float32), weights, filters, padding="SAME"
    )
    assert none.shape == (0, 2, 8, 8, 16)

    @tf.function(input_signature=[tf.TensorSpec([None, 1, None, 9, 16])])
    def function(x):
        y = bd.ops.conv_depthwise(x, weights, filters, strides=2, padding="SAME")
        assert y.shape.as_list() == [None, 2, None, 5, 16]
        return y

    for n, h in ((1, 4), (3, 7)):
        assert function(tf.zeros((n, 1, h, 9, 16))).shape == (n, 2, -(-h // 2), 5, 16)


def test_memory_is_known_before():
    """The ring of each thread; or the whole tensor between them, where the chain reads one."""
    shapes = (1, 2, 56, 56, 16), (1, 1, 24, 144), (3, 3, 144, 1)
    direct = {"padding": "SAME", "threads": 2, "how": "direct"}
    plan = bd.ops.memory_plan("conv_depthwise", *shapes, **direct)
    assert plan.algorithm == "fused" and plan.scratchpad < 500_000
    rows, blocks = plan.blocking["ring_rows"], plan.blocking["group_blocks"]
    assert plan.pieces["ring"].bytes == 2 * rows * blocks * 56 * 64
    assert plan.packed_weights == 4 * (24 + 9) * 144
    whole = bd.ops.memory_plan(
        "conv_depthwise", *shapes, **direct, post_ops="sum(#0)", args=[(1, 9, 56, 56, 16)]
    )
    assert whole.algorithm == "apart"
    assert whole.pieces["between"].bytes == 9 * 56 * 56 * 64
