"""Networks that nobody showed the rewriter: blocks of all kinds, one by one and in random order."""

import os

import keras
import numpy as np
import pytest
import tensorflow as tf
from blocks import (
    BLOCKS,
    channel_attention,
    convnext,
    group_normalised,
    network,
    selective_kernel,
    split_attention,
)

import tf_blockdnn as bd

# In the test run a few; `TF_BLOCKDNN_NETWORKS=1000 pytest tests/python/rewriter/networks`.
VECTORS = {
    convnext: 2,
    split_attention: 2,
    selective_kernel: 2,
    channel_attention: 1,
    group_normalised: 3,
}
NETWORKS = int(os.environ.get("TF_BLOCKDNN_NETWORKS", "6"))


def scales(blocks, channels):
    """How many plain vectors [N, 1, 1, C] have to be padded to blocks."""
    return sum(VECTORS.get(block, 0) for block in blocks) if channels % 16 else 0


def check(blocks, channels, seed, reorders=0):
    keras.utils.set_random_seed(seed)
    model = network(blocks, channels)
    fast = bd.optimize(model, strict=True)
    image = np.random.default_rng(seed).standard_normal((2, 16, 16, 3)).astype(np.float32)
    for ours, theirs in zip(
        tf.nest.flatten(fast(image)), tf.nest.flatten(model(image)), strict=True
    ):
        largest = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=3e-5 * largest)
    assert len(fast.report.reorders) <= reorders, fast.report.summary()
    assert len(fast.report.converted) > 3 * len(blocks), fast.report.summary()


@pytest.mark.parametrize("channels", [32, 36])
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.__name__)
def test_a_block_converts_whole(block, channels):
    check([block, block], channels, seed=1, reorders=scales([block, block], channels))


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_a_random_network_converts_whole(seed):
    rng = np.random.default_rng(seed)
    blocks = [BLOCKS[i] for i in rng.integers(len(BLOCKS), size=4)]
    channels = int(rng.choice([16, 24, 36, 48, 52]))
    check(blocks, channels, seed, reorders=scales(blocks, channels))
