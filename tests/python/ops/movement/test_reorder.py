import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


@pytest.mark.parametrize("channels", [1, 3, 15, 16, 17, 32, 50, 240])
@pytest.mark.parametrize("n,h,w", [(1, 1, 1), (2, 5, 7), (1, 14, 14), (3, 1, 33)])
def test_there_and_back(n, h, w, channels, floats, blocked):
    x = floats(n, h, w, channels)
    there = bd.ops.reorder(x, "nhwc", "nChw16c")
    np.testing.assert_array_equal(there, blocked.pack(x))
    back = bd.ops.reorder(there, "nChw16c", "nhwc", channels=channels)
    np.testing.assert_array_equal(back, x)


@pytest.mark.parametrize("layout,shape", [("nhwc", (2, 3, 4, 5)), ("nChw16c", (2, 1, 3, 4, 16))])
def test_same_layout_is_a_copy(layout, shape, floats):
    x = floats(*shape)
    if layout == "nChw16c":
        x[..., 5:] = 0
    np.testing.assert_array_equal(bd.ops.reorder(x, layout, layout, channels=5), x)


@pytest.mark.parametrize("shape", [(0, 4, 4, 3), (2, 0, 4, 3), (2, 4, 0, 17)])
def test_empty(shape):
    there = bd.ops.reorder(tf.zeros(shape), "nhwc", "nChw16c")
    n, h, w, c = shape
    assert there.shape == (n, -(-c // 16), h, w, 16)
    assert bd.ops.reorder(there, "nChw16c", "nhwc", channels=c).shape == shape


def test_blocked_tail_is_not_copied(blocked):
    garbage = np.full((1, 2, 2, 2, 16), np.nan, np.float32)
    garbage[:, 0] = 1
    garbage[:, 1, ..., 0] = 2
    plain = bd.ops.reorder(garbage, "nChw16c", "nhwc", channels=17)
    np.testing.assert_array_equal(plain, np.r_[np.ones(16), 2] * np.ones((1, 2, 2, 1)))


def test_dynamic_shape(floats, blocked):
    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 19])])
    def there(x):
        y = bd.ops.reorder(x, "nhwc", "nChw16c")
        assert y.shape.as_list() == [None, 2, None, None, 16]
        return y

    for n, h, w in [(1, 2, 3), (2, 4, 1), (1, 2, 3)] + [(1, 1, i) for i in range(1, 40)]:
        x = floats(n, h, w, 19)
        np.testing.assert_array_equal(there(x), blocked.pack(x))
