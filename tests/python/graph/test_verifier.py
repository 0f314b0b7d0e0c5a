"""What the verifier of the passes refuses, and what it lets go."""

import dataclasses

import pytest
import tensorflow as tf

from tf_blockdnn.python.errors import VerificationError
from tf_blockdnn.python.graph import (
    UINT8,
    Format,
    GraphView,
    Node,
    Ref,
    Verifier,
    check_edges,
    read,
    written,
)
from tf_blockdnn.python.rewriter.capture import capture
from tf_blockdnn.python.rewriter.context import Context
from tf_blockdnn.python.rewriter.followers import Followers
from tf_blockdnn.python.rewriter.passes.order import PASSES

FLOAT, INT = tf.float32.as_datatype_enum, tf.int32.as_datatype_enum


@pytest.fixture
def body(weights):
    """conv -> relu -> pool -> conv -> mean, and the shape of an input."""
    first, second = weights(3, 3, 16, 32), weights(1, 1, 32, 24)

    def function(x):
        y = tf.nn.relu(tf.nn.conv2d(x, first, 1, "SAME", name="first"))
        y = tf.nn.max_pool2d(y, 3, 2, "SAME", name="pool")
        y = tf.nn.conv2d(y, second, 1, "SAME", name="second")
        return tf.reduce_mean(y, [1, 2], name="mean"), tf.shape(x, name="sizes")

    spec = tf.TensorSpec([None, 8, 8, 16])
    return capture(tf.function(function, autograph=False).get_concrete_function(spec)).main


@pytest.fixture
def planned(body):
    """The same after all passes."""
    context = Context(followers=Followers(body, looks=False))
    for run in PASSES:
        context = context.after(run, body)
    return body


def only(body, op):
    """The one node of that op."""
    (node,) = (node for node in body.view if node.op == op)
    return node


def change(node, **attributes):
    node.payload = dataclasses.replace(node.payload, **attributes)


def refused(body, match, edit, laid_out=True):
    verifier = Verifier(body)
    verifier.check(laid_out)
    edit()
    with pytest.raises(VerificationError, match=match):
        verifier.check(laid_out)


def test_formats_of_edges(body):
    view = body.view
    first = next(node for node in view if node.op == "Conv2D" and "first" in node.name)
    assert written(body, first.ref) == Format(FLOAT, "nhwc", 32, 4)
    shape = only(body, "Shape")
    assert written(body, shape.ref) == Format(INT, "nhwc", 4, 1)
    assert read(first) == [Format(FLOAT, "nhwc")] * 2
    assert read(shape) == [Format(FLOAT, None)]  # in any layout


def test_formats_of_our_edges(planned):
    pool = only(planned, "BlockdnnPool")
    assert written(planned, pool.ref) == Format(FLOAT, "nChw16c", 32, 4)
    assert read(pool) == [Format(FLOAT, "nChw16c", 32, 4)]


def test_what_is_not_known_is_no_conflict():
    known = Format(FLOAT, "nhwc", 8, 4)
    assert known.conflict(Format()) is None and Format().conflict(known) is None
    assert known.conflict(known) is None
    assert known.conflict(Format(channels=9)) == "channels 8, not 9"
    assert Format(rank=4).conflict(Format(rank=3)) == "rank 4, not 3"


def test_the_graph_of_a_network_is_right(body, planned):
    verifier = Verifier(planned)
    verifier.check(True)
    for node in planned.view:  # as if all of it were new
        planned.view.set_controls(node, [*node.controls])
    verifier._known.clear()
    verifier.check(True)


def test_channels_of_an_edge(planned):
    pool = only(planned, "BlockdnnPool")
    refused(planned, r"reads .*channels 32, not 48", lambda: change(pool, channels=48))


def test_channels_of_weights(planned):
    conv = [node for node in planned.view if node.op == "BlockdnnConv"][-1]
    narrow = conv.payload.weights[..., :8]
    refused(planned, r"weights \[1, 1, 32, 8\], not 32->24", lambda: change(conv, weights=narrow))


def test_a_part_beyond_the_whole(planned):
    pool = only(planned, "BlockdnnPool")
    refused(planned, "32 channels from 16 on are no", lambda: change(pool, dst_part=(16, 40)))


def test_a_type(body):
    mean = only(body, "Mean")
    sizes = only(body, "Shape")
    refused(
        body,
        rf"{mean.name} \(Mean\) reads {sizes.name}, which has dtype int32, not float32",
        lambda: body.view.set_inputs(mean, [sizes.ref, mean.inputs[1]]),
    )


def test_a_type_that_our_op_takes(planned):
    pool, sizes = only(planned, "BlockdnnPool"), only(planned, "Shape")
    refused(
        planned, "int32, not float32", lambda: planned.view.set_inputs(pool, {"src": sizes.ref})
    )


def test_bytes_that_stand_for_other_numbers(planned):
    pool = only(planned, "BlockdnnPool")
    conv = [node for node in planned.view if node.op == "BlockdnnConv"][-1]
    change(pool, dtype=UINT8, dst_quantization=(0.5, 3))
    with pytest.raises(VerificationError, match="dtype uint8, not float32"):
        Verifier(planned)._check_node(conv, True)
    change(conv, src_dtype=UINT8, src_quantization=(0.5, 3))
    refused(
        planned,
        r"quantization \(0.5, 3\), not \(0.25, 3\)",
        lambda: change(conv, src_quantization=(0.25, 3)),
    )


def test_bytes_without_a_quantization(planned):
    pool = only(planned, "BlockdnnPool")
    refused(planned, "writes uint8 with quantization", lambda: change(pool, dtype=UINT8))


def test_a_blocked_tensor_in_a_plain_input(planned):
    mean = only(planned, "BlockdnnGlobalPool")
    conv = next(node for node in planned.view if node.op == "BlockdnnConv")

    def edit():
        relu = Node("plain", "Relu", [conv.ref], proto=_proto("Relu"))
        planned.view.add(relu)
        planned.view.set_controls(mean, [relu.name])

    refused(planned, r"plain \(Relu\) reads .*layout nChw16c, not nhwc", edit)


def test_a_plain_tensor_in_a_blocked_input(planned):
    pool = only(planned, "BlockdnnPool")
    refused(
        planned,
        "layout nhwc, not nChw16c",
        lambda: planned.view.set_inputs(pool, {"src": Ref("x")}),
    )


def test_layouts_are_plans_until_they_are_placed(planned):
    conv = next(node for node in planned.view if node.op == "BlockdnnConv")
    verifier = Verifier(planned)
    planned.view.add(Node("plain", "Relu", [conv.ref], proto=_proto("Relu")))
    verifier.check(False)


def test_an_input_that_is_gone(body):
    pool = only(body, "MaxPool")
    refused(
        body, "reads nowhere, which is gone", lambda: body.view.set_inputs(pool, [Ref("nowhere")])
    )


def test_an_output_of_a_node_that_has_none(body):
    pool = only(body, "MaxPool")
    wrong = pool.inputs[0]._replace(port=3)
    refused(body, "which has 1 outputs", lambda: body.view.set_inputs(pool, [wrong]))


@pytest.mark.parametrize("by", ["data", "control"])
def test_a_cycle(body, by):
    relu, mean = only(body, "Relu"), only(body, "Mean")

    def edit():
        if by == "control":
            body.view.set_controls(relu, [mean.name])
        else:
            pool = only(body, "MaxPool")
            body.view.set_inputs(relu, [pool.ref])

    refused(body, "waits for itself", edit)


def test_another_shape_under_the_same_name(body):
    pool = only(body, "MaxPool")
    refused(
        body,
        r"\(Relu\) was .*4, 4, 32\), became .*8, 8, 32\)",
        lambda: body.view.replace(Node(pool.name, "Relu", pool.inputs, proto=_proto("Relu"))),
    )


@pytest.mark.parametrize(
    "outputs, match",
    [
        (["second", "sizes"], "rank 4, not 2"),
        (["sizes", "sizes"], "dtype int32, not float32"),
        (["mean"], "2 outputs became 1"),
    ],
)
def test_outputs_keep_rank_type_and_number(body, outputs, match):
    verifier = Verifier(body)
    body.view.fetches = [Ref(name) for name in outputs]
    with pytest.raises(VerificationError, match=match):
        verifier.check(False)


def test_an_output_that_is_gone(body):
    def edit():
        body.view.fetches = [Ref("nowhere"), *body.view.fetches[1:]]

    refused(body, "the output nowhere is gone", edit)


def test_an_output_in_blocks(planned):
    pool = only(planned, "BlockdnnPool").ref
    view = planned.view
    first = view.fetches[0]

    def edit():
        view.fetches = [pool, *view.fetches[1:]]

    assert written(planned, first).layout == "nhwc"
    refused(planned, "layout nChw16c, not nhwc", edit)


def _proto(op):
    proto = tf.compat.v1.NodeDef(op=op)
    proto.attr["T"].type = FLOAT
    return proto


def test_a_loop_of_version_1_may_lead_back():
    with tf.Graph().as_default() as graph:
        tf.compat.v1.disable_control_flow_v2()
        out = tf.compat.v1.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
        tf.compat.v1.enable_control_flow_v2()
    view = GraphView(graph.as_graph_def(), [Ref.parse(out.name)])
    assert any(node.op == "NextIteration" for node in view)
    check_edges(view)
    (merge,) = (node for node in view if node.op == "Merge")
    view.set_inputs(merge, [Ref.parse("while/add")] * 2)
    with pytest.raises(VerificationError, match="waits for itself"):
        check_edges(view)
