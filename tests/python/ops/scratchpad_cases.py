"""Ops that take temporary memory, or do not: `CASES`, their plans and their results."""

import functools

import numpy as np
import tensorflow as tf

import tf_blockdnn as bd

MODES = ("user", "library")

# name -> (op, shapes of its tensors, other arguments, algorithm the plan must have)
PAIRED = "paired" if bd.info()["isa"].startswith("avx512") else "direct"
CASES = {
    "strip": ("conv", [(1, 2, 9, 11, 16), (3, 3, 20, 40)], {"how": "direct"}, "direct"),
    "in place": ("conv", [(1, 2, 9, 11, 16), (1, 1, 20, 40)], {"how": "direct"}, "direct"),
    "bias": (
        "conv",
        [(1, 2, 9, 11, 16), (1, 1, 20, 40)],
        {"post_ops": "binary(add,channel,#0)", "args": [(40,)], "how": "direct"},
        "direct",
    ),
    "paired": ("conv", [(1, 2, 9, 11, 16), (1, 1, 20, 40)], {"how": "paired"}, PAIRED),
    "grouped": ("conv", [(2, 3, 9, 11, 16), (3, 3, 20, 80)], {"groups": 2}, "direct"),
    "winograd": (
        "conv",
        [(1, 2, 9, 11, 16), (3, 3, 20, 40)],
        {"how": "winograd"},
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
    "many rows": ("inner_product", [(5, 30, 70), (70, 50)], {}, "gemm"),
}


@functools.cache  # weights that change have another plan
def integer_tensor(shape, seed):
    values = np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)
    if len(shape) == 5:  # a blocked activation of 20 or 40 channels
        values[:, -1, ..., 20 % 16 if shape[1] == 2 else 40 % 16 :] = 0
    return tf.constant(values)


CASES = {
    name: (op, shapes, ({"padding": "SAME"} if op == "conv" else {}) | arguments, algorithm)
    for name, (op, shapes, arguments, algorithm) in CASES.items()
}


def _changed(arguments, changes):
    how = f"{arguments.get('how', '')} {changes.get('how', '')}"
    return arguments | changes | {"how": how}


def run(name, **changes):
    """The result of a case on random integers."""
    op, shapes, arguments, _ = CASES[name]
    arguments = _changed(arguments, changes)
    tensors = [integer_tensor(shape, i) for i, shape in enumerate(shapes)]
    if "args" in arguments:
        arguments["args"] = [integer_tensor(shape, 7) for shape in arguments["args"]]
    return getattr(bd.ops, op)(*tensors, **arguments).numpy()


def plan(name, **changes):
    op, shapes, arguments, _ = CASES[name]
    return bd.ops.memory_plan(op, *shapes, **_changed(arguments, changes))
