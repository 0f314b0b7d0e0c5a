"""The report: complete, readable, JSON."""

import json

import keras
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.ops.records import Record
from tf_blockdnn.python.rewriter import Converted, Report

_SAME = {"strides": 1, "padding": "SAME"}


def _function(weights):
    kernel = weights(3, 3, 16, 32)

    def function(x):
        y = tf.nn.relu(tf.nn.conv2d(x, kernel, **_SAME))
        return tf.math.bessel_i0e(y)

    return function


def test_converted_lists_shape_algorithm_and_details(rewrite, weights):
    report = rewrite(_function(weights), [None, 6, None, 16]).report
    (item,) = report.converted
    assert (item.node, item.op, item.algorithm) == ("Relu", "BlockdnnConv", "auto")
    assert item.shape == (None, 6, None, 32)
    assert item.details.startswith("3x3 same 16->32 ")
    assert item.details.endswith("eltwise(relu)")


def test_reorders_and_declined_nodes_are_named(rewrite, weights):
    report = rewrite(_function(weights), [1, 6, 6, 16]).report
    assert report.reorders == [("x", "nhwc->nChw16c"), ("Relu", "nChw16c->nhwc")]
    assert report.declined == [("bessel_i0e/BesselI0e", "BesselI0e has no blocked form here")]
    assert report.counts() == {"BlockdnnConv": 1, "BlockdnnReorder": 2}
    assert report.reorder_bytes == 4 * 6 * 6 * (16 + 32)


def test_the_summary_says_all_of_it(rewrite, weights):
    report = rewrite(_function(weights), [1, 6, 6, 16]).report
    text = report.summary()
    assert str(report) == text
    assert text.startswith("converted: 100 % of the multiply-adds, in 1 region (")
    assert "1 convolution\n" in text and "reorders: 2, " in text
    assert "nhwc->nChw16c of x, because of the input x" in text
    assert "nChw16c->nhwc of Relu, because of BesselI0e" in text
    assert "left to TensorFlow: 1\n    1 x BesselI0e has no blocked form here" in text
    assert "3x3 same 16->32" not in text and "3x3 same 16->32" in report.summary(all=True)


def test_the_share_of_what_is_converted(rewrite, conv):
    report = rewrite(
        lambda x: (conv(x, 16), tf.matmul(x, x, transpose_b=True)), [2, 8, 8, 16]
    ).report
    assert report.multiply_adds == 2 * 8 * 8 * 16 * (9 * 16)
    assert report.multiply_adds_left == 2 * 8 * 8 * 8 * 16
    assert "converted: 94.7 % of the multiply-adds" in report.summary()


def test_a_large_report_fits_a_screen():
    declined = [(f"model/block/op{i}", f"reason {i % 30}") for i in range(500)]
    report = Report(declined=declined, prefix="model/block/")
    report.declined += [("model/block/last", "a frequent one")] * 40
    report.reorders = [(f"model/block/t{i}", "nhwc->nChw16c") for i in range(90)]
    text = report.summary()
    assert len(text.splitlines()) < 24
    assert "left to TensorFlow: 540\n   40 x a frequent one (last and 39 more)" in text
    assert "x 23 other reasons" in text and "and 84 more" in text
    assert "model/block" not in text
    assert report.summary(all=True).count("op499") == 1


def test_ops_have_names_for_people():
    """Those that graphs may hold: each primitive's, and the recurrent op."""
    classes, known = [Record], set()
    for record in classes:  # It grows by its subclasses.
        classes.extend(record.__subclasses__())
        known.add(record.__dict__.get("op"))
    ops = sorted({op for op in known if isinstance(op, str)} | {"BlockdnnRnn"})
    assert len(ops) > 12
    report = Report(converted=[Converted("x", op, None, "", "") for op in ops])
    assert "Blockdnn" not in report.summary()


def test_an_output_that_only_names_a_tensor_is_not_left(rewrite, conv):
    report = rewrite(lambda x: tf.raw_ops.IdentityN(input=[conv(x, 16)])[0], [1, 8, 8, 16]).report
    assert not report.declined and report.reorder_causes[-1] == "an output of the function"


def test_outputs_that_are_read_in_blocks_say_so(rewrite, conv):
    def stages(x):
        first = conv(x, 16)
        return first, conv(first, 16)

    result = rewrite(stages, [1, 8, 8, 16])
    assert result.report.reorder_causes[1:] == [
        "an output that the next layer also reads in blocks",
        "an output of the function",
    ]


def test_json_can_be_read_back(rewrite, weights):
    report = rewrite(_function(weights), [1, 6, 6, 16]).report
    data = json.loads(report.to_json())
    assert data["counts"] == {"BlockdnnConv": 1, "BlockdnnReorder": 2}
    assert data["converted"][0]["shape"] == [1, 6, 6, 32]
    assert data["declined"] == [["bessel_i0e/BesselI0e", "BesselI0e has no blocked form here"]]
    assert data["seconds"] == report.seconds > 0


def test_inter_op_threads_are_warned_about(rewrite, weights, monkeypatch):
    threading = tf.config.threading
    monkeypatch.setattr(threading, "get_inter_op_parallelism_threads", lambda: 4)
    report = rewrite(_function(weights), [1, 6, 6, 16]).report
    assert "set_inter_op_parallelism_threads(1)" in report.summary()
    monkeypatch.setattr(threading, "get_inter_op_parallelism_threads", lambda: 0)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert not rewrite(_function(weights), [1, 6, 6, 16]).report.warnings


@pytest.mark.parametrize(
    "spec, chosen",
    [
        ([1, 28, 28, 64], "winograd4x4"),
        ([None, 28, 28, 64], "winograd4x4 at batch 1"),
        ([1, None, None, 64], ""),
    ],
)
def test_the_chosen_algorithm_where_sizes_are_known(rewrite, spec, chosen, conv):
    result = rewrite(lambda x: conv(x, 64), spec)
    (item,) = result.report.converted
    assert (item.algorithm, item.chosen) == ("auto", chosen)
    line = f"  algorithms{chosen.removeprefix('winograd4x4')}: 1 winograd4x4\n"
    assert (line in result.report.summary()) == bool(chosen)


def test_what_is_blocked_already_is_told(tmp_path):
    layers = keras.layers
    inputs = keras.Input((8, 8, 16))
    x = layers.Conv2D(16, 3, activation="relu")(inputs)
    x = layers.GlobalAveragePooling2D()(layers.Conv2D(32, 3)(x))
    model = keras.Model(inputs, x)
    converted = bd.optimize(bd.layers.convert(model)).report
    optimised = bd.optimize(model)
    optimised.save(str(tmp_path / "fast"))
    again = bd.optimize(str(tmp_path / "fast")).report
    for report in (converted, again):
        assert not report.converted and report.regions == 1
        headline, line = report.summary().splitlines()[:2]
        assert headline.startswith(
            "converted: nothing new; what is blocked already runs in 1 region ("
        )
        assert line.startswith("blocked already: 2 convolutions, ") and "1 global pooling" in line
        assert report.summary(all=True).count("convolution\n") == 2
    assert not optimised.report.blocked
    assert ["BlockdnnConv"] * 2 == [
        op for _, op in json.loads(converted.to_json())["blocked"] if op == "BlockdnnConv"
    ]


def test_a_function_that_is_blocked_in_part(rewrite, weights, conv):
    def function(x):
        y = bd.ops.conv(
            x, weights(3, 3, 16, 32), src_layout="nhwc", dst_layout="nhwc", padding="SAME"
        )
        return conv(y, 16)

    text = rewrite(function, [1, 8, 8, 16]).report.summary()
    assert "100 % of the other multiply-adds" in text and "already: 1 convolution\n" in text


def test_it_says_what_memory_weights_and_ops_take(tmp_path):
    convs = [keras.layers.Conv2D(256, 3) for _ in range(2)]
    model = keras.Sequential([keras.Input((8, 8, 256)), *convs])
    fast = bd.optimize(model, options=bd.Options(algorithm="winograd"))
    memory, (first, second) = fast.report.memory, fast.report.converted
    weights = 2 * 4 * 9 * 256 * 256
    assert weights <= memory["weights"] < weights + (1 << 17)
    assert memory["packed"] == first.packed + second.packed > weights
    assert memory["scratchpad"] == max(first.scratchpad, second.scratchpad) > 0
    source, between = 4 * 8 * 8 * 256, 4 * 6 * 6 * 256  # The source is reordered.
    assert memory["arena"] == source + first.scratchpad + between
    assert memory["shared"] == 0
    assert "memory: 4.6 MiB of weights, " in fast.report.summary()
    assert json.loads(fast.report.to_json())["memory"] == memory
    fast.save(tmp_path / "fast")
    report = bd.load(tmp_path / "fast").report
    assert report.memory == memory | {"shared": memory["weights"] + memory["packed"]}
    assert "4.6 MiB of weights" in report.summary() and " shared by processes" in report.summary()
