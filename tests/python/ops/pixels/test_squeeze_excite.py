"""The scales of squeeze-and-excitation against the same in TensorFlow's ops."""

import numpy as np
import pytest
import tensorflow as tf

import tf_blockdnn as bd

pytestmark = pytest.mark.each_isa


def expected(x, w1, b1, w2, b2, f=tf.nn.relu, g=tf.sigmoid):
    hidden = f(tf.reduce_mean(x, [1, 2]) @ w1 + b1)
    return g(hidden @ w2 + b2)


def tensors(floats, channels, squeezed):
    shapes = [(channels, squeezed), (squeezed,), (squeezed, channels), (channels,)]
    return [floats(*shape) / shape[0] ** 0.5 for shape in shapes]


def test_src_that_is_read_elsewhere_stays(floats, blocked):
    """Nobody else needs y the first time, so it is overwritten; the second time it is returned."""
    x, matrices = blocked.pack(floats(2, 5, 5, 20)), tensors(floats, 20, 3)

    def scaled(y):
        return bd.ops.squeeze_excite(
            y, *matrices, channels=20, squeezed=3, dst_layout="nChw16c", scale_src=True
        )

    wanted = scaled(tf.constant(x + x))
    alone = tf.function(lambda x: scaled(x + x))(tf.constant(x))
    np.testing.assert_array_equal(alone, wanted)
    both = tf.function(lambda x: (lambda y: (scaled(y), y))(x + x))(tf.constant(x))
    np.testing.assert_array_equal(both[0], wanted)
    np.testing.assert_array_equal(both[1], x + x)


def test_of_any_batch(floats, blocked):
    matrices = tensors(floats, 20, 4)

    @tf.function(input_signature=[tf.TensorSpec([None, 2, None, None, 16])])
    def scales(x):
        result = bd.ops.squeeze_excite(x, *matrices, channels=20, squeezed=4)
        assert result.shape.as_list() == [None, 20]
        return result

    @tf.function(input_signature=[tf.TensorSpec([None, 2, None, None, 16])])
    def scaled(x):
        result = bd.ops.squeeze_excite(
            x, *matrices, channels=20, squeezed=4, dst_layout="nChw16c", scale_src=True
        )
        assert result.shape.as_list() == [None, 2, None, None, 16]
        return result

    for n, h, w in [(1, 7, 7), (4, 2, 3), (0, 5, 5), (2, 0, 5)]:
        x = floats(n, h, w, 20)
        assert scaled(blocked.pack(x)).shape == (n, 2, h, w, 16)
        if h == 0:
            continue
        ours = scales(blocked.pack(x))
        np.testing.assert_allclose(ours, expected(x, *matrices), rtol=1e-5, atol=1e-6)


def test_memory_plan():
    plan = bd.ops.memory_plan(
        "squeeze_excite",
        (1, 72, 7, 7, 16),
        (1152, 48),
        (48,),
        (48, 1152),
        (1152,),
        channels=1152,
        squeezed=48,
        threads=2,
    )
    splits = plan.blocking["reduce_splits"]
    assert plan.packed_weights == 0 and splits > 1
    pieces = {name: (piece.copies, piece.bytes) for name, piece in plan.pieces.items()}
    assert pieces["hidden"] == (2, 2 * 4 * 48) and pieces["sums"] == (1, splits * 4 * 48)
    assert plan.scratchpad == sum(total for _, total in pieces.values())


def test_memory_plan_of_a_scaled_src():
    plan = bd.ops.memory_plan(
        "squeeze_excite",
        (1, 72, 7, 7, 16),
        (1152, 48),
        (48,),
        (48, 1152),
        (1152,),
        channels=1152,
        squeezed=48,
        dst_layout="nChw16c",
        scale_src=True,
        threads=2,
    )
    channels = 1152 // plan.blocking["expand_splits"]
    assert plan.pieces["scales"].copies == 2 and plan.pieces["scales"].bytes == 2 * 4 * channels
