"""How ops run: the verbose log, the thread setting, many callers at once."""

import os
import re

import fresh

EVERY_OP = """
import tensorflow as tf
import tf_blockdnn as bd
x = bd.ops.reorder(tf.zeros((1, 5, 6, 20)), "nhwc", "nChw16c")
options = {"padding": "SAME", "how": "direct", "post_ops": "eltwise(relu)"}
y = bd.ops.conv(x, tf.zeros((3, 3, 20, 40)), **options)
y = bd.ops.eltwise(y, "eltwise(tanh)", channels=40)
y = bd.ops.concat([x, y], channels=[20, 40])
y = bd.ops.pool(y, "max", 2, channels=60, padding="VALID")
bd.ops.global_pool(y, "avg", channels=60)
bd.ops.shuffle(y, 1, 3, layout="nChw16c", channels=60)
bd.ops.softmax(tf.zeros((2, 3, 7)))
"""


def test_verbose_log():
    """One line for each executed primitive, with what it did and how long it took."""
    log = fresh.run(
        EVERY_OP,
        environ=os.environ | {"TF_BLOCKDNN_VERBOSE": "1", "TF_BLOCKDNN_MAX_ISA": "generic"},
    ).stderr
    lines = [line for line in log.splitlines() if line.startswith("tf_blockdnn ")]
    patterns = [
        r"reorder generic \[1,5,6,20\]->\[1,2,5,6,16\] .*dst_layout=\"nChw16c\"",
        r"conv generic direct \[1,2,5,6,16\] \[3,3,20,40\]->\[1,3,5,6,16\] .*"
        r'weights_shape=\[3, 3, 20, 40\] padding="SAME" post_ops="eltwise\(relu\)".* '
        r"scratch \d+ user",
        r'eltwise generic \[1,3,5,6,16\]->\[1,3,5,6,16\] .*post_ops="eltwise\(tanh\)"',
        r"concat generic \[1,2,5,6,16\] \[1,3,5,6,16\]->\[1,4,5,6,16\] N=2 "
        r"channels=\[20, 40\]",
        r'pool generic \[1,4,5,6,16\]->\[1,4,4,5,16\] kind="max" channels=60 ksize=\[2, 2\]',
        r'global_pool generic \[1,4,4,5,16\]->\[1,60\] kind="avg"',
        r"shuffle generic permute \[1,4,4,5,16\]->\[1,4,4,5,16\] T=DT_FLOAT axis=1 group=3",
        r"softmax generic \[2,3,7\]->\[2,3,7\]",
    ]
    assert len(lines) == len(patterns)
    for line, pattern in zip(lines, patterns, strict=True):
        assert re.fullmatch(rf"tf_blockdnn {pattern}.* [0-9.]+us", line), line


SUMS = """
import numpy as np, tensorflow as tf
import tf_blockdnn as bd
x, w = tf.ones((1, 2, 5, 6, 16)), tf.ones((3, 3, 32, 32))
blocked, rows = tf.random.normal((1, 2, 5, 6, 16)), tf.random.normal((30, 32))
plain = bd.ops.reorder(blocked, "nChw16c", "nhwc", channels=32)
half = bd.PostOps().sum(0.5)

def conv(dst):
    return bd.ops.conv(x, w, post_ops=half, dst=dst, how="direct", padding="SAME")

def inner_product(dst):
    return bd.ops.inner_product(rows + 1, w[0, 0], post_ops=half, dst=dst)

def eltwise(dst):
    return bd.ops.eltwise(x, half, dst=dst, channels=32)

for op, dst in [(conv, blocked), (inner_product, rows), (eltwise, blocked)]:
    held = tf.function(op)(dst)                                # the caller holds dst
    owned = tf.function(lambda dst: op(tf.identity(dst) + 0 * dst))(dst)  # a temporary
    np.testing.assert_array_equal(held, owned)
np.testing.assert_array_equal(tf.function(conv)(plain), conv(blocked))
"""


def test_verbose_log_says_where_sums_went():
    """In place where nobody else holds dst and it has the right layout, else copied."""
    log = fresh.run(SUMS, environ=os.environ | {"TF_BLOCKDNN_VERBOSE": "1"}).stderr
    lines = [line.split() for line in log.splitlines() if line.startswith("tf_blockdnn ")]
    words = [
        (words[1], "in place" if words[-3:-1] == ["in", "place"] else "copied")
        for words in lines
        if words[1] == "reorder" or any("sum(" in word for word in words)
    ]
    assert words[1:] == [
        ("conv", "copied"),
        ("conv", "in place"),
        ("inner_product", "copied"),
        ("inner_product", "in place"),
        ("eltwise", "copied"),
        ("eltwise", "in place"),
        ("reorder", "copied"),  # plain dst: the copy has the layout of the result, and
        ("conv", "in place"),  # nobody else holds it
        ("conv", "copied"),
    ]


def test_silent_by_default():
    assert (
        "tf_blockdnn "
        not in fresh.run(EVERY_OP, environ=os.environ | {"TF_BLOCKDNN_VERBOSE": ""}).stderr
    )


def test_threads_follow_tensorflow():
    program = """
import tensorflow as tf
tf.config.threading.set_intra_op_parallelism_threads(3)
import threading, os, tf_blockdnn as bd
x, w = tf.zeros((1, 8, 64, 64, 16)), tf.zeros((3, 3, 128, 128))
tf.nn.relu(x)  # TensorFlow's own threads are there now
before = len(os.listdir("/proc/self/task"))
bd.ops.conv(x, w, padding="SAME")
print(bd.info()["threads"], len(os.listdir("/proc/self/task")) - before)
"""
    threads, started = fresh.run(program).stdout.split()
    assert (threads, started) == ("3", "2")  # the caller is the third
