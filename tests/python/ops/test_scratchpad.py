"""Temporary memory: its two modes, its size before running, many threads, many shapes."""

import concurrent.futures
import ctypes
import os
import re
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from graph_nodes import all_nodes

import tf_blockdnn as bd
from tf_blockdnn.python.native import CList, c_call, library

MODES = ("user", "library")

# name -> (op, shapes of its tensors, other arguments, algorithm the plan must have)
PAIRED = "paired" if bd.info()["isa"].startswith("avx512") else "direct"
CASES = {
    "strip": ("conv", [(1, 2, 9, 11, 16), (3, 3, 20, 40)], {"algorithm": "direct"}, "direct"),
    "in place": ("conv", [(1, 2, 9, 11, 16), (1, 1, 20, 40)], {"algorithm": "direct"}, "direct"),
    "bias": (
        "conv",
        [(1, 2, 9, 11, 16), (1, 1, 20, 40)],
        {"post_ops": "binary(add,channel,#0)", "args": [(40,)], "algorithm": "direct"},
        "direct",
    ),
    "paired": ("conv", [(1, 2, 9, 11, 16), (1, 1, 20, 40)], {"algorithm": "paired"}, PAIRED),
    "grouped": ("conv", [(2, 3, 9, 11, 16), (3, 3, 20, 80)], {"groups": 2}, "direct"),
    "winograd": (
        "conv",
        [(1, 2, 9, 11, 16), (3, 3, 20, 40)],
        {"algorithm": "winograd"},
        "winograd",
    ),
    "depthwise": ("conv", [(1, 2, 9, 11, 16), (3, 3, 1, 20)], {"groups": 20}, "depthwise"),
    "first layer": (
        "conv",
        [(1, 9, 11, 3), (3, 3, 3, 40)],
        {"src_layout": "nhwc", "strides": 2},
        "direct_plain",
    ),
    "last layer": ("conv", [(1, 2, 9, 11, 16), (3, 3, 20, 2)], {"dst_layout": "nhwc"}, "dot"),
    "few rows": ("inner_product", [(1, 70), (70, 64)], {}, "rows"),
    "many rows": ("inner_product", [(5, 30, 70), (70, 50)], {}, "direct_plain"),
}


def integer_tensor(shape, seed):
    values = np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)
    if len(shape) == 5:  # a blocked activation of 20 or 40 channels
        values[:, -1, ..., 20 % 16 if shape[1] == 2 else 40 % 16 :] = 0
    return tf.constant(values)


def run(name, **changes):
    """The result of a case on random integers."""
    op, shapes, arguments, _ = CASES[name]
    arguments = arguments | changes
    tensors = [integer_tensor(shape, i) for i, shape in enumerate(shapes)]
    if "args" in arguments:
        arguments["args"] = [integer_tensor(shape, 7) for shape in arguments["args"]]
    return getattr(bd.ops, op)(*tensors, **arguments).numpy()


def plan(name, **changes):
    op, shapes, arguments, _ = CASES[name]
    return bd.ops.memory_plan(op, *shapes, **arguments | changes)


@pytest.mark.parametrize("name", CASES)
def test_the_mode_decides_nothing_but_who_provides(name):
    user, kept = (plan(name, scratchpad_mode=mode) for mode in MODES)
    assert user.algorithm.startswith(CASES[name][3])
    assert (user.scratchpad, user.pieces, user.blocking) == (
        kept.scratchpad,
        kept.pieces,
        kept.blocking,
    )
    for _ in range(3):  # fresh memory, then memory that held another run's values
        np.testing.assert_array_equal(
            run(name, scratchpad_mode="user"), run(name, scratchpad_mode="library")
        )


@pytest.mark.parametrize("name", CASES)
def test_memory_consumption(name):
    op, shapes, arguments, _ = CASES[name]
    size = bd.ops.scratchpad_size(op, *shapes, **arguments)
    assert bd.ops.memory_consumption(op, *shapes, **arguments) == 0
    kept = bd.ops.memory_consumption(op, *shapes, scratchpad_mode="library", **arguments)
    assert kept == size == plan(name).scratchpad
    assert size == sum(piece.bytes for piece in plan(name).pieces.values())


def test_some_take_nothing():
    sizes = {name: plan(name).scratchpad for name in CASES}
    nothing = {"in place", "depthwise"}
    if not bd.info()["isa"].startswith("avx512"):  # which pairs; it is "in place" elsewhere
        nothing.add("paired")
    assert {name for name, size in sizes.items() if size == 0} == nothing
    assert plan("few rows").packed_weights == 0  # read where they are
    assert plan("many rows").packed_weights == 4 * 70 * 64
    for op, shape, arguments in [
        ("reorder", (1, 9, 9, 20), {"src": "nhwc", "dst": "nChw16c"}),
        ("pool", (1, 2, 9, 9, 16), {"kind": "max", "ksize": 3, "channels": 20}),
        ("concat", [(1, 2, 9, 9, 16), (1, 1, 9, 9, 16)], {"channels": [20, 16]}),
    ]:
        nothing = bd.ops.memory_plan(op, shape, **arguments)
        assert (nothing.scratchpad, nothing.packed_weights, nothing.scratchpad_mode) == (0, 0, "")


def test_every_op_can_be_asked():
    questions = {"memory_consumption", "memory_plan", "scratchpad_size", "pack_count"}
    with pytest.raises(ValueError, match="op must be one of") as error:
        bd.ops.memory_plan("none", (1,))
    for op in set(bd.ops.__all__) - questions:
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
        expected |= {"rows in pairs": 19 * 16, "terms of pairs": 18, "factors of pairs": 1}
    assert {name: piece.bytes for name, piece in plan.pieces.items()} == {
        name: 4 * (-(-floats // line) * line) for name, floats in expected.items()
    }
    assert plan.scratchpad == sum(piece.bytes for piece in plan.pieces.values())
    # 20 units are two panels of 16.
    assert plan.packed_weights == 4 * 2 * 16 * 4 * (8 + 20 + 2 * pairs)
    assert plan.scratchpad_mode == "" and plan.algorithm == ""
    assert bd.ops.memory_consumption("rnn", *LSTM, cell="lstm") == 0
    # Of a longer sequence the sums of some steps at a time, 4 MB.
    longer = bd.ops.scratchpad_size("rnn", (2, 50000, 8), *LSTM[1:], cell="lstm")
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
        arguments = {"algorithm": "direct", "scratchpad_mode": mode}
        assert bd.ops.scratchpad_size("conv", (0, 2, 9, 11, 16), (3, 3, 20, 40), **arguments) == 0
        empty = bd.ops.conv(tf.zeros((0, 2, 9, 11, 16)), tf.zeros((3, 3, 20, 40)), **arguments)
        assert empty.shape == (0, 3, 9, 11, 16)


def run_program(program, **environment):
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | environment,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result


EVERY_CASE = f"""
import tensorflow as tf
{{set_threads}}
import tf_blockdnn as bd
for op, shapes, arguments, _ in {list(CASES.values())}:
    for mode in {MODES}:
        arguments["scratchpad_mode"] = mode
        plan = bd.ops.memory_plan(op, *shapes, **arguments)
        print(plan.algorithm, plan.scratchpad, mode, plan.packed_weights, plan.threads)
        try:
            tf.config.threading.set_intra_op_parallelism_threads(7)
            print("the answer may not hold")
        except RuntimeError:
            pass
        tensors = [tf.zeros(shape) for shape in shapes]
        args = [tf.zeros(shape) for shape in arguments.get("args", ())]
        for _ in range(3):
            getattr(bd.ops, op)(*tensors, **arguments | {{"args": args}})
"""

SET_THREADS = "tf.config.threading.set_intra_op_parallelism_threads(3)"


@pytest.mark.parametrize(
    ("threads", "set_threads", "environment"),
    [("3", SET_THREADS, {}), ("5", "", {"TF_NUM_INTRAOP_THREADS": "5"})],
    ids=["set", "from the environment"],
)
def test_what_was_asked_is_what_runs(threads, set_threads, environment):
    """The log of each execution has the numbers of the plan, wherever the threads come from;
    and once asked TensorFlow refuses to change them."""
    program = EVERY_CASE.replace("{set_threads}", set_threads)
    result = run_program(program, TF_BLOCKDNN_VERBOSE="1", **environment)
    asked = [line.split() for line in result.stdout.splitlines()]
    logged = re.findall(
        r"^tf_blockdnn \w+ \w+ (\w+) .* scratch (\d+) (\w+)(?: packs (\d+))? \"",
        result.stderr,
        re.M,
    )
    assert len(asked) == 2 * len(CASES) and len(logged) == 3 * len(asked)
    for i, (algorithm, size, mode, packed, planned_for) in enumerate(asked):
        first, *others = logged[3 * i : 3 * i + 3]
        # Weights that are not constant are packed for the first call alone, then kept.
        assert first == (algorithm, size, mode, packed if packed != "0" else "")
        assert others == [(algorithm, size, mode, "")] * 2
        assert planned_for == threads


def test_asked_while_a_function_is_traced():
    sizes = []

    @tf.function
    def convolve(x, weights):
        sizes.append(bd.ops.scratchpad_size("conv", x, weights, algorithm="direct"))
        return bd.ops.conv(x, weights, algorithm="direct")

    op, shapes, _, _ = CASES["strip"]
    convolve(*map(tf.zeros, shapes))
    assert sizes == [bd.ops.scratchpad_size(op, *shapes, algorithm="direct")]


def test_the_result_before():
    """The operand that `dst=` brings may need a reorder; the plan is the convolution's."""
    op, shapes, _, _ = CASES["strip"]
    arguments = {"algorithm": "direct", "post_ops": bd.PostOps().sum()}
    plain = tf.TensorSpec((1, 9, 11, 40))
    assert bd.ops.memory_plan(op, *shapes, dst=plain, **arguments) == plan("strip")


def test_threads_to_plan_for():
    one, four = (plan("strip", threads=n).pieces["strip"] for n in (1, 4))
    assert (one.copies, four.copies) == (1, 4)


BAD = {
    "unknown op": (
        lambda: bd.ops.memory_plan("cony", (1,)),
        "op must be one of concat, conv, .*'cony'",
    ),
    "unknown mode of conv": (
        lambda: run("strip", scratchpad_mode="User"),
        'scratchpad_mode must be "user" or "library", got \'User\'',
    ),
    "unknown mode of inner_product": (
        lambda: run("many rows", scratchpad_mode=None),
        'scratchpad_mode must be "user" or "library", got None',
    ),
    "no threads": (lambda: plan("strip", threads=0), "threads must be from 1 to 1024, got 0"),
    "too many threads": (lambda: plan("strip", threads=1025), "from 1 to 1024, got 1025"),
    "threads of no number": (lambda: plan("strip", threads="2"), "from 1 to 1024, got '2'"),
    "unknown size": (
        lambda: bd.ops.scratchpad_size("conv", (1, 2, None, 9, 16), (3, 3, 20, 40)),
        r"the shape \(1, 2, None, 9, 16\) is not fully known",
    ),
    "unknown rank": (
        lambda: bd.ops.scratchpad_size("conv", tf.TensorShape(None), (3, 3, 20, 40)),
        "the shape <unknown> is not fully known",
    ),
    "no shape": (
        lambda: bd.ops.scratchpad_size("reorder", (1, 9, 9, 20), "nhwc", "nChw16c"),
        "'nhwc' is not a shape; give arguments other than tensors by name",
    ),
    "what the op refuses": (
        lambda: bd.ops.memory_consumption("conv", (1, 3, 9, 9, 16), (3, 3, 20, 40)),
        r"src must be nChw16c, \[N, 2, H, W, 16\] for 20 channels",
    ),
    "what the wrapper refuses": (lambda: plan("strip", strides="two"), "strides must be"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name):
    call, message = BAD[name]
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
        bd.ops.conv(tf.zeros((1, 3, 9, 9, 16)), tf.zeros((3, 3, 20, 40)), scratchpad_mode=mode)


def test_an_unknown_mode_past_the_wrapper():
    with pytest.raises(tf.errors.InvalidArgumentError, match='allowed values: "user", "library"'):
        library().blockdnn_inner_product(
            tf.zeros((2, 3)), tf.zeros((3, 4)), [], weights_shape=[3, 4], scratchpad_mode="mine"
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


@pytest.mark.parametrize("mode", MODES)
def test_32_threads_on_one_function(mode):
    """Every form of scratch at once, bit for bit what one thread computes."""
    options = {"scratchpad_mode": mode, "constant_weights": True}
    rng = np.random.default_rng(3)
    w = {
        s: tf.constant(rng.standard_normal(s, np.float32)) for s in [(3, 3, 3, 40), (3, 3, 40, 40)]
    }
    bias = tf.constant(rng.standard_normal(40, np.float32))
    matrix = tf.constant(rng.standard_normal((40, 50), np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3])])
    def network(x):
        after = {"post_ops": "binary(add,channel,#0);eltwise(tanh)", "args": [bias]}
        y = bd.ops.conv(x, w[3, 3, 3, 40], src_layout="nhwc", **options, **after)
        y = bd.ops.conv(y, w[3, 3, 40, 40], algorithm="direct", **options, **after)
        y = bd.ops.conv(y, w[3, 3, 40, 40], algorithm="winograd", **options, **after)
        y = bd.ops.conv(y, w[3, 3, 40, 40][..., :2], dst_layout="nhwc", channels=40, **options)
        z = bd.ops.reorder(y, "nhwc", "nChw16c", channels=2)
        z = bd.ops.reorder(z, "nChw16c", "nhwc", channels=2)
        rows = tf.tile(tf.reshape(z, [-1, 2]), [1, 20])
        return y, bd.ops.inner_product(rows, matrix, **options)

    shapes = [(1, 8 + 3 * (i % 3), 9 + i % 4, 3) for i in range(12)]
    images = [tf.constant(rng.standard_normal(shape, np.float32)) for shape in shapes]
    expected = [[y.numpy() for y in network(image)] for image in images]

    def call(i):
        for y, wanted in zip(network(images[i % 12]), expected[i % 12], strict=True):
            np.testing.assert_array_equal(y, wanted)

    with concurrent.futures.ThreadPoolExecutor(32) as threads:
        list(threads.map(call, range(640)))


FLAT = """
import threading
import tensorflow as tf
import tf_blockdnn as bd

filters, matrix = tf.Variable(tf.ones((3, 3, 20, 40))), tf.ones((70, 50))
# More shapes than the 16 plans that a kernel keeps.
images = [tf.zeros((1, 2, 3 + i % 7, 3 + i // 7, 16)) for i in range(77)]
rows = [tf.zeros((1 + i, 70)) for i in range(37)]

@tf.function(input_signature=[tf.TensorSpec([1, 2, None, None, 16]), tf.TensorSpec([None, 70])])
def run(x, rows):
    results = []
    for mode in ("user", "library"):
        results.append(bd.ops.conv(x, filters, algorithm="direct", scratchpad_mode=mode))
        results.append(bd.ops.conv(x, filters, algorithm="winograd", scratchpad_mode=mode))
        results.append(bd.ops.inner_product(rows, matrix, scratchpad_mode=mode))
    return results

def calls(begin, end):
    for i in range(begin, end):
        run(images[i % 77], rows[i % 37])
        if i % 50 == 0:
            filters.assign(filters + 1)  # packed weights go stale

def on_four_threads(count):
    callers = [
        threading.Thread(target=calls, args=(t * count // 4, (t + 1) * count // 4))
        for t in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096

on_four_threads(1000)
before = resident()
on_four_threads(10000)
print(resident() - before)
"""


def test_memory_stays_flat():
    """10,000 calls of both modes, shapes and weights changing, on several threads."""
    grown = int(run_program(FLAT).stdout)
    assert grown < 2 << 20  # 200 bytes a call


def test_whole_networks():
    """`optimize` gives the mode to every op that takes a scratchpad."""
    weights, matrix = tf.Variable(tf.ones((3, 3, 3, 20))), tf.Variable(tf.ones((20, 5)))

    @tf.function(input_signature=[tf.TensorSpec([1, 9, 9, 3])])
    def network(x):
        y = tf.nn.relu(tf.nn.conv2d(x, weights, 1, "SAME"))
        return tf.reduce_mean(y, [1, 2]) @ matrix

    x = tf.ones((1, 9, 9, 3))
    for mode in MODES:
        fast = bd.optimize(network, scratchpad_mode=mode)
        nodes = all_nodes(fast.concrete)
        nodes = [n for n in nodes if n.op in ("BlockdnnConv", "BlockdnnInnerProduct")]
        assert [node.attr["scratchpad_mode"].s.decode() for node in nodes] == [mode] * len(nodes)
        assert nodes
        np.testing.assert_allclose(fast(x), network(x), rtol=1e-5)
    with pytest.raises(ValueError, match='scratchpad_mode must be "user" or "library", got 1'):
        bd.optimize(network, scratchpad_mode=1)
