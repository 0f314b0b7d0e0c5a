"""Caches of keys and values are updated in their place, and read there."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from converts import converts

_LAYERS, _HEADS, _SIZE, _LENGTH = 2, 2, 8, 12


def _step(x, cache, at, weights, turned=False, also_read=False):
    """A step of a decoder [B, 1, C]: KerasHub's way with its cache [B, L, 2, S, N, H]."""
    parts, seen = [], []
    for i in range(_LAYERS):
        q, k, v = (
            tf.reshape(tf.tensordot(x, w, 1), [-1, 1, _HEADS, _SIZE])
            for w in weights[3 * i : 3 * i + 3]
        )
        layer_cache = cache[:, i, ...]
        k = keras.ops.slice_update(layer_cache[:, 0, ...], [0, at, 0, 0], k)
        v = keras.ops.slice_update(layer_cache[:, 1, ...], [0, at, 0, 0], v)
        parts.append(tf.stack((v, k) if turned else (k, v), axis=1))
        scores = tf.einsum("btnh,bsnh->bnts", q, k)
        mask = tf.range(_LENGTH) <= at
        weighted = tf.nn.softmax(tf.where(mask[None, None, None], scores, -1e9))
        y = tf.einsum("bnts,bsnh->btnh", weighted, v)
        x += tf.reshape(y, [-1, 1, _HEADS * _SIZE])
        seen.append(tf.reduce_sum(k))
    result = x, tf.stack(parts, axis=1)
    return (*result, tf.add_n(seen)) if also_read else result


@pytest.fixture
def projections(weights):
    return [weights(_HEADS * _SIZE, _HEADS * _SIZE) for _ in range(3 * _LAYERS)]


@pytest.fixture
def cache():
    return np.random.default_rng(2).normal(size=(3, _LAYERS, 2, _LENGTH, _HEADS, _SIZE)).astype("f")


_SPECS = ([3, 1, 16], [3, _LAYERS, 2, _LENGTH, _HEADS, _SIZE])


def test_a_loop_updates_one_tensor(rewrite, projections, cache, floats):
    def generate(x, cache):
        def body(at, x, cache):
            return (at + 1, *_step(x, cache, at, projections))

        _, x, cache = tf.while_loop(lambda at, *_: at < 9, body, (4, x, cache))
        return x, cache

    # Five steps of two layers, each with a softmax, make more of what the first one rounds.
    result = rewrite(generate, *_SPECS, tolerance=5e-5)
    counts = result.report.counts()
    assert counts["BlockdnnUpdateSlice"] == 2 * _LAYERS
    assert counts["BlockdnnAttention"] == _LAYERS
    assert counts["BlockdnnInnerProduct"] == 3 * _LAYERS
    result.assert_same(floats(3, 1, 16), cache, tolerance=5e-5)


def test_nothing_is_cut_or_stacked(rewrite, projections, cache, floats):
    result = rewrite(lambda x, cache: _step(x, cache, tf.constant(5), projections), *_SPECS)
    assert result.blockdnn["UpdateSlice"] == 2 * _LAYERS
    assert "XlaDynamicUpdateSlice" not in result.ops
    assert result.ops["StridedSlice"] == _LAYERS  # of the masks
    assert result.ops["Pack"] == 2 * _LAYERS  # of the places
    result.assert_same(floats(3, 1, 16), cache)


def test_who_reads_an_updated_part_otherwise_reads_it_there(rewrite, projections, cache, floats):
    result = rewrite(
        lambda x, cache: _step(x, cache, tf.constant(5), projections, also_read=True), *_SPECS
    )
    assert result.blockdnn["UpdateSlice"] == 2 * _LAYERS
    assert result.ops["StridedSlice"] == 2 * _LAYERS  # and of what is summed
    assert result.ops["Pack"] == 2 * _LAYERS
    result.assert_same(floats(3, 1, 16), cache)


def test_parts_in_another_order_are_stacked(rewrite, projections, cache, floats):
    result = rewrite(
        lambda x, cache: _step(x, cache, tf.constant(5), projections, turned=True), *_SPECS
    )
    assert "Pack" in result.ops and "XlaDynamicUpdateSlice" not in result.ops
    result.assert_same(floats(3, 1, 16), cache)


def test_parts_of_two_tensors_are_stacked(rewrite):
    def function(x, y):
        k = keras.ops.slice_update(x[:, 0, ...], [0, 3, 0], tf.ones((2, 1, 4)))
        v = keras.ops.slice_update(y[:, 1, ...], [0, 3, 0], tf.ones((2, 1, 4)))
        return tf.stack((k, v), axis=1)

    result = rewrite(function, [2, 2, 5, 4], [2, 2, 5, 4])
    assert "Pack" in result.ops


def test_an_update_that_needs_a_later_one_comes_behind_it(rewrite):
    def function(x):
        v = keras.ops.slice_update(x[:, 1, ...], [0, 3, 0], tf.ones((2, 1, 4)))
        k = keras.ops.slice_update(x[:, 0, ...], [0, 2, 0], v[:, 3:4] * 2)
        return tf.stack((k, v), axis=1)

    result = rewrite(function, [2, 2, 5, 4])
    assert "Pack" in result.ops


@converts([2, 2, 5, 4], {"UpdateSlice": 2})
def test_the_cache_before_is_read_too(x):
    k = keras.ops.slice_update(x[:, 0, ...], [0, 3, 0], tf.ones((2, 1, 4)))
    v = keras.ops.slice_update(x[:, 1, ...], [0, 9, 0], tf.ones((2, 1, 4)))  # moved to 4
    return tf.stack((k, v), axis=1), tf.reduce_sum(x), k
