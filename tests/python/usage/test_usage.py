"""Programs of users: whatever they do with an original, its results do the same.

TF_BLOCKDNN_EXAMPLES says how many steps all kinds of originals do together, TF_BLOCKDNN_SEED which.
A failure prints the shortest program that fails. It runs with `state = Usage(kind)` as its first
line and `.values` behind what gives several subjects.
"""

import os

import originals
import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from machine import Usage

_STEPS = int(os.environ.get("TF_BLOCKDNN_EXAMPLES", "240"))
_SEED = int(os.environ.get("TF_BLOCKDNN_SEED", "0"))
_LENGTH = 15  # steps of a program


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("kind", originals.KINDS)
def test_usage(kind):
    run = settings(
        max_examples=max(1, _STEPS // _LENGTH // len(originals.KINDS)),
        stateful_step_count=_LENGTH,
        suppress_health_check=list(HealthCheck),
    )
    steps = set()
    run_state_machine_as_test(seed(_SEED)(lambda: Usage(kind, steps)), settings=run)
    rules = {rule for rule, *_ in steps}
    print(f"{kind}: {len(steps)} different steps by {len(rules)} rules")
    # A program of Hypothesis's own choice would be the same step again and again.
    assert len(rules) > 2 and len(steps) > _LENGTH // 2


@pytest.mark.parametrize("way", ["eager", "in_a_function", "gradient"])
def test_it_sees_other_weights(way):
    state = Usage("function with signature")
    original, result = state.start().values
    originals.fill(state.twin.weights, 5)
    for subject in (original, result):
        subject.weights = None
        with pytest.raises(AssertionError):
            state.call(subject, "position", way)
