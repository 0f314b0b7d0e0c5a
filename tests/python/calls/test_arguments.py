"""Arguments in every form reach the fast way, and wrong ones TensorFlow's message."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

A, B = tf.TensorSpec([None, 2], name="a"), tf.TensorSpec([None, 2], name="b")


def combine(pair, scale=1.0, *, last):
    return (pair["a"] - 2.0 * pair["b"][0]) * scale - 5.0 * last


def optimized(concrete):
    """The result, of which a call that TensorFlow binds is an error."""
    result = bd.optimize(concrete)

    def forbidden(*args, **kwargs):
        raise AssertionError("TensorFlow binds the arguments")

    class Concrete:
        __call__ = forbidden
        _call_flat = result.concrete._call_flat

    result.concrete = Concrete()
    return result


@pytest.fixture
def fast():
    given = {"b": [B], "a": A}
    return optimized(tf.function(combine).get_concrete_function(given, 3.0, last=tf.TensorSpec([])))


@pytest.fixture
def pair(floats):
    return {"a": tf.constant(floats(3, 2)), "b": [floats(3, 2)]}


def test_nests_and_names(fast, pair):
    last = tf.constant(0.5)
    wanted = combine(pair, 3.0, last=last)
    for args, kwargs in [
        ((pair, 3.0), {"last": last}),
        ((pair,), {"last": 0.5}),
        ((dict(reversed(pair.items())),), {"last": np.float32(0.5)}),
        ((), {"last": last, "pair": pair, "scale": 3.0}),
    ]:
        np.testing.assert_allclose(fast(*args, **kwargs), wanted, rtol=1e-6)


def test_objects(pair):
    """As defaults of lambdas have them, which bind what a loop goes over."""

    class Scale:
        value = 3.0

    scale, other = Scale(), Scale()
    function = tf.function(lambda a, by=scale: a * by.value)
    fast = optimized(function.get_concrete_function(A, scale))
    for args, kwargs in [((pair["a"],), {}), ((pair["a"], scale), {}), ((), {"a": pair["a"]})]:
        np.testing.assert_allclose(fast(*args, **kwargs), pair["a"] * 3.0)
    with pytest.raises(AssertionError, match="TensorFlow binds"):
        fast(pair["a"], other)


@pytest.mark.parametrize(
    "change",
    [
        lambda pair: ((pair, 2.0), {"last": 0.5}),
        lambda pair: ((pair,), {}),
        lambda pair: ((pair,), {"last": 0.5, "other": 1}),
        lambda pair: (({"a": pair["a"]},), {"last": 0.5}),
        lambda pair: (({**pair, "b": tuple(pair["b"])},), {"last": 0.5}),
        lambda pair: (({**pair, "b": pair["b"] * 2},), {"last": 0.5}),
        lambda pair: ((pair, 3.0, 0.5, 1), {}),
        lambda pair: ((pair,), {"last": 0.5, "pair": pair}),
    ],
)
def test_another_structure_is_tensorflows_to_refuse(fast, pair, change):
    args, kwargs = change(pair)
    with pytest.raises(AssertionError, match="TensorFlow binds"):
        fast(*args, **kwargs)


def test_a_wrong_shape_is_named_in_graphs_too(fast, pair):
    wrong = {**pair, "a": tf.zeros([3, 4])}
    message = r"argument 0 must be float32 \(None, 2\), got float32 \(3, 4\)"
    with pytest.raises(TypeError, match=message):
        fast(wrong, last=0.5)
    with pytest.raises(TypeError, match=message):
        tf.function(lambda: fast(wrong, last=0.5), autograph=False)()
