"""Plans of sizes at the edges of their types are refused in a line, or of what memory could hold.

What ops themselves make of such numbers tests/python/fuzz asks.
"""

import itertools
import random

import pytest
import tensorflow as tf

import tf_blockdnn as bd

EDGES = [0, 1, -1, 2**15, 2**16, 2**30, 2**31 - 1, 2**40]
# Python's own complaints, TensorFlow's and ours.
REFUSALS = (ValueError, TypeError, OverflowError, tf.errors.OpError)


def conv(n, h, w, kh, kw, oc, sh, dh, top):
    options = dict(strides=(sh, 1), dilations=(dh, 1), padding=[[top, top], [1, 1]], threads=64)
    return bd.ops.memory_plan("conv", (n, 1, h, w, 16), (kh, kw, 16, oc), **options)


def product(rows, k, n):
    return bd.ops.memory_plan("inner_product", (rows, k), (k, n), threads=64)


@pytest.mark.parametrize(
    "plan, usual", [(conv, [1, 8, 8, 3, 3, 32, 1, 1, 1]), (product, [8, 64, 96])]
)
def test_plans(plan, usual):
    """Two or three of the numbers at their edges."""
    generator = random.Random(7)
    places = [*itertools.combinations(range(len(usual)), 2)]
    places += itertools.combinations(range(len(usual)), 3)
    planned = 0
    for _ in range(120):
        values = list(usual)
        for place in generator.choice(places):
            values[place] = generator.choice(EDGES)
        try:
            made = plan(*values)
            planned += 1
            assert 0 <= made.scratchpad <= 2**47 and 0 <= made.packed_weights <= 2**47, values
        except REFUSALS as error:
            assert "\n" not in str(error), values
    assert 10 < planned < 110 and plan(*usual)


def test_a_plan_beyond_all_memory():
    far = 2**31 - 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="is too large, with its strides, dil"):
        bd.ops.conv(
            tf.ones((1, 1, 1, 1)),
            tf.ones((2, 1, 1, 16)),
            src_layout="nhwc",
            dst_layout="nhwc",
            strides=(1, 65536),
            dilations=(far, 1),
            padding=[[far, 0], [far, 0]],
        )
