"""The gradient of recurrent layers; further derivatives go through the layer step by step."""

import tensorflow as tf

from ..native import library
from ..ops.products.rnn import Rnn
from .node import gradient_of, vjp


@gradient_of("Rnn")
def _rnn(called, d_dst, d_state, d_cell, _):
    constants = called.mask, called.lengths
    inputs = [called.src, called.kernel, called.recurrent_kernel, *called.bias]
    inputs += called.initial_state
    count = len(inputs)

    def formula(*given) -> list:
        return _by_steps(called, *_split(called, given), *constants)

    def by_steps(*given) -> list:
        upstream = given[count:] if called.cell == "lstm" else given[count:-1]
        return vjp(formula, given[:count], upstream)

    @tf.custom_gradient
    def by_op(*given):
        gradients = _by_op(called, *_split(called, given), *constants, *given[count:])
        return gradients, lambda *upstream: vjp(by_steps, given, list(upstream))

    gradients = by_op(*inputs, d_dst, d_state, d_cell)
    return [*gradients, *[None for group in constants for _ in group]]


def _split(called, given):
    """src, kernel, recurrent_kernel, [bias], states of what holds them one after the other."""
    first = 3 + len(called.bias)
    return *given[:3], list(given[3:first]), list(given[first : first + len(called.initial_state)])


def _by_op(called, src, kernel, recurrent, biases, states, masks, lengths, *upstream) -> list:
    inputs = [src, kernel, recurrent, biases, states, masks, lengths]
    attributes = called.attributes()
    for own in ("training", "constant_weights", "round_rows"):
        del attributes[own]
    if called.training:
        workspace = called.op.outputs[3]
    else:
        workspace = Rnn.run(*inputs, [], **attributes, training=True)[3]
    sums, recurrent_sums, before, reset, *d_states = library().blockdnn_rnn_grad(
        *inputs, workspace, *upstream, **attributes, training=True
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
    return [d_src, d_kernel, d_recurrent, *[d_bias for _ in biases], *d_states[: len(states)]]


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


def _by_steps(called, src, kernel, recurrent, biases, states, masks, lengths) -> list:
    """dst and the states after the last step, by TensorFlow's ops."""
    activate, gate = (_FUNCTIONS[f] for f in (called.activation, called.recurrent_activation))
    by_time = (lambda x: x) if called.time_major else _swapped
    src = by_time(src)
    steps, batch = tf.shape(src)[0], tf.shape(src)[1]
    rows = [
        row for bias in biases for row in (tf.unstack(bias) if bias.shape.rank == 2 else [bias])
    ]
    sums = tf.tensordot(src, kernel, 1) + (rows[0] if rows else 0.0)
    is_on = tf.ones([steps, batch], tf.bool)
    for mask in masks:
        is_on &= by_time(mask)
    for length in lengths:
        is_on &= tf.range(steps)[:, None] < length
    if called.go_backwards:
        sums, is_on = sums[::-1], is_on[::-1]

    def step(before, now):
        (y, h, c), (x, is_on) = before, now
        if called.cell == "gru" and not called.reset_after:
            units = h.shape[1]
            z, r = tf.split(gate(x[:, : 2 * units] + h @ recurrent[:, : 2 * units]), 2, 1)
            new = activate(x[:, 2 * units :] + (r * h) @ recurrent[:, 2 * units :])
        else:
            by_state = h @ recurrent + (rows[1] if len(rows) > 1 else 0.0)
        if called.cell == "gru" and called.reset_after:
            (x_z, x_r, x_h), (h_z, h_r, h_h) = (tf.split(v, 3, 1) for v in (x, by_state))
            z, new = gate(x_z + h_z), activate(x_h + gate(x_r + h_r) * h_h)
        if called.cell == "gru":
            new, new_c = z * h + (1.0 - z) * new, c
        elif called.cell == "lstm":
            i, f, g, o = tf.split(x + by_state, 4, 1)
            new_c = gate(f) * c + gate(i) * activate(g)
            new = gate(o) * activate(new_c)
        else:
            new, new_c = activate(x + by_state), c
        is_on = is_on[:, None]
        y = tf.where(is_on, new, tf.zeros_like(y) if called.zero_output_for_mask else y)
        return y, tf.where(is_on, new, h), tf.where(is_on, new_c, c)

    zero = tf.zeros([batch, recurrent.shape[0]])
    start = [zero, *states, *[zero] * (2 - len(states))]
    dst, h, c = (
        tf.concat([first[None], then], 0)
        for first, then in zip(start, tf.scan(step, (sums, is_on), tuple(start)), strict=True)
    )
    if called.return_sequences:
        turned = called.go_backwards and called.restore_order
        dst = by_time(dst[:0:-1] if turned else dst[1:])
    else:
        dst = dst[-1]
    return [dst, h[-1], c[-1]] if called.cell == "lstm" else [dst, h[-1]]


def _swapped(x):
    """Steps and batch in the other order."""
    return tf.transpose(x, [1, 0, *range(2, x.shape.rank)])
