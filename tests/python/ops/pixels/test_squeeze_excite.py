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


@pytest.mark.parametrize("dst_layout", ["nc", "nhwc", "nChw16c"])
@pytest.mark.parametrize("n,h,w,c,r", [(1, 7, 7, 64, 4), (3, 1, 1, 5, 7), (2, 14, 13, 330, 33)])
def test_against_tensorflow(dst_layout, n, h, w, c, r, floats, blocked):
    x, matrices = floats(n, h, w, c), tensors(floats, c, r)
    ours = bd.ops.squeeze_excite(
        blocked.pack(x), *matrices, channels=c, squeezed=r, dst_layout=dst_layout
    )
    shape = {"nc": (n, c), "nhwc": (n, 1, 1, c), "nChw16c": (n, -(-c // 16), 1, 1, 16)}
    assert ours.shape == shape[dst_layout]
    ours = blocked.unpack(ours, c) if dst_layout == "nChw16c" else ours
    wanted = expected(x, *matrices)
    np.testing.assert_allclose(np.reshape(ours, (n, c)), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n,h,w,c,r", [(1, 7, 7, 64, 4), (3, 1, 1, 5, 7), (2, 14, 13, 330, 33)])
def test_src_times_its_scales(n, h, w, c, r, floats, blocked):
    x, matrices = blocked.pack(floats(n, h, w, c)), tensors(floats, c, r)
    options = {"channels": c, "squeezed": r, "dst_layout": "nChw16c"}
    scales = bd.ops.squeeze_excite(x, *matrices, **options)
    ours = bd.ops.squeeze_excite(x, *matrices, scale_src=True, **options)
    np.testing.assert_allclose(ours, x * scales, rtol=1e-5, atol=1e-6)


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


def test_tails_are_zero(floats, blocked):
    x = blocked.pack(floats(2, 3, 4, 20))
    matrices = tensors(floats, 20, 3)
    ours = bd.ops.squeeze_excite(x, *matrices, channels=20, squeezed=3, dst_layout="nChw16c")
    assert np.all(ours.numpy()[:, 1, ..., 4:] == 0) and np.all(ours.numpy()[:, 0] > 0)


def test_parts_of_one_tensor_and_chains(floats, blocked):
    x, matrices = floats(2, 5, 5, 24), tensors(floats, 24, 6)
    sizes = [m.size for m in matrices]
    offsets = [3 + sum(sizes[:i]) for i in range(4)]
    bundle = np.concatenate([np.full(3, np.nan, np.float32), *(m.reshape(-1) for m in matrices)])
    chain = bd.PostOps().eltwise("linear", 2.0, 1.0).eltwise("swish")
    ours = bd.ops.squeeze_excite(
        blocked.pack(x),
        *[bundle] * 4,
        channels=24,
        squeezed=6,
        offsets=offsets,
        reduce_post_ops=chain,
        expand_post_ops="",
        how="library",
    )
    wanted = expected(x, *matrices, f=lambda v: tf.nn.silu(2 * v + 1), g=tf.identity)
    np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-5)


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
