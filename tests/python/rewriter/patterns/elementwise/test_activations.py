"""Every activation of Keras that has a post-op is fused, and gives the same numbers."""

from pathlib import Path

import keras
import numpy as np
import pytest
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


_ROWS = "atan ceil cos expm1 log1p rsqrt sign sin".split()  # functions that are one row each


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


@pytest.mark.parametrize(
    "activation, text",
    [
        (lambda y: 1.0 - y, "binary(add,channel)"),  # it goes into the weights
        (
            lambda y: tf.sqrt(tf.square(y) + 1.0),
            "eltwise(square);eltwise(linear,alpha=1,beta=1);eltwise(sqrt)",
        ),
    ],
)
def test_steps_of_several_ops(rewrite, weights, activation, text):
    result = rewrite(_after_convolution(weights, activation), [1, 6, 6, 16])
    assert result.blockdnn["Conv"] == 1 and result.post_ops() == [text]


def _prelu(x, slope):
    """As Keras has it."""
    return tf.nn.relu(x) + -slope * tf.nn.relu(-x)


@converts([None, None, None, 16], {"Conv": 1, "Reorder": 2}, post_ops=["binary(prelu,channel)"])
def test_prelu_is_one_post_op(x, weights, conv):
    return _prelu(conv(x, 20), weights(1, 1, 20))


def test_a_prelu_of_a_dense_layer(rewrite, weights):
    result = rewrite(lambda x: _prelu(x @ weights(48, 32), weights(32)), [None, 48])
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
    for name in _ROWS:
        known = {path for path, text in texts.items() if f'"{name}"' in text}
        assert name in FUNCTIONS and known == {"cc/core/post_ops/post_op_step.h"}


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


@pytest.mark.filterwarnings("error:.*encountered:RuntimeWarning")
@pytest.mark.parametrize("mean", [0.0, 2.0])
@pytest.mark.parametrize("variance", [-1.0, 0.0])
def test_statistics_without_a_finite_map_stay(rewrite, conv, mean, variance):
    """TensorFlow makes NaN or infinities of such a channel; NumPy's warnings are not the user's."""
    ones = np.ones(16, np.float32)

    def function(x):
        return tf.raw_ops.FusedBatchNormV3(
            x=conv(x, 16),
            scale=ones,
            offset=ones,
            mean=mean * ones,
            variance=np.float32([variance] + 15 * [1.0]),
            epsilon=0.0,
            is_training=False,
        )[0]

    result = rewrite(function, [1, 6, 6, 16], tolerance=None)
    assert result.blockdnn["Conv"] == 1 and result.ops["FusedBatchNormV3"] == 1


@converts([None, 24], {})
def test_few_ops_of_tensorflow_stay(x):
    return tf.math.bessel_i0e(x * tf.sigmoid(x))
