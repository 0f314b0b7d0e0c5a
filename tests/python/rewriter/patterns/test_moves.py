"""Ops that move rows, columns and channels of blocked pictures; none of them needs a reorder."""

import numpy as np
import pytest
import tensorflow as tf

from tf_blockdnn import Options

STRICT = Options(strict=True)

ROWS = {
    "reflect": lambda x: tf.pad(x, [[0, 0], [1, 2], [3, 0], [0, 0]], "REFLECT"),
    "symmetric": lambda x: tf.pad(x, [[0, 0], [0, 1], [2, 2], [0, 0]], "SYMMETRIC"),
    "another constant": lambda x: tf.pad(x, [[0, 0], [1, 2], [3, 0], [0, 0]], constant_values=-2.5),
    "roll": lambda x: tf.roll(x, 3, 1),
    "roll of both": lambda x: tf.roll(x, [-2, 1], [1, -2]),
    "tile": lambda x: tf.tile(x, [1, 2, 3, 1]),
    "tile of pictures": lambda x: tf.tile(x, [2, 1, 1, 1]),
    "mirror": lambda x: tf.reverse(x, [2]),
    "turned by half": lambda x: tf.reverse(x, [-3, 2]),
    "every second": lambda x: x[:, ::2, 1::2],
    "every third from the end": lambda x: x[:, ::-3, :],
    "rows of both": lambda x: tf.concat([x, tf.reverse(x, [1])], 1),
    "split rows": lambda x: tf.split(x, [2, 6], 1)[1],
}
CHANNELS = {
    "roll": lambda x: tf.roll(x, 5, 3),
    "roll back": lambda x: tf.roll(x, -5, -1),
    "repeat": lambda x: tf.tile(x, [1, 1, 1, 2]),
    "gather runs": lambda x: tf.gather(x, [*range(7, 20), *range(0, 7)], axis=3),
    "odd part": lambda x: x[..., 3:14],
    "odd split": lambda x: tf.split(x, [5, x.shape[3] - 5], -1)[1],
    "join at odd places": lambda x: tf.concat([x[..., :7], x, x[..., 1:4]], 3),
    "halves changed": lambda x: tf.concat(tf.split(x, 2, -1)[::-1], -1),
}


@pytest.fixture
def moved(rewrite, weights):
    """moved(f, channels, specification) -> f between two convolutions; its numbers are exact."""

    def run(f, channels, spec=(1, 8, 9)):
        rng = np.random.default_rng(0)
        before = np.float32(rng.integers(-1, 2, (1, 1, 8, channels)))
        out = f(tf.zeros((1, 8, 9, channels))).shape[3]
        after = np.float32(rng.integers(-1, 2, (1, 1, out, 24)))

        def function(x):
            return tf.nn.conv2d(f(tf.nn.conv2d(x, before, 1, "SAME")), after, 1, "SAME")

        result = rewrite(function, [*spec, 8], options=STRICT)
        assert result.blockdnn["Conv"] == 2
        assert len(result.report.reorders) <= 2, result.report.summary()
        declined = [why for why in result.report.declined if "not folded into" not in why[1]]
        assert not declined, declined
        x = np.float32(rng.integers(-3, 4, (1, 8, 9, 8)))
        np.testing.assert_array_equal(result.concrete(x), result.original(x))
        return result

    return run


@pytest.mark.parametrize("channels", [32, 20])
@pytest.mark.parametrize("name", ROWS)
def test_rows_and_columns(moved, name, channels):
    moved(ROWS[name], channels)


@pytest.mark.parametrize("channels", [32, 20])
@pytest.mark.parametrize("name", CHANNELS)
def test_channels(moved, name, channels):
    moved(CHANNELS[name], channels)


@pytest.mark.parametrize("name", ["reflect", "another constant", "roll", "tile", "every second"])
def test_pictures_of_unknown_size(moved, name):
    moved(ROWS[name], 20, spec=(None, None, None))
