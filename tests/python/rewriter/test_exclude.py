"""`exclude` and `only`: what the caller wants left alone stays, with a reason."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn import Options
from tf_blockdnn.python.saved_model import rewrite_saved_model
from tf_blockdnn.python.targets import Settings, optimize

_SAME = {"strides": 1, "padding": "SAME"}


@pytest.fixture
def function(weights):
    kernels = [weights(3, 3, 16, 16) for _ in range(3)]

    def build(x):
        for i, kernel in enumerate(kernels):
            with tf.name_scope(f"block{i}/conv"):
                x = tf.nn.relu(tf.nn.conv2d(x, kernel, **_SAME))
        return x

    return build


def _converted(result):
    return sorted(item.node.split("/")[0] for item in result.report.converted)


@pytest.mark.parametrize(
    "options, converted",
    [
        ({}, [0, 1, 2]),
        ({"exclude": ("block1/conv/Conv2D",)}, [0, 2]),
        ({"exclude": ("block1",)}, [0, 2]),
        ({"exclude": ("block[01]",)}, [2]),
        ({"exclude": ("block", "conv", "lock1")}, [0, 1, 2]),
        ({"only": ("block1", "block2/conv")}, [1, 2]),
        ({"only": ("block.*",), "exclude": ("block2",)}, [0, 1]),
        ({"only": ()}, []),
    ],
)
def test_what_is_converted(options, converted, function, rewrite):
    result = rewrite(function, [1, 6, 6, 16], options=Options(**options))
    assert _converted(result) == [f"block{i}" for i in converted]
    reasons = [reason for node, reason in result.report.declined if node.endswith("Conv2D")]
    assert len(reasons) == 3 - len(converted)
    assert all("excluded by" in r or "`only`" in r for r in reasons)


def test_a_name_that_nothing_has_is_in_the_warnings(function, rewrite):
    options = Options(exclude=iter(["block1", "blok2"]), only=("block0", "block[12]", "head"))
    warnings = rewrite(function, [1, 6, 6, 16], options=options).report.warnings
    assert [w.split(";")[0] for w in warnings if "matches" in w] == [
        "exclude: no node or layer matches 'blok2'",
        "only: no node or layer matches 'head'",
    ]


def test_matrix_products_and_nodes_in_loops_too(rewrite, weights, conv):
    def function(x):
        body = lambda i, y: (i + 1, conv(y, 16))  # noqa: E731
        y = tf.while_loop(lambda i, y: i < 2, body, [0, x])[1]
        return tf.matmul(tf.reduce_mean(y, [1, 2]), weights(16, 16), name="head")

    both = rewrite(function, [1, 6, 6, 16]).blockdnn
    assert both["Conv"] == 1 and both["InnerProduct"] == 1
    left = rewrite(function, [1, 6, 6, 16], options=Options(exclude=("head",)))
    assert "InnerProduct" not in left.blockdnn and "excluded" in left.reason("head")
    left = rewrite(function, [1, 6, 6, 16], options=Options(exclude=("while/body",)))
    assert "Conv" not in left.blockdnn


def test_optimize_passes_them_on(function):
    spec = [tf.TensorSpec([1, 6, 6, 16])]
    fast = optimize(tf.function(function), input_signature=spec, exclude=["block0"])
    assert fast.report.count("BlockdnnConv") == 2
    fast = optimize(
        tf.function(function), input_signature=spec, options=bd.Options(only=["block0"])
    )
    assert fast.report.count("BlockdnnConv") == 1


def test_what_is_no_expression_is_refused():
    with pytest.raises(ValueError, match=r"not a regular expression: '\('"):
        Options(exclude=("(",))
    with pytest.raises(ValueError, match=r"exclude must be a list of names, such as \['stem'\]"):
        Options(exclude="stem")
    with pytest.raises(ValueError, match="only must be a list of names, but 3 is none"):
        Options(only=["stem", 3])


def test_options_are_checked_before_anything_is_read(function):
    with pytest.raises(ValueError, match='weights="live" is for a model in memory'):
        rewrite_saved_model("nowhere", Settings(Options(weights="live")))
    with pytest.raises(ValueError, match="memory must be one of"):
        bd.optimize_saved_model("nowhere", "out", options=bd.Options(memory="high"))


def test_names_win_over_an_object(function):
    spec, direct = [tf.TensorSpec([1, 6, 6, 16])], Options(algorithm="direct", exclude=["block0"])
    fast = optimize(tf.function(function), input_signature=spec, options=direct, exclude=())
    assert {item.algorithm for item in fast.report.converted} == {"direct"}
    assert fast.report.count("BlockdnnConv") == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"calibration": np.zeros((4, 1, 6, 6, 16))}, "calibration changes nothing without a prec"),
        ({"example": np.zeros((1, 6, 6, 16))}, "example changes nothing: no size is open, and not"),
        ({"exclude": ["nothere"]}, "exclude: no node or layer matches 'nothere'"),
    ],
)
def test_what_nothing_asks_for_is_a_warning(function, arguments, words):
    specs = [tf.TensorSpec([1, 6, 6, 16])]
    with pytest.warns(RuntimeWarning) as caught:
        report = optimize(tf.function(function), input_signature=specs, **arguments).report
    (warning,) = (w for w in report.warnings if "inter-op" not in w)
    assert warning.startswith(words) and "\n" not in warning
    assert [(str(w.message), w.filename) for w in caught] == [(warning, __file__)]


def test_what_something_asks_for_is_none(function, recwarn):
    size = [tf.TensorSpec([1, 6, 6, 16])]
    data = np.zeros((1, 6, 6, 16), np.float32)
    options = {"precision": "bf16-weights", "calibration": [data], "verify": 0.2}
    optimize(tf.function(function), input_signature=size, **options)
    optimize(
        tf.function(function),
        input_signature=size,
        options=bd.Options(autotune=True),
        example=[data],
    )
    assert not [w for w in recwarn if "changes nothing" in str(w.message)]


@pytest.mark.parametrize("name", ["block1", "block1/conv/Conv2D", "block[1]/conv"])
def test_names_are_those_that_a_report_shows(name, function, rewrite):
    """Without the scopes that a SavedModel, or a model, puts before each of them."""

    def scoped(x):
        with tf.name_scope("StatefulPartitionedCall/functional"):
            return function(x)

    report = rewrite(scoped, [1, 6, 6, 16], options=Options(exclude=(name,))).report
    excluded = [node for node, reason in report.declined if "excluded by" in reason]
    left = [node for node in excluded if node.endswith("Conv2D")]
    assert left == ["StatefulPartitionedCall/functional/block1/conv/Conv2D"]
    assert "  block1/conv/Conv2D  " in report.summary(all=True)
    assert not [warning for warning in report.warnings if "matches" in warning]
    only = rewrite(scoped, [1, 6, 6, 16], options=Options(only=(name,))).report
    (converted,) = only.converted
    assert converted.node.startswith("StatefulPartitionedCall/functional/block1/conv/")
