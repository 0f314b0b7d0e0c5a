"""`python -m peers.outputs PEER MODEL INPUTS TARGET` writes what a peer computes.

INPUTS is an .npz with a whole number of batches of `BATCH` for each input, TARGET one with output_0
and so on, in the order of the SavedModel's outputs.
"""

from __future__ import annotations

import re
import sys

import numpy as np

from .networks import PEERS

BATCH = 4
# Their runners read the inputs anew in each run.
ABLE = [name for name, peer in PEERS.items() if peer.venv in ("onnx", "openvino", "litert")]


def _number(name: str) -> int:
    """The place of an output: converters name them Identity:0, Identity_1:0, ... or output_1."""
    return int((re.findall(r"_(\d+)(?::\d+)?$", name) or [0])[0])


def main(peer: str, model: str, source: str, target: str) -> None:
    """Runs the peer for batch after batch of the file `source`."""
    with np.load(source) as file:
        inputs = dict(file)
    feed = {name: value[:BATCH].copy() for name, value in inputs.items()}
    run, found = PEERS[peer].runner(model, feed, 2), []
    for first in range(0, min(map(len, inputs.values())), BATCH):
        for name, value in inputs.items():
            feed[name][:] = value[first : first + BATCH]
        outputs = run()
        found.append([outputs[name].copy() for name in sorted(outputs, key=_number)])
    values = map(np.concatenate, zip(*found, strict=True))
    np.savez(target, **{f"output_{place}": value for place, value in enumerate(values)})


if __name__ == "__main__":
    main(*sys.argv[1:])
