"""Masks reach an optimised Keras model, and go on from it, as they do with the original."""

import gc

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

IDS = np.array([[1, 2, 3, 0, 0], [4, 5, 0, 0, 0]], np.int32)


@pytest.fixture
def embeds(library):
    """Token numbers, of which 0 is none, [N, 5] -> vectors [N, 5, 4] with a mask."""
    ids = library.Input([5], dtype="int32")
    wide = library.initializers.RandomNormal(stddev=3.0)
    y = library.layers.Embedding(8, 4, mask_zero=True, embeddings_initializer=wide)(ids)
    return library.Model(ids, library.layers.LSTM(4, return_sequences=True)(y))


@pytest.fixture
def last(library):
    """Vectors [N, 5, 4] -> what an LSTM holds after the last one that counts, [N, 3]."""
    x = library.Input([5, 4])
    return library.Model(x, library.layers.LSTM(3)(x))


def test_results_carry_masks(embeds, last, same):
    fast = bd.optimize(embeds)
    for given in (IDS, tf.constant(IDS)):
        np.testing.assert_array_equal(fast(given)._keras_mask, IDS != 0)
        same(last(fast(given)), last(embeds(given)))


def test_layers_behind_it_see_them(library, embeds, last, same):
    def around(model):
        ids = library.Input([5], dtype="int32")
        return library.Model(ids, last(model(ids)))

    wanted = around(embeds)
    unmasked = last(tf.constant(embeds(IDS).numpy()))
    assert np.abs(wanted(IDS) - unmasked).max() > 1e-3
    enclosing = around(bd.optimize(embeds))
    same(enclosing(IDS), wanted(IDS))
    same(enclosing.predict(IDS, verbose=0), wanted(IDS))


def test_it_sees_those_of_layers_before_it(library, last, same, floats):
    values = floats(2, 5, 4)
    values[:, 3:] = 0.0

    def around(model):
        x = library.Input([5, 4])
        return library.Model(x, model(library.layers.Masking()(x)))

    wanted = around(last)(values)
    assert np.abs(wanted - last(values)).max() > 1e-3
    fast = bd.optimize(last)
    same(around(fast)(values), wanted)
    same(fast(values, mask=tf.constant(values.any(-1))), wanted)
    same(fast(library.layers.Masking()(values)), wanted)
    same(fast(values), last(values))


def test_losses_see_them(embeds, same):
    embeds.compile("sgd", "mse")
    target = np.ones((2, 5, 4), np.float32)
    wanted = embeds.evaluate(IDS, target, verbose=0)
    same(bd.optimize(embeds).evaluate(IDS, target, verbose=0), wanted)


def test_a_mask_after_the_original_is_gone(library, floats):
    def make():
        x = library.Input([5, 4])
        return bd.optimize(library.Model(x, library.layers.LSTM(3)(x)))

    fast, values = make(), floats(2, 5, 4)
    gc.collect()
    with pytest.raises(LookupError, match="not converted for such arguments .*bool.* is gone") as e:
        fast(values, mask=tf.constant(values[..., 0] > 0))
    assert "\n" not in str(e.value)


def test_saved_without_masks(embeds, same, tmp_path):
    """A SavedModel has no masks, so its signature has the outputs of the model alone."""
    fast = bd.optimize(embeds)
    fast.save(tmp_path)
    loaded = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    assert len(loaded.structured_outputs) == 1
    (got,) = loaded(tf.constant(IDS)).values()
    same(got, embeds(IDS))
