"""One case of the fuzzer: draws a call, makes it in two ways, and judges what comes of it."""

import dataclasses
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# With oneDNN tf.nn.conv2d itself reads beyond its source where windows are wider than it.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"

import numpy as np
import tensorflow as tf
from call import BLOCK, Draw, blocks
from definitions import expected
from low_precision_calls import in_low_precision
from make_call import definitions, eagerly, in_graph, in_region
from spoil import spoiled, wild
from valid_calls import MAKERS

_REFUSED = (
    tf.errors.InvalidArgumentError,
    tf.errors.ResourceExhaustedError,
    tf.errors.NotFoundError,  # TensorFlow's word for a type without a kernel
    tf.errors.UnimplementedError,
    ValueError,  # the same out of a shape function
)


def draw_call(seed, index, op=None, kind=None):
    """The call of that number, and how it was made: valid, near or wild."""
    d = Draw(seed, index)
    op = op or d.of(*sorted(MAKERS))
    kind = kind or d.of("valid", "near", "near", "near", "wild")
    if kind == "wild":
        return wild(d, op), kind
    call = MAKERS[op](d)
    if d.chance(0.4):
        call = in_low_precision(d, call)
    return (spoiled(d, call) if kind == "near" else call), kind


def _attempt(way, *arguments):
    """The results, or the error that refuses the call; other errors go on."""
    try:
        return way(*arguments)
    except _REFUSED as error:
        return error


def _undefined(call):
    """Whether some of the result may be anything: another op's part, another pool's threads."""
    part = bool(call.attrs.get("dst_part")) and not call.attrs.get("num_into")
    return part or call.op == "BlockdnnThreads"


def _counted(call):
    """The call whose tensors are shared out as attributes count them; None if they cannot be."""
    left, groups = call.arrays(), []
    for argument, group in zip(definitions()[call.op].input_arg, call.inputs, strict=True):
        count = call.attrs.get(argument.number_attr, len(group))
        if count > len(left):
            return None
        groups.append(left[:count])
        left = left[count:]
    return None if left else dataclasses.replace(call, inputs=groups)


def judge(call, d, valid):
    """("right" | "accepted" | "refused", what is wrong or None)."""
    try:
        for array in call.arrays():
            array.draw()
    except (ValueError, TypeError, OverflowError):
        return "no such tensor", None
    known = {}

    def is_known(i, j):
        return known.setdefault((i, j), d.chance(0.9 if j < 0 else 0.6))

    other = _attempt(d.of(in_graph, in_region), call, is_known)
    if (call := _counted(call)) is None:  # no such call can be made eagerly
        return ("refused", None) if isinstance(other, Exception) else ("", "tensors miscounted")
    one = _attempt(eagerly, call)
    if isinstance(one, Exception) or isinstance(other, Exception):
        if any(isinstance(result, tf.errors.ResourceExhaustedError) for result in (one, other)):
            return "refused", None  # what is left depends on what ran before
        if not (isinstance(one, Exception) and isinstance(other, Exception)):
            return "", f"refused in one way only: {_short(one)} but {_short(other)}"
        if valid:
            return "refused", f"a valid call is refused: {_short(one)}"
        # TensorFlow's own part of a message begins at the op, or at the node.
        text = str(getattr(one, "message", one)).split(" [Op:")[0].split("\n\t; NodeDef")[0]
        if "\n" in text or len(text) > 200000:
            return "", f"a message of {text.count(chr(10)) + 1} lines and {len(text)} characters"
        return "refused", None
    if not _undefined(call):
        # What lies in a workspace is nobody's business.
        for a, b in list(zip(one, other, strict=True))[:3]:
            if not np.array_equal(a, b, equal_nan=a.dtype.kind in "fV"):
                return "", "a graph gives other numbers than an eager call"
    wanted = expected(call)
    if wanted is None:
        return "accepted", None
    got = wanted.read(one[0])
    if valid and not wanted.tail_is_zero(one[0]):
        return "", "the tail is not zero"
    if valid and call.attrs.get("num_into") and not _keeps_the_rest(call, wanted, one[0]):
        return "", "what lies beside the part is not what `into` holds"
    if got.shape != wanted.values.shape:
        return "", f"shape {got.shape}, not {wanted.values.shape}"
    error = np.abs(got - wanted.values)
    same = (got == wanted.values) | (np.isnan(got) & np.isnan(wanted.values))
    if not np.all((error <= wanted.tolerance) | same):
        return "", f"off by {np.nanmax(error)}, at most {np.max(wanted.tolerance)} is right"
    return "right", None


def _keeps_the_rest(call, wanted, result):
    """Whether an op that writes a part of `into` leaves the other blocks."""
    first, (into,) = wanted.part[0] // BLOCK, call.inputs[-1]
    written = range(first, first + blocks(wanted.channels))
    rest = (np.delete(x, written, 1) for x in (result, into.draw()))
    return np.array_equal(*rest)


def _short(result):
    return str(result)[:300] if isinstance(result, Exception) else "a result"


def describe(call):
    """In lines that a person can read, and make again."""
    shapes = [[f"{a.dtype}{list(a.shape)}" for a in group] for group in call.inputs]
    attrs = {k: v if len(str(v)) < 200 else f"{str(v)[:200]}..." for k, v in call.attrs.items()}
    return f"{call.op} inputs={shapes} attrs={attrs}"


def run(case):
    """(op, kind, outcome, finding or None) of a case: (seed, index) or (seed, index, op, kind)."""
    if case is None:
        tf.constant(0)
        definitions()
        return None
    call = kind = None
    try:
        call, kind = draw_call(*case)
        outcome, finding = judge(call, Draw(*case[:2], 1), kind == "valid")
    except Exception as error:
        outcome, finding = "", f"{type(error).__name__}: {str(error)[:500]}"
    return call and call.op, kind, outcome, finding
