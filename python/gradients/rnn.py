"""The gradient of recurrent layers, and that of the op which computes it, step by step."""

import tensorflow as tf

from ..native import library
from ..ops.products.rnn import Rnn
from .node import gradient_of, vjp


@gradient_of("Rnn")
def _rnn(called, d_dst, d_state, d_cell, _):
    lists = called.bias, called.initial_state, called.mask, called.lengths
    biases, states, masks, lengths = lists
    src, kernel = called.src, called.kernel
    inputs = [src, kernel, called.recurrent_kernel, *lists]
    attributes = called.attributes()
    for name in ("training", "constant_weights", "round_rows"):
        del attributes[name]
    if called.training:
        workspace = called.op.outputs[3]
    else:
        workspace = Rnn.run(*inputs, [], **attributes, training=True)[3]
    sums, recurrent_sums, before, reset, d_h0, d_c0 = library().blockdnn_rnn_grad(
        *inputs, workspace, d_dst, d_state, d_cell, **attributes, training=True
    )
    is_gru, after = called.cell == "gru", called.reset_after
    by_input = _rows(sums)
    by_state = _rows(recurrent_sums) if is_gru and after else by_input
    if is_gru and not after:
        units = tf.shape(before)[-1]
        d_recurrent = tf.concat(
            [
                tf.matmul(_rows(before), by_state[:, : 2 * units], transpose_a=True),
                tf.matmul(_rows(reset), by_state[:, 2 * units :], transpose_a=True),
            ],
            axis=1,
        )
    else:
        d_recurrent = tf.matmul(_rows(before), by_state, transpose_a=True)
    d_src = tf.reshape(tf.matmul(by_input, kernel, transpose_b=True), tf.shape(src))
    d_kernel = tf.matmul(_rows(src), by_input, transpose_a=True)
    d_bias = tf.reduce_sum(by_input, 0)
    if is_gru and after:
        d_bias = tf.stack([d_bias, tf.reduce_sum(by_state, 0)])
    return [
        d_src,
        d_kernel,
        d_recurrent,
        *[d_bias for _ in biases],
        *[d_h0, d_c0][: len(states)],
        *[None for _ in (*masks, *lengths)],
    ]


@gradient_of("RnnGrad")
def _rnn_grad(called, *upstream):
    """Of the formula for what the op computes, by the layer's steps in TensorFlow's ops."""
    after = called.cell == "gru" and called.reset_after
    used = [True, after, True, called.cell == "gru" and not after]
    used += [i < len(called.initial_state) for i in range(2)]
    weights = [called.src, called.kernel, called.recurrent_kernel, *called.bias]
    operands = [*weights, *called.initial_state, *called.inputs[-3:]]
    ends = len(operands) - 3

    def formula(*x):
        weights_, states, ends_ = x[: len(weights)], x[len(weights) : ends], x[ends:]

        def layer(to_sums, to_recurrent_sums, *states):
            return _by_steps(
                called, *weights_[:3], weights_[3:], states, to_sums, to_recurrent_sums
            )

        zeros = tf.zeros_like(called.op.outputs[0])
        *results, before, reset = layer(zeros, zeros, *states)
        by_op = vjp(lambda *x: layer(*x)[:-2], [zeros, zeros, *states], ends_[: len(results)])
        sums, recurrent_sums, *d_states = by_op
        formed = [sums, recurrent_sums, before, reset, *d_states]
        return [x for x, is_used in zip(formed, used, strict=False) if is_used]

    upstream = [dy for dy, is_used in zip(upstream, used, strict=True) if is_used]
    gradients = vjp(formula, operands, upstream)
    rest = len(called.mask) + len(called.lengths) + 1  # and the workspace, of which nobody knows
    return [*gradients[:ends], *[None] * rest, *gradients[ends:]]


def _rows(x):
    """[.., k] as [m, k]."""
    return tf.reshape(x, [-1, x.shape[-1] or tf.shape(x)[-1]])


_FUNCTIONS = {
    "tanh": tf.tanh,
    "relu": tf.nn.relu,
    "sigmoid": tf.sigmoid,
    "hard_sigmoid": lambda x: tf.nn.relu6(x + 3.0) / 6.0,
    "linear": tf.identity,
}


def _by_steps(called, src, kernel, recurrent, biases, states, to_sums, to_recurrent_sums) -> list:
    """dst, the states after the last step, and of each step the state before it, and reset.

    Args:
        to_sums, to_recurrent_sums: what is added to the products with the two kernels.
    """
    activate, gate = (_FUNCTIONS[f] for f in (called.activation, called.recurrent_activation))
    turn = (lambda x: x[::-1]) if called.go_backwards else (lambda x: x)
    by_time = (lambda x: x) if called.time_major else _swapped
    rows = [
        row for bias in biases for row in (tf.unstack(bias) if bias.shape.rank == 2 else [bias])
    ]
    sums = by_time(tf.tensordot(src, kernel, 1) + (rows[0] if rows else 0.0) + to_sums)
    added = by_time(to_recurrent_sums + (rows[1] if len(rows) > 1 else 0.0))
    steps, batch = tf.shape(sums)[0], tf.shape(sums)[1]
    is_on = tf.ones([steps, batch], tf.bool)
    for mask in called.mask:
        is_on &= by_time(mask)
    for length in called.lengths:
        is_on &= tf.range(steps)[:, None] < length
    # A loop keeps the shapes that it begins with: what one operand says of the batch, all say.
    sizes = [x.shape[1 if called.time_major else 0] for x in (src, *called.mask)]
    sizes += [x.shape[0] for x in (*states, *called.lengths)]
    known = next((size for size in sizes if size is not None), None)
    sums, added = (tf.ensure_shape(x, [None, known, None]) for x in (sums, added))
    is_on = tf.ensure_shape(is_on, [None, known])
    states = [tf.ensure_shape(state, [known, None]) for state in states]

    def step(before, now):
        (y, h, c, _), (x, added, is_on) = before, now
        units, reset, new_c = h.shape[1], h, c
        if called.cell == "gru" and not called.reset_after:
            z, r = tf.split(gate(x[:, : 2 * units] + h @ recurrent[:, : 2 * units]), 2, 1)
            reset = r * h
            new = activate(x[:, 2 * units :] + reset @ recurrent[:, 2 * units :])
            new = z * h + (1.0 - z) * new
        elif called.cell == "gru":
            parts = (tf.split(v, 3, 1) for v in (x, h @ recurrent + added))
            (x_z, x_r, x_h), (h_z, h_r, h_h) = parts
            z = gate(x_z + h_z)
            new = z * h + (1.0 - z) * activate(x_h + gate(x_r + h_r) * h_h)
        elif called.cell == "lstm":
            i, f, g, o = tf.split(x + h @ recurrent, 4, 1)
            new_c = gate(f) * c + gate(i) * activate(g)
            new = gate(o) * activate(new_c)
        else:
            new = activate(x + h @ recurrent)
        is_on = is_on[:, None]
        y = tf.where(is_on, new, tf.zeros_like(y) if called.zero_output_for_mask else y)
        return y, tf.where(is_on, new, h), tf.where(is_on, new_c, c), reset

    zero = tf.ensure_shape(tf.zeros([batch, recurrent.shape[0]]), [known, None])
    start = (zero, *states, *[zero] * (3 - len(states)))
    then = tf.scan(step, tuple(map(turn, (sums, added, is_on))), start)
    dst, h, c = (tf.concat([x[None], y], 0) for x, y in zip(start[:3], then[:3], strict=True))
    y = dst[-1]
    if called.return_sequences:
        y = by_time(turn(dst[1:]) if called.restore_order else dst[1:])
    ends = [y, h[-1], c[-1]] if called.cell == "lstm" else [y, h[-1]]
    return [*ends, by_time(turn(h[:-1])), by_time(turn(then[3]))]


def _swapped(x):
    """Steps and batch in the other order."""
    return tf.transpose(x, [1, 0, *range(2, x.shape.rank)])
