"""Gradients of the ops that multiply by packed matrices, recurrent layers among them."""

import tensorflow as tf

from ..native import library
from ..ops.products.inner_product import inner_product
from ..ops.products.packed_matmul import packed_matmul
from ..ops.products.rnn import Rnn
from .chain import Chain, through_chain
from .node import gradient_of, vjp


@gradient_of("InnerProduct")
def _inner_product(called, dy):
    src, weights, shape = called.src, called.weights, called.weights_shape

    def forward(src, weights, *_):
        return inner_product(src, weights, how=f"{called.algorithm} {called.scratchpad_mode}")

    def backward(dz) -> list:
        dz, dsrc, dweights = tf.reshape(dz, [-1, shape[1]]), None, None
        if called.wants("src"):
            dsrc = tf.matmul(dz, tf.reshape(weights, shape), transpose_b=True)
            dsrc = tf.reshape(dsrc, tf.shape(src))
        if called.wants("weights"):
            dweights = tf.matmul(tf.reshape(src, [-1, shape[0]]), dz, transpose_a=True)
            dweights = tf.reshape(dweights, weights.shape)
        return [dsrc, dweights]

    chain = Chain.of(called.post_ops, shape[-1], "nhwc")
    return through_chain(called, dy, chain, forward, backward)


@gradient_of("PackedMatmul")
def _packed_matmul(called, dy):
    """With z = a b + s c: da = dz b^T, db = a^T dz, dc = s dz."""
    transpose_a, transpose_b = called.transpose_a, called.transpose_b
    a, b, scale = called.a, called.b, called.add_scale
    n = called.dst.shape[-1]
    if n is None:
        n = b.shape[0 if transpose_b else 1]

    def forward(a, b, *c):
        return tf.add_n([_product(a, b, transpose_a, transpose_b), *(scale * term for term in c)])

    def backward(dz) -> list:
        da = db = None
        if called.wants("a"):
            da = packed_matmul(dz, b, transpose_b=not transpose_b, how=called.algorithm)
            da = tf.transpose(da) if transpose_a else da
        if called.wants("b"):
            left, dy = a if transpose_a else tf.transpose(_rows(a)), _rows(dz)
            db = tf.matmul(dy, left, True, True) if transpose_b else tf.matmul(left, dy)
        return [da, db, *(dz if scale == 1 else scale * dz for _ in called.c)]

    return through_chain(called, dy, Chain.of(called.post_ops, n, "nhwc"), forward, backward)


def _rows(x):
    """[.., k] as [m, k]."""
    return x if x.shape.rank == 2 else tf.reshape(x, [-1, x.shape[-1] or tf.shape(x)[-1]])


def _product(a, b, transpose_a: bool, transpose_b: bool):
    if a.shape.rank == 2:
        return tf.matmul(a, b, transpose_a, transpose_b)
    y = tf.matmul(_rows(a), b, transpose_b=transpose_b)
    return tf.reshape(y, tf.concat([tf.shape(a)[:-1], tf.shape(y)[-1:]], 0))


@gradient_of("Attention")
def _attention(called, dy):
    """By TensorFlow's ops: the formula once more, differentiated."""
    masks = called.masks
    floats = [called.q, called.k, called.v, *called.biases]

    def formula(q, k, v, *biases):
        return _attended(called, q, k, v, biases, masks)

    return vjp(formula, floats, dy) + [None] * len(masks)


def _attended(called, q, k, v, biases, masks):
    q, k, v = (
        x[(*[slice(None)] * called.at_axis, *at)] if at else x
        for x, at in ((q, called.q_at), (k, called.k_at), (v, called.v_at))
    )
    row = "bts" if q.shape.rank == 3 else "bnts"

    def axes(name: str, rows: str, size: str) -> str:
        """The layout as einsum's letters."""
        letters = getattr(called, f"{name}_layout").lower().replace("t", rows).replace("h", size)
        return letters if "n" in row else letters.replace("n", "")

    of_q, of_k = axes("q", "t", "h"), axes("k", "s", "h")
    of_v, of_dst = axes("v", "s", "d"), axes("dst", "t", "d")
    if "n" in row:
        group = tf.shape(q)[of_q.index("n")] // tf.shape(k)[of_k.index("n")]
        k, v = (tf.repeat(x, group, of.index("n")) for x, of in ((k, of_k), (v, of_v)))
    scores = called.scale * tf.einsum(f"{of_q},{of_k}->{row}", q, k)
    if called.soft_cap:
        scores = called.soft_cap * tf.tanh(scores / called.soft_cap)
    late = len(biases) - called.late_biases
    for bias in biases[:late]:
        scores += _for_sequences(bias, scores)
    for mask in masks:
        scores = tf.where(_for_sequences(mask, scores), scores, called.masked_value)
    for bias in biases[late:]:
        scores += _for_sequences(bias, scores)
    if called.causal:
        queries, keys = tf.shape(scores)[-2], tf.shape(scores)[-1]
        earlier = tf.range(keys)[None, :] <= tf.range(queries)[:, None]
        scores = tf.where(earlier, scores, float("-inf"))
    weights = tf.nn.softmax(scores)
    if called.zero_masked:
        for mask in masks:
            weights = tf.where(_for_sequences(mask, scores), weights, 0.0)
    return tf.einsum(f"{row},{of_v}->{of_dst}", weights, v)


def _for_sequences(bias, scores):
    """A bias or mask with an entry for each sequence, or for all."""
    rank = scores.shape.rank
    bias = bias[0] if bias.shape.rank == rank + 1 else bias
    if bias.shape.rank != rank or bias.shape[0] == 1:
        return bias
    times = tf.shape(scores)[0] // tf.maximum(1, tf.shape(bias)[0])  # of no sequences none
    return tf.tile(bias, [times, *[1] * (rank - 1)])


@gradient_of("Rnn")
def _rnn(called, d_dst, d_state, d_cell, _):
    """From the sums that the op of the gradient leaves, a product for each of the weights."""
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
        values = [sums, recurrent_sums, before, reset, *d_states]
        return [x for x, is_used in zip(values, used, strict=False) if is_used]

    upstream = [dy for dy, is_used in zip(upstream, used, strict=True) if is_used]
    gradients = vjp(formula, operands, upstream)
    rest = len(called.mask) + len(called.lengths) + 1  # and the workspace, of which nobody knows
    return [*gradients[:ends], *[None] * rest, *gradients[ends:]]


_ACTIVATIONS = {
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
    activate, gate = (_ACTIVATIONS[f] for f in (called.activation, called.recurrent_activation))
    in_order = (lambda x: x[::-1]) if called.go_backwards else (lambda x: x)
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
    then = tf.scan(step, tuple(map(in_order, (sums, added, is_on))), start)
    dst, h, c = (tf.concat([x[None], y], 0) for x, y in zip(start[:3], then[:3], strict=True))
    y = dst[-1]
    if called.return_sequences:
        y = by_time(in_order(dst[1:]) if called.restore_order else dst[1:])
    ends = [y, h[-1], c[-1]] if called.cell == "lstm" else [y, h[-1]]
    return [*ends, by_time(in_order(h[:-1])), by_time(in_order(then[3]))]


def _swapped(x):
    """Steps and batch in the other order."""
    return tf.transpose(x, [1, 0, *range(2, x.shape.rank)])
