"""What the Python tests share."""

import collections
import gc
import os
import threading
from concurrent.futures import ThreadPoolExecutor

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["TF_BLOCKDNN_STRICT"] = "1"  # a bug of the rewriter fails the test

import hypothesis  # noqa: E402
import numpy as np  # noqa: E402
import pytest  # noqa: E402
import tensorflow as tf  # noqa: E402
from blocked_numpy import Blocked  # noqa: E402
from tensorflow.python.ops.variables import default_variable_creator_v2  # noqa: E402

# What is drawn is the same in each run but those of `make fuzz`, and a busy machine takes its time.
hypothesis.settings.register_profile(
    "tests",
    deadline=None,
    derandomize="TF_BLOCKDNN_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("tests")


def pytest_configure(config):
    config.addinivalue_line("markers", "each_isa: also run with TF_BLOCKDNN_MAX_ISA capped")


@pytest.hookimpl(trylast=True)  # of those that a mark selects
def pytest_collection_modifyitems(items):
    """Files of few tests go first, since these take longest: processes that share a run then end
    together. These must agree on names, which addresses in memory are no part of.

    With TF_BLOCKDNN_SAMPLE=n/m the tests n, n + m, n + 2 m, .. run.
    """
    if differing := [item.nodeid for item in items if " at 0x" in item.nodeid]:
        raise pytest.UsageError(f"give these tests ids of their own: {', '.join(differing)}")
    first, _, step = os.environ.get("TF_BLOCKDNN_SAMPLE", "0/1").partition("/")
    items[:] = items[int(first) :: int(step)]
    counts = collections.Counter(item.path for item in items)
    items.sort(key=lambda item: counts[item.path])


def pytest_collection_finish():
    """What was imported stays: collections that walk through it take a tenth of the time."""
    gc.collect()
    gc.freeze()


def _variable(next_creator, **arguments):
    return default_variable_creator_v2(None, **arguments)


class Weights(tf.Module):
    """Makes variables of random values and keeps them alive, also while a function is traced."""

    def __init__(self, seed=0):
        super().__init__()
        self._rng = np.random.default_rng(seed)
        self.variables_made = []

    def __call__(self, *shape, low=None, high=None):
        """Normal values, or uniform ones in [low, high)."""
        if low is None:
            value = self._rng.standard_normal(shape) / max(1.0, np.prod(shape[:-1])) ** 0.5
        else:
            value = self._rng.uniform(low, high, shape)
        # Not by the tf.function that traces, which wants to call a function twice where it did.
        with tf.init_scope(), tf.variable_creator_scope(_variable):
            self.variables_made.append(tf.Variable(value.astype(np.float32)))
        return self.variables_made[-1]


@pytest.fixture
def weights():
    return Weights()


@pytest.fixture(scope="module")
def shared_weights():
    return Weights()


@pytest.fixture
def in_threads():
    """Runs the function in that many threads at once, each with its number: what each gives."""

    def run(count, function):
        start = threading.Barrier(count)

        def run_one(i):
            start.wait()
            return function(i)

        with ThreadPoolExecutor(count) as threads:
            return list(threads.map(run_one, range(count)))

    return run


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


@pytest.fixture
def image(floats):
    """Random NHWC images as tensors."""
    return lambda *shape: tf.constant(floats(*shape))
