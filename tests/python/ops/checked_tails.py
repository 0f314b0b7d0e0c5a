"""What holds with TF_BLOCKDNN_CHECK_TAILS=1; test_check_tails.py runs it in a process with that."""

import copy
import dataclasses
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from call import BLOCK, Draw
from low_precision_calls import in_low_precision
from make_call import definitions, eagerly, in_graph
from valid_calls import MAKERS

import tf_blockdnn as bd

SWITCH = "TF_BLOCKDNN_CHECK_TAILS"
CHANNELS = 20
# op -> its inputs in blocks
INPUTS = {
    "BlockdnnReorder": "src",
    "BlockdnnConv": "src args[0] args[1]",
    "BlockdnnConvDepthwise": "src args[0] depthwise_args[1]",
    "BlockdnnConvBackwardWeights": "src ddst",
    "BlockdnnBatchNorm": "src",
    "BlockdnnBatchNormGrad": "ddst src",
    "BlockdnnConvTranspose": "src args[0]",
    "BlockdnnConvVolume": "src args[0]",
    "BlockdnnLayerNorm": "src",
    "BlockdnnLayerNormGrad": "ddst src",
    "BlockdnnPad": "src",
    "BlockdnnEltwise": "src args[0]",
    "BlockdnnPool": "src",
    "BlockdnnPoolGrad": "ddst src dst",
    "BlockdnnResize": "src",
    "BlockdnnGlobalPool": "src",
    "BlockdnnSqueezeExcite": "src",
    "BlockdnnShuffle": "src",
    "BlockdnnConcat": "values[1]",
}
OF_BYTES = (
    "Pool",
    "Concat",
    "Shuffle",
    "Eltwise",
    "Reorder",
    "Conv",
    "GlobalPool",
    "Resize",
    "Pad",
)
each_input = pytest.mark.parametrize(
    "op, name, dtype",
    [(op, name, "float32") for op, names in INPUTS.items() for name in names.split()]
    + [(f"Blockdnn{op}", INPUTS[f"Blockdnn{op}"].split()[0], "uint8") for op in OF_BYTES],
)


def zeros(n=2, h=3, w=4):
    return np.zeros((n, 2, h, w, 16), np.float32)


def _zero_point(array):
    return int(array.quantization[1]) if array.dtype == "uint8" and array.quantization else 0


def _has_tail(array):
    """Whether it has one, of bytes that are not 0."""
    blocked = array.channels and len(array.shape) > 2 and array.shape[-1] == BLOCK
    known = array.dtype != "uint8" or _zero_point(array)
    return blocked and array.channels % BLOCK and np.prod(array.shape) and known


def drawn(op, name, dtype):
    """A call, the same with one element of a tail of that input broken, and what is said of it."""
    for index in range(2000):
        d = Draw(0, index)
        call = MAKERS[op](d)
        if dtype != "float32":
            call = in_low_precision(d, call)
        for i, argument in enumerate(definitions()[op].input_arg):
            for j, array in enumerate(call.inputs[i]):
                named = f"{argument.name}[{j}]" if argument.number_attr else argument.name
                if (named, array.dtype) == (name, dtype) and _has_tail(array):
                    bad = copy.deepcopy(call)
                    bad.inputs[i][j], said = _broken(d, array)
                    return call, bad, said
    raise AssertionError(f"no call of {op} has {name}")


def _broken(d, array):
    x = array.draw()
    channel = d.to(array.channels, x.shape[1] * BLOCK - 1)
    n, *space = (d.to(0, size - 1) for size in (x.shape[0], *x.shape[2:-1]))
    zero = _zero_point(array)
    x[(n, channel // BLOCK, *space, channel % BLOCK)] = value = zero ^ 1 if zero else 0.5
    letters = "dhw"[-len(space) :]
    place = "".join(f", {letter}={at}" for letter, at in zip(letters, space, strict=True))
    must = f"the zero point, {zero}" if zero else "zero"
    said = re.escape(f" is {value} at [n={n}, c={channel}{place}], in the tail of nC{letters}16c [")
    said += rf".*\], where all must be {must}; what made it must"
    return dataclasses.replace(array, values=tuple(x.ravel())), said


@each_input
def test_broken_input(op, name, dtype):
    """Run eagerly, then in a graph, where the node that made the input is named as well."""
    call, bad, said = drawn(op, name, dtype)
    ways = {eagerly: (r"\w+", ""), in_graph: ("node", r', made by "\w*input\d+\w*",')}
    for run, (node, made_by) in ways.items():
        run(call)
        message = rf'{SWITCH}: {op} "{node}": input {re.escape(name)}{made_by}{said}'
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(bad)


def test_operand_of_one_element_a_channel_and_sample():
    """In a function, which runs on after the error."""
    kernel, bad = np.zeros((1, 1, 20, 20), np.float32), zeros(h=1, w=1)
    bad[1, 1, 0, 0, 14] = 0.5

    @tf.function
    def graph(x):
        more = {"post_ops": "binary(mul,sample_channel,#0)", "args": [tf.abs(x, name="guilty")]}
        return bd.ops.conv(zeros(), kernel, padding="SAME", **more)

    graph(0 * bad)
    message = r'input args\[0\], made by "guilty", is 0.5 at \[n=1, c=30, h=0, w=0\]'
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        graph(bad)
    graph(0 * bad)


def test_parts_of_wider_tensors():
    """What lies beside a part may be anything; the tail of the wider tensor is the last part's."""
    wide = np.full((2, 4, 3, 4, 16), np.nan, np.float32)  # of 52 channels
    pool = dict(strides=1, padding="SAME")
    wide[:, 1] = 1
    bd.ops.pool(wide, "max", 2, channels=16, src_part=(16, 52), dst_part=(16, 52), **pool)
    wide[:, 2:] = 0
    wide[1, 3, 2, 0, 14] = 0.5
    message = r"is 0.5 at \[n=1, c=62, h=2, w=0\], in the tail of nChw16c \[2, 52, 3, 4\]"
    bd.ops.pool(wide, "max", 2, channels=16, src_part=(16, 52), **pool)
    with pytest.raises(tf.errors.InvalidArgumentError, match="input src.* " + message):
        bd.ops.pool(wide, "max", 2, channels=20, src_part=(32, 52), **pool)


def test_wrong_shapes_have_their_own_error():
    with pytest.raises(tf.errors.InvalidArgumentError, match="src must be nChw16c"):
        bd.ops.pool(
            np.ones((2, 3, 4, 16), np.float32), "max", 2, channels=CHANNELS, padding="VALID"
        )


def test_reorder_of_weights_and_of_strided_memory():
    """Any layout, any type, a part of a larger memory."""
    weights = np.zeros((1, 2, 3, 3, 8, 8), np.int8)  # o = 5, i = 9
    src = bd.TensorDesc((5, 9, 3, 3), "int8", "OIhw8i8o")
    assert bd.ops.reorder(weights, src, "oihw").shape == (5, 9, 3, 3)
    for o, i in ((5, 0), (0, 9)):
        bad = weights.copy()
        bad[0, i // 8, 1, 2, i % 8, o] = 3
        message = rf"input src is 3 at \[o={o}, i={i}, h=1, w=2\], in the tail of OIhw8i8o"
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            bd.ops.reorder(bad, src, "oihw")
    part = bd.TensorDesc((2, 9, 3), "float32", "nCw8c", strides=(60, 30, 8), offset=7)
    memory = np.ones(part.size, np.float32)  # also where the part has holes
    for index in np.ndindex(part.padded_dims):
        memory[part.offset(*index)] = index[1] < 9
    assert bd.ops.reorder(memory, part, "ncw").shape == (2, 9, 3)
    memory[part.offset(1, 12, 2)] = -1
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"is -1 at \[n=1, c=12, w=2\]"):
        bd.ops.reorder(memory, part, "ncw")


def test_a_healthy_network(floats):
    """Convolutions, a sum, concatenation and pools with channels that fill no block."""
    image = keras.Input((24, 24, 3))
    x = keras.layers.Conv2D(20, 3, activation="sigmoid")(image)
    y = keras.layers.Conv2D(20, 3, padding="same", use_bias=False)(x)
    y = keras.layers.BatchNormalization()(y)
    x = keras.layers.Add()([x, keras.layers.Activation("softplus")(y)])
    x = keras.layers.Concatenate()([x, keras.layers.DepthwiseConv2D(3, padding="same")(x)])
    x = keras.layers.MaxPooling2D(2)(x)
    x = keras.layers.Conv2D(33, 1)(x)
    x = keras.layers.GlobalAveragePooling2D()(x)
    model = keras.Model(image, keras.layers.Dense(5)(x))
    fast = bd.optimize(model)
    assert fast.report.counts()["BlockdnnConv"] >= 4
    images = floats(2, 24, 24, 3)
    np.testing.assert_allclose(fast(images), model(images), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", ["conv", "eltwise"])
def test_a_plain_operand_of_bytes_gets_its_zero_point(op):
    """The tail of what is laid out in blocks stands for zero, as that of every uint8 tensor."""
    operand = tf.constant(np.full((2, 3, 4, CHANNELS), 92, np.uint8))
    options = {"post_ops": bd.PostOps().sum(operand=operand), "sum_quantization": (0.5, 90)}
    if op == "conv":
        filters, src = tf.zeros((1, 1, 20, 20), tf.bfloat16), tf.zeros((2, 2, 3, 4, 16), "bfloat16")
        y = bd.ops.conv(src, filters, padding="SAME", **options)
    else:
        y = bd.ops.eltwise(zeros(), channels=CHANNELS, **options)
    assert np.sum(y == 1.0) == 2 * 3 * 4 * CHANNELS
