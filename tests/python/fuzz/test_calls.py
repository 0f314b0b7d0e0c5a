"""Calls of every op with attributes, shapes and types that nobody should write.

Each is right, or one line that refuses it; none ends its process, takes gigabytes or goes on for
ever. `make fuzz` runs thousands: TF_BLOCKDNN_EXAMPLES says how many, TF_BLOCKDNN_SEED which.
"""

import os
from collections import Counter

import children
import fuzz_case
from make_call import definitions
from valid_calls import MAKERS

_EXAMPLES = int(os.environ.get("TF_BLOCKDNN_EXAMPLES", "0"))
_SEED = int(os.environ.get("TF_BLOCKDNN_SEED", "0"))
# A region holds every other op in every second case; the other computes nothing.
_WITHOUT_CALL = {"BlockdnnRegion", "BlockdnnFollow"}
# Of which TensorFlow or Keras has an op, whatever the shape.
_SHAPES = ("ConvTranspose", "ConvVolume", "Pool", "GlobalPool", "Resize", "Rnn")


def _outcomes(cases):
    """How often each (kind, outcome) came; fails where a case is wrong."""
    outcomes, wrong = Counter(), []
    for case, result in children.run(fuzz_case.run, cases):
        op, kind, outcome, finding = ("?", "?", "", result) if isinstance(result, str) else result
        outcomes[kind, outcome] += 1
        if finding:
            wrong.append(f"{case}: {op} {kind}: {finding}")
    print(dict(outcomes))
    report = "\n".join(sorted(wrong)[:20])
    assert not wrong, f"{len(wrong)} of {len(cases)} cases, by fuzz_case.run(..):\n{report}"
    return outcomes


def test_every_op_has_a_valid_call():
    """An op that the fuzzer cannot call validly would only be called without sense."""
    without = set(definitions()) - set(MAKERS)
    assert without <= _WITHOUT_CALL and len(definitions()) > 20


def test_calls():
    count = _EXAMPLES or 300
    outcomes = _outcomes([(_SEED, index) for index in range(count)])
    assert outcomes["valid", "refused"] == 0
    # Too many refusals would mean that the generator makes nothing worth refusing.
    assert outcomes["valid", "right"] > count / 12
    assert outcomes["near", "refused"] > count / 4
    assert outcomes["near", "right"] + outcomes["near", "accepted"] > count / 20


def test_random_shapes():
    """Batches of 0, planes of one pixel, windows beyond planes, strides beyond windows."""
    count = (_EXAMPLES or 60) // len(_SHAPES)
    ops = [f"Blockdnn{op}" for op in _SHAPES]
    outcomes = _outcomes([(_SEED, index, op, "valid") for index in range(count) for op in ops])
    assert outcomes["valid", "right"] > 0.7 * count * len(ops)
