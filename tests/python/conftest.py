"""What the Python tests share."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from blocked_numpy import Blocked  # noqa: E402


def pytest_configure(config):
    config.addinivalue_line("markers", "each_isa: also run with TF_BLOCKDNN_MAX_ISA capped")


@pytest.fixture
def blocked():
    return Blocked


@pytest.fixture
def integers():
    """Draws small integers as float32, so that sums of products are exact."""
    rng = np.random.default_rng(7)

    def draw(*shape, low=-4, high=5):
        return rng.integers(low, high, shape).astype(np.float32)

    return draw


@pytest.fixture
def floats():
    """Draws standard normal float32."""
    rng = np.random.default_rng(11)
    return lambda *shape: rng.standard_normal(shape).astype(np.float32)
