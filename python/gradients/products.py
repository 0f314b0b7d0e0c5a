"""Gradients of the ops that multiply by packed matrices."""

import tensorflow as tf

from ..ops.products.inner_product import inner_product
from ..ops.products.packed_matmul import packed_matmul
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
    return x if x.shape.rank == 2 else tf.reshape(x, tf.stack([-1, tf.shape(x)[-1]]))


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
