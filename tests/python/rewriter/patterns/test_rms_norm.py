"""Normalisation by the root of the mean square, as people and libraries spell it."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts

_EPSILON = 1e-5


def _squares(x):
    return tf.reduce_mean(tf.square(x), -1, keepdims=True) + _EPSILON


_SPELLINGS = {
    "rsqrt": lambda x, w: x * tf.math.rsqrt(_squares(x)) * w,
    "weights first": lambda x, w: w * (x * tf.math.rsqrt(_squares(x))),
    "weights by the factor": lambda x, w: x * (tf.math.rsqrt(_squares(x)) * w),
    "square root": lambda x, w: x / tf.sqrt(_squares(x)) * w,
    "reciprocal": lambda x, w: x * tf.math.reciprocal(tf.sqrt(_squares(x))) * w,
    "one over it": lambda x, w: x * (1.0 / tf.sqrt(_squares(x))) * w,
    "power": lambda x, w: x * tf.pow(_squares(x), -0.5) * w,
    "a product": lambda x, w: (
        x * tf.math.rsqrt(tf.reduce_mean(x * x, -1, keepdims=True) + _EPSILON) * w
    ),
    "one more than the weights": lambda x, w: x * tf.math.rsqrt(_squares(x)) * (1.0 + (w - 1.0)),
    "no weights": lambda x, w: x * tf.math.rsqrt(_squares(x)),
    "weights of a row": lambda x, w: x * tf.math.rsqrt(_squares(x)) * tf.reshape(w, [1, 1, -1]),
}


@pytest.fixture
def tokens():
    return np.random.default_rng(1).standard_normal((2, 7, 24), np.float32) * 3 + 1


@pytest.mark.parametrize("spec", [[2, 7, 24], [None, None, 24]], ids=str)
@pytest.mark.parametrize("spelling", _SPELLINGS)
def test_spellings(rewrite, weights, tokens, spelling, spec):
    result = rewrite(lambda x: tf.math.bessel_i0e(_SPELLINGS[spelling](x, weights(24))), spec)
    assert result.blockdnn == {"LayerNorm": 1}
    assert not {"Rsqrt", "Mean", "Square", "Mul", "Sqrt"} & set(result.ops)
    (node,) = [n for n in result.nodes if n.op == "BlockdnnLayerNorm"]
    assert not node.attr["centered"].b
    assert node.attr["epsilon"].f == pytest.approx(_EPSILON)
    result.assert_same(tokens)


def _ended(layer):
    return lambda x: tf.math.bessel_i0e(layer(x))


def test_layers_of_keras(rewrite, tokens):
    layers = [keras.layers.RMSNormalization(epsilon=_EPSILON)]
    layers.append(keras.layers.LayerNormalization(epsilon=_EPSILON, rms_scaling=True))
    for layer in layers:
        layer.build([None, None, 24])
        layer.set_weights([np.linspace(0.5, 2, 24) for _ in layer.weights])
        result = rewrite(_ended(layer), [None, None, 24])
        is_rms = not isinstance(layer, keras.layers.LayerNormalization)
        assert result.blockdnn == ({"LayerNorm": 1} if is_rms else {})  # that divides by variance
        result.assert_same(tokens)


@converts([None, 6, 7, 3], {"Conv": 2, "LayerNorm": 1, "Reorder": 1})
def test_it_stays_between_blocked_convolutions(x, weights, conv):
    y = conv(x, 40)
    return conv(_SPELLINGS["rsqrt"](y, weights(40)), 24)


_OTHERS = {
    "another axis": lambda x, w: (
        x * tf.math.rsqrt(tf.reduce_mean(tf.square(x), 1, keepdims=True) + _EPSILON)
    ),
    "a sum": lambda x, w: x * tf.math.rsqrt(tf.reduce_sum(tf.square(x), -1, keepdims=True) + 1.0),
    "squares of something else": lambda x, w: x * tf.math.rsqrt(_squares(x + 1.0)),
    "its factor is read": lambda x, w: x * tf.math.rsqrt(_squares(x)) + tf.math.rsqrt(_squares(x)),
}


@pytest.mark.parametrize("other", _OTHERS)
def test_others_are_none(rewrite, weights, tokens, other):
    w, seen = weights(24), []

    def function(x):
        if other == "its factor is read":
            seen.append(tf.math.rsqrt(_squares(x)))
            return x * seen[-1] * w + seen[-1]
        return _OTHERS[other](x, w)

    result = rewrite(function, [2, 7, 24])
    assert "LayerNorm" not in result.blockdnn
    result.assert_same(tokens)


def test_weights_that_change_are_multiplied_behind_it(rewrite, tokens):
    w = tf.Variable(np.linspace(0.5, 2, 24, dtype="f"))

    def function(x):
        y = _SPELLINGS["rsqrt"](x, w)
        w.assign(w * 1.0)
        return y

    result = rewrite(function, [2, 7, 24])
    assert result.blockdnn == {"LayerNorm": 1} and "Mul" in result.ops
    result.assert_same(tokens)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_one_that_is_no_number_is_that_of_its_row_alone(rewrite, weights, tokens, value):
    tokens[1, 3, 5] = value
    rewrite(lambda x: _SPELLINGS["rsqrt"](x, weights(24)), [2, 7, 24]).assert_same(tokens)
