"""Gradients of what no drawn call has: every function, one tensor twice, ties, types, refusals."""

import numpy as np
import plain_formulas as plain
import pytest
import references
import tensorflow as tf
from checked import check, gradients

import tf_blockdnn as bd
from tf_blockdnn.python.gradients import OPS, formulas
from tf_blockdnn.python.native import library


def test_every_formula_is_registered():
    assert formulas().keys() == {f"Blockdnn{op}" for op in OPS}


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


@pytest.mark.parametrize(
    "op, shape",
    [*((op, (2, 20)) for op in ("add", "prelu", *_NAMES)), ("div", (20,)), ("div", (2, 3, 3, 20))],
)
def test_binary(op, shape, floats):
    """By a value for each sample and channel, and of a quotient."""

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


def test_one_tensor_twice(floats):
    """x is source and operand; each gets its share once."""

    def ours(x, w):
        return bd.ops.conv(x, w, post_ops="sum(#0);eltwise(square)", args=[x], padding="SAME")

    check(
        plain.blocked(ours),
        lambda x, w: tf.square(plain.conv(x, w) + x),
        [floats(2, 5, 6, 20), floats(3, 3, 20, 20) / 8],
        graph=True,
    )


def test_values_a_sample_and_channel(floats):
    def ours(x, w, s):
        return bd.ops.conv(x, w, post_ops=bd.PostOps().binary("mul", s), padding="SAME")

    check(
        plain.blocked(ours),
        lambda x, w, s: plain.conv(x, w) * s[:, None, None, :],
        [floats(2, 5, 6, 18), floats(3, 3, 18, 20), floats(2, 20)],
    )


@pytest.mark.parametrize("padding, strides", [("SAME", 1), ([[1, 2], [0, 1]], 2)])
def test_depthwise_filter_of_tensorflow(padding, strides, floats):
    """[kh, kw, C, m] is the memory of [kh, kw, 1, C * m]; the gradient has its shape."""

    def ours(x, w):
        options = dict(padding=padding, strides=strides, groups=20, weights_shape=[3, 3, 1, 40])
        return bd.ops.conv(x, w, **options)

    def formula(x, w):
        around = padding if padding == "SAME" else [[0, 0], *padding, [0, 0]]
        return tf.nn.depthwise_conv2d(x, w, [1, strides, strides, 1], around)

    inputs = [floats(2, 5, 6, 20), floats(3, 3, 20, 2)]
    check(plain.blocked(ours, 40), formula, inputs, second=False)


def test_a_part_of_nothing(floats):
    """Channels 16 to 32 of 40 go to channels 0 to 16 of 36, of which the rest is anything."""

    def ours(x, w):
        parts = dict(channels=16, src_part=(16, 40), dst_part=(0, 36))
        return plain.unblock(bd.ops.conv(plain.block(x), w, padding="SAME", **parts), 36)[..., :16]

    inputs = [floats(2, 4, 5, 40), floats(3, 3, 16, 16)]
    check(ours, lambda x, w: plain.conv(x[..., 16:32], w), inputs)


@pytest.mark.parametrize("layout", ["nhwc", "nChw16c"])
@pytest.mark.parametrize("kernel, strides, groups", [(1, 1, 1), (1, 2, 1), (3, 1, 1), (3, 1, 20)])
def test_a_source_of_bfloat16(layout, kernel, strides, groups, floats):
    """Products round to bfloat16 what they read, sums and the weights' gradient are float32."""
    if groups > 1 and layout == "nhwc":
        pytest.skip("depthwise convolutions of plain tensors have no low-precision form")

    def ours(x, weights):
        options = dict(strides=strides, groups=groups, src_layout=layout, dst_layout=layout)
        x = plain.block(x) if layout == "nChw16c" else x
        y = bd.ops.conv(tf.cast(x, tf.bfloat16), weights, padding="SAME", **options)
        return plain.unblock(y, 20) if layout == "nChw16c" else y

    def formula(x, weights):
        if groups == 1:
            return tf.nn.conv2d(x, weights, strides, "SAME")
        weights = tf.transpose(weights, [0, 1, 3, 2])
        return tf.nn.depthwise_conv2d(x, weights, [1, strides, strides, 1], "SAME")

    inputs = [floats(2, 6, 7, 20), floats(kernel, kernel, 20 // groups, 20)]
    y, dxs, _ = gradients(ours, inputs)
    wanted, expected, _ = gradients(formula, [x.astype(np.float64) for x in inputs])
    for got, exact in zip((y, *dxs), (wanted, *expected), strict=True):
        assert got.dtype == tf.float32
        got, exact = np.asarray(got), np.asarray(exact)
        assert 1e-6 < np.abs(got - exact).max() / np.abs(exact).max() < 0.01


@pytest.mark.parametrize(
    "ksize, strides, padding", [(2, 2, "VALID"), (3, 2, "SAME"), (3, 1, "SAME")]
)
def test_max_pool_ties(ksize, strides, padding):
    """Of several maxima the first takes all, as with TensorFlow."""
    rng = np.random.default_rng(4)
    x = rng.integers(0, 3, (2, 7, 6, 20)).astype(np.float32)

    def gradient(pool):
        y = pool(tf.constant(x))
        dy = np.random.default_rng(5).integers(-4, 5, y.shape).astype(np.float32)
        return gradients(pool, [x], dy)[1][0]

    options = dict(channels=20, strides=strides, padding=padding)
    ours = plain.blocked(lambda x: bd.ops.pool(x, "max", ksize, **options))
    expected = gradient(lambda x: tf.nn.max_pool2d(x, ksize, strides, padding))
    np.testing.assert_array_equal(gradient(ours), expected)


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
    x = floats(2, 3, 4, 20)

    def gradient(dtype):
        cast = lambda x: tf.cast(bd.ops.reorder(x, "nhwc", "nChw16c", dtype=dtype), tf.float32)  # noqa: E731
        return gradients(cast, [x])[1][0]

    np.testing.assert_array_equal(gradient("bfloat16"), np.ones_like(x))
    assert gradient("int8") is None


def test_layer_norm_grad_checks_shapes():
    """Gradients of other shapes than the source, and rows of other lengths, are refused."""
    grad = library().blockdnn_layer_norm_grad
    x, row = tf.zeros((1, 2, 3, 3, 16)), tf.ones(20)
    with pytest.raises(tf.errors.InvalidArgumentError, match="inputs 0 and 1 differ"):
        grad(x[:, :, :2], x, row, channels=20, epsilon=0.1)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"input 2 must be \[20\]"):
        grad(x, x, row[:19], channels=20, epsilon=0.1)


@pytest.mark.parametrize(
    "ddst, src, message",
    [
        ((1, 2, 3, 3, 16), (1, 2, 4, 4, 16), "ddst must have the shape of the result"),
        ((1, 2, 2, 2, 16), (1, 1, 4, 4, 16), "src"),
    ],
)
def test_pool_grad_checks_shapes(ddst, src, message):
    call = tf.function(
        lambda a, b: library().blockdnn_pool_grad(
            a, b, a, kind="max", channels=20, ksize=[2, 2], strides=[2, 2], padding="VALID"
        ),
        input_signature=[tf.TensorSpec(None), tf.TensorSpec(None)],
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        call(tf.zeros(ddst), tf.zeros(src))
