"""Integers of attributes at the edges of their types are refused in a line, or the op runs.

The calls are made in a process of their own, which may take no more than some memory.
"""

import itertools
import random
import resource
import subprocess
import sys

import numpy as np
import tensorflow as tf

import tf_blockdnn as bd

EDGES = [0, 1, -1, 2**15, 2**16, 2**30, 2**31 - 1, 2**40]
MEMORY = 2 << 30
MOST_ELEMENTS = 2**22  # of a result, whose graph is built, but which is not computed
# Python's own complaints, TensorFlow's and ours.
REFUSALS = (ValueError, TypeError, OverflowError, tf.errors.OpError)


def ones(*shape):
    return tf.ones(shape)


def conv(sh, sw, dh, dw, top, bottom, left, right, groups, channels):
    padding = [[top, bottom], [left, right]]
    options = dict(strides=(sh, sw), dilations=(dh, dw), groups=groups, channels=channels)
    return bd.ops.conv(ones(1, 1, 3, 3, 16), ones(2, 2, 16, 16), padding=padding, **options)


def plan_of_conv(n, h, w, kh, kw, oc, sh, dh, top):
    """Its weights are not there, so that their sizes may be anything."""
    shapes = [(n, 1, h, w, 16), (kh, kw, 16, oc)]
    padding = [[top, top], [1, 1]]
    options = dict(strides=(sh, 1), dilations=(dh, 1), padding=padding)
    plan = bd.ops.memory_plan("conv", *shapes, threads=64, **options)
    assert 0 <= plan.scratchpad <= 2**47 and 0 <= plan.packed_weights <= 2**47, plan


def plan_of_product(rows, k, n):
    plan = bd.ops.memory_plan("inner_product", (rows, k), (k, n), threads=64)
    assert 0 <= plan.scratchpad <= 2**47 and 0 <= plan.packed_weights <= 2**47, plan


def conv_transpose(sh, sw, top, bottom, left, right):
    crops = [[top, bottom], [left, right]]
    return bd.ops.conv_transpose(
        ones(1, 1, 3, 3, 16), ones(2, 2, 16, 16), strides=(sh, sw), crops=crops
    )


def conv_volume(depth, sd, sh, sw):
    weights = ones(1, 2, 2, 16, 16)
    return bd.ops.conv_volume(
        ones(4, 1, 3, 3, 16), weights, depth=depth, strides=(sd, sh, sw), padding="VALID"
    )


def pool(kh, kw, sh, sw, top, bottom, left, right, channels):
    padding = [[top, bottom], [left, right]]
    options = dict(strides=(sh, sw), padding=padding, channels=channels)
    return bd.ops.pool(ones(1, 1, 3, 3, 16), "avg", (kh, kw), **options)


def resize(height, width, channels):
    options = dict(kind="nearest", size=(height, width), channels=channels)
    return bd.ops.resize(ones(1, 1, 3, 3, 16), **options)


def pad(top, bottom, left, right, channels):
    return bd.ops.pad(ones(1, 1, 3, 3, 16), [[top, bottom], [left, right]], channels=channels)


def shuffle(axis, group, channels):
    return bd.ops.shuffle(ones(1, 1, 3, 3, 16), axis, group, layout="nChw16c", channels=channels)


def reorder(rows, columns, stride, step, offset):
    strided = bd.TensorDesc([rows, columns], "float32", strides=[stride, step], offset=offset)
    return bd.ops.reorder(ones(64), strided, "nc")


def concat(first, wide, channels):
    values = [ones(1, 1, 3, 3, 16)] * 2
    options = dict(channels=[16, channels], dst_part=(first, wide))
    return bd.ops.concat(values, into=ones(1, 4, 3, 3, 16), **options)


def update_slice(at, start):
    return bd.ops.update_slice(ones(4, 3, 5), ones(2, 5), [start, 0], at=(at,))


# Each with values that it takes.
CALLS = [
    (conv, [1, 1, 1, 1, 0, 0, 0, 0, 1, 16]),
    (plan_of_conv, [1, 8, 8, 3, 3, 32, 1, 1, 1]),
    (plan_of_product, [8, 64, 96]),
    (conv_transpose, [2, 2, 0, 0, 0, 0]),
    (conv_volume, [4, 1, 1, 1]),
    (pool, [2, 2, 1, 1, 0, 0, 0, 0, 16]),
    (resize, [6, 6, 16]),
    (pad, [1, 1, 1, 1, 16]),
    (shuffle, [1, 4, 16]),
    (reorder, [4, 4, 8, 1, 0]),
    (concat, [32, 64, 16]),
    (update_slice, [1, 1]),
]


def samples(usual, generator, count):
    """Values with two or three of them at the edges, `usual` first."""
    yield usual
    places = list(itertools.combinations(range(len(usual)), 2))
    places += list(itertools.combinations(range(len(usual)), 3))
    for _ in range(count):
        values = list(usual)
        for place in generator.choice(places):
            values[place] = generator.choice(EDGES)
        yield values


def run(call, values):
    with tf.Graph().as_default():
        result = call(*values)
    if result is not None and result.shape.num_elements() <= MOST_ELEMENTS:
        assert np.all(np.isfinite(call(*values))), values


def call_all():
    held = resource.getrlimit(resource.RLIMIT_AS)[1]
    conv(*CALLS[0][1])  # threads and kernels are there
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, held))
    generator = random.Random(7)
    ran = refused = 0
    for call, usual in CALLS:
        for values in samples(usual, generator, 60):
            print(call.__name__, values, flush=True)
            try:
                run(call, values)
            except REFUSALS as error:
                refused += 1
                message = str(getattr(error, "message", error)).split(" [Op:")[0]
                message = message.split("\n\t; NodeDef")[0]  # TensorFlow's own
                assert values is not usual and "\n" not in message, message
            else:
                ran += 1
    assert ran > 100 and refused > 100, (ran, refused)


def test_edges_of_integers():
    result = subprocess.run(
        [sys.executable, __file__], capture_output=True, text=True, timeout=900, check=False
    )
    last = result.stdout.strip().splitlines()[-1:]
    assert result.returncode == 0, f"{result.returncode} at {last}: {result.stderr[-2000:]}"


def test_a_plan_beyond_all_memory():
    far = 2**31 - 1
    try:
        bd.ops.conv(
            tf.ones((1, 1, 1, 1)),
            tf.ones((2, 1, 1, 16)),
            src_layout="nhwc",
            dst_layout="nhwc",
            strides=(1, 65536),
            dilations=(far, 1),
            padding=[[far, 0], [far, 0]],
        )
    except tf.errors.InvalidArgumentError as error:
        assert "is too large, with its strides, dilations and padding" in str(error)
        return
    raise AssertionError("a convolution of 2^63 pixels has run")


if __name__ == "__main__":
    call_all()
