"""`generate` of an optimised model runs an optimised function, as KerasHub's tasks make one."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import tf_blockdnn as bd

_VOCABULARY, _SIZE, _HEADS, _LENGTH = 30, 16, 4, 9


class Attention(keras.layers.Layer):
    """Causal, with a cache [B, 2, S, N, H] of keys and values."""

    def build(self, shape):
        self.dense = [keras.layers.Dense(_SIZE) for _ in range(3)]
        for dense in self.dense:
            dense.build(shape)

    def call(self, x, cache=None, at=0):
        length = ops.shape(x)[1]
        q, k, v = (
            ops.reshape(dense(x), (-1, length, _HEADS, _SIZE // _HEADS)) for dense in self.dense
        )
        if cache is not None:
            k = ops.slice_update(cache[:, 0], [0, at, 0, 0], k)
            v = ops.slice_update(cache[:, 1], [0, at, 0, 0], v)
            cache = ops.stack((k, v), axis=1)
        rows = ops.arange(length)[:, None] + at
        mask = rows >= ops.arange(ops.shape(k)[1])
        scores = ops.where(mask, ops.einsum("btnh,bsnh->bnts", q, k) / 2.0, -1e9)
        y = ops.einsum("bnts,bsnh->btnh", ops.softmax(scores), v)
        y = x + ops.reshape(y, ops.shape(x))
        return y if cache is None else (y, cache)


class Decoder(keras.Model):
    """A task as KerasHub has them: functional, with functions of its own."""

    def __init__(self):
        self_attention = Attention(name="attention")
        embedding = keras.layers.Embedding(_VOCABULARY, _SIZE, name="embedding")
        head = keras.layers.Dense(_VOCABULARY, name="head")
        ids = keras.Input((None,), dtype="int32")
        super().__init__(ids, head(self_attention(embedding(ids))))
        self.attention, self.embedding, self.head = self_attention, embedding, head
        self.generate_function = None

    def make_generate_function(self):
        if self.generate_function is None:
            self.generate_function = tf.function(self.generate_step, jit_compile=self.jit_compile)
        return self.generate_function

    def generate_step(self, ids, stop_token_ids=None):
        batch = tf.shape(ids)[0]
        cache = tf.zeros((batch, 2, _LENGTH, _HEADS, _SIZE // _HEADS))
        _, cache = self.attention(self.embedding(ids), cache=cache, at=0)

        def body(at, ids, cache):
            x = self.embedding(ops.slice(ids, [0, at - 1], [batch, 1]))
            x, cache = self.attention(x, cache=cache, at=at - 1)
            best = tf.argmax(self.head(x), -1, output_type=tf.int32)
            return at + 1, ops.slice_update(ids, [0, at], best), cache

        def goes_on(at, ids, cache):
            stop = False if stop_token_ids is None else tf.reduce_any(ids == stop_token_ids[0])
            return at < _LENGTH and not stop

        return tf.while_loop(goes_on, body, (3, ids, cache))[1]

    def generate(self, ids, stop_token_ids=None):
        return np.asarray(self.make_generate_function()(ids, stop_token_ids=stop_token_ids))


@pytest.fixture
def ids():
    ids = np.random.default_rng(1).integers(1, _VOCABULARY, (2, _LENGTH), "int32")
    ids[:, 3:] = 0
    return ids


def test_generate_is_optimised_and_gives_the_same(ids):
    model = Decoder()
    model.compile()
    expected = model.generate(ids)
    fast = bd.optimize(model)
    np.testing.assert_array_equal(fast.generate(ids), expected)
    counts = fast.generate_function.report.counts()
    assert counts["BlockdnnAttention"] == 1  # in the loop: before it only the cache is wanted
    assert counts["BlockdnnInnerProduct"] >= 4 and counts["BlockdnnUpdateSlice"] >= 2
    assert model.generate_function is not fast.generate_function
    stop = [int(expected[0, 5])]
    np.testing.assert_array_equal(fast.generate(ids, stop), model.generate(ids, stop))
    np.testing.assert_array_equal(fast.generate(ids[:1]), expected[:1])


def test_one_that_runs_eagerly_stays(ids, monkeypatch):
    model = Decoder()
    monkeypatch.setattr(Decoder, "make_generate_function", lambda self: self.generate_step)
    fast = bd.optimize(model)
    np.testing.assert_array_equal(fast.generate(ids), model.generate(ids))
