import numpy as np
import pytest
import references
import tensorflow as tf
from quantized_numpy import Tensor, assert_stands_for

import tf_blockdnn as bd
from tf_blockdnn.python.native import library
from tf_blockdnn.python.ops.post_op_entry import FUNCTIONS

pytestmark = pytest.mark.each_isa


@pytest.mark.parametrize("name", sorted(references.ELTWISE))
def test_every_function(name, floats, blocked):
    channels = 19
    x = 3 * floats(2, 5, 6, channels)
    if name in references.POSITIVE_ONLY:
        x = abs(x) + 0.1
    parameters, function = references.ELTWISE[name]
    text = f"eltwise({name},{parameters})" if parameters else f"eltwise({name})"
    expected = function(x)
    plain = bd.ops.eltwise(x, text, layout="nhwc")
    np.testing.assert_allclose(plain, expected, rtol=2e-6, atol=2e-6)
    ours = bd.ops.eltwise(blocked.pack(x), text, channels=channels)
    np.testing.assert_allclose(blocked.unpack(ours, channels), expected, rtol=2e-6, atol=2e-6)


_TINY = np.float32([1e-45, 1e-40, 1e-30, 1e-8, np.finfo(np.float32).eps / 2])
_LARGE = np.float32([1e5, 1e6, 1e30, 3e38, np.inf])
_SPECIAL = np.concatenate([[0], _TINY, [0.5, 1 - _TINY[-1], 1, 1.5, 88.7, 89], _LARGE])
_SPECIAL = np.float32([*_SPECIAL, *-_SPECIAL, np.nan])


@pytest.mark.parametrize("name", sorted(name for name, op in FUNCTIONS.items() if op))
def test_special_values_are_those_of_tensorflow(name):
    ours = bd.ops.eltwise(_SPECIAL, f"eltwise({name})", layout="nhwc").numpy()
    theirs = references.ELTWISE[name][1](_SPECIAL).numpy()
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-37)


@pytest.mark.parametrize("name", sorted(set(references.BINARY) - {"prelu"}))
def test_special_pairs_are_those_of_tensorflow(name):
    x, y = (a.ravel() for a in np.meshgrid(_SPECIAL, _SPECIAL))
    ours = bd.ops.eltwise(x, f"binary({name},tensor,#0)", args=[y], layout="nhwc")
    np.testing.assert_allclose(ours, references.BINARY[name](x, y), rtol=1e-6, atol=1e-37)


def test_tail_of_a_function_that_lifts_zero(blocked, floats):
    """Division 0 / 0 in the tail must not leave a NaN there either."""
    x = floats(1, 3, 3, 5)
    packed = blocked.pack(x)
    for text in ["eltwise(exp)", "binary(div,tensor,#0)", "eltwise(clip,alpha=1,beta=2)"]:
        ours = bd.ops.eltwise(packed, text, args=[packed], channels=5)
        blocked.unpack(ours, 5)


def test_inputs_in_use_are_left_alone(floats, blocked):
    x = tf.constant(blocked.pack(floats(1, 4, 4, 16)))
    before = x.numpy().copy()
    bd.ops.eltwise(x, "eltwise(relu)", channels=16)
    bd.ops.eltwise(x, "binary(add,tensor,#0)", args=[x], channels=16)
    np.testing.assert_array_equal(x, before)


def test_in_place_in_a_graph(integers, blocked):
    @tf.function
    def run(x, y):
        return bd.ops.eltwise(
            x + 0, "eltwise(relu);binary(sub,tensor,#0)", args=[y * 2], channels=9
        )

    x, y = integers(2, 3, 5, 9), integers(2, 3, 5, 9)
    ours = blocked.unpack(run(blocked.pack(x), blocked.pack(y)), 9)
    np.testing.assert_array_equal(ours, np.maximum(x, 0) - 2 * y)


@pytest.mark.parametrize("shape", [(17,), (3, 5, 17), (2, 3, 1, 4, 17)], ids=str)
def test_the_op_itself_takes_plain_tensors_of_any_axes(floats, shape):
    """As the rewriter writes it: shapes come out as they went in, known in part or not at all."""
    x, row = floats(*shape), floats(shape[-1])
    chain = {"post_ops": "binary(add,channel,#0)", "layout": "nhwc", "channels": 17}

    def add(x):
        return library().blockdnn_eltwise(x, [row], [], [], **chain)

    for spec in (shape, (None, *shape[1:]), None):
        run = tf.function(add, input_signature=[tf.TensorSpec(spec)])
        np.testing.assert_array_equal(run(x), x + row)
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=r"\[.., 17\]"):
        add(floats(2, 3, 18))


def test_results_may_take_the_memory_of_a_source_of_their_type():
    x = Tensor(np.random.default_rng(13), (1, 4, 4, 16), np.uint8)

    @tf.function
    def twice(x):
        for _ in range(2):
            x = bd.ops.eltwise(
                x,
                "eltwise(relu)",
                channels=16,
                src_quantization=(0.05, 117),
                dst_quantization=(0.05, 117),
            )
        return x

    expected = np.maximum(x.real, 0)
    assert_stands_for(twice(x.blocked), 16, expected, np.uint8, x.quantization, steps=0)
