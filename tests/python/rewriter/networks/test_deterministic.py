"""Options(deterministic=True): the bits of a sample depend on nothing but the sample."""

from pathlib import Path

import fresh
import keras
import numpy as np
import pytest
import tensorflow as tf
from deterministic_networks import BATCHES, NETWORKS, optimized, original

import tf_blockdnn as bd


def _notes(fast) -> list[str]:
    return [note for note in fast.report.notes if note.startswith("deterministic")]


@pytest.mark.each_isa
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_bits_of_a_sample(network):
    """Neither the size of the batch nor a sample of NaN changes them."""
    fast, model, x = optimized(network)
    assert not _notes(fast)
    alone = np.concatenate([np.asarray(fast(x[i : i + 1])) for i in range(8)])
    wanted = model(x).numpy()
    np.testing.assert_allclose(alone, wanted, atol=1e-4 * abs(wanted).max())
    for batch in BATCHES:
        np.testing.assert_array_equal(fast(x[:batch]), alone[:batch])
    spoiled = x.copy()
    spoiled[5] = np.nan
    np.testing.assert_array_equal(np.delete(fast(spoiled), 5, 0), np.delete(alone, 5, 0))


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_the_same_call(network):
    """Without the option the same call has the same bits nevertheless."""
    model, x = original(network)
    fast = bd.optimize(model)
    first = np.asarray(fast(x))
    for _ in range(6):
        np.testing.assert_array_equal(fast(x), first)


def test_threads(tmp_path):
    """One thread, two, and more than there are cores."""
    script = (Path(__file__).parent / "deterministic_networks.py").read_text()
    results = []
    for threads in (1, 2, 5):
        file = tmp_path / f"{threads}.npz"
        fresh.run(script, threads, file)
        results.append(np.load(file))
    assert len(results[0].files) == len(NETWORKS) * len(BATCHES)
    for other in results[1:]:
        for name in results[0].files:
            np.testing.assert_array_equal(other[name], results[0][name], err_msg=name)


def test_what_tensorflow_adds_up_is_noted(floats):
    weights = tf.Variable(floats(3, 3, 8, 16))

    @tf.function(input_signature=[tf.TensorSpec((None, 8, 8, 8)), tf.TensorSpec((8, None))])
    def function(x, other):
        rows = tf.reduce_sum(tf.nn.conv2d(x, weights, 1, "SAME"), [1, 3])
        return tf.matmul(rows, other)

    (note,) = _notes(bd.optimize(function, options=bd.Options(deterministic=True)))
    assert "1 MatMul, 1 Sum" in note
    assert not _notes(bd.optimize(function, options=bd.Options(algorithm="direct")))


@pytest.mark.parametrize("other", [{"algorithm": "winograd"}, {"autotune": True}])
def test_what_excludes_it(other):
    model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.Conv2D(4, 3)])
    with pytest.raises(ValueError, match="deterministic=True"):
        bd.optimize(model, options=bd.Options(deterministic=True, **other))
