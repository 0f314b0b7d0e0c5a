"""Temporary memory: its two modes, and its size before running."""

import ctypes

import numpy as np
import pytest
import tensorflow as tf
from scratchpad_cases import CASES, MODES, plan, run

import tf_blockdnn as bd
from tf_blockdnn.python.native import CList, c_call, library


@pytest.mark.parametrize("name", CASES)
def test_the_mode_decides_nothing_but_who_provides(name):
    user, kept = (plan(name, how=mode) for mode in MODES)
    assert user.algorithm.startswith(CASES[name][3])
    assert user.pieces == kept.pieces and user.blocking == kept.blocking
    assert user.scratchpad == sum(piece.bytes for piece in user.pieces.values())
    assert (user.kept, kept.kept) == (0, user.scratchpad) and kept.scratchpad == user.scratchpad
    for _ in range(3):  # fresh memory, then memory that held another run's values
        np.testing.assert_array_equal(run(name, how="user"), run(name, how="library"))


def test_some_take_nothing():
    sizes = {name: plan(name).scratchpad for name in CASES}
    nothing = {"in place", "depthwise", "many rows"}
    if not bd.info()["isa"].startswith("avx512"):  # which pairs; it is "in place" elsewhere
        nothing.add("paired")
    assert {name for name, size in sizes.items() if size == 0} == nothing
    assert plan("few rows").packed_weights == 0  # read where they are
    assert plan("many rows").packed_weights == 4 * 70 * 64
    for op, shape, arguments in [
        ("reorder", (1, 9, 9, 20), {"src": "nhwc", "dst": "nChw16c"}),
        ("pool", (1, 2, 9, 9, 16), {"kind": "max", "ksize": 3, "channels": 20, "padding": "VALID"}),
        ("concat", [(1, 2, 9, 9, 16), (1, 1, 9, 9, 16)], {"channels": [20, 16]}),
    ]:
        nothing = bd.ops.memory_plan(op, shape, **arguments)
        assert (nothing.scratchpad, nothing.packed_weights, nothing.scratchpad_mode) == (0, 0, "")


def test_every_op_can_be_asked():
    with pytest.raises(ValueError, match="op must be one of") as error:
        bd.ops.memory_plan("none", (1,))
    for op in set(bd.ops.__all__) - {"memory_plan"}:
        assert op in str(error.value)
    shuffled = bd.ops.memory_plan("shuffle", tf.TensorSpec((2, 12), tf.int32), axis=1, group=3)
    assert shuffled.scratchpad == 0


LSTM = [(2, 9, 8), (8, 4 * 20), (20, 4 * 20), (4 * 20,)]


def test_recurrent_layers():
    """States, sums and the bias in the order of the panels; batch and steps at once decide."""
    plan = bd.ops.memory_plan("rnn", *LSTM, cell="lstm", threads=1)
    units = plan.blocking["units"]
    blocks = -(-20 // units)
    line = 64 // 4
    expected = {
        "sums": blocks * plan.blocking["steps_at_once"] * 2 * 4 * units,
        "hidden": 2 * 2 * 20,
        "cell": blocks * 2 * units,
        "modes": -(-9 * 2 // 64) * line,
        "bias": blocks * 4 * units,
    }
    # Where the CPU gains from multiplying in pairs: all 9 steps of 2 rows, whose 8 inputs are half
    # a block, and two terms for each column of both matrices.
    pairs = 2 if "rows in pairs" in plan.pieces else 0
    if pairs:
        expected |= {
            "rows in pairs": 19 * 16,
            "terms": 4 * 18,
            "apart": 18 // 4 + 1,  # a byte each
            "scale": 16,
        }
    assert {name: piece.bytes for name, piece in plan.pieces.items()} == {
        name: 4 * (-(-floats // line) * line) for name, floats in expected.items()
    }
    assert plan.scratchpad == sum(piece.bytes for piece in plan.pieces.values())
    # 20 units are two panels of 16.
    assert plan.packed_weights == 4 * 2 * 16 * 4 * (8 + 20 + 2 * pairs)
    assert plan.scratchpad_mode == "" and plan.algorithm == ""
    assert bd.ops.memory_plan("rnn", *LSTM, cell="lstm").kept == 0
    # Of a longer sequence the sums of some steps at a time, 4 MB.
    longer = bd.ops.memory_plan("rnn", (2, 50000, 8), *LSTM[1:], cell="lstm").scratchpad
    assert plan.scratchpad < longer < 5 << 20 < 2 * 50000 * 80 * 4
    with pytest.raises(ValueError, match="recurrent_kernel"):
        bd.ops.memory_plan("rnn", *LSTM[:2], (21, 80), cell="lstm")


def test_packed_matrices():
    plain = bd.ops.memory_plan("packed_matmul", (6, 5), (5, 40))
    assert (plain.scratchpad, plain.packed_weights) == (0, 4 * 5 * 48)
    turned = bd.ops.memory_plan("packed_matmul", (5, 6), (5, 40), transpose_a=True)
    assert (turned.scratchpad, list(turned.pieces)) == (128, ["rows"])
    assert turned.packed_weights == plain.packed_weights


def test_no_elements():
    """Nothing to compute needs nothing, in either mode."""
    for mode in MODES:
        arguments = {"padding": "SAME", "how": f"direct {mode}"}
        assert (
            bd.ops.memory_plan("conv", (0, 2, 9, 11, 16), (3, 3, 20, 40), **arguments).scratchpad
            == 0
        )
        empty = bd.ops.conv(tf.zeros((0, 2, 9, 11, 16)), tf.zeros((3, 3, 20, 40)), **arguments)
        assert empty.shape == (0, 3, 9, 11, 16)


def test_asked_while_a_function_is_traced():
    sizes = []

    @tf.function
    def convolve(x, weights):
        sizes.append(
            bd.ops.memory_plan("conv", x, weights, how="direct", padding="SAME").scratchpad
        )
        return bd.ops.conv(x, weights, how="direct", padding="SAME")

    op, shapes, arguments, _ = CASES["strip"]
    convolve(*map(tf.zeros, shapes))
    assert sizes == [bd.ops.memory_plan(op, *shapes, **arguments).scratchpad]


def test_the_result_before():
    """The operand that `dst=` brings may need a reorder; the plan is the convolution's."""
    op, shapes, arguments, _ = CASES["strip"]
    arguments = arguments | {"post_ops": bd.PostOps().sum()}
    plain = tf.TensorSpec((1, 9, 11, 40))
    assert bd.ops.memory_plan(op, *shapes, dst=plain, **arguments) == plan("strip")


def test_threads_to_plan_for():
    one, four = (plan("strip", threads=n).pieces["strip"] for n in (1, 4))
    assert (one.copies, four.copies) == (1, 4)


BAD = {
    "op must be one of attention, concat, conv, .*'cony'": lambda: bd.ops.memory_plan("cony", (1,)),
    "how: 'User' is none of the words auto, direct, .*constant, user, library": lambda: run(
        "strip", how="User"
    ),
    "how: None is none of the words": lambda: bd.ops.inner_product(
        tf.ones((2, 3)), tf.ones((3, 4)), how=None
    ),
    "how: ' library user' says scratchpad_mode twice": lambda: run("many rows", how="library user"),
    "threads must be from 1 to 1024, got 0": lambda: plan("strip", threads=0),
    "from 1 to 1024, got 1025": lambda: plan("strip", threads=1025),
    "from 1 to 1024, got '2'": lambda: plan("strip", threads="2"),
    r"the shape \(1, 2, None, 9, 16\) is not fully known": lambda: (
        bd.ops.memory_plan("conv", (1, 2, None, 9, 16), (3, 3, 20, 40), padding="SAME").scratchpad
    ),
    "the shape <unknown> is not fully known": lambda: (
        bd.ops.memory_plan("conv", tf.TensorShape(None), (3, 3, 20, 40), padding="SAME").scratchpad
    ),
    "'nhwc' is not a shape; give arguments other than tensors by name": lambda: (
        bd.ops.memory_plan("reorder", (1, 9, 9, 20), "nhwc", "nChw16c").scratchpad
    ),
    r"src must be nChw16c, \[N, 2, H, W, 16\] for 20 channels": lambda: (
        bd.ops.memory_plan("conv", (1, 3, 9, 9, 16), (3, 3, 20, 40), padding="SAME").kept
    ),
    "strides must be": lambda: plan("strip", strides="two"),
}


@pytest.mark.parametrize("message, call", BAD.items())
def test_bad_arguments(message, call):
    with pytest.raises(ValueError, match=message) as error:
        call()
    assert len(str(error.value).splitlines()) == 1


def test_what_is_no_node():
    nothing = CList.of([])
    with pytest.raises(ValueError, match="this is not a serialised NodeDef"):
        c_call("BlockdnnMemoryPlan", b"\xff", 1, nothing, nothing, 1, ctypes.c_char_p())


@pytest.mark.parametrize("mode", MODES)
def test_errors_do_not_depend_on_the_mode(mode):
    with pytest.raises(tf.errors.InvalidArgumentError, match="src must be nChw16c"):
        bd.ops.conv(
            tf.zeros((1, 3, 9, 9, 16)),
            tf.zeros((3, 3, 20, 40)),
            how=mode,
            padding="SAME",
        )


def test_an_unknown_mode_past_the_wrapper():
    with pytest.raises(tf.errors.InvalidArgumentError, match='allowed values: "user", "library"'):
        library().blockdnn_inner_product(
            tf.zeros((2, 3)), tf.zeros((3, 4)), [], [], weights_shape=[3, 4], scratchpad_mode="mine"
        )


def test_graphs_from_before_the_attribute():
    with tf.Graph().as_default() as graph:
        x = tf.compat.v1.placeholder(tf.float32, (2, 3), name="x")
        bd.ops.inner_product(x, tf.ones((3, 4)), name="y")
    graph_def = graph.as_graph_def()
    for node in graph_def.node:
        node.attr.pop("scratchpad_mode", None)
    with tf.Graph().as_default():
        x, y = tf.import_graph_def(graph_def, return_elements=["x:0", "y:0"])
        assert y.op.get_attr("scratchpad_mode") == b"user"
        with tf.compat.v1.Session() as session:
            np.testing.assert_array_equal(session.run(y, {x: np.ones((2, 3))}), np.full((2, 4), 3))
