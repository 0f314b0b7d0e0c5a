"""Which layers stay float32: the search, by losses that are known, and in a network."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.rewriter.precision.search import fewest, worst_first


def test_layers_come_in_the_order_of_what_they_lose():
    losses = dict(zip("abcdefg", [3.0, 0.5, 0.0, 40.0, 0.25, 7.0, 1.0], strict=True))
    found = list(worst_first("abcdefg", lambda part: sum(losses[name] for name in part)))
    assert [name for name, _ in found] == sorted(losses, key=losses.get, reverse=True)
    assert dict(found) == pytest.approx(losses)


@pytest.mark.parametrize(("least", "most_tried"), [(50, 7), (5, 13)])
def test_few_are_tried_where_one_loses_most(least, most_tried):
    tried = []

    def lost_by(part):
        tried.append(part)
        return 100.0 * (37 in part) + 10.0 * (5 in part) + 0.01 * len(part)

    found = [name for name, _ in worst_first(range(64), lost_by, least)]
    assert found == [37, 5][: len(found)] and len(found) == 1 + (least < 10)
    assert len(tried) <= most_tried


def test_infinite_losses_are_found():
    found = worst_first(range(8), lambda part: np.inf if {1, 6} & set(part) else 1.0)
    assert {next(found)[0], next(found)[0]} == {1, 6}


def test_without_layers_the_search_ends():
    assert list(worst_first([], lambda part: np.inf)) == []


@pytest.mark.parametrize("needed", range(1, 8))
def test_as_few_are_left_as_will_do(needed):
    """And all of them where none are enough."""
    assert fewest(iter(range(6)), list, lambda left: len(left) >= needed) == list(range(6))[:needed]


def contrast_of(bright, layers: int):
    """A network whose first depthwise layer takes the differences of large numbers."""
    rng = np.random.default_rng(0)
    filters = rng.standard_normal((3, 3, 32, 1)).astype("float32")
    filters -= filters.mean(axis=(0, 1))
    mixing = [rng.standard_normal((1, 1, 32, 32)) / np.sqrt(32) for _ in range(layers)]

    def network(x):
        x = tf.nn.conv2d(x, mixing[0].astype("float32"), 1, "SAME") + bright
        x = tf.nn.depthwise_conv2d(x, filters, [1] * 4, "VALID")
        for weights in mixing[1:]:
            x = tf.nn.conv2d(x, weights.astype("float32"), 1, "SAME")
        return x

    return tf.function(network, input_signature=[tf.TensorSpec([None, 12, 12, 32])])


@pytest.mark.parametrize(("bright", "layers", "is_kept"), [(64, 16, 1), (0, 16, 0), (64, 8, 0)])
def test_the_layer_that_makes_most_of_the_loss_stays_float32(bright, layers, is_kept):
    """Where it does, and layers are many."""
    data = np.random.default_rng(1).standard_normal((16, 12, 12, 32)).astype("float32")
    function = contrast_of(np.float32(bright), layers)
    found = bd.optimize(
        function, precision="bf16", calibration=data, options=bd.Options(strict=True)
    ).report.precision
    kept = [layer.node for layer in found.layers if layer.dtype == "float32"]
    assert kept == ["depthwise"] * is_kept
    assert (found.outputs[0].snr > 30) == (is_kept or not bright)


def two_products(x):
    weights = np.random.default_rng(0).standard_normal((2, 64, 64)).astype("float32")
    return tf.tanh(x @ weights[0]) @ weights[1]


@pytest.mark.parametrize("precision", ["int8", "bf16"])
def test_a_loss_that_float32_has_too_is_a_warning(precision):
    """And no search: nothing in it can be lowered."""
    function = tf.function(two_products, input_signature=[tf.TensorSpec([None, 64])])
    data = np.random.default_rng(1).standard_normal((16, 64)).astype("float32")
    options = {"precision": precision, "calibration": data, "max_loss": 1e-9}
    with pytest.warns(RuntimeWarning, match="off by more than 1e-09 .* in float32, too"):
        report = bd.optimize(function, **options, options=bd.Options(strict=True)).report
    assert report.precision.count == 0 and report.count("BlockdnnInnerProduct") == 2
    assert any("changed nothing" in warning for warning in report.warnings)
