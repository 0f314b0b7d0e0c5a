"""A forked child computes, whatever other threads are doing when it is made."""

import os
import signal
import threading
import time

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.ops.products.rnn import pack_count

# name -> (op of two tensors, shape of the activation, shape of the weights)
OPS = {
    "conv": (
        lambda x, w: bd.ops.conv(x, w, how="constant direct", padding="SAME"),
        (1, 64, 1, 1, 16),
        (3, 3, 1024, 1024),
    ),
    "packed_matmul": (
        lambda x, w: bd.ops.packed_matmul(x, w, how="constant"),
        (1, 4096),
        (4096, 4096),
    ),
    "rnn": (lambda x, w: bd.ops.rnn(x, w, w[:256], cell="lstm").dst, (1, 1, 8192), (8192, 1024)),
}


def in_child(compute) -> np.ndarray:
    """The float32 values that `compute` returns in a forked child, which has a minute for it."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            os.write(writer, compute().tobytes())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        values = np.frombuffer(pipe.read(), np.float32)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return values


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("name", OPS)
def test_while_another_thread_packs(name, integers):
    """First what the parent is packing, then what it has packed."""
    op, src, shape = OPS[name]
    x, values = tf.constant(integers(*src)), integers(*shape)
    for _ in range(4):
        weights = tf.constant(values) + 0
        results = []
        thread = threading.Thread(target=lambda w=weights, r=results: r.append(op(x, w).numpy()))
        before = pack_count()
        thread.start()
        while pack_count() == before:
            time.sleep(0)
        ours = in_child(lambda w=weights: op(x, w).numpy())
        thread.join()
        np.testing.assert_array_equal(ours, results[0].ravel())
        np.testing.assert_array_equal(in_child(lambda w=weights: op(x, w).numpy()), ours)
