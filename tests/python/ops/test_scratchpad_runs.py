"""Temporary memory while ops run: as planned, on many threads, in many shapes, in networks."""

import concurrent.futures
import os
import re

import fresh
import numpy as np
import pytest
import tensorflow as tf
from graph_nodes import all_nodes
from resident import usual_growth
from scratchpad_cases import CASES, MODES

import tf_blockdnn as bd

EVERY_CASE = f"""
import tensorflow as tf
{{set_threads}}
import tf_blockdnn as bd
for op, shapes, arguments, _ in {list(CASES.values())}:
    for mode in {MODES}:
        options = dict(arguments, how=arguments.get("how", "") + " " + mode)
        plan = bd.ops.memory_plan(op, *shapes, **options)
        print(plan.algorithm, plan.scratchpad, mode, plan.packed_weights, plan.threads)
        try:
            tf.config.threading.set_intra_op_parallelism_threads(7)
            print("the answer may not hold")
        except RuntimeError:
            pass
        tensors = [tf.zeros(shape) for shape in shapes]
        args = [tf.zeros(shape) for shape in arguments.get("args", ())]
        for _ in range(3):
            getattr(bd.ops, op)(*tensors, **options | {{"args": args}})
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
    result = fresh.run(program, environ=os.environ | {"TF_BLOCKDNN_VERBOSE": "1"} | environment)
    asked = [line.split() for line in result.stdout.splitlines()]
    logged = re.findall(
        r"^tf_blockdnn \w+ \w+ (\w+) .*?(?: scratch (\d+) (\w+))?(?: packs (\d+))? [\d.]+us$",
        result.stderr,
        re.M,
    )
    assert len(asked) == 2 * len(CASES) and len(logged) == 3 * len(asked)
    for i, (algorithm, size, mode, packed, planned_for) in enumerate(asked):
        first, *others = logged[3 * i : 3 * i + 3]
        # Weights that are not constant are packed for the first call alone, then kept.
        scratch = (size, mode) if size != "0" else ("", "")
        assert first == (algorithm, *scratch, packed if packed != "0" else "")
        assert others == [(algorithm, *scratch, "")] * 2
        assert planned_for == threads


@pytest.mark.parametrize("mode", MODES)
def test_32_threads_on_one_function(mode):
    """Every form of scratch at once, bit for bit what one thread computes."""
    options = {"how": f"{mode} constant"}
    rng = np.random.default_rng(3)
    w = {
        s: tf.constant(rng.standard_normal(s, np.float32)) for s in [(3, 3, 3, 40), (3, 3, 40, 40)]
    }
    bias = tf.constant(rng.standard_normal(40, np.float32))
    matrix = tf.constant(rng.standard_normal((40, 50), np.float32))

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 3])])
    def network(x):
        same = {"padding": "SAME", **options}
        after = {"post_ops": "binary(add,channel,#0);eltwise(tanh)", "args": [bias], **same}
        y = bd.ops.conv(x, w[3, 3, 3, 40], src_layout="nhwc", **after)
        y = bd.ops.conv(y, w[3, 3, 40, 40], **after | {"how": f"{mode} constant direct"})
        y = bd.ops.conv(y, w[3, 3, 40, 40], **after | {"how": f"{mode} constant winograd"})
        y = bd.ops.conv(y, w[3, 3, 40, 40][..., :2], dst_layout="nhwc", channels=40, **same)
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


def test_memory_stays_flat():
    """2,000 calls of both modes, shapes and weights changing, on four threads."""
    filters, matrix = tf.Variable(tf.ones((3, 3, 20, 40))), tf.ones((70, 50))
    # More shapes than the 16 plans that a kernel keeps.
    images = [tf.zeros((1, 2, 3 + i % 7, 3 + i // 7, 16)) for i in range(77)]
    rows = [tf.zeros((1 + i, 70)) for i in range(37)]

    @tf.function(input_signature=[tf.TensorSpec([1, 2, None, None, 16]), tf.TensorSpec([None, 70])])
    def run(x, rows):
        results = []
        for mode in MODES:
            for algorithm in ("direct", "winograd"):
                options = {"padding": "SAME", "how": f"{algorithm} {mode}"}
                results.append(bd.ops.conv(x, filters, **options))
            results.append(bd.ops.inner_product(rows, matrix, how=mode))
        return results

    def call(numbers):
        for i in numbers:
            run(images[i % 77], rows[i % 37])
            if i % 50 == 0:
                filters.assign(filters + 1)  # packed weights go stale

    def call_on_four_threads():
        with concurrent.futures.ThreadPoolExecutor(4) as threads:
            list(threads.map(call, [range(t * 500, (t + 1) * 500) for t in range(4)]))

    assert usual_growth(call_on_four_threads) < 200 * 2000  # bytes a call


def test_whole_networks():
    """`optimize` gives the mode to every op that takes a scratchpad."""
    weights, matrix = tf.Variable(tf.ones((3, 3, 3, 20))), tf.Variable(tf.ones((20, 5)))

    @tf.function(input_signature=[tf.TensorSpec([1, 9, 9, 3])])
    def network(x):
        y = tf.nn.relu(tf.nn.conv2d(x, weights, 1, "SAME"))
        return tf.reduce_mean(y, [1, 2]) @ matrix

    x = tf.ones((1, 9, 9, 3))
    for mode in MODES:
        fast = bd.optimize(network, options=bd.Options(scratchpad_mode=mode))
        nodes = all_nodes(fast.concrete)
        nodes = [n for n in nodes if n.op in ("BlockdnnConv", "BlockdnnInnerProduct")]
        assert [node.attr["scratchpad_mode"].s.decode() for node in nodes] == [mode] * len(nodes)
        assert nodes
        np.testing.assert_allclose(fast(x), network(x), rtol=1e-5)
    with pytest.raises(
        ValueError, match=r"scratchpad_mode must be one of \('user', 'library'\), not 1"
    ):
        bd.optimize(network, options=bd.Options(scratchpad_mode=1))
