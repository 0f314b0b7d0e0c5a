"""Valid calls of every op, of random shapes: `MAKERS`, op -> what makes one out of a Draw."""

import attention_calls
import numpy as np
import valid_convs
from call import BLOCK, Call, blocks
from make_call import eagerly
from valid_convs import (
    some_chain,
    some_channels,
    some_dst_part,
    some_plane,
    some_src_part,
    some_window,
    window_results,
)


def inner_product(d):
    ic, oc = d.of(1, 5, 16, 70, 130), d.of(1, 3, 16, 33, 100)
    rows = [d.of(0, 1, 1, 2, 7, 33) for _ in range(d.of(1, 1, 0, 2))]
    chain, args = some_chain(d, None, oc, rows)
    offset = d.of(0, 0, 5)
    return Call(
        "BlockdnnInnerProduct",
        [[d.array(*rows, ic)], [d.array(offset + ic * oc)], args, []],
        {
            "num_args": len(args),
            "weights_shape": [ic, oc],
            "weights_offset": offset,
            "post_ops": chain,
            "constant_weights": d.chance(),
            "algorithm": d.of("auto", "auto", "direct"),
            "scratchpad_mode": d.of("user", "library"),
        },
    )


def packed_matmul(d):
    m, k, n = d.of(0, 1, 7, 40), d.of(1, 5, 64, 100), d.of(1, 3, 16, 70)
    transpose_a, transpose_b, add = d.chance(), d.chance(), d.chance(0.3)
    rows = [m] if transpose_a else [*d.of([], [], [2]), m]
    chain, args = some_chain(d, None, n, rows)
    return Call(
        "BlockdnnPackedMatmul",
        [
            [d.array(k, m) if transpose_a else d.array(*rows, k)],
            [d.array(n, k) if transpose_b else d.array(k, n)],
            args,
            [d.array(*rows, n)] if add else [],
            [],
        ],
        {
            "num_args": len(args),
            "num_adds": int(add),
            "transpose_a": transpose_a,
            "transpose_b": transpose_b,
            "constant_b": d.chance(),
            "add_scale": d.of(1.0, -0.5),
            "post_ops": chain,
        },
    )


def eltwise(d):
    channels, (n, h, w) = some_channels(d), some_plane(d)
    layout = d.of("nhwc", "nChw16c")
    chain, args = some_chain(d, layout, channels, (n, h, w))
    part, into = some_dst_part(d, channels, n, h, w, allowed=layout != "nhwc")
    src_part, src = some_src_part(d, channels, n, h, w)
    if layout == "nhwc":
        src_part, src = [], d.array(n, h, w, channels)
    return Call(
        "BlockdnnEltwise",
        [[src], args, [], into],
        {
            "num_args": len(args),
            "layout": layout,
            "channels": channels,
            "post_ops": chain or "eltwise(relu)",
            "src_part": src_part,
            **part,
        },
    )


def _pooling(d):
    """The attributes of a window, the plane, and that of the result."""
    n, h, w = some_plane(d)
    kernel, strides = [d.to(1, 5), d.to(1, 4)], [d.to(1, 3), d.to(1, 7)]
    padding, explicit = some_window(d, kernel, (h, w))
    attrs = {
        "kind": d.of("max", "avg"),
        "channels": some_channels(d),
        "ksize": kernel,
        "strides": strides,
        "padding": padding,
        "explicit_paddings": explicit,
    }
    return attrs, (n, h, w), window_results(padding, explicit, kernel, strides, (h, w))


def pool(d):
    attrs, (n, h, w), out = _pooling(d)
    part, into = some_dst_part(d, attrs["channels"], n, *out)
    src_part, src = some_src_part(d, attrs["channels"], n, h, w)
    return Call("BlockdnnPool", [[src], into], {**attrs, "src_part": src_part, **part})


def pool_grad(d):
    attrs, (n, h, w), out = _pooling(d)
    dst, src = (d.blocked(n, attrs["channels"], *plane) for plane in (out, (h, w)))
    return Call("BlockdnnPoolGrad", [[dst], [src], [dst]], attrs)


def global_pool(d):
    channels, (n, h, w) = some_channels(d), some_plane(d)
    layout = d.of("nc", "nhwc", "nChw16c")
    attrs = {"kind": d.of("max", "avg"), "channels": channels, "dst_layout": layout}
    return Call("BlockdnnGlobalPool", [[d.blocked(n, channels, h, w)]], attrs)


def resize(d):
    channels, (n, h, w) = some_channels(d), some_plane(d, most=8)
    h, w = h or 1, w or 1
    size = [d.to(1, 20), d.to(1, 9)] if d.chance() else []
    scales = [] if size else [d.to(1, 4), d.to(1, 3)]
    out = size or [h * scales[0], w * scales[1]]
    part, into = some_dst_part(d, channels, n, *out)
    src_part, src = some_src_part(d, channels, n, h, w)
    attrs = {
        "kind": d.of("nearest", "bilinear"),
        "coordinates": d.of("half_pixel", "asymmetric", "align_corners"),
        "channels": channels,
        "scales": scales,
        "size": size,
        "src_part": src_part,
    }
    return Call("BlockdnnResize", [[src], into], {**attrs, **part})


def pad(d):
    channels, (n, h, w) = some_channels(d), some_plane(d)
    paddings = [d.to(-(size // 2), 3) for size in (h, h, w, w)]
    attrs = {"channels": channels, "paddings": paddings}
    return Call("BlockdnnPad", [[d.blocked(n, channels, h, w)]], attrs)


def concat(d):
    n, h, w = some_plane(d)
    channels = [some_channels(d) for _ in range(d.to(1, 4))]
    part, into = some_dst_part(d, sum(channels), n, h, w)
    wholes, parts = channels, []
    if d.chance(0.3):  # channels from any one on
        firsts = [d.of(0, 1, 10, 15, 16) for _ in channels]
        wholes = [f + c + d.of(0, 4, 16) for f, c in zip(firsts, channels, strict=True)]
        parts = [size for pair in zip(firsts, wholes, strict=True) for size in pair]
    values = [d.blocked(n, count, h, w) for count in wholes]
    attrs = {"N": len(values), "channels": channels, "src_parts": parts, **part}
    return Call("BlockdnnConcat", [values, into], attrs)


def shuffle(d):
    dtype = d.of("float32", "float64", "int8", "int64", "bool", "float16", "uint16")
    group = d.to(1, 6)
    attrs = {"group": group, "backward": d.chance()}
    if d.chance():
        channels, space = group * d.to(1, 12), [d.to(1, 4) for _ in range(d.to(1, 3))]
        layout, axis = ("nCw16c", "nChw16c", "nCdhw16c")[len(space) - 1], 1
        src = d.array(2, blocks(channels), *space, BLOCK, channels=channels, dtype=dtype)
    else:
        shape, channels, layout = [d.to(0, 5) for _ in range(d.to(1, 6))], 0, ""
        axis = d.to(-len(shape), len(shape) - 1)
        shape[axis] = group * d.to(0, 5)
        src = d.array(*shape, dtype=dtype)
    return Call(
        "BlockdnnShuffle", [[src]], {**attrs, "axis": axis, "layout": layout, "channels": channels}
    )


def update_slice(d):
    dtype, index = d.of("float32", "float64", "int8", "int64", "bool"), d.of("int32", "int64")
    sizes, more = [d.to(0, 5) for _ in range(d.to(1, 4))], [d.to(1, 3) for _ in range(d.to(0, 2))]
    into = [size + d.to(0, 9) for size in sizes]
    into[1:1] = more
    update, start = d.array(*sizes, dtype=dtype), d.array(len(sizes), dtype=index)
    attrs = {"at": [d.to(0, size - 1) for size in more]}
    return Call("BlockdnnUpdateSlice", [[update], [start], [d.array(*into, dtype=dtype)]], attrs)


def join(d):
    shape = [d.to(0, 5) for _ in range(d.to(1, 4))]
    axis, dtype = d.to(-len(shape), len(shape) - 1), d.of("float32", "float64", "int8", "bool")
    values = []
    for _ in range(d.to(1, 4)):
        shape[axis] = d.to(0, 70)
        values.append(d.array(*shape, dtype=dtype))
    return Call("BlockdnnJoin", [values], {"N": len(values), "axis": axis})


def softmax(d):
    return Call(
        "BlockdnnSoftmax", [[d.array(*(d.to(0, 6) for _ in range(d.to(1, 5))), d.to(1, 70))]]
    )


def layer_norm(d):
    channels, (n, h, w) = some_channels(d), some_plane(d)
    layout, offsets = d.of("nhwc", "nChw16c"), [d.of(0, 7), d.of(0, 2)]
    rows = [[d.array(offset + channels)] for offset in offsets]
    attrs = {"channels": channels, "epsilon": 1e-3, "layout": layout, "offsets": offsets}
    attrs["centered"] = d.chance()
    return Call("BlockdnnLayerNorm", [[d.activation(layout, n, channels, h, w)], *rows], attrs)


def _statistics(d, op, images, rows, **attrs):
    """`images` of one shape, then `rows` of channels."""
    channels, n = some_channels(d), d.to(1, 3)
    space = [d.to(1, 5) for _ in range(d.to(1, 3))]
    inputs = [[d.blocked(n, channels, *space)] for _ in range(images)]
    inputs += [[d.array(channels)] for _ in range(rows)]
    return Call(op, inputs, {"channels": channels, "epsilon": 1e-3, **attrs})


def layer_norm_grad(d):
    return _statistics(d, "BlockdnnLayerNormGrad", 2, 1, centered=d.chance())


def batch_norm(d):
    return _statistics(d, "BlockdnnBatchNorm", 1, 2)


def batch_norm_grad(d):
    return _statistics(d, "BlockdnnBatchNormGrad", 2, 6, clamp=d.of("", "relu", "relu6"))


def fold_batch_norm(d):
    channels, inner = some_channels(d), d.to(1, 3)
    weights = d.array(*(d.to(1, 3) for _ in range(d.to(0, 3))), channels, inner)
    rows = [[d.array(channels)] for _ in range(4)]
    rows.append([d.array(channels, dtype="uint8")])  # a variance is not negative
    rows[-1][0].dtype, rows[-1][0].values = "float32", tuple(range(1, channels + 1))
    attrs = {"channels": channels, "inner": inner, "epsilon": 1e-3}
    return Call("BlockdnnFoldBatchNorm", [[weights], *rows], attrs)


def squeeze_excite(d):
    channels, squeezed, (n, h, w) = some_channels(d), d.of(1, 4, 16, 21), some_plane(d)
    sizes = [channels * squeezed, squeezed, channels * squeezed, channels]
    offsets = [d.of(0, 0, 3) for _ in sizes]
    scale_src = d.chance()
    attrs = {
        "channels": channels,
        "squeezed": squeezed,
        "offsets": offsets,
        "reduce_post_ops": d.of("eltwise(relu)", "eltwise(swish)", ""),
        "expand_post_ops": d.of("eltwise(logistic)", "eltwise(hard_sigmoid)"),
        "dst_layout": "nChw16c" if scale_src else d.of("nc", "nhwc", "nChw16c"),
        "scale_src": scale_src,
        "scratchpad_mode": d.of("user", "library"),
    }
    rows = [[d.array(size + offset)] for size, offset in zip(sizes, offsets, strict=True)]
    return Call("BlockdnnSqueezeExcite", [[d.blocked(n, channels, h, w)], *rows], attrs)


def reorder(d):
    channels, (n, h, w) = some_channels(d), some_plane(d)
    types = ("float32", "float32", "bfloat16", "float16", "int32", "int8", "uint8")
    dtype, into = d.of(*types), []
    src_layout, dst_layout = d.of("nhwc", "nChw16c", "nchw"), d.of("nhwc", "nChw16c", "nChw8c")
    attrs = {
        "dst_type": d.of(*types),
        "src_layout": src_layout,
        "dst_layout": dst_layout,
        "dims": [n, channels, h, w],
    }
    if src_layout == "nchw":
        src = d.array(n, channels, h, w, dtype=dtype)
    else:
        src = d.activation(src_layout, n, channels, h, w)
        src.dtype = dtype
    if d.chance(0.3):
        attrs |= {"scales": [0.5], "scale_shape": []}
    if d.chance(0.2):  # out of a wider tensor
        size = 2 + n * channels * h * w
        strides = [channels * h * w, h * w, w, 1]
        src = d.array(size, dtype=dtype)
        attrs |= {"src_layout": "", "src_strides": strides, "src_offset": 2}
    if d.chance(0.2) and dst_layout == "nhwc":
        into = [d.array(n, h, w, channels, dtype=attrs["dst_type"])]
        attrs |= {"beta": 0.5, "into_types": [attrs["dst_type"]]}
    return Call("BlockdnnReorder", [[src], into], attrs)


def rnn(d, training=None):
    cell = d.of("vanilla", "lstm", "gru")
    batch, steps, inputs, units = d.of(0, 1, 1, 3, 5), d.to(1, 5), d.to(1, 20), d.of(1, 3, 16, 20)
    gates = {"vanilla": 1, "lstm": 4, "gru": 3}[cell]
    attrs = {
        "cell": cell,
        "activation": d.of("tanh", "relu", "sigmoid", "linear"),
        "recurrent_activation": d.of("sigmoid", "hard_sigmoid", "tanh"),
        "reset_after": d.chance(),
        "go_backwards": d.chance(),
        "return_sequences": d.chance(),
        "zero_output_for_mask": d.chance(),
        "time_major": d.chance(),
        "training": d.chance() if training is None else training,
    }
    attrs["restore_order"] = attrs["go_backwards"] and d.chance()
    first = (steps, batch) if attrs["time_major"] else (batch, steps)
    two = cell == "gru" and attrs["reset_after"]
    bias = [d.array(*([2] if two else []), gates * units)] if d.chance(0.7) else []
    states = [d.array(batch, units)] * (2 if cell == "lstm" else 1) if d.chance() else []
    mask = [d.array(*first, dtype="bool")] if d.chance(0.3) else []
    lengths = [d.array(batch, dtype="int32")] if d.chance(0.2) else []
    counts = {"biases": bias, "states": states, "masks": mask, "lengths": lengths}
    weights = [[d.array(inputs, gates * units)], [d.array(units, gates * units)]]
    return Call(
        "BlockdnnRnn",
        [[d.array(*first, inputs)], *weights, bias, states, mask, lengths, []],
        {**attrs, **{f"num_{name}": len(group) for name, group in counts.items()}},
    )


def rnn_grad(d):
    """With a workspace of the right size, of whatever values."""
    call = rnn(d, training=True)
    (src,), _, (recurrent,) = call.inputs[:3]
    units, a = recurrent.shape[0], call.attrs
    batch = src.shape[1 if a["time_major"] else 0]
    workspace = np.size(eagerly(call)[3])
    dst = [*src.shape[:2], units] if a["return_sequences"] else [batch, units]
    states = [d.array(batch, units), d.array(batch, units)]
    if a["cell"] != "lstm":
        states[1] = d.array(0)
    grads = [[d.array(workspace)], [d.array(*dst)], *([state] for state in states)]
    return Call("BlockdnnRnnGrad", [*call.inputs[:-1], *grads], a)  # it takes no scales


MAKERS = {
    "BlockdnnAttention": attention_calls.attention,
    "BlockdnnBatchNorm": batch_norm,
    "BlockdnnBatchNormGrad": batch_norm_grad,
    "BlockdnnConcat": concat,
    "BlockdnnConv": valid_convs.conv,
    "BlockdnnConvBackwardWeights": valid_convs.backward_weights,
    "BlockdnnConvDepthwise": valid_convs.conv_depthwise,
    "BlockdnnConvTranspose": valid_convs.conv_transpose,
    "BlockdnnConvVolume": valid_convs.conv_volume,
    "BlockdnnEltwise": eltwise,
    "BlockdnnFoldBatchNorm": fold_batch_norm,
    "BlockdnnGlobalPool": global_pool,
    "BlockdnnInnerProduct": inner_product,
    "BlockdnnJoin": join,
    "BlockdnnLayerNorm": layer_norm,
    "BlockdnnLayerNormGrad": layer_norm_grad,
    "BlockdnnPackedMatmul": packed_matmul,
    "BlockdnnPad": pad,
    "BlockdnnPool": pool,
    "BlockdnnPoolGrad": pool_grad,
    "BlockdnnReorder": reorder,
    "BlockdnnResize": resize,
    "BlockdnnRnn": rnn,
    "BlockdnnRnnGrad": rnn_grad,
    "BlockdnnShuffle": shuffle,
    "BlockdnnSoftmax": softmax,
    "BlockdnnUpdateSlice": update_slice,
    "BlockdnnSqueezeExcite": squeeze_excite,
    "BlockdnnThreads": lambda d: Call("BlockdnnThreads", []),
}
