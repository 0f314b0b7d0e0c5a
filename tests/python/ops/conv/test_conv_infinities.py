"""What one infinity or NaN in the source does to the results of each algorithm."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

ROW, COLUMN = 5, 7


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("algorithm", ["direct", "winograd", "paired"])
def test_it_stays_near_its_windows(algorithm, window, bad, floats, blocked):
    src, weights = floats(2, 14, 14, 64), floats(window, window, 64, 32)
    src[0, ROW, COLUMN, 3] = bad
    wanted = tf.nn.conv2d(src, weights, 1, "SAME").numpy()
    got = bd.ops.conv(blocked.pack(src), weights, padding="SAME", how=algorithm)
    got = blocked.unpack(got, 32)
    touched = ~np.isfinite(wanted)
    assert touched.any() and not np.isfinite(got[touched]).any()
    if algorithm == "direct":
        np.testing.assert_array_equal(got[touched], wanted[touched])
    rows, columns = (np.arange(14) - place for place in (ROW, COLUMN))
    far = (abs(rows) > 4)[:, None] | (abs(columns) > 4)
    for near, far_from in ((got[0][far], wanted[0][far]), (got[1], wanted[1])):
        np.testing.assert_allclose(near, far_from, atol=1e-4 * abs(wanted[1]).max())
