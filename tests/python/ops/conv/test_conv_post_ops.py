"""Chains behind a convolution, and where sum puts its result."""

import numpy as np
import pytest
import references
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa

# src and dst layouts, input and output channels; test_chains.py has others.
FORMS = [("nChw16c", "nChw16c", 20, 37), ("nChw16c", "nhwc", 20, 37)]


class Case:
    """A convolution in one of the layouts, and its plain result without post-ops."""

    def __init__(self, blocked, draw, form, ksize):
        self.blocked, self.draw = blocked, draw
        self.src_layout, self.dst_layout, self.ic, self.oc = form
        self.x = draw(2, 6, 9, self.ic)
        self.weights = draw(*ksize, self.ic, self.oc)
        self.plain = references.conv(self.x, self.weights)

    def lay_out(self, value):
        return self.blocked.pack(value) if self.dst_layout == "nChw16c" else value

    def run(self, post_ops, args, dst=None):
        src = self.blocked.pack(self.x) if self.src_layout == "nChw16c" else self.x
        ours = bd.ops.conv(
            src,
            self.weights,
            post_ops=post_ops,
            args=args,
            dst=dst,
            src_layout=self.src_layout,
            dst_layout=self.dst_layout,
            how="direct",
            padding="SAME",
        )
        blocked_dst = self.dst_layout == "nChw16c"
        return self.blocked.unpack(ours, self.oc) if blocked_dst else ours.numpy()


@pytest.fixture(params=FORMS, ids=lambda form: "-".join(map(str, form)))
def form(request):
    return request.param


@pytest.fixture
def case(form, integers, blocked):
    return Case(blocked, integers, form, (3, 3))


def test_sum_leaves_a_shared_operand_alone(integers, blocked):
    case = Case(blocked, integers, FORMS[0], (3, 3))
    residual = tf.constant(blocked.pack(integers(*case.plain.shape)))
    before = residual.numpy().copy()
    first = case.run("sum(#0)", [residual])
    np.testing.assert_array_equal(residual, before)
    np.testing.assert_array_equal(case.run("sum(#0)", [residual]), first)


def test_sum_operand_used_twice(integers, blocked):
    case = Case(blocked, integers, FORMS[0], (3, 3))
    residual = integers(*case.plain.shape)
    packed = blocked.pack(residual)

    @tf.function
    def run(packed):
        temporary = packed + 0  # nobody else holds it: sum may work in place
        return bd.ops.conv(
            blocked.pack(case.x),
            case.weights,
            post_ops="sum(#0);binary(mul,tensor,#0)",
            args=[temporary],
            how="direct",
            padding="SAME",
        )

    expected = (case.plain + residual) * residual
    np.testing.assert_array_equal(blocked.unpack(run(packed), case.oc), expected)


@pytest.mark.parametrize("algorithm", ["direct", "winograd"])
@pytest.mark.parametrize("chain", ["sum(#0)", "eltwise(relu);sum(#0,scale=0.5);eltwise(abs)"])
def test_sum_in_place_of_a_temporary(chain, algorithm, form, integers, blocked):
    """Nobody else holds the operand, so that the result may take its memory."""
    case = Case(blocked, integers, form, (3, 3))
    residual = integers(*case.plain.shape)
    src = blocked.pack(case.x) if case.src_layout == "nChw16c" else case.x

    @tf.function
    def run(operand):
        return bd.ops.conv(
            src,
            case.weights,
            post_ops=chain,
            args=[operand * 2],
            channels=case.ic,
            src_layout=case.src_layout,
            dst_layout=case.dst_layout,
            how=algorithm,
            padding="SAME",
        )

    ours = run(tf.constant(case.lay_out(residual)))
    ours = blocked.unpack(ours, case.oc) if case.dst_layout == "nChw16c" else ours
    expected = {
        "sum(#0)": case.plain + 2 * residual,
        "eltwise(relu);sum(#0,scale=0.5);eltwise(abs)": abs(np.maximum(case.plain, 0) + residual),
    }[chain]
    np.testing.assert_allclose(ours, expected, rtol=0, atol=0 if algorithm == "direct" else 2e-3)


def test_tensors_of_every_kind(case):
    """The same operands as TensorFlow's objects, as arrays, and by index beside them."""
    bias, residual = case.draw(case.oc), case.draw(*case.plain.shape)
    gate = case.draw(2, case.oc)
    expected = np.maximum(case.plain + bias + 2 * residual, 0) * gate[:, None, None] - 3
    for wrap in (tf.constant, tf.Variable, np.asarray):
        chain = bd.PostOps().binary("add", wrap(bias)).sum(2, wrap(residual)).eltwise("relu")
        chain = chain.binary("mul", wrap(gate)).binary("sub", wrap(np.float32(3)))
        np.testing.assert_array_equal(case.run(chain, []), expected)
    chain = bd.PostOps().binary("add", "#0@1", "channel").sum(2, case.lay_out(residual))
    chain = chain.eltwise("relu").binary("mul", gate[:, None, None]).binary("sub", "#0", "scalar")
    np.testing.assert_array_equal(case.run(chain, [np.append(np.float32(3), bias)]), expected)


def test_operands_of_unknown_shape(integers, blocked):
    case = Case(blocked, integers, FORMS[0], (3, 3))
    bias, residual = integers(case.oc), integers(*case.plain.shape)
    gate, x = integers(2, case.oc), blocked.pack(case.x)

    @tf.function(
        input_signature=[
            tf.TensorSpec(None),
            tf.TensorSpec([None, case.oc]),
            tf.TensorSpec([None, None, None, case.oc]),
        ]
    )
    def run(bias, gate, residual):
        chain = bd.PostOps().binary("add", bias, "channel").sum(1, residual).binary("mul", gate)
        return bd.ops.conv(x, case.weights, post_ops=chain, how="direct", padding="SAME")

    expected = (case.plain + bias + residual) * gate[:, None, None]
    ours = blocked.unpack(run(bias, gate, residual), case.oc)
    np.testing.assert_array_equal(ours, expected)
    with pytest.raises(tf.errors.InvalidArgumentError, match="the operand must be"):
        run(bias, gate[:1], residual)
    with pytest.raises(
        ValueError, match=r'entry 0 "binary\(add,float32\[...\]\)": the rank of the'
    ):
        tf.function(
            lambda b: bd.ops.conv(
                x, case.weights, post_ops=bd.PostOps().binary("add", b), padding="SAME"
            ),
            input_signature=[tf.TensorSpec(None)],
        )(bias)


def test_a_variable_is_read_when_the_op_runs(integers, blocked):
    case = Case(blocked, integers, FORMS[1], (1, 1))
    bias = tf.Variable(integers(case.oc))
    chain = bd.PostOps().binary("add", bias)
    for _ in range(2):
        np.testing.assert_array_equal(case.run(chain, []), case.plain + bias.numpy())
        bias.assign_add(tf.ones_like(bias))
