"""Networks that nobody showed the rewriter: blocks of all kinds, one by one and in random order.

counts.json keeps how many reorders each has left, and how many nodes stay with TensorFlow for a
reason. TF_BLOCKDNN_COUNTS=write writes it anew.
"""

import json
import os
import pathlib

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
TRACKED = 6
COUNTS = pathlib.Path(__file__).with_name("counts.json")
NETWORKS = int(os.environ.get("TF_BLOCKDNN_NETWORKS", "6"))


def scales(blocks, channels):
    """How many plain vectors [N, 1, 1, C] have to be padded to blocks."""
    return sum(VECTORS.get(block, 0) for block in blocks) if channels % 16 else 0


def check(blocks, channels, seed, reorders=0):
    keras.utils.set_random_seed(seed)
    model = network(blocks, channels)
    fast = bd.optimize(model, options=bd.Options(strict=True))
    image = np.random.default_rng(seed).standard_normal((2, 16, 16, 3)).astype(np.float32)
    for ours, theirs in zip(
        tf.nest.flatten(fast(image)), tf.nest.flatten(model(image)), strict=True
    ):
        largest = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=3e-5 * largest)
    assert len(fast.report.reorders) <= reorders, fast.report.summary()
    assert len(fast.report.converted) > 3 * len(blocks), fast.report.summary()
    return {"reorders": len(fast.report.reorders), "left": len(fast.report.declined)}


def compare(name, counts):
    """With those of counts.json: fewer are welcome there, too."""
    known = json.loads(COUNTS.read_text()) if COUNTS.exists() else {}
    if os.environ.get("TF_BLOCKDNN_COUNTS") == "write":
        known[name] = counts
        COUNTS.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")
    assert known.get(name) == counts, f"{name}: set TF_BLOCKDNN_COUNTS=write if this is meant"


@pytest.mark.parametrize("channels", [32, 36])
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.__name__)
def test_a_block_converts_whole(block, channels):
    counts = check([block, block], channels, seed=1, reorders=scales([block, block], channels))
    compare(f"{block.__name__}, {channels} channels", counts)


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_a_random_network_converts_whole(seed):
    rng = np.random.default_rng(seed)
    blocks = [BLOCKS[i] for i in rng.integers(len(BLOCKS), size=4)]
    channels = int(rng.choice([16, 24, 36, 48, 52]))
    counts = check(blocks, channels, seed, reorders=scales(blocks, channels))
    if seed < TRACKED:
        compare(f"random {seed}", counts)
