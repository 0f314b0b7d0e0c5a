"""SavedModels that we wrote and somebody edited: loaded and called, they are right or refused."""

import os

import children
import model_case
import pytest

_EXAMPLES = int(os.environ.get("TF_BLOCKDNN_EXAMPLES", "12"))
_SEED = int(os.environ.get("TF_BLOCKDNN_SEED", "0"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("optimised")
    model_case.save(folder)
    return folder


def test_there_is_much_to_edit(folder):
    assert len(model_case.ops(folder)) >= 10


def test_edited_attributes(folder):
    cases = [(str(folder), _SEED, index) for index in range(_EXAMPLES)]
    outcomes = [outcome for _, outcome, _ in children.check(model_case.run, cases)]
    assert outcomes.count("refused/refused") > len(outcomes) / 4
