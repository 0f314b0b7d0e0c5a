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
        scratchpad_mode="library",
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

    for n, h, w in [(1, 7, 7), (4, 2, 3), (0, 5, 5)]:
        x = floats(n, h, w, 20)
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


def call(c=20, r=4, **changes):
    arguments = {"channels": c, "squeezed": r} | changes
    return lambda x=(1, 2, 3, 3, 16): bd.ops.squeeze_excite(
        tf.zeros(x), tf.zeros((20, 4)), tf.zeros(4), tf.zeros((4, 20)), tf.zeros(20), **arguments
    )


@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda: call()((1, 3, 3, 20)), r"src must be nChw16c"),
        (call(c=40), r"src must be nChw16c, \[N, 3, H, W, 16\]"),
        (call(r=5), r"reduce_weights of 80 elements must have 100 for 20 channels and 5 squeezed"),
        (call(offsets=[0, 1, 0, 0]), r"reduce_bias of 4 elements must have 4 .* from element 1 on"),
        (call(offsets=[0, 0]), r"offsets must be those of .*got \[0, 0\]"),
        (call(offsets=[0, 0, 0, -1]), r"offsets must be"),
        (call(squeezed=1 << 62), r"20 channels times 4611686018427387904 squeezed ones are too ma"),
        (call(reduce_post_ops="sum(#0)"), r"reduce_post_ops entry \"sum\(#0\)\": only eltwise"),
        (call(expand_post_ops="eltwise(foo)"), r"expand_post_ops \"eltwise\(foo\)\": .*foo"),
        (call(dst_layout="cn"), r"dst_layout.*cn"),
        (call(scratchpad_mode="mine"), r"scratchpad_mode must be"),
    ],
)
def test_errors(wrong, words):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=words):
        wrong()
    with tf.Graph().as_default(), pytest.raises(ValueError, match=words):
        wrong()
