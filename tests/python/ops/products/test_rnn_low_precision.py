"""bd.ops.rnn with low-precision weights, and with rows that are rounded."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa

_GATES = {"vanilla": 1, "lstm": 4, "gru": 3}


@pytest.mark.parametrize("cell", _GATES)
@pytest.mark.parametrize("batch", [1, 3, 20])
def test_rounded_rows_are_near_those_of_floats(floats, cell, batch):
    x, mask = floats(batch, 30, 21), np.arange(batch * 30).reshape(batch, 30) % 3 != 0
    weights = [tf.cast(0.2 * floats(rows, _GATES[cell] * 35), tf.bfloat16) for rows in (21, 35)]
    call = functools.partial(
        bd.ops.rnn, x, *weights, cell=cell, mask=mask, return_sequences=True, go_backwards=True
    )
    y, ends = call(how="rounded")
    expected, expected_ends = call()
    np.testing.assert_allclose(y, expected, atol=0.02)
    for end, expected_end in zip(ends, expected_ends, strict=True):
        np.testing.assert_allclose(end, expected_end, atol=0.02)


def test_rounded_rows_want_weights_of_bfloat16(floats):
    with pytest.raises(tf.errors.InvalidArgumentError, match="round_rows is for weights of bf"):
        bd.ops.rnn(floats(1, 2, 3), floats(3, 16), floats(4, 16), cell="lstm", how="rounded")


def test_low_precision_weights_have_no_gradient(floats):
    x, w, u = (tf.constant(floats(*shape)) for shape in ([1, 2, 3], [3, 16], [4, 16]))
    w, u = tf.cast(w, tf.bfloat16), tf.cast(u, tf.bfloat16)
    with pytest.raises(tf.errors.InvalidArgumentError, match="bfloat16 have no gradient; train"):
        bd.ops.rnn(x, w, u, cell="lstm", training=True)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y, _ = bd.ops.rnn(x, w, u, cell="lstm")
    with pytest.raises(ValueError, match="of bfloat16 has no gradient; train it in float32"):
        tape.gradient(y, x)


def test_low_precision_weights_need_their_scales(floats):
    x, w, u = floats(1, 2, 3), np.ones((3, 16), np.int8), np.ones((4, 16), np.int8)
    scale = np.ones(16, np.float32)
    call = functools.partial(bd.ops.rnn, x, w, u, cell="lstm")
    with pytest.raises(tf.errors.InvalidArgumentError, match="int8 have two scales, of kernel and"):
        call()
    with pytest.raises(ValueError, match="weight_scales must be two"):
        call(weight_scales=[scale])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"weight_scales must be \[gates"):
        call(weight_scales=[scale, scale[:5]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="float32 have no scales"):
        bd.ops.rnn(x, floats(3, 16), floats(4, 16), cell="lstm", weight_scales=[scale, scale])
