"""Gradients of every op but the convolution, against those of plain formulas in float64."""

import functools

import numpy as np
import plain_formulas as plain
import pytest
import references
import tensorflow as tf
from checked import check, gradients

import tf_blockdnn as bd
from tf_blockdnn.python.gradients import OPS, formulas
from tf_blockdnn.python.native import library


@pytest.mark.each_isa
@pytest.mark.parametrize("name", plain.ELTWISE)
def test_eltwise(name, floats):
    """Alone, from its result or its source; scaled, behind another entry, blocked and plain."""
    numbers, function = plain.ELTWISE[name]
    text = f"eltwise({','.join(filter(None, [name, numbers]))})"
    x = floats(2, 3, 3, 20)
    x = np.abs(x) + 0.1 if name in plain.POSITIVE_ONLY else x
    check(
        plain.blocked(lambda x: bd.ops.eltwise(x, text, channels=20)),
        function,
        [x],
        second=name != "softsign",  # TensorFlow has none
    )
    scaled = f"eltwise(linear,alpha=0.9);{text[:-1]},scale=3)"
    check(
        lambda x: bd.ops.eltwise(x, scaled, layout="nhwc"),
        lambda x: 3 * function(x * np.float32(0.9)),
        [x],
        second=False,
    )


@pytest.mark.parametrize("name", sorted(references.STEPS))
def test_steps_have_no_slope(name, floats):
    _, (dx,), _ = gradients(
        lambda x: bd.ops.eltwise(x, f"eltwise({name})", layout="nhwc"), [floats(1, 2, 2, 3)]
    )
    np.testing.assert_array_equal(dx, 0)


_NAMES = dict(sub="subtract", mul="multiply", div="divide", max="maximum", min="minimum")


@pytest.mark.parametrize("op", ["add", "prelu", *_NAMES])
@pytest.mark.parametrize("shape", [(), (20,), (2, 20), (2, 3, 3, 20)], ids=str)
def test_binary(op, shape, floats):
    def ours(x, y):
        return bd.ops.eltwise(x, bd.PostOps().binary(op, y), channels=20)

    def formula(x, y):
        y = y[:, None, None] if shape == (2, 20) else y
        if op == "prelu":
            return tf.nn.relu(x) - y * tf.nn.relu(-x)
        return getattr(tf, _NAMES.get(op, op))(x, y)

    operand = floats(*shape)
    operand = np.abs(operand) + 0.5 if op == "div" else operand
    check(plain.blocked(ours), formula, [floats(2, 3, 3, 20), operand])


def test_eltwise_parts(floats):
    def ours(x, into):
        parts = dict(src_part=(16, 20), dst_part=(32, 36), into=into)
        return bd.ops.eltwise(x, "eltwise(tanh)", channels=4, **parts)

    check(
        plain.blocked(ours, 36),
        lambda x, into: tf.concat([into[..., :32], tf.tanh(x[..., 16:])], 3),
        [floats(2, 3, 3, 20), floats(2, 3, 3, 36)],
    )


@pytest.mark.parametrize("kind", ["nearest", "bilinear"])
def test_resize(kind, floats):
    def along(size):
        """The matrix that doubles an axis: TensorFlow resizes in float32 only."""
        unit = tf.eye(size)[None, :, :, None]
        return tf.image.resize(unit, [2 * size, size], kind)[0, :, :, 0]

    def formula(x):
        rows, columns = (tf.cast(along(size), x.dtype) for size in (3, 4))
        return tf.einsum("ah,bw,nhwc->nabc", rows, columns, x)

    for to in ({"scales": 2}, {"size": [6, 8]}):
        ours = plain.blocked(lambda x, to=to: bd.ops.resize(x, kind, channels=20, **to))
        check(ours, formula, [floats(2, 3, 4, 20)], second=False)


@pytest.mark.each_isa
@pytest.mark.parametrize("kind", ["max", "avg"])
@pytest.mark.parametrize("layout", ["nc", "nhwc", "nChw16c"])
def test_global_pool(kind, layout, floats):
    def ours(x):
        y = bd.ops.global_pool(plain.block(x), kind, channels=20, dst_layout=layout)
        return tf.square(plain.unblock(y, 20) if layout == "nChw16c" else y)

    reduce = tf.reduce_max if kind == "max" else tf.reduce_mean
    check(
        ours,
        lambda x: tf.square(reduce(x, [1, 2], keepdims=layout != "nc")),
        [floats(2, 4, 5, 20)],
    )


@pytest.mark.each_isa
@pytest.mark.parametrize("channels", [(16, 32, 5), (20, 3, 16), (7,)], ids=str)
def test_concat(channels, floats):
    ours = plain.blocked(lambda *xs: tf.square(bd.ops.concat(xs, channels=channels)), sum(channels))
    values = [floats(2, 3, 4, c) for c in channels]
    check(ours, lambda *values: tf.square(tf.concat(values, 3)), values)


@pytest.mark.parametrize("part", [None, (16, 52)], ids=str)
def test_concat_into(part, floats):
    def ours(a, b, into):
        return tf.square(bd.ops.concat([a, b], channels=[20, 12], dst_part=part, into=into))

    def formula(a, b, into):
        inner = tf.concat([a, b], 3)
        whole = tf.concat([into[..., :16], inner, into[..., 48:]], 3) if part else inner + 0 * into
        return tf.square(whole)

    channels = 52 if part else 32
    inputs = [floats(2, 3, 4, c) for c in (20, 12, channels)]
    check(plain.blocked(ours, channels), formula, inputs)


@pytest.mark.each_isa
def test_softmax(floats):
    check(bd.ops.softmax, tf.nn.softmax, [floats(3, 4, 21)])


@pytest.mark.parametrize("group", [2, 5])
def test_shuffle(group, floats):
    options = dict(axis=1, group=group, layout="nChw16c", channels=20)
    ours = plain.blocked(lambda x: tf.square(bd.ops.shuffle(x, **options)))
    check(ours, lambda x: tf.square(plain.shuffle(x, group)), [floats(2, 3, 4, 20)])


@pytest.mark.each_isa
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("activation", ["relu", "swish"])
def test_inner_product(rank, activation, floats):
    shape = (4, 7)[: rank - 1]
    function = tf.nn.relu if activation == "relu" else tf.nn.silu

    def ours(x, w, b):
        chain = bd.PostOps().binary("add", b).eltwise(activation)
        return bd.ops.inner_product(x, w, post_ops=chain)

    check(
        ours,
        lambda x, w, b: function(tf.matmul(x, w) + b),
        [floats(*shape, 9), floats(9, 20) / 3, floats(20)],
    )


def test_inner_product_of_a_part(floats):
    def ours(x, memory, b, s):
        chain = bd.PostOps().binary("add", b).binary("mul", s)
        return bd.ops.inner_product(
            x, memory, weights_shape=[9, 20], weights_offset=5, post_ops=chain
        )

    check(
        ours,
        lambda x, m, b, s: (tf.matmul(x, tf.reshape(m[5:185], [9, 20])) + b) * s[:, None, :],
        [floats(4, 7, 9), floats(200), floats(20), floats(4, 20)],
    )


@pytest.mark.parametrize(
    "layout, scale_src", [("nc", 0), ("nhwc", 0), ("nChw16c", 0), ("nChw16c", 1)]
)
def test_squeeze_excite(layout, scale_src, floats):
    def ours(x, *parameters):
        y = bd.ops.squeeze_excite(
            plain.block(x),
            *parameters,
            channels=20,
            squeezed=6,
            reduce_post_ops="eltwise(swish)",
            dst_layout=layout,
            scale_src=bool(scale_src),
        )
        return plain.unblock(y, 20) if layout == "nChw16c" else y

    def formula(x, w1, b1, w2, b2):
        scale = tf.sigmoid(
            tf.matmul(tf.nn.silu(tf.matmul(tf.reduce_mean(x, [1, 2]), w1) + b1), w2) + b2
        )
        scale = scale if layout == "nc" else scale[:, None, None, :]
        return x * scale if scale_src else scale

    check(ours, formula, [floats(2, 3, 4, 20), floats(20, 6), floats(6), floats(6, 20), floats(20)])


@pytest.mark.each_isa
@pytest.mark.parametrize("strides", [1, 2])
def test_conv_depthwise(strides, floats):
    def ours(x, w, dw, b1, b2):
        return bd.ops.conv_depthwise(
            x,
            w,
            dw,
            strides=strides,
            post_ops=bd.PostOps().binary("add", b1).eltwise("relu6"),
            depthwise_post_ops=bd.PostOps().binary("add", b2).eltwise("swish"),
            padding="SAME",
        )

    def formula(x, w, dw, b1, b2):
        x = tf.nn.relu6(plain.conv(x, w) + b1)
        steps = [1, strides, strides, 1]
        return tf.nn.silu(tf.nn.depthwise_conv2d(x, dw, steps, "SAME") + b2)

    shapes = (2, 6, 5, 18), (1, 1, 18, 24), (3, 3, 24, 1), (24,), (24,)
    inputs = [floats(*shape) for shape in shapes]
    check(plain.blocked(ours, 24), formula, inputs, second=False)


def test_reorder_by_names(floats):
    scales = floats(1, 20, 1, 1)

    def ours(x):
        y = bd.ops.reorder(x, "nhwc", "nChw16c", scales=scales)
        return bd.ops.reorder(tf.square(y), "nChw16c", "nchw", channels=20)

    def formula(x):
        return tf.square(tf.transpose(x, [0, 3, 1, 2]) * scales)

    check(ours, formula, [floats(2, 3, 4, 20)])


def test_reorder_into_memory_with_holes(floats):
    """Both sides strided, added to what is there: the holes of `into` pass through."""
    src = bd.TensorDesc((2, 3), strides=(8, 2), offset=1)
    dst = bd.TensorDesc((2, 3), strides=(1, 5), offset=2)
    into, out = src.offsets().ravel(), dst.offsets().ravel()

    def ours(x, y):
        return tf.square(bd.ops.reorder(x, src, dst, into=y, beta=0.5, scales=3.0))

    def formula(x, y):
        placed = 3 * tf.gather(x, into) + 0.5 * tf.gather(y, out)
        return tf.square(tf.tensor_scatter_nd_update(y, out[:, None], placed))

    check(ours, formula, [floats(20), floats(16)])


def test_reorder_to_another_type(floats):
    """As tf.cast: rounding counts as the identity; integers have no gradient."""
    x = tf.constant(floats(2, 3, 4, 20))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = bd.ops.reorder(x, "nhwc", "nChw16c", dtype="bfloat16")
    dx = tape.gradient(y, x)
    assert dx.dtype == tf.float32
    np.testing.assert_array_equal(dx, np.ones_like(x))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.cast(bd.ops.reorder(x, "nhwc", "nChw16c", dtype="int8"), tf.float32)
    assert tape.gradient(y, x) is None


def _layer_norm(x, gamma, beta, centered=True):
    mean = tf.reduce_mean(x, -1, keepdims=True) if centered else tf.constant(0.0, x.dtype)
    variance = tf.reduce_mean(tf.square(x - mean), -1, keepdims=True)
    return (x - mean) * tf.math.rsqrt(variance + tf.cast(1e-3, x.dtype)) * gamma + beta


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("layout", ["nhwc", "nChw16c"])
def test_layer_norm(layout, centered, floats):
    norm = functools.partial(bd.ops.layer_norm, centered=centered)

    def ours(x, gamma, beta):
        if layout == "nhwc":
            return norm(x, gamma, beta, layout=layout)
        return plain.unblock(norm(plain.block(x), gamma, beta, channels=20), 20)

    definition = functools.partial(_layer_norm, centered=centered)
    check(ours, definition, [floats(2, 3, 4, 20), floats(20), floats(20)])


def test_layer_norm_grad_checks_shapes():
    """Gradients of other shapes than the source, and rows of other lengths, are refused."""
    grad = library().blockdnn_layer_norm_grad
    x, row = tf.zeros((1, 2, 3, 3, 16)), tf.ones(20)
    with pytest.raises(tf.errors.InvalidArgumentError, match="inputs 0 and 1 differ"):
        grad(x[:, :, :2], x, row, channels=20, epsilon=0.1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input 2 must be \[20\]"):
        grad(x, x, row[:19], channels=20, epsilon=0.1)


def test_every_formula_is_registered():
    assert formulas().keys() == {f"Blockdnn{op}" for op in OPS}


def test_pad(floats):
    def formula(x):
        return tf.pad(x[:, :-1], [[0, 0], [1, 0], [2, 0], [0, 0]])

    ours = plain.blocked(lambda x: bd.ops.pad(x, [[1, -1], [2, 0]], channels=20))
    check(ours, formula, [floats(2, 3, 4, 20)])
