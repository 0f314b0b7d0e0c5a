"""Every activation of Keras that has a post-op is fused, and gives the same numbers."""

from pathlib import Path

import keras
import numpy as np
import pytest
import references
import tensorflow as tf
from converts import converts

from tf_blockdnn.python.ops.post_op_entry import FUNCTIONS
from tf_blockdnn.python.rewriter import Options

_FUSED = {
    "relu": "eltwise(relu)",
    "relu6": "eltwise(relu6)",
    "leaky_relu": "eltwise(leaky_relu,alpha=0.200000003)",
    "elu": "eltwise(elu)",
    "selu": "eltwise(elu,alpha=1.67326324,scale=1.05070099)",
    "sigmoid": "eltwise(logistic)",
    "tanh": "eltwise(tanh)",
    "softplus": "eltwise(soft_relu)",
    "exponential": "eltwise(exp)",
    "silu": "eltwise(swish,alpha=1)",
    "mish": "eltwise(mish)",
    "hard_sigmoid": "eltwise(hard_sigmoid)",
    "hard_silu": "eltwise(hard_swish)",
    "hard_tanh": "eltwise(clip,alpha=-1,beta=1)",
    "gelu": "eltwise(gelu_erf)",
}


def _after_convolution(weights, activation):
    kernel = weights(3, 3, 16, 16)
    return lambda x: activation(tf.nn.conv2d(x, kernel, 1, "SAME"))


@pytest.mark.parametrize("name", _FUSED)
def test_keras_activation(rewrite, weights, image, name):
    function = _after_convolution(weights, keras.activations.get(name))
    result = rewrite(function, [None, None, None, 16])
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    assert result.post_ops() == [_FUSED[name]]
    result.assert_same(3.0 * image(1, 6, 7, 16), tolerance=1e-5)


_OTHER_SPELLINGS = {
    "swish with a slope": (lambda x: tf.nn.silu(x, beta=1.7), "eltwise(swish,alpha=1.70000005)"),
    "gelu tanh": (lambda x: tf.nn.gelu(x, approximate=True), "eltwise(gelu_tanh)"),
    "gelu erf": (lambda x: 0.5 * x * (1.0 + tf.math.erf(x / 2.0**0.5)), "eltwise(gelu_erf)"),
    "hard swish, multiplied last": (
        lambda x: x * tf.nn.relu6(x + 3.0) * (1.0 / 6.0),
        "eltwise(hard_swish)",
    ),
    "leaky relu as a maximum": (
        lambda x: tf.maximum(x, 0.1 * x),
        "eltwise(leaky_relu,alpha=0.100000001)",
    ),
    "clip": (lambda x: tf.clip_by_value(x, 0.0, 4.0), "eltwise(clip,alpha=0,beta=4)"),
    "maximum with zero": (lambda x: tf.maximum(x, 0.0), "eltwise(relu)"),
    "square then root": (
        lambda x: tf.sqrt(tf.square(x) + 1.0),
        "eltwise(square);eltwise(linear,alpha=1,beta=1);eltwise(sqrt)",
    ),
    "one minus": (lambda x: 1.0 - x, "eltwise(linear,alpha=-1,beta=1)"),
}


@pytest.mark.parametrize("name", _OTHER_SPELLINGS)
def test_other_spellings(rewrite, weights, image, name):
    activation, text = _OTHER_SPELLINGS[name]
    result = rewrite(_after_convolution(weights, activation), [1, 6, 6, 16])
    assert result.blockdnn["Conv"] == 1
    if name == "one minus":  # affine: folded into the weights
        assert result.post_ops() == ["binary(add,channel)"]
    else:
        assert result.post_ops() == [text]
    result.assert_same(3.0 * image(1, 6, 6, 16), tolerance=1e-5)


_PRELU = {
    "Keras": lambda x, slope: tf.nn.relu(x) + -slope * tf.nn.relu(-x),
    "a difference": lambda x, slope: tf.nn.relu(x) - slope * tf.nn.relu(-x),
    "a choice": lambda x, slope: tf.where(x > 0, x, slope * x),
}


@pytest.mark.parametrize("spelling", _PRELU)
@pytest.mark.parametrize("channels", [16, 20])
def test_prelu_is_one_post_op(rewrite, weights, image, spelling, channels):
    result = rewrite(
        lambda x: _PRELU[spelling](
            tf.nn.conv2d(x, weights(3, 3, 16, channels), 1, "SAME"), weights(1, 1, channels)
        ),
        [None, None, None, 16],
    )
    assert result.blockdnn == {"Conv": 1, "Reorder": 2}
    assert result.post_ops() == ["binary(prelu,channel)"]
    result.assert_same(3.0 * image(1, 6, 7, 16), tolerance=1e-5)


def test_a_prelu_of_a_dense_layer(rewrite, weights):
    result = rewrite(lambda x: _PRELU["Keras"](x @ weights(48, 32), weights(32)), [None, 48])
    assert result.blockdnn == {"InnerProduct": 1}
    assert not {"Relu", "Neg"} & set(result.ops)
    rows = np.random.default_rng(0).standard_normal((3, 48), np.float32)
    result.assert_same(rows, tolerance=1e-5)


@converts([1, 6, 6, 16], post_ops=["eltwise(swish,alpha=1)"])
def test_a_gradient_wrapper_does_not_hide_a_swish(x, conv):
    """tf.nn.silu is a custom_gradient function: an IdentityN around the product."""

    @tf.custom_gradient
    def swish(x):
        return x * tf.sigmoid(x), lambda dy: dy

    return swish(conv(x, 16))


@converts([1, 6, 6, 16], ops={"BesselI0e": 1}, reason=("BesselI0e", "no blocked form"))
def test_an_activation_with_no_form_stays(x, weights):
    return _after_convolution(weights, tf.math.bessel_i0e)(x)


def test_a_function_is_one_row():
    """Nothing but its row knows of it: no pass, no gradient, no parser, no kernel."""
    root = Path(__file__).resolve().parents[5]
    sources = [*(root / "cc").rglob("*.[hc]*"), *(root / "python").rglob("*.py")]
    texts = {str(path.relative_to(root)): path.read_text() for path in sources}
    for name in "atan ceil cos expm1 log1p rsqrt sign sin".split():
        known = {path for path, text in texts.items() if f'"{name}"' in text}
        assert name in FUNCTIONS and known == {"cc/core/post_ops/post_op_step.h"}


@pytest.mark.parametrize("name", [name for name, op in FUNCTIONS.items() if op])
def test_every_function_between_convolutions(rewrite, name):
    """One row of the table makes it a step between blocked tensors.

    All sums are exact, so that no error but its own counts.
    """
    kernel = 0.25 * np.random.default_rng(3).integers(-1, 2, (1, 1, 24, 24))
    kernel, last = np.float32(kernel), np.eye(24, dtype=np.float32)[None, None]

    def function(x):
        y = tf.nn.conv2d(x, kernel, 1, "SAME")
        y = tf.abs(y) + 0.25 if name in references.POSITIVE_ONLY else y
        y = references.ELTWISE[name][1](y)
        return tf.nn.conv2d(y + tf.nn.max_pool2d(y, 3, 1, "SAME"), last, 1, "SAME")

    result = rewrite(function, [None, None, None, 24], options=Options(strict=True))
    assert result.blockdnn == {"Conv": 2, "Pool": 1, "Eltwise": 1}, result.ops
    assert f"eltwise({name})" in ";".join(result.post_ops() + result.post_ops("BlockdnnEltwise"))
    x = np.float32(np.random.default_rng(4).integers(-2, 3, (1, 6, 7, 24)))
    np.testing.assert_allclose(result.concrete(x), result.original(x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("approximate", [True, False])
@pytest.mark.parametrize("spec", [[None, 24], [None, None, 24], [2, 5, 7, 24]], ids=str)
def test_gelu_between_ops_of_tensorflow_is_one_op(rewrite, approximate, spec):
    """TensorFlow takes nine passes over memory for what is one."""
    result = rewrite(
        lambda x: tf.math.bessel_i0e(keras.activations.gelu(tf.math.bessel_i0e(x), approximate)),
        spec,
    )
    assert result.post_ops("BlockdnnEltwise") == [
        f"eltwise({'gelu_tanh' if approximate else 'gelu_erf'})"
    ]
    shape = [size or 3 for size in spec]
    result.assert_same(np.random.default_rng(0).standard_normal(shape, np.float32) * 4)


def test_a_map_that_float32_does_not_have_is_none(rewrite):
    """The shift -2 * 3e38 would be -inf, and the result with it; no number need be so large."""
    ones, kernel = np.ones(16, np.float32), np.zeros((3, 3, 16, 16), np.float32)
    kernel[1, 1] = np.eye(16)

    def function(x):
        y, *_ = tf.compat.v1.nn.fused_batch_norm(
            tf.nn.conv2d(x, kernel, 1, "SAME"),
            *(3e38 * ones, 0.0 * ones, 2.0 * ones, ones),
            is_training=False,
            epsilon=1e-3,
        )
        return y

    options = Options(algorithm="direct")
    result = rewrite(function, [1, 6, 6, 16], options=options, tolerance=None)
    assert result.blockdnn["Conv"] == 1 and result.post_ops() == [""]
    assert result.ops["FusedBatchNormV3"] == 1


@converts([None, 24], {})
def test_few_ops_of_tensorflow_stay(x):
    return tf.math.bessel_i0e(x * tf.sigmoid(x))


@pytest.mark.parametrize("bound, limit", [(tf.minimum, -np.inf), (tf.maximum, np.inf)])
def test_a_bound_on_one_side_keeps_infinities(rewrite, weights, bound, limit):
    """The other side has no bound, and none of the largest finite number."""
    function = _after_convolution(weights, lambda y: bound(y, 6.0))
    options = Options(algorithm="direct")
    result = rewrite(function, [1, 6, 6, 16], options=options, tolerance=None)
    assert result.post_ops() == [f"binary({bound.__name__[:3]},scalar)"]
    x = np.zeros((1, 6, 6, 16), np.float32)
    x[0, 3, 3, 5] = np.inf
    wanted, got = result.original(tf.constant(x)), result.concrete(tf.constant(x))
    assert np.count_nonzero(wanted == limit) > 20
    np.testing.assert_array_equal(got == limit, wanted == limit)
