"""Grouped convolutions with any channels, groups and filters agree with Keras's."""

import pytest
from compared import check

# Among them channels = groups^2, where a grouped kernel has the shape of a depthwise one.
_CASES = [(4, 2, 6), (9, 3, 9), (64, 8, 32), (16, 4, 4), (8, 2, 6), (6, 6, 12), (36, 6, 36)]


@pytest.mark.parametrize("blocked", [False, True], ids=["plain", "blocked"])
@pytest.mark.parametrize(("channels", "groups", "filters"), _CASES)
@pytest.mark.parametrize("rank", [1, 2])
def test_groups(rank, channels, groups, filters, blocked):
    shape = (2, *[5, 6][:rank], channels)
    check(f"Conv{rank}D", [shape], blocked, filters=filters, kernel_size=2, groups=groups)


@pytest.mark.parametrize("blocked", [False, True], ids=["plain", "blocked"])
@pytest.mark.parametrize("multiplier", [1, 3])
@pytest.mark.parametrize("rank", [1, 2])
def test_depthwise(rank, multiplier, blocked):
    for channels in (1, 4, 20):
        shape = (2, *[5, 6][:rank], channels)
        arguments = dict(kernel_size=2, depth_multiplier=multiplier)
        check(f"DepthwiseConv{rank}D", [shape], blocked, **arguments)
        check(f"SeparableConv{rank}D", [shape], blocked, filters=6, **arguments)
