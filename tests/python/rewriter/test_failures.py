"""A bug in a pass is seen: raised where strict, else it costs that pass and nothing else."""

import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf
import test_random_graphs
import test_structures
from saved_models import draw_image, save_tiny

from tf_blockdnn.python.rewriter import Options, optimize_concrete
from tf_blockdnn.python.rewriter.passes import order
from tf_blockdnn.python.saved_model import optimize_saved_model
from tf_blockdnn.python.targets import optimize

_STEPS = ("capture", "rebuild", "ask_library")
_NAMES = [run.__name__ for run in order.PASSES]


class Broken(Exception):
    pass


def _fail(*args, **options):
    raise Broken("a bug")


def _break(monkeypatch, name):
    """Lets the pass, or the step around the passes, of that name raise."""
    if name in _STEPS:
        monkeypatch.setattr(f"tf_blockdnn.python.rewriter.rewrite.{name}", _fail)
        return
    failing = lambda graph, context: _fail()  # noqa: E731
    failing.__name__ = name
    passes = [failing if run.__name__ == name else run for run in order.PASSES]
    monkeypatch.setattr(order, "PASSES", tuple(passes))


@pytest.fixture
def concrete(weights):
    kernel = weights(3, 3, 16, 16)
    spec = tf.TensorSpec([1, 6, 6, 16])
    return tf.function(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME")).get_concrete_function(spec)


@pytest.mark.parametrize("name", [_NAMES[0], "assign_layout", _NAMES[-1], *_STEPS])
def test_fuzz_and_structure_tests_see_a_broken_pass(name, image, conv, result_of, monkeypatch):
    _break(monkeypatch, name)
    with pytest.raises(Broken):
        test_random_graphs.check(np.random.default_rng(1).integers)
    with pytest.raises(Broken):
        test_structures.test_keyword_arguments(result_of, image, conv)


@pytest.mark.parametrize("name", _STEPS)
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


@pytest.mark.parametrize("name", _STEPS)
def test_what_stays_as_it_was_is_saved_as_it_was(name, image, monkeypatch, tmp_path):
    """The function, a model around it, and each signature of a SavedModel."""
    tiny = save_tiny(tmp_path / "tiny")
    layers = [keras.Input([6, 6, 16]), keras.layers.Conv2D(16, 3, groups=2), keras.layers.ReLU()]
    model, x = keras.Sequential(layers), image(1, 6, 6, 16)
    _break(monkeypatch, name)
    with pytest.warns(RuntimeWarning, match=f"failed in {name}: Broken: a bug"):
        fast = optimize(model, options=Options(strict=False))
        report = optimize_saved_model(tiny, tmp_path / "out", options=Options(strict=False))
    fast.save(tmp_path / "model")
    (got,) = tf.saved_model.load(tmp_path / "model").signatures["serving_default"](x).values()
    np.testing.assert_array_equal(got, model(x))
    assert report.converted == [] and all(each.error for each in report.signatures.values())
    before, after = (tf.saved_model.load(folder).signatures for folder in (tiny, tmp_path / "out"))
    assert before.keys() == after.keys()
    picture = tf.constant(draw_image())
    np.testing.assert_array_equal(
        after["serving_default"](picture)["features"],
        before["serving_default"](picture)["features"],
    )
    words = tf.constant(["bee", "ant"])
    assert after["read"](image=picture, words=words)["ids"].numpy().tolist() == [1, 0]


@pytest.fixture(scope="module")
def network(shared_weights):
    """Something for each pass to do, inside of a condition, too; and how much of it converts."""
    weights = shared_weights
    layer = keras.layers.LSTM(6)
    layer.build([None, 4, 5])
    weights.variables_made.append(layer)  # A function does not hold it.
    volume, strip, first = weights(3, 3, 3, 16, 16), weights(3, 16, 16), weights(3, 3, 16, 32)
    deep, last, dense = weights(3, 3, 32, 1), weights(1, 1, 32, 32), weights(32, 20)
    scale, shift, inner = weights(32), weights(32), weights(3, 3, 32, 32)
    reduce, expand = weights(1, 1, 32, 8), weights(1, 1, 8, 32)

    def gate(y):
        squeezed = tf.reduce_mean(y, [1, 2], keepdims=True)
        squeezed = tf.nn.relu(tf.nn.conv2d(squeezed, reduce, 1, "SAME"))
        return y * tf.sigmoid(tf.nn.conv2d(squeezed, expand, 1, "SAME"))

    def function(x, steps):
        y = tf.nn.conv3d(x[:, None] * 0.5 + 1.0, volume, [1] * 5, "SAME")[:, 0]
        y = y + tf.nn.conv1d(y[:, 0], strip, 1, "SAME")[:, None]
        y = tf.nn.relu(tf.nn.conv2d(y, first, 1, "SAME") * scale + shift)
        y = tf.nn.depthwise_conv2d(tf.nn.conv2d(y, last, 1, "SAME"), deep, [1] * 4, "SAME")
        y = tf.transpose(tf.nn.relu(tf.transpose(y, [0, 3, 1, 2])), [0, 2, 3, 1])
        y = tf.concat([y, tf.nn.max_pool2d(gate(y), 3, 1, "SAME")], 3)
        y = tf.reshape(y, [-1, 8, 8, 2, 32])
        y = tf.reshape(tf.transpose(y, [0, 1, 2, 4, 3]), [-1, 8, 8, 64])[..., :32]
        y = tf.nn.max_pool2d(tf.nn.conv2d(y, inner, 1, "SAME"), 2, 2, "VALID")
        y = tf.cond(
            tf.reduce_sum(x) > 0.0,
            lambda: tf.nn.elu(tf.nn.conv2d(y, inner, 1, "SAME")),
            lambda: y**3.0,
        )
        y = tf.tensordot(y, last[0, 0], 1)
        return tf.nn.softmax(tf.reduce_mean(y, [1, 2]) @ dense), layer(steps), y[:, :, :, ::2]

    specs = tf.TensorSpec([None, 8, 8, 16]), tf.TensorSpec([None, 4, 5])
    concrete = tf.function(function, autograph=False).get_concrete_function(*specs)
    return concrete, optimize_concrete(concrete).report.counts()


def _fail_after(run):
    """The pass, failing when its work is done."""

    def failing(body, context):
        run(body, context)
        _fail()

    return failing


def _lose(run):
    """The pass, which has lost a node that others read."""

    def failing(body, context):
        run(body, context)
        read = [node for node in body.view if body.view.consumers(node.ref)]
        del body.view._nodes[read[len(read) // 2].name]

    return failing


def _wrongly(edit):
    """how(run) -> the pass, which then edits the graph in a way that the verifier refuses."""

    def how(run):
        def failing(body, context):
            run(body, context)
            edit(body)

        return failing

    return how


def _planned(body):
    return next(node for node in body.view if node.payload and node.payload.takes_steps)


@_wrongly
def _widen(body):
    node = _planned(body)
    channels = node.payload.channels + 16
    node.payload = dataclasses.replace(node.payload, channels=channels)


@_wrongly
def _mistype(body):
    """Reads floats as an integer tensor."""
    node = next(n for n in body.view if n.op == "Const" and n.attr["dtype"].type == 3)
    body.view.set_inputs(_planned(body), {"src": node.ref})


@_wrongly
def _turn_around(body):
    node = _planned(body)
    readers = [reader for reader, _ in body.view.consumers(node.ref)]
    body.view.set_controls(node, [readers[0].name])


@pytest.mark.parametrize(
    "name, how",
    [
        *((name, _fail_after) for name in _NAMES),
        *((name, _widen) for name in ("lift_convolutions", "place_reorders")),
        *((name, _mistype) for name in ("fuse_post_ops", "join_in_place")),
        *((name, _turn_around) for name in ("find_followers", "join_in_place")),
        *((name, _lose) for name in ("simplify", "assign_layout", "place_reorders", "fuse_pool")),
    ],
)
def test_a_failing_pass_costs_itself(name, how, network, image, monkeypatch):
    """All that it did is undone, in the body of the condition, too, and the others run."""
    original, whole = network
    (broken,) = (run for run in order.PASSES if run.__name__ == name)
    failing = how(broken)
    failing.__name__ = name
    passes = (failing if run is broken else run for run in order.PASSES)
    monkeypatch.setattr(order, "PASSES", tuple(passes))
    with pytest.warns(RuntimeWarning, match=f"the pass {name} failed and was left out"):
        rewritten = optimize_concrete(original, options=Options(strict=False))
    report = rewritten.report
    bodies = 5 if name == "replace_loops" else 3  # with those of the loop
    assert sum(f"the pass {name} failed" in line for line in report.warnings) == bodies
    assert f"the pass {name} failed" in report.summary() and report.error
    assert rewritten.concrete is not original
    lost = {
        "account": sum(whole.values()),  # The report has nothing to count by.
        # What reads and writes plain tensors stays.
        "place_reorders": sum(whole.values()) - 3,
        "lift_convolutions": sum(whole.values()) - 6,
    }
    counts = report.counts()
    assert sum(counts.values()) >= sum(whole.values()) - lost.get(name, 8), (whole, counts)
    inputs = image(2, 8, 8, 16), image(2, 4, 5)
    for sign in (1.0, -1.0):
        wanted, got = (f(inputs[0] + sign, inputs[1]) for f in (original, rewritten.concrete))
        for old, new in zip(wanted, got, strict=True):
            np.testing.assert_allclose(new, old, atol=2e-5 * np.abs(old).max())


def test_strict_raises(concrete, monkeypatch):
    _break(monkeypatch, "assign_layout")
    with pytest.raises(Broken):
        optimize(concrete, options=Options(strict=True))
    monkeypatch.delenv("TF_BLOCKDNN_STRICT")
    with pytest.warns(RuntimeWarning):
        assert optimize(concrete).report.error
    with pytest.raises(Broken):
        optimize(concrete, options=Options(strict=True))


def test_without_a_failure_there_is_no_error(concrete):
    report = optimize_concrete(concrete).report
    assert report.error is None and json.loads(report.to_json())["error"] is None
