"""A bug in a pass is seen: raised where strict, else warned about and kept in the report."""

import json

import numpy as np
import pytest
import tensorflow as tf
import test_random_graphs
import test_structures

from tf_blockdnn.python.calls import optimize
from tf_blockdnn.python.rewriter import Options, optimize_concrete, pipeline

_STEPS = ("capture", "rebuild", "name_algorithms")
_NAMES = [run.__name__ for run in pipeline.PASSES]


class Broken(Exception):
    pass


def _fail(*args):
    raise Broken("a bug")


def _break(monkeypatch, name):
    """Lets the pass, or the step around the passes, of that name raise."""
    if name in _STEPS:
        monkeypatch.setattr(pipeline, name, _fail)
        return
    failing = lambda graph, context: _fail()  # noqa: E731
    failing.__name__ = name
    passes = [failing if run.__name__ == name else run for run in pipeline.PASSES]
    monkeypatch.setattr(pipeline, "PASSES", tuple(passes))


@pytest.fixture
def concrete(weights):
    kernel = weights(3, 3, 16, 16)
    spec = tf.TensorSpec([1, 6, 6, 16])
    return tf.function(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME")).get_concrete_function(spec)


@pytest.mark.parametrize("name", [*_NAMES, *_STEPS])
def test_fuzz_and_structure_tests_see_a_broken_pass(name, weights, image, result_of, monkeypatch):
    _break(monkeypatch, name)
    with pytest.raises(Broken):
        test_random_graphs.check(np.random.default_rng(0).integers)
    with pytest.raises(Broken):
        test_structures.test_keyword_arguments(result_of, weights, image)


@pytest.mark.parametrize("name", [*_NAMES, *_STEPS])
def test_users_get_a_warning_the_original_and_the_traceback(name, concrete, image, monkeypatch):
    _break(monkeypatch, name)
    with pytest.warns(RuntimeWarning, match=f"failed in {name}: Broken: a bug"):
        rewritten = optimize_concrete(concrete, options=Options(strict=False))
    assert rewritten.concrete is concrete
    report = rewritten.report
    assert report.converted == [] and "Broken: a bug" in report.error
    assert "_fail" in report.error
    data = json.loads(report.to_json())
    assert data["error"] == report.error
    ((node, reason),) = data["declined"]
    assert node == concrete.name.decode() and f"failed in {name}" in reason


def test_strict_raises(concrete, monkeypatch):
    _break(monkeypatch, "assign_layout")
    with pytest.raises(Broken):
        optimize(concrete, strict=True)
    monkeypatch.delenv("TF_BLOCKDNN_STRICT")
    with pytest.warns(RuntimeWarning):
        assert optimize(concrete).report.error
    with pytest.raises(Broken):
        optimize(concrete, strict=True)


def test_without_a_failure_there_is_no_error(concrete):
    report = optimize_concrete(concrete).report
    assert report.error is None and json.loads(report.to_json())["error"] is None
