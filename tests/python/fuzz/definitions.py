"""What a call must give, out of TensorFlow's ops and NumPy, for those ops that have such a word."""

import re

import keras
import low_precision_calls
import numpy as np
import references
import tensorflow as tf
from attention_calls import attended
from call import Expected, plain_channels
from make_call import attrs_of, plain


def _chain(text, x, args, layout, channels):
    """The chain of post-ops applied to x, plain."""
    for entry in filter(None, text.split(";")):
        kind, words = entry[:-1].split("(")
        words = words.split(",")
        if kind == "eltwise":
            numbers, function = references.ELTWISE[words[0]]
            if ",".join(words[1:]) != numbers:
                return None
            x = np.asarray(function(x))
            continue
        operand = next(re.fullmatch(r"#(\d+)(?:@(\d+))?", w) for w in words if w[0] == "#")
        y, offset = args[int(operand[1])].astype(x.dtype), int(operand[2] or 0)
        if kind == "sum":
            scale = float(words[1].partition("=")[2]) if len(words) > 1 else 1.0
            x = x + np.float32(scale) * plain_channels(y, layout, channels)
            continue
        if words[1] in ("scalar", "channel"):
            y = y.reshape(-1)[offset : offset + (1 if words[1] == "scalar" else channels)]
        elif words[1] == "tensor":
            y = plain_channels(y, layout, channels)
        else:
            return None
        x = np.asarray(references.BINARY[words[0]](x, y))
    return x


def _finish(a, x, args, layout, channels, scale):
    """The expectation of an op with a chain, whose sums have terms of magnitude `scale`."""
    x = _chain(a["post_ops"], np.asarray(x), args, layout, channels)
    if x is None:
        return None
    if a.get("pool"):
        x = tf.nn.max_pool2d(tf.constant(x), a["pool"], a["pool"], "VALID").numpy()
    part = list(a.get("dst_part", ()))
    if part and not a["num_into"]:
        return None
    return Expected(x, 2e-4 * (1 + scale + np.abs(x)), layout, channels, part)


def _moved(values, layout=None, channels=0):
    """The expectation of an op that computes nothing: each element exactly."""
    return Expected(values.astype(np.float64), 0.0, layout, channels)


def _weights(array, a, name="weights"):
    shape, offset = a[f"{name}_shape"], a.get(f"{name}_offset", 0)
    return array.reshape(-1)[offset : offset + np.prod(shape)].reshape(shape)


def _magnitude(x, w):
    """Of a sum of products, with some room."""
    if not x.size or not w.size:
        return 0.0
    return float(np.sqrt(w[..., 0].size) * np.abs(x).max() * np.abs(w).max())


def _padding(a):
    top, bottom, left, right = a["explicit_paddings"] or (0, 0, 0, 0)
    return [[top, bottom], [left, right]] if a["padding"] == "EXPLICIT" else a["padding"]


def _conv(a, src, weights, *rest):
    x, w = plain_channels(src, a["src_layout"], a["channels"], a["src_part"]), _weights(weights, a)
    if a["src_blocks"] or not x.size:  # TensorFlow gives no images a shape of their own
        return None
    y = references.conv(
        x,
        w,
        strides=a["strides"],
        padding=_padding(a),
        dilations=a["dilations"],
        groups=a["groups"],
    )
    return _finish(a, y, rest, a["dst_layout"], w.shape[3], _magnitude(x, w))


def _conv_depthwise(a, src, weights, deep, *rest):
    if a["src_blocks"]:
        return None
    x, w, v = (
        plain_channels(src, "nChw16c", a["channels"], a["src_part"]),
        _weights(weights, a),
        deep,
    )
    v, oc = _weights(deep, a, "depthwise_weights"), w.shape[3]
    count = a["num_args"]
    y = _chain(a["post_ops"], references.conv(x, w), rest[:count], "nChw16c", oc)
    if y is None:
        return None
    z = references.conv(
        y, v, strides=a["strides"], padding=_padding(a), dilations=a["dilations"], groups=oc
    )
    scale = _magnitude(x, w) * (1 + np.abs(v).max()) * 5 + _magnitude(y, v)
    names = {"post_ops": a["depthwise_post_ops"]}
    return _finish(names, z, rest[count:], "nChw16c", oc, scale)


def _conv_transpose(a, src, weights, *rest):
    x, w = plain_channels(src, "nChw16c", a["channels"], a["src_part"]), _weights(weights, a)
    n, h, ww = x.shape[:3]
    oc, (top, bottom, left, right) = w.shape[2], a["crops"]
    size = [
        (s - 1) * by + k if s else 0
        for s, by, k in zip((h, ww), a["strides"], w.shape[:2], strict=True)
    ]
    y = np.zeros((n, *size, oc), np.float32)
    if x.size and y.size:
        y = tf.nn.conv2d_transpose(x, w, y.shape, a["strides"], "VALID").numpy()
    y = np.pad(y, [[0, 0], [0, max(0, -bottom)], [0, max(0, -right)], [0, 0]])
    y = y[:, top : y.shape[1] - max(0, bottom), left : y.shape[2] - max(0, right)]
    if not x.size and min(size) == 0:
        return None
    scale = _magnitude(x, w) + _magnitude(x, np.moveaxis(w, 3, 2))
    return _finish(a, y, rest, a["dst_layout"], oc, scale)


def _convolved(x, w, strides, padding):
    """tf.nn.conv3d as it should be: that goes wrong where strides exceed windows."""
    kernel, sizes = w.shape[:3], x.shape[1:4]
    out = [-(-n // s) for n, s in zip(sizes, strides, strict=True)]
    if padding == "VALID":
        out = [max(0, (n - k) // s + 1) for n, k, s in zip(sizes, kernel, strides, strict=True)]
    pads = []
    for o, s, k, n in zip(out, strides, kernel, sizes, strict=True):
        needed = max(0, (o - 1) * s + k - n)
        pads.append([needed // 2, needed - needed // 2])
    x = np.pad(x.astype(np.float64), [[0, 0], *pads, [0, 0]])
    y = np.zeros((len(x), *out, w.shape[4]))
    for tap in np.ndindex(*kernel):
        seen = [slice(t, t + (o - 1) * s + 1, s) for t, o, s in zip(tap, out, strides, strict=True)]
        y += x[(slice(None), *seen)] @ w[tap]
    return y


def _conv_volume(a, src, weights, *rest):
    rest = list(rest)
    x, w = plain_channels(src, a["src_layout"], a["channels"]), _weights(weights, a)
    if not x.size:
        return None
    count = rest.pop().shape[0] if a["num_volumes"] else len(x) // a["depth"]
    volumes = x.reshape(count, -1, *x.shape[1:])
    y = _convolved(volumes, w, a["strides"], a["padding"])
    y = y.reshape(y.shape[0] * y.shape[1], *y.shape[2:])
    return _finish(a, y, rest, a["dst_layout"], w.shape[4], _magnitude(x, w))


def _inner_product(a, src, weights, *rest):
    w = _weights(weights, a)
    y = src.astype(np.float64) @ w.astype(np.float64)
    return _finish(a, y, rest, None, w.shape[1], _magnitude(src, w))


def _packed_matmul(a, x, y, *rest):
    x, y = x.T if a["transpose_a"] else x, y.T if a["transpose_b"] else y
    z = x.astype(np.float64) @ y.astype(np.float64)
    if a["num_adds"]:
        z = z + a["add_scale"] * rest[-1].astype(np.float64)
    return _finish(a, z, rest, None, y.shape[1], _magnitude(x, y))


def _eltwise(a, src, *rest):
    x = plain_channels(src, a["layout"], a["channels"], a["src_part"])
    return _finish(a, x, rest, a["layout"], a["channels"], 1.0)


def _pool(a, src, *rest):
    x = plain_channels(src, "nChw16c", a["channels"], a["src_part"])
    if not x.size:
        return None
    pads = [[0, 0], *(_padding(a) if a["padding"] == "EXPLICIT" else [[0, 0]] * 2), [0, 0]]
    padding = "VALID" if a["padding"] == "EXPLICIT" else a["padding"]
    window = (a["ksize"], a["strides"], padding)
    if a["kind"] == "max":
        y = tf.nn.max_pool2d(tf.constant(np.pad(x, pads, constant_values=-np.inf)), *window)
    else:
        y = tf.nn.avg_pool2d(np.pad(x, pads), *window)
        y = y / tf.nn.avg_pool2d(np.pad(np.ones_like(x), pads), *window)
    return _finish(dict(a, post_ops=""), y, (), "nChw16c", a["channels"], 1.0)


def _global_pool(a, src):
    x = plain_channels(src, "nChw16c", a["channels"])
    if not x.size:
        return None
    y = (x.max if a["kind"] == "max" else x.mean)(axis=(1, 2), keepdims=True)
    if a["dst_layout"] == "nc":
        y = y[:, 0, 0]
    layout = a["dst_layout"] if a["dst_layout"] != "nc" else None
    return _finish({"post_ops": ""}, y, (), layout, a["channels"], 1.0)


def _resize(a, src, *rest):
    x = plain_channels(src, "nChw16c", a["channels"], a["src_part"])
    size = a["size"] or [s * by for s, by in zip(x.shape[1:3], a["scales"], strict=True)]
    if not x.size or not min(size):
        return None
    op = tf.raw_ops.ResizeNearestNeighbor if a["kind"] == "nearest" else tf.raw_ops.ResizeBilinear
    y = op(
        images=x,
        size=size,
        half_pixel_centers=a["coordinates"] == "half_pixel",
        align_corners=a["coordinates"] == "align_corners",
    )
    return _finish(dict(a, post_ops=""), y, (), "nChw16c", a["channels"], 1.0)


def _pad(a, src):
    x, (top, bottom, left, right) = plain_channels(src, "nChw16c", a["channels"]), a["paddings"]
    more = [[max(0, top), max(0, bottom)], [max(0, left), max(0, right)]]
    y = np.pad(x, [[0, 0], *more, [0, 0]])
    y = y[:, max(0, -top) : y.shape[1] - max(0, -bottom)]
    y = y[:, :, max(0, -left) : y.shape[2] - max(0, -right)]
    return _finish({"post_ops": ""}, y, (), "nChw16c", a["channels"], 0.0)


def _concat(a, *values):
    count = len(a["channels"])
    firsts, wholes = a["src_parts"][::2] or [0] * count, a["src_parts"][1::2] or a["channels"]
    parts = [
        plain_channels(x, "nChw16c", c, (first, whole))
        for x, c, first, whole in zip(values, a["channels"], firsts, wholes, strict=False)
    ]
    y = np.concatenate(parts, -1)
    return _finish(dict(a, post_ops=""), y, (), "nChw16c", y.shape[-1], 0.0)


def _shuffle(a, src):
    if a["layout"] and a["channels"]:
        if "16c" not in a["layout"]:
            return None
        rank = len(src.shape) - 1
        axis = a["axis"] % rank
        axis = rank - 1 if axis == 1 else axis - (axis > 1)
        x = plain_channels(src, "nChw16c", a["channels"])
        layout = "nChw16c"
    else:
        x, axis, layout = src, a["axis"] % src.ndim, None
    count, group = x.shape[axis], a["group"]
    order = np.arange(count).reshape((group, -1) if a["backward"] else (-1, group)).T.reshape(-1)
    return _moved(np.take(x, order, axis), layout, x.shape[-1])


def _join(a, *values):
    return _moved(np.concatenate(values, a["axis"]))


def _update_slice(a, update, start, into):
    result = into.copy()
    whole = result[(slice(None), *a["at"])] if a["at"] else result
    first = np.clip(start, 0, np.subtract(whole.shape, update.shape))
    whole[tuple(slice(f, f + c) for f, c in zip(first, update.shape, strict=True))] = update
    return _moved(result)


def _attention(a, *args):
    y = attended(a, *args)
    return y if y is None else _finish({"post_ops": ""}, y, (), None, 0, 1.0)


def _softmax(a, src):
    return _finish({"post_ops": ""}, tf.nn.softmax(src), (), None, 0, 1.0)


def _epsilon(a):
    """As the ops and TensorFlow read it, whose threads take a denormal number as zero."""
    return a["epsilon"] if abs(a["epsilon"]) >= np.finfo(np.float32).tiny else 0.0


def _layer_norm(a, src, gamma, beta):
    c = a["channels"]
    x = plain_channels(src, a["layout"], c).astype(np.float64)
    rows = zip((gamma, beta), a["offsets"], strict=True)
    gamma, beta = (row.reshape(-1)[offset : offset + c] for row, offset in rows)
    x = x - x.sum(-1, keepdims=True) / c if a["centered"] else x
    scale = 1 / np.sqrt(np.square(x).sum(-1, keepdims=True) / c + _epsilon(a))
    result = x * scale * gamma + beta
    return _finish({"post_ops": ""}, result, (), a["layout"], c, np.max(scale, initial=1.0))


def _batch_norm(a, src, gamma, beta):
    x = plain_channels(src, "nChw16c", a["channels"]).astype(np.float64)
    axes = tuple(range(x.ndim - 1))
    if not x.size:
        return None
    scale = gamma / np.sqrt(x.var(axes) + _epsilon(a))
    y = (x - x.mean(axes)) * scale + beta
    return _finish({"post_ops": ""}, y, (), "nChw16c", a["channels"], np.max(np.abs(scale)))


def _reorder(a, src, *into):
    y = low_precision_calls.reordered(a, src, *into)
    layout = a["dst_layout"]
    return y if y is None else _finish({"post_ops": ""}, y, (), layout, y.shape[-1], 0.0)


def _squeeze_excite(a, src, *rows):
    c, s = a["channels"], a["squeezed"]
    x = plain_channels(src, "nChw16c", c)
    if not x.size:
        return None
    sizes = (c * s, s, c * s, c)
    rows = [y.reshape(-1)[o : o + n] for y, o, n in zip(rows, a["offsets"], sizes, strict=True)]
    y = x.mean((1, 2)) @ rows[0].reshape(c, s) + rows[1]
    y = _chain(a["reduce_post_ops"], y, (), None, s)
    y = (
        None
        if y is None
        else _chain(a["expand_post_ops"], y @ rows[2].reshape(s, c) + rows[3], (), None, c)
    )
    if y is None:
        return None
    y = x * y[:, None, None] if a["scale_src"] else y[:, None, None]
    if a["dst_layout"] == "nc":
        return _finish({"post_ops": ""}, y[:, 0, 0], (), None, c, 5.0)
    return _finish({"post_ops": ""}, y, (), a["dst_layout"], c, 5.0)


def _rnn(a, src, kernel, recurrent, *rest):
    rest = list(rest)
    bias = [rest.pop(0)] if a["num_biases"] else []
    states = [rest.pop(0) for _ in range(a["num_states"])]
    mask = rest.pop(0) if a["num_masks"] else None
    if a["time_major"]:
        src, mask = src.swapaxes(0, 1), None if mask is None else mask.T
    if a["num_lengths"]:
        within = np.arange(src.shape[1]) < rest.pop(0)[:, None]
        mask = within if mask is None else within & mask
    if not all(src.shape[:2]):  # Keras needs a step
        return None
    options = {} if a["cell"] == "vanilla" else {"recurrent_activation": a["recurrent_activation"]}
    if a["cell"] == "gru":
        options["reset_after"] = a["reset_after"]
    layer = _KERAS[a["cell"]](
        recurrent.shape[0],
        activation=a["activation"],
        use_bias=bool(bias),
        go_backwards=a["go_backwards"],
        return_sequences=a["return_sequences"],
        zero_output_for_mask=a["zero_output_for_mask"],
        **options,
    )
    layer.build((None, None, src.shape[2]))
    layer.set_weights([kernel, recurrent, *bias])
    y = layer(src, initial_state=states or None, mask=mask).numpy()
    if a["return_sequences"]:
        y = y[:, ::-1] if a["restore_order"] else y
        y = y.swapaxes(0, 1) if a["time_major"] else y
    return _finish({"post_ops": ""}, y, (), None, 0, np.max(np.abs(y)))


_KERAS = {"vanilla": keras.layers.SimpleRNN, "lstm": keras.layers.LSTM, "gru": keras.layers.GRU}
OPS = {
    "BlockdnnAttention": _attention,
    "BlockdnnBatchNorm": _batch_norm,
    "BlockdnnConcat": _concat,
    "BlockdnnConv": _conv,
    "BlockdnnConvDepthwise": _conv_depthwise,
    "BlockdnnConvTranspose": _conv_transpose,
    "BlockdnnConvVolume": _conv_volume,
    "BlockdnnEltwise": _eltwise,
    "BlockdnnGlobalPool": _global_pool,
    "BlockdnnInnerProduct": _inner_product,
    "BlockdnnJoin": _join,
    "BlockdnnLayerNorm": _layer_norm,
    "BlockdnnPackedMatmul": _packed_matmul,
    "BlockdnnPad": _pad,
    "BlockdnnPool": _pool,
    "BlockdnnReorder": _reorder,
    "BlockdnnResize": _resize,
    "BlockdnnRnn": _rnn,
    "BlockdnnShuffle": _shuffle,
    "BlockdnnSoftmax": _softmax,
    "BlockdnnSqueezeExcite": _squeeze_excite,
    "BlockdnnUpdateSlice": _update_slice,
}


def expected(call):
    """What the first result must be, or None where nothing says it."""
    sizes = [size for array in call.arrays() for size in array.shape]
    if call.op not in OPS or max(sizes, default=0) > 1 << 16:
        return None  # TensorFlow's own ops end the process where they have [2**31 - 1, 2, 0]
    attrs = {name: plain(value) for name, value in attrs_of(call).items()}
    define = OPS[call.op]
    if low_precision_calls.is_low_precision(call, attrs):
        return low_precision_calls.expected(call, attrs, define)
    return define(attrs, *(array.draw() for array in call.arrays()))
