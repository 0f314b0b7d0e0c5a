"""Convolutions of bfloat16 and of bytes: exact sums, chains, windows, parts, errors."""

import numpy as np
import pytest
import references
import tensorflow as tf
from blocked_numpy import Blocked
from quantized_numpy import BF16, F32, U8, Tensor, assert_stands_for, is_bytes

import tf_blockdnn as bd
from tf_blockdnn.python.native import library, multiplies

pytestmark = pytest.mark.each_isa

OTHER = (0.7, 90)
WINDOWS = {  # height, width, channels, output channels, options
    "3x3": (8, 9, 20, 33, dict(k=3)),
    "1x1": (6, 6, 48, 32, dict(k=1)),
    "stride": (11, 8, 16, 17, dict(k=3, strides=(2, 2))),
    "dilation": (9, 9, 7, 16, dict(k=3, dilations=(2, 2))),
    "padding": (5, 7, 16, 16, dict(k=3, padding=[[2, 1], [0, 3]])),
    "groups": (7, 7, 64, 32, dict(k=3, groups=2)),
    "depthwise": (9, 8, 20, 20, dict(k=3, groups=20)),
    "depthwise 5x5": (9, 8, 32, 32, dict(k=5, groups=32, strides=(2, 2))),
}
ROUNDING = ("3x3", "stride", "padding")  # in bfloat16, with its instructions, but by "direct"


@pytest.fixture
def rng():
    return np.random.default_rng(9)


class Case:
    """A convolution of one type: its arguments, and its sums of products in float64."""

    def __init__(self, rng, window, src, quantization=(0.05, 117), scaled=True, batch=2):
        h, w, ic, oc, options = WINDOWS[window]
        options = dict(options)
        k, groups = options.pop("k"), options.get("groups", 1)
        self.oc = oc
        self.x = Tensor(rng, (batch, h, w, ic), src, quantization)
        shape = (k, k, ic // groups, oc)
        self.scales = None
        if is_bytes(src):
            self.weights = rng.integers(-127, 128, shape, np.int8)
            self.scales = np.ones(oc, np.float32)
            if scaled:
                self.scales = rng.uniform(0.001, 0.01, oc).astype(np.float32)
            real = self.weights * self.scales.astype(np.float64)
        else:
            self.weights = (rng.standard_normal(shape) / (k * k * ic)).astype(BF16)
            real = self.weights.astype(np.float64)
        self.options = {"padding": "SAME", "groups": groups} | options
        self.sums = references.conv(self.x.real, real, **self.options)
        if src == BF16 and window in ROUNDING and multiplies("bf16"):
            self.options["how"] = "direct"

    def run(self, dst, to=None, src=None, **more):
        return bd.ops.conv(
            self.x.blocked if src is None else src,
            self.weights,
            dtype=dst,
            src_quantization=self.x.quantization,
            weight_scales=self.scales,
            dst_quantization=to,
            **self.options | more,
        )


@pytest.mark.parametrize("window", WINDOWS)
def test_sums_of_bytes_are_exact(window, rng):
    case = Case(rng, window, U8, (1.0, 117), scaled=False)
    assert np.abs(case.sums).max() < 2**24
    np.testing.assert_array_equal(Blocked.unpack(case.run(F32), case.oc), case.sums)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("src", [BF16, U8])
@pytest.mark.parametrize("dst", [F32, BF16, U8])
def test_windows_and_types(window, src, dst, rng):
    case = Case(rng, window, src)
    to = OTHER if is_bytes(dst) else None
    assert_close(case.run(dst, to), case.oc, case.sums, dst, to)


@pytest.mark.parametrize("window", ["dilation", "stride"])
@pytest.mark.parametrize("src", [BF16, U8])
def test_pairs_are_multiplied_of_float32_only(window, src, rng):
    """Whoever asks for them gets the fastest of what there is."""
    case = Case(rng, window, src)
    assert_close(case.run(F32, how="paired"), case.oc, case.sums, F32, None)


@pytest.mark.parametrize("window", ROUNDING)
def test_planes_of_bfloat16_round_as_documented(window, rng):
    case = Case(rng, window, BF16)
    off = Blocked.unpack(case.run(F32, how="winograd"), case.oc) - case.sums
    assert np.abs(off).max() <= 5e-3 * np.abs(case.sums).max()


def assert_close(y, channels, expected, dst, to):
    """Sums of bfloat16 round as those of float32 do."""
    if dst == F32:
        plain = np.asarray(y).transpose(0, 2, 3, 1, 4).reshape(*expected.shape[:3], -1)
        np.testing.assert_array_equal(plain[..., channels:], 0)
        np.testing.assert_allclose(plain[..., :channels], expected, rtol=1e-4, atol=1e-5)
    else:
        assert_stands_for(y, channels, expected, dst, to)


@pytest.mark.parametrize("src", [BF16, U8])
@pytest.mark.parametrize("dst", [F32, BF16, U8])
@pytest.mark.parametrize("other", [F32, BF16, U8])
@pytest.mark.parametrize("window", ["3x3", "depthwise"])
@pytest.mark.parametrize("sum_first", [True, False])
def test_bias_sum_and_activation(src, dst, other, window, sum_first, rng):
    case = Case(rng, window, src)
    bias = rng.standard_normal(case.oc).astype(np.float32)
    added = Tensor(rng, case.sums.shape, other, (0.02, 60))
    operand, chain = tf.constant(added.blocked), bd.PostOps().binary("add", bias)
    if sum_first:
        chain = chain.sum(operand=operand).eltwise("relu")
        expected = np.maximum(case.sums + bias + added.real, 0)
    else:
        chain = chain.eltwise("relu").sum(0.5, operand=operand).eltwise("abs")
        expected = np.abs(np.maximum(case.sums + bias, 0) + 0.5 * added.real)
    to = (0.4, 0 if sum_first else 80) if is_bytes(dst) else None
    y = case.run(dst, to, post_ops=chain, sum_quantization=added.quantization)
    assert_close(y, case.oc, expected, dst, to)


def test_a_low_precision_sum_behind_an_activation_is_of_a_blocked_result(rng):
    case = Case(rng, "1x1", U8)
    added = tf.zeros(case.sums.shape, tf.uint8)
    chain = bd.PostOps().eltwise("relu").sum(operand=added)
    with pytest.raises(tf.errors.InvalidArgumentError, match="or is of a blocked dst"):
        case.run(F32, post_ops=chain, sum_quantization=(0.02, 60), dst_layout="nhwc")


def test_in_a_function_and_in_turn(rng):
    """Two convolutions of bytes, of which the second reads what the first wrote."""
    first, second = Case(rng, "3x3", U8), Case(rng, "1x1", U8)
    weights = second.weights[:, :, :33]

    @tf.function
    def both(x):
        y = first.run(U8, OTHER, src=x)
        return y, bd.ops.conv(
            y,
            weights,
            padding="SAME",
            src_quantization=OTHER,
            weight_scales=second.scales,
            how="constant",
        )

    between, y = both(first.x.blocked)
    assert_stands_for(between, 33, first.sums, U8, OTHER)
    real = OTHER[0] * (Blocked.unpack(between, 33, OTHER[1]).astype(np.float64) - OTHER[1])
    expected = references.conv(real, weights * second.scales.astype(np.float64))
    assert_close(y, 32, expected, F32, None)


def test_gradients_of_low_precision_results_are_refused(rng):
    case = Case(rng, "3x3", BF16)
    x = tf.constant(case.x.blocked)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = case.run(BF16, src=x)
    with pytest.raises(ValueError, match="BlockdnnConv of bfloat16 has no gradient"):
        tape.gradient(y, x)


def test_one_operand_only_may_be_cast_to_bfloat16(rng):
    case = Case(rng, "3x3", U8)
    other = tf.zeros(case.sums.shape, tf.bfloat16)
    chain = bd.PostOps().sum(operand=other).sum(operand=other)
    with pytest.raises(ValueError, match="one operand of post_ops .* not 2"):
        case.run(F32, post_ops=chain)


@pytest.mark.parametrize("other", [BF16, U8])
def test_a_low_precision_sum_is_the_first(other, rng):
    """One in front of it would be read as if it had low precision, and this one as float32."""
    case = Case(rng, "3x3", U8)
    added = Tensor(rng, case.sums.shape, other, (0.02, 60))
    whole = tf.zeros(tf.shape(added.blocked), tf.float32)
    chain = bd.PostOps().sum(operand=whole).sum(operand=tf.constant(added.blocked))
    message = r'entry 0 "sum\(#0\)": a sum of \w+ is the first of the chain; put it before this one'
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        case.run(F32, post_ops=chain, sum_quantization=added.quantization)


@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize("weights_type", [np.int8, BF16])
@pytest.mark.parametrize("window", ["3x3", "1x1", "groups", "depthwise"])
def test_weights_alone_are_cast_to_bfloat16(window, weights_type, constant, rng):
    """The bits of the same convolution of the weights that they stand for."""
    case = Case(rng, window, U8 if weights_type is np.int8 else BF16)
    scales = None if case.scales is None else tf.constant(case.scales)
    wide = case.weights.astype(np.float32) * (1 if scales is None else case.scales)
    ic = case.x.real.shape[-1]
    sources = {"nChw16c": (2, 8, 9, ic), "nhwc": (1, 1, 2, ic)}  # few pixels: weights as they are
    for layout, shape in sources.items():
        src = tf.constant(rng.standard_normal(shape), tf.float32)
        if layout == "nChw16c":
            src = bd.ops.reorder(src, "nhwc", "nChw16c")
        elif window != "1x1":
            continue
        options = case.options | dict(src_layout=layout, dst_layout=layout, channels=ic)
        # Of weights that change, "auto" may take another algorithm than of those that did not.
        options["how"] = "constant" if constant else "direct"
        for _ in range(2):
            got, wanted = (
                bd.ops.conv(src, w, weight_scales=s, **options)
                for w, s in ((tf.constant(case.weights), scales), (tf.constant(wide), None))
            )
            np.testing.assert_array_equal(got, wanted)


def test_scales_in_packed_weights_may_be_others_in_the_next_call(rng):
    """A static plan holds weights that are packed with their scales."""
    case = Case(rng, "3x3", U8)
    src = bd.ops.reorder(tf.ones((2, 8, 9, 20)), "nhwc", "nChw16c")

    @tf.function(input_signature=[tf.TensorSpec(src.shape), tf.TensorSpec([33])])
    def body(x, scales):
        y = bd.ops.conv(
            x,
            case.weights,
            weight_scales=scales,
            how="constant",
            channels=20,
            padding="SAME",
        )
        return tf.identity(bd.ops.eltwise(y, "eltwise(relu)", channels=33, layout="nChw16c"))

    concrete = body.get_concrete_function()
    kept = [tf.constant(case.scales * factor) for factor in (1.0, 2.0)]  # each where it is
    wanted = [body(src, scales) for scales in kept]
    for turn in (0, 0, 0, 0, 1, 1, 1, 1, 0):
        inputs = [src, kept[turn], *concrete.captured_inputs]
        (got,) = library().blockdnn_region(inputs, Tout=[tf.float32], f=concrete.name)
        np.testing.assert_array_equal(got, wanted[turn])
