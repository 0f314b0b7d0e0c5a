"""How far results lie apart."""

import numpy as np
import pytest

from tf_blockdnn.python.measuring.difference import largest_difference


def test_difference_is_the_largest_over_all_outputs():
    difference = largest_difference([[1, 2], [[-8.0]]], [[1, 2.5], [[-8.0]]])
    assert (difference.absolute, difference.magnitude, difference.relative) == (0.5, 8, 0.0625)


@pytest.mark.parametrize(
    "want, got, absolute",
    [
        ([np.nan], [np.nan], 0),
        ([np.nan], [1.0], np.inf),
        ([np.inf], [np.inf], 0),
        ([np.inf], [-np.inf], np.inf),
        ([np.inf], [1.0], np.inf),
        ([b"a"], [b"a"], 0),
        ([b"a"], [b"b"], np.inf),
        ([True], [False], np.inf),
        (np.zeros([0, 3]), np.zeros([0, 3]), 0),
        (np.uint8([3]), np.uint8([5]), 2),
    ],
)
def test_difference_of_special_values(want, got, absolute):
    assert largest_difference([want], [got]).absolute == absolute


def test_difference_of_other_shapes():
    with pytest.raises(ValueError, match=r"shapes differ: \(2,\) against \(1, 2\)"):
        largest_difference([np.zeros(2)], [np.zeros([1, 2])])
    with pytest.raises(ValueError):
        largest_difference([np.zeros(2)], [])
