import numpy as np
import pytest

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


def test_nan_is_the_maximum_wherever_it_stands():
    """tf.nn.max_pool2d passes over NaN or keeps it, by the CPU; never what comes after it alone."""
    for row in ([5, 1, np.nan], [5, np.nan, 1], [np.nan, 5, 1]):
        x = np.zeros((1, 1, 1, 3, 16), np.float32) + np.float32(row)[:, None]
        y = bd.ops.pool(x, "max", [1, 3], channels=16, padding="VALID").numpy()
        z = bd.ops.global_pool(x, "max", channels=16).numpy()
        assert all(np.isnan(v) or v == 5 for v in (y.flat[0], z.flat[0])), (row, y.flat[0])
