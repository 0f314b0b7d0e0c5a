"""How much packed weights may take: the algorithm each convolution is left free to choose."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd
from tf_blockdnn.python.ops.records import Conv
from tf_blockdnn.python.rewriter import Options
from tf_blockdnn.python.rewriter.passes import limit_memory


@pytest.fixture
def small_counts(monkeypatch):
    monkeypatch.setattr(limit_memory, "_SMALL_MODEL", 0)


@pytest.fixture
def network(weights):
    """Four 3x3 convolutions, the last two the largest, then a 1x1."""
    kernels = [weights(3, 3, *io) for io in ((16, 16), (16, 16), (16, 32), (32, 32))]
    last = weights(1, 1, 32, 16)

    def function(x):
        for kernel in kernels:
            x = tf.nn.conv2d(x, kernel, 1, "SAME")
        return tf.nn.conv2d(x, last, 1, "SAME")

    return function


def _algorithms(result):
    nodes = result.nodes
    return [node.attr["algorithm"].s.decode() for node in nodes if node.op == "BlockdnnConv"]


def _packed(result):
    """Floats of packed weights where each convolution takes the most it may, and of weights."""
    most = {"auto": 4, "auto_small": 16 / 9, "auto_smallest": 9 / 8}  # of 3x3 windows
    packed = plain = 0
    for node in result.nodes:
        if node.op == "BlockdnnConv":
            kh, kw, ic, oc = node.attr["weights_shape"].list.i
            plain += kh * kw * ic * oc
            factor = most[node.attr["algorithm"].s.decode()] if (kh, kw) == (3, 3) else 9 / 8
            packed += factor * kh * kw * ic * oc
    return packed, plain


def test_normal_leaves_out_the_largest_transforms_only(rewrite, network, small_counts):
    result = rewrite(network, [1, 12, 12, 16])
    assert _algorithms(result) == ["auto", "auto", "auto", "auto_small", "auto"]
    packed, plain = _packed(result)
    assert packed <= 3 * plain


def test_low_transforms_nothing(rewrite, network):
    result = rewrite(network, [1, 12, 12, 16], options=Options(memory="low"))
    assert _algorithms(result) == ["auto_smallest"] * 4 + ["auto"]
    packed, plain = _packed(result)
    assert packed == 9 / 8 * plain


@pytest.mark.parametrize(("precision", "algorithm"), [(None, "auto"), ("bf16", "auto_smallest")])
def test_low_transforms_no_strided_windows_of_bfloat16(rewrite, precision, algorithm, on_isa, conv):
    on_isa("avx512_bf16")
    options = Options(memory="low", precision=precision)
    result = rewrite(lambda x: conv(x, 32, 3, 2), [1, 12, 12, 32], options=options)
    assert _algorithms(result) == [algorithm]


def test_other_weights_make_room(rewrite, weights, small_counts, conv):
    assert _algorithms(
        rewrite(
            lambda x: tf.matmul(tf.reshape(conv(x, 16), [1, -1]), weights(16 * 36, 32)),
            [1, 6, 6, 16],
        )
    ) == ["auto"]


@pytest.mark.parametrize(("memory", "algorithm"), [("normal", "auto"), ("low", "direct")])
def test_low_keeps_no_copy_of_dense_weights(rewrite, weights, memory, algorithm):
    options = Options(memory=memory)
    result = rewrite(lambda x: tf.matmul(x, weights(40, 24)), [None, 40], options=options)
    nodes = result.nodes
    (node,) = (node for node in nodes if node.op == "BlockdnnInnerProduct")
    assert node.attr["algorithm"].s.decode() == algorithm


def test_small_models_are_free(rewrite, network):
    assert _algorithms(rewrite(network, [1, 12, 12, 16])) == ["auto"] * 5


def _auto_pairs():
    """Whether "auto" multiplies in pairs on this machine."""
    return (
        bd.ops.memory_plan("conv", (1, 2, 8, 8, 16), (1, 1, 32, 32), padding="SAME").algorithm
        == "paired"
    )


@pytest.mark.parametrize("window", limit_memory._GROWTH, ids=str)
def test_growth_is_what_the_library_packs(window):
    """The largest over shapes of few and of many pixels, with channels that fill blocks."""
    kh, kw, stride = window
    channels = 32 if stride == 1 else limit_memory._MOST_STRIDED_CHANNELS
    filters = np.zeros((kh, kw, channels, 64), np.float32)
    conv = Conv(
        origin="x", channels=64, in_channels=channels, weights=filters, strides=(stride, stride)
    )
    growths = zip(("auto", "auto_small"), limit_memory._growth(conv), strict=True)
    for algorithm, most in growths:
        packed = []
        for size in (8, 28, 200):
            src = (1, 2, size, size, 16) if stride == 1 else (1, size, size, channels)
            plan = bd.ops.memory_plan(
                "conv",
                src,
                filters.shape,
                strides=stride,
                how=algorithm,
                src_layout="nChw16c" if stride == 1 else "nhwc",
                padding="SAME",
            )
            packed.append(plan.packed_weights)
        if not _auto_pairs() and (algorithm, stride) == ("auto", 1):
            most /= 1 + limit_memory._TERMS
        assert max(packed) == pytest.approx(most * 4 * kh * kw * channels * 64)


def test_other_windows_take_part(rewrite, weights, image):
    def function(x):
        return tf.nn.conv2d(
            tf.nn.conv2d(x, weights(1, 7, 16, 16), 1, "SAME"), weights(7, 1, 16, 16), 1, "SAME"
        )

    for memory, algorithm in (("normal", "auto"), ("low", "auto_smallest")):
        result = rewrite(function, [1, 12, 12, 16], options=Options(memory=memory))
        assert _algorithms(result) == [algorithm] * 2
        result.assert_same(image(1, 12, 12, 16))


def test_a_chosen_algorithm_is_kept(rewrite, network):
    result = rewrite(network, [1, 12, 12, 16], options=Options(algorithm="winograd"))
    assert set(_algorithms(result)) == {"winograd"}


@pytest.mark.parametrize("choice", ["algorithm", "memory", "scratchpad_mode"])
def test_unknown_choices_are_refused(choice):
    with pytest.raises(ValueError, match=f"{choice}.*sideways"):
        Options(**{choice: "sideways"})


@pytest.mark.parametrize("window", [(1, 1), (3, 3), (1, 7)], ids=str)
@pytest.mark.parametrize(("channels", "out"), [(32, 32), (64, 256), (2048, 48)])
def test_the_smallest_are_hardly_larger_than_plain(window, channels, out):
    src = (1, channels // 16, 14, 14, 16)
    plan = bd.ops.memory_plan(
        "conv", src, (*window, channels, out), how="auto_smallest", padding="SAME"
    )
    assert plan.algorithm in ("direct", "paired")
    plain = 4 * window[0] * window[1] * channels * out
    assert plain <= plan.packed_weights <= limit_memory._PAIRED * plain
