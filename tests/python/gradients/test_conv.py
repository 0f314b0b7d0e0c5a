"""Gradients of convolutions, against those of the plain formula in float64."""

import numpy as np
import plain_formulas as plain
import pytest
import tensorflow as tf
from checked import check, gradients

import tf_blockdnn as bd

# Height and width, channels, output channels, window, and what differs from the defaults.
CASES = {
    "3x3": ((6, 7), 20, 24, (3, 3), {}),
    "whole blocks": ((5, 5), 16, 32, (3, 3), {}),
    "wide planes": ((16, 17), 16, 5, (3, 3), {}),
    "wide planes, dilated": ((17, 16), 16, 5, (3, 2), dict(padding="VALID", dilations=(2, 3))),
    "wide planes, explicit": ((16, 17), 16, 5, (3, 3), {"padding": [[0, 3], [2, 0]]}),
    "1x1, padded": ((4, 5), 20, 9, (1, 1), {"padding": [[1, 0], [0, 2]]}),
    "1x1": ((4, 5), 20, 9, (1, 1), {}),
    "1x1 stride 2": ((5, 6), 20, 9, (1, 1), {"strides": (2, 2)}),
    "VALID": ((6, 7), 5, 17, (3, 2), {"padding": "VALID"}),
    "stride 2": ((7, 8), 20, 18, (3, 3), {"strides": (2, 2)}),
    "stride 2, even": ((8, 7), 4, 18, (2, 4), {"strides": (2, 2)}),
    "stride 2, VALID": ((8, 9), 20, 18, (3, 3), {"strides": (2, 2), "padding": "VALID"}),
    "strides beyond the window": ((9, 8), 3, 18, (2, 1), {"strides": (3, 2)}),
    "strides of two kinds": ((9, 8), 17, 5, (3, 3), {"strides": (1, 3)}),
    "explicit": ((5, 6), 18, 4, (3, 3), {"padding": [[1, 2], [0, 1]]}),
    "explicit, wide": ((5, 6), 18, 4, (2, 2), {"padding": [[3, 2], [0, 1]]}),
    "explicit, strided": ((6, 7), 3, 20, (3, 3), {"padding": [[1, 2], [0, 1]], "strides": (2, 2)}),
    "dilated": ((8, 7), 20, 6, (3, 3), {"dilations": (2, 1)}),
    "dilated, VALID": ((8, 9), 20, 6, (3, 3), {"dilations": (2, 3), "padding": "VALID"}),
    "dilated, strided": ((8, 9), 20, 6, (3, 3), {"dilations": (2, 2), "strides": (2, 2)}),
    "groups": ((5, 6), 20, 30, (3, 3), {"groups": 5}),
    "groups, strided": ((7, 6), 32, 16, (3, 3), {"groups": 2, "strides": (2, 2)}),
    "groups of whole blocks": ((7, 6), 32, 64, (3, 3), {"groups": 2, "strides": (2, 1)}),
    "depthwise": ((5, 6), 20, 20, (3, 3), {"groups": 20}),
    "depthwise, strided": ((8, 7), 35, 35, (3, 3), {"groups": 35, "strides": (2, 2)}),
    "depthwise, two strides": ((8, 7), 5, 5, (3, 3), {"groups": 5, "strides": (2, 1)}),
    "depthwise, dilated": ((8, 7), 20, 20, (3, 3), {"groups": 20, "dilations": (2, 2)}),
    "depthwise, twice": ((5, 6), 10, 20, (3, 3), {"groups": 10}),
}
LAYOUTS = [("nChw16c", "nChw16c"), ("nhwc", "nChw16c"), ("nChw16c", "nhwc"), ("nhwc", "nhwc")]


def conv_of(layouts, channels, outputs, **options):
    """bd.ops.conv between plain tensors, in these layouts inside."""

    options = {"padding": "SAME"} | options

    def conv(x, weights, *args, post_ops=""):
        x = plain.block(x) if layouts[0] == "nChw16c" else x
        args = [
            plain.block(a) if a.shape.rank == 4 and layouts[1] == "nChw16c" else a for a in args
        ]
        y = bd.ops.conv(
            x,
            weights,
            src_layout=layouts[0],
            dst_layout=layouts[1],
            channels=channels,
            post_ops=post_ops,
            args=args,
            **options,
        )
        return plain.unblock(y, outputs) if layouts[1] == "nChw16c" else y

    return conv


def filters(floats, window, channels, outputs, options):
    return floats(*window, channels // options.get("groups", 1), outputs)


@pytest.mark.each_isa
@pytest.mark.parametrize("case", CASES)
def test_shapes(case, floats):
    (h, w), channels, outputs, window, options = CASES[case]
    check(
        conv_of(LAYOUTS[0], channels, outputs, **options),
        lambda x, weights: plain.conv(x, weights, **options),
        [floats(2, h, w, channels), filters(floats, window, channels, outputs, options)],
    )


@pytest.mark.parametrize("layouts", LAYOUTS, ids=" to ".join)
@pytest.mark.parametrize("case", ["3x3", "stride 2", "dilated, strided", "groups, strided"])
def test_layouts(layouts, case, floats):
    (h, w), channels, outputs, window, options = CASES[case]
    check(
        conv_of(layouts, channels, outputs, **options),
        lambda x, weights: plain.conv(x, weights, **options),
        [floats(2, h, w, channels), filters(floats, window, channels, outputs, options)],
        second=False,
    )


@pytest.mark.parametrize("layouts", LAYOUTS, ids=" to ".join)
@pytest.mark.parametrize("case", ["1x1", "1x1 stride 2", "3x3", "stride 2", "dilated", "depthwise"])
def test_a_source_of_bfloat16(layouts, case, floats):
    """Products round to bfloat16 what they read, sums and the weights' gradient are float32."""
    (h, w), channels, outputs, window, options = CASES[case]
    if "depthwise" in case and "nhwc" in layouts:
        pytest.skip("depthwise convolutions of plain tensors have no narrow form")
    ours = conv_of(layouts, channels, outputs, **options)
    weights = filters(floats, window, channels, outputs, options)
    with tf.GradientTape() as tape:
        x = tf.constant(floats(2, h, w, channels))
        held = tf.constant(weights)
        tape.watch([x, held])
        y = ours(tf.cast(x, tf.bfloat16), held)
    dx, dw = tape.gradient(y, [x, held], output_gradients=tf.ones_like(y) * 0.7)
    with tf.GradientTape() as tape:
        exact = [tf.cast(x, tf.float64), tf.cast(held, tf.float64)]
        tape.watch(exact)
        wanted = plain.conv(*exact, **options)
    expected = tape.gradient(wanted, exact, output_gradients=tf.ones_like(wanted) * 0.7)
    assert y.dtype == dx.dtype == dw.dtype == tf.float32
    for got, exactly in zip((y, dx, dw), (wanted, *expected), strict=True):
        got, exactly = np.asarray(got), np.asarray(exactly)
        assert 1e-6 < np.abs(got - exactly).max() / np.abs(exactly).max() < 0.01


# Chain, its operands' shapes for C = 20 outputs of [2, 5, 6, 20], and the formula.
CHAINS = {
    "bias and relu": (
        "binary(add,channel,#0);eltwise(relu)",
        [(20,)],
        lambda z, b: tf.nn.relu(z + b),
    ),
    "bias, sum, relu6": (
        "binary(add,channel,#0);sum(#1,scale=0.5);eltwise(relu6)",
        [(20,), (2, 5, 6, 20)],
        lambda z, b, s: tf.nn.relu6(z + b + 0.5 * s),
    ),
    "bias and swish": (
        "binary(add,channel,#0);eltwise(swish)",
        [(20,)],
        lambda z, b: (z + b) * tf.sigmoid(z + b),
    ),
    "batch norm": (
        "binary(mul,channel,#0);binary(add,channel,#1);eltwise(tanh)",
        [(20,), (20,)],
        lambda z, a, b: tf.tanh(z * a + b),
    ),
    "scalars and a sum between": (
        "eltwise(tanh);binary(sub,scalar,#0);sum(#1);eltwise(linear,alpha=2,beta=1)",
        [(1,), (2, 5, 6, 20)],
        lambda z, a, s: 2 * (tf.tanh(z) - a + s) + 1,
    ),
    "parts of one operand": (
        "binary(add,channel,#0@3);binary(sub,channel,#0@25);eltwise(elu)",
        [(50,)],
        lambda z, p: tf.nn.elu(z + p[3:23] - p[25:45]),
    ),
    "division in the tail": (
        "binary(div,channel,#0);binary(max,tensor,#1)",
        [(20,), (2, 5, 6, 20)],
        lambda z, a, m: tf.maximum(z / a, m),
    ),
}


@pytest.mark.each_isa
@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("layouts", [LAYOUTS[0], LAYOUTS[3]], ids=" to ".join)
def test_chains(chain, layouts, floats):
    text, shapes, formula = CHAINS[chain]
    args = [floats(*shape) for shape in shapes]
    if "div" in text:
        args[0] = np.abs(args[0]) + 0.5
    check(
        lambda x, w, *args: conv_of(layouts, 18, 20)(x, w, *args, post_ops=text),
        lambda x, w, *args: formula(plain.conv(x, w), *args),
        [floats(2, 5, 6, 18), floats(3, 3, 18, 20) / 8, *args],
        graph=layouts == LAYOUTS[0],
    )


def test_values_a_sample_and_channel(floats):
    def ours(x, w, s):
        return bd.ops.conv(x, w, post_ops=bd.PostOps().binary("mul", s), padding="SAME")

    check(
        plain.blocked(ours),
        lambda x, w, s: plain.conv(x, w) * s[:, None, None, :],
        [floats(2, 5, 6, 18), floats(3, 3, 18, 20), floats(2, 20)],
    )


def test_one_tensor_twice(floats):
    """x is source and operand; each gets its share once."""

    def ours(x, w):
        return bd.ops.conv(x, w, post_ops="sum(#0);eltwise(square)", args=[x], padding="SAME")

    check(
        plain.blocked(ours),
        lambda x, w: tf.square(plain.conv(x, w) + x),
        [floats(2, 5, 6, 20), floats(3, 3, 20, 20) / 8],
    )


def test_weights_inside_a_larger_tensor(floats):
    def ours(x, memory):
        part = dict(weights_shape=[3, 3, 4, 5], weights_offset=7)
        return bd.ops.conv(x, memory, padding="SAME", **part)

    def formula(x, memory):
        return plain.conv(x, tf.reshape(memory[7:187], [3, 3, 4, 5]))

    check(plain.blocked(ours, 5), formula, [floats(2, 5, 6, 4), floats(200)])


def test_depthwise_filter_of_tensorflow(floats):
    """[kh, kw, C, m] is the memory of [kh, kw, 1, C * m]; the gradient has its shape."""

    def ours(x, w):
        return bd.ops.conv(x, w, groups=20, weights_shape=[3, 3, 1, 40], padding="SAME")

    check(
        plain.blocked(ours, 40),
        lambda x, w: tf.nn.depthwise_conv2d(x, w, [1, 1, 1, 1], "SAME"),
        [floats(2, 5, 6, 20), floats(3, 3, 20, 2)],
        second=False,
    )


@pytest.mark.parametrize("has_into", [False, True])
def test_parts(has_into, floats):
    """Channels 16 to 32 of 40 go to channels 0 to 16 of 36."""

    def ours(x, w, into):
        options = dict(into=plain.block(into)) if has_into else {}
        y = bd.ops.conv(
            plain.block(x),
            w,
            padding="SAME",
            channels=16,
            src_part=(16, 40),
            dst_part=(0, 36),
            **options,
        )
        y = plain.unblock(y, 36)
        return y if has_into else y[..., :16] + 0 * into[..., :16]

    def formula(x, w, into):
        y = plain.conv(x[..., 16:32], w)
        return tf.concat([y, into[..., 16:]], 3) if has_into else y + 0 * into[..., :16]

    check(ours, formula, [floats(2, 4, 5, 40), floats(3, 3, 16, 16), floats(2, 4, 5, 36)])


def test_pool_behind(floats):
    def ours(x, w):
        return bd.ops.conv(x, w, pool=2, post_ops="eltwise(relu)", padding="SAME")

    check(
        plain.blocked(ours),
        lambda x, w: tf.nn.max_pool2d(tf.nn.relu(plain.conv(x, w)), 2, 2, "VALID"),
        [floats(2, 6, 6, 5), floats(3, 3, 5, 20)],
        second=False,
    )


@pytest.mark.parametrize("strides", [1, 2])
def test_sizes_not_known(strides, floats):
    """The same numbers from a function of images of any size."""
    x, w = floats(2, 7, 8, 20), floats(3, 3, 20, 18)

    def step(x, w):
        def loss(x, w):
            return plain.unblock(
                tf.square(bd.ops.conv(plain.block(x), w, strides=strides, padding="SAME")), 18
            )

        return gradients(loss, (x, w))[1]

    any_size = tf.TensorSpec([None, None, None, 20], tf.float32)
    traced = tf.function(step, input_signature=[any_size, tf.TensorSpec(w.shape, tf.float32)])
    for ours, expected in zip(traced(x, w), step(x, w), strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.each_isa
@pytest.mark.parametrize("strides, post_ops", [(1, "eltwise(sqrt)"), (2, "eltwise(logistic)")])
def test_tails_stay_zero(strides, post_ops, floats):
    """The gradient of a blocked source has a zero tail, whatever the strides."""
    x = plain.block(np.abs(floats(2, 5, 6, 20)))
    _, (dx, _), _ = gradients(
        lambda x, w: bd.ops.conv(x, w, strides=strides, post_ops=post_ops, padding="SAME"),
        [x, np.abs(floats(3, 3, 20, 20))],
    )
    assert np.isfinite(dx).all()
    np.testing.assert_array_equal(dx[:, 1, :, :, 4:], 0)
