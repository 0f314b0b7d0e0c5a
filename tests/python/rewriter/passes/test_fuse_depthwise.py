"""1x1 convolutions and the depthwise ones that alone read them become one op."""

import pytest
import tensorflow as tf
from converts import converts
from graph_nodes import all_nodes

import tf_blockdnn as bd

_SAME = dict(strides=1, padding="SAME")


def block(weights, *, ic=16, oc=48, kernel=3, strides=(1, 1), between=tf.nn.relu6):
    """An inverted residual block without its end; `between` is applied to the first result."""
    expand, filters = weights(1, 1, ic, oc), weights(kernel, kernel, oc, 1)
    shift, gain = weights(oc), weights(oc, low=0.5, high=2.0)

    def function(x):
        y = between(tf.nn.conv2d(x, expand, **_SAME) * gain + shift)
        y = tf.nn.depthwise_conv2d(y, filters, [1, *strides, 1], "SAME")
        return tf.nn.relu6(y * gain - shift)

    return function


@pytest.mark.parametrize("kernel, strides", [(3, (1, 1)), (3, (2, 2)), (5, (1, 1)), (5, (2, 2))])
def test_a_block_becomes_one_op(kernel, strides, rewrite, weights, image):
    function = block(weights, kernel=kernel, strides=strides)
    result = rewrite(function, [None, 14, 15, 16])
    assert result.blockdnn == {"ConvDepthwise": 1, "Reorder": 2}
    chain = ["binary(add,channel);eltwise(relu6)"]
    assert result.post_ops("BlockdnnConvDepthwise") == chain
    (node,) = [n for n in result.nodes if "ConvDepthwise" in n.op]
    assert node.attr["depthwise_post_ops"].s.decode().startswith("binary(add,channel,#0@")
    for batch in (1, 3):
        result.assert_same(image(batch, 14, 15, 16))


def test_the_report_names_both(rewrite, weights):
    report = rewrite(block(weights), [None, 14, 14, 16]).report
    (item,) = report.converted
    assert item.op == "BlockdnnConvDepthwise" and item.shape == (None, 14, 14, 48)
    assert item.details.startswith("1x1 same 16->48")
    assert "; then 3x3 same 48->48 groups 48" in item.details
    assert item.chosen == "fused at batch 1"
    assert report.counts() == {"BlockdnnConvDepthwise": 1, "BlockdnnReorder": 2}
    assert "algorithms at batch 1: 1 fused" in report.summary()


@converts([1, 9, 9, 32], {"ConvDepthwise": 1, "Reorder": 2})
def test_the_second_chain_keeps_its_tensors(x, weights):
    """A residual after the depthwise convolution."""
    inner = block(weights, ic=32, oc=32)
    return tf.nn.relu(inner(x) + x)


@converts([1, 8, 8, 16], some={"Conv": 2, "ConvDepthwise": 0})
def test_what_has_another_reader_stays_apart(x, weights):
    kept = []
    inner = block(weights, between=lambda y: kept.append(tf.nn.relu(y)) or kept[-1])
    kept.clear()
    return inner(x), kept[0]


def test_what_is_not_an_expansion_stays_apart(rewrite, weights, image, conv):
    """3x3, strided 1x1, a chain that reads a tensor; a channel multiplier."""
    depthwise = weights(3, 3, 32, 1)

    def after(y, filters=depthwise):
        return tf.nn.depthwise_conv2d(y, filters, [1, 1, 1, 1], "SAME")

    functions = [
        lambda x: after(conv(x, 32)),
        lambda x: after(conv(x, 32, 1, 2)),
        lambda x: after(conv(x, 32, 1) + conv(x, 32, 1)),
        lambda x: after(conv(x, 32, 1), weights(3, 3, 32, 2)),
    ]
    for function in functions:
        result = rewrite(function, [1, 8, 8, 16])
        assert "ConvDepthwise" not in result.blockdnn and result.blockdnn["Conv"] >= 2
        result.assert_same(image(1, 8, 8, 16))


def test_shared_weights_are_stored_once(rewrite, weights):
    inner = block(weights, ic=48)
    result = rewrite(lambda x: inner(inner(x)), [1, 7, 7, 48])
    assert result.blockdnn["ConvDepthwise"] == 2
    nodes = [n for n in result.nodes if "ConvDepthwise" in n.op]
    first, second = ({k: str(v) for k, v in node.attr.items()} for node in nodes)
    assert first["depthwise_weights_offset"] != first["weights_offset"]
    assert len({node.input[1] for node in nodes}) == 1
    assert first.keys() == second.keys()


@pytest.mark.parametrize(
    ("asked", "got"), [("direct", "direct"), ("winograd", "direct"), ("paired", "paired")]
)
def test_the_algorithm_is_that_of_the_1x1(asked, got, weights):
    function = tf.function(block(weights), input_signature=[tf.TensorSpec([None, 12, 12, 16])])
    nodes = all_nodes(bd.optimize(function, options=bd.Options(algorithm=asked)).concrete)
    (node,) = (node for node in nodes if node.op == "BlockdnnConvDepthwise")
    assert node.attr["algorithm"].s.decode() == got
