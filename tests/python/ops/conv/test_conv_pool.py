"""A convolution that pools its result: the bits of the two ops, the numbers of TensorFlow."""

import numpy as np
import pytest
import references
import tensorflow as tf
from blocked_numpy import Blocked

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa

_RELU = "binary(add,channel,#0);eltwise(relu)"


def check(src, weights, **options):
    """Against the same by two ops; returns the result.

    "auto_small" pools in the smaller transform, which no other algorithm names: its bits have
    nothing to be compared with. The weights are constant: where they change, the cost of packing
    them may choose another transform for one op than for two.
    """
    how = options.pop("how", "auto")
    options = {"padding": "SAME", "how": f"{how} constant"} | options
    ours = bd.ops.conv(src, weights, pool=2, **options)
    oc = weights.shape[3]
    if how != "auto_small":
        whole = bd.ops.conv(src, weights, **options | {"how": "winograd constant"})
        two = bd.ops.pool(whole, "max", 2, strides=2, channels=oc, padding="VALID")
        np.testing.assert_array_equal(ours, two)
    Blocked.unpack(ours, oc)  # its tail is zero
    return ours


@pytest.mark.parametrize("algorithm", ["winograd", "auto", "auto_small"])
@pytest.mark.parametrize("size", [(2, 2), (7, 12), (16, 15), (3, 21)])
@pytest.mark.parametrize("channels", [(16, 32), (20, 37)])
def test_equals_two_ops_and_tensorflow(algorithm, size, channels, integers, blocked):
    ic, oc = channels
    x, weights, bias = integers(2, *size, ic), integers(3, 3, ic, oc), integers(oc)
    options = {"padding": "SAME", "post_ops": _RELU, "args": [bias], "how": algorithm}
    ours = check(blocked.pack(x), weights, **options)
    wanted = tf.nn.max_pool2d(tf.nn.relu(references.conv(x, weights) + bias), 2, 2, "VALID")
    changing = bd.ops.conv(blocked.pack(x), weights, pool=2, **options)
    tolerance = 1e-5
    for result in (ours, changing):
        np.testing.assert_allclose(
            blocked.unpack(result, oc), wanted, rtol=0, atol=tolerance * max(1, np.max(wanted))
        )


def test_nan_passes_as_in_two_ops(floats, blocked):
    x = floats(1, 12, 12, 16)
    x[0, [2, 7, 11], [3, 4, 11]] = np.nan
    ours = check(blocked.pack(x), floats(3, 3, 16, 16), post_ops="eltwise(relu)")
    assert np.isnan(ours).any()


@pytest.mark.parametrize("mode", ["user", "library"])
@pytest.mark.parametrize("algorithm", ["auto", "winograd"])
def test_weights_of_a_bundle_and_scratchpads(mode, algorithm, floats, blocked):
    src, weights = blocked.pack(floats(1, 12, 12, 24)), floats(3, 3, 24, 48)
    wanted = check(src, weights, how=algorithm)
    bundle = np.concatenate([floats(5), weights.ravel()])
    for _ in range(3):
        ours = bd.ops.conv(
            src,
            bundle,
            pool=2,
            channels=24,
            weights_shape=weights.shape,
            weights_offset=5,
            how=f"constant {mode} {algorithm}",
            padding="SAME",
        )
        np.testing.assert_array_equal(ours, wanted)


def test_empty_and_unknown_shapes():
    weights = np.ones((3, 3, 16, 32), np.float32)
    for n, h, w in ((0, 8, 8), (2, 1, 8), (2, 8, 1)):
        none = bd.ops.conv(np.zeros((n, 1, h, w, 16), np.float32), weights, pool=2, padding="SAME")
        assert none.shape == (n, 2, h // 2, w // 2, 16)

    @tf.function(input_signature=[tf.TensorSpec([None, 1, None, 9, 16])])
    def function(x):
        y = bd.ops.conv(x, weights, pool=[2, 2], padding="SAME")
        assert y.shape.as_list() == [None, 2, None, 4, 16]
        return y

    for n, h in ((1, 4), (3, 7)):
        assert function(tf.zeros((n, 1, h, 9, 16))).shape == (n, 2, h // 2, 4, 16)
