"""Calls of every op with attributes, shapes and types that nobody should write.

Each is right, or one line that refuses it; none ends its process, takes gigabytes or goes on for
ever. `make fuzz` runs thousands: TF_BLOCKDNN_EXAMPLES says how many, TF_BLOCKDNN_SEED which.
"""

import os
from collections import Counter

import children
import fuzz_case
import pytest
from definitions import OPS
from make_call import definitions
from valid_calls import MAKERS

_EXAMPLES = int(os.environ.get("TF_BLOCKDNN_EXAMPLES", "0"))
_SEED = int(os.environ.get("TF_BLOCKDNN_SEED", "0"))
# A region holds every other op in every second case; the other computes nothing.
_WITHOUT_CALL = {"BlockdnnRegion", "BlockdnnFollow", "BlockdnnSnapshot"}
# test_weights_file.py calls these.
_WITHOUT_CALL |= {"BlockdnnReadWeights", "BlockdnnWeightsVariable", "BlockdnnLoadWeights"}


def _outcomes(cases, workers=2):
    """How often each (kind, outcome) came."""
    results = children.check(fuzz_case.run, cases, workers)
    outcomes = Counter((kind, outcome) for _, kind, outcome, _ in results)
    print(dict(outcomes))
    return outcomes


def test_every_op_has_a_valid_call():
    """An op that the fuzzer cannot call validly would only be called without sense."""
    without = set(definitions()) - set(MAKERS)
    assert without <= _WITHOUT_CALL and len(definitions()) > 20


@pytest.mark.each_isa
@pytest.mark.parametrize("op", MAKERS)
def test_valid_calls(op):
    """Batches of 0, planes of one pixel, windows beyond planes, strides beyond windows."""
    count = (_EXAMPLES or 840) // len(MAKERS)
    outcomes = _outcomes([(_SEED, index, op, "valid") for index in range(count)], workers=1)
    assert outcomes["valid", "refused"] == 0
    assert outcomes["valid", "right"] >= count // 3 or op not in OPS


def test_calls():
    count = _EXAMPLES or 300
    outcomes = _outcomes([(_SEED, index) for index in range(count)])
    assert outcomes["valid", "refused"] == 0
    # Too many refusals would mean that the generator makes nothing worth refusing.
    assert outcomes["valid", "right"] > count / 12
    assert outcomes["near", "refused"] > count / 4
    assert outcomes["near", "right"] + outcomes["near", "accepted"] > count / 20
