"""Calls of bfloat16 and of bytes: made of valid ones of float32, and what they must give.

A low-precision tensor stands for real numbers. What an op must give is its definition in float32 on
these, within the rounding of the type that it writes.
"""

from dataclasses import replace

import numpy as np
import tensorflow as tf
from call import BLOCK, Array, blocks, plain_channels
from make_call import definitions
from quantized_numpy import BF16, real
from valid_convs import splits_blocks, window_results

_TYPES = ("float32", "bfloat16", "uint8")


def _group(call, name):
    """The tensors of that argument."""
    names = [argument.name for argument in definitions()[call.op].input_arg]
    return call.inputs[names.index(name)] if name in names else []


def _some_quantization(d, dtype):
    """Of a tensor of that type, with values around 1 as those of float32 are drawn."""
    if dtype != "uint8":
        return []
    return [d.of(0.01, 0.02, 0.05), float(d.of(0, 100, 128, 255))]


def _become(arrays, dtype, quantization=()):
    for array in arrays:
        array.dtype, array.quantization = dtype, tuple(quantization)


def _set(d, call, name, dtype, quantization=None):
    """Gives the tensors `name` that type, and the attribute of their quantization, which it
    returns."""
    if quantization is None:
        quantization = _some_quantization(d, dtype)
    _become(_group(call, name), dtype, quantization)
    call.attrs[f"{name}_quantization"] = quantization
    return quantization


def _set_dst(d, call, dtype, quantization=None):
    quantization = _set(d, call, "dst", dtype, quantization)
    call.attrs["dst_type"] = dtype
    _become(_group(call, "into"), dtype, quantization)


def _activation(d, call):
    _set(d, call, "src", d.of(*_TYPES))
    _set_dst(d, call, d.of(*_TYPES))


def _pad(d, call):
    dtype = d.of(*_TYPES)
    _set_dst(d, call, dtype, _set(d, call, "src", dtype))


def _add_sum(d, call, before):
    """An operand of any type: behind a bias in front of the chain, or anywhere."""
    a, args, like = call.attrs, _group(call, "args"), _like_dst(call)
    entries = [entry for entry in a["post_ops"].split(";") if entry]
    front = []
    if before and d.chance():
        front = [f"binary(add,channel,#{len(args)})"]
        args.append(d.array(_channels(call)))
        a["num_args"] = len(args)
    added = d.of("sum(#{})", "sum(#{},scale=0.5)", *([] if before else ["binary(add,tensor,#{})"]))
    added = added.format(len(args))
    at = 0 if before else d.to(0, len(entries))
    a["post_ops"] = ";".join([*front, *entries[:at], added, *entries[at:]])
    _group(call, "sum").append(like)
    a["num_sums"] = 1
    _set(d, call, "sum", d.of(*_TYPES))


def _channels(call):
    a = call.attrs
    return a["weights_shape"][-1] if "weights_shape" in a else a["channels"]


def _like_dst(call):
    """A tensor of the shape of the result."""
    a, src, channels = call.attrs, _group(call, "src")[0], _channels(call)
    plain = a.get("src_layout", a.get("layout")) == "nhwc"
    n, h, w = src.shape[:3] if plain else (src.shape[0], *src.shape[2:4])
    if "weights_shape" in a:
        window = (a["padding"], a["explicit_paddings"], a["weights_shape"][:2], a["strides"])
        h, w = window_results(*window, (h, w), a["dilations"][0])
    elif plain:
        return Array(src.shape, src.seed + 1)
    return Array((n, blocks(channels), h, w, BLOCK), src.seed + 1, channels=channels)


def _eltwise(d, call):
    _activation(d, call)
    if d.chance(0.4):
        _add_sum(d, call, before=False)


def _weights(d, call, dtype, name="weights", scales=1, offset=0, columns=None, factors=0):
    """Weights of that type; of int8 with as many tensors of scales, and factors behind them."""
    _become(_group(call, name), dtype)
    if dtype != "int8":
        return
    columns = _channels(call) if columns is None else columns
    values = (0.0,) * offset + tuple(0.005 * (1 + i % 4) for i in range(columns))
    values += tuple(0.5 * (1 + i % 3) for i in range(factors))
    for _ in range(scales):
        _group(call, "weight_scales").append(Array((len(values),), values=values))
    call.attrs["num_scales"] = scales


def _conv(d, call):
    src, a = d.of(*_TYPES), call.attrs
    if "sum(" in a["post_ops"] and "nhwc" in (a["src_layout"], a["dst_layout"]):
        src = "float32"  # others take no such sum there
    if a["algorithm"] == "direct" and splits_blocks(a):
        src = "float32"  # others multiply whole blocks
    weights = {"float32": ("bfloat16", "int8"), "bfloat16": ("bfloat16", "float32")}
    _weights(d, call, d.of(*weights.get(src, ("int8",))))
    if src == "float32":
        return
    _set(d, call, "src", src)
    a["pool"] = []  # which Winograd stores
    _set_dst(d, call, d.of(*_TYPES))
    if a["dst_layout"] == "nChw16c" and d.chance(0.4):
        _add_sum(d, call, before=True)


def _inner_product(d, call):
    dtype, a = d.of("bfloat16", "int8"), call.attrs
    if dtype == "int8":
        a["scales_offset"] = d.of(0, 3)
        a["quantize_rows"] = d.chance(0.3)
        a["balance_rows"] = a["quantize_rows"] and d.chance(0.5)
    factors = a["weights_shape"][0] if a.get("balance_rows") else 0
    _weights(d, call, dtype, offset=a.get("scales_offset", 0), factors=factors)


def _packed_matmul(d, call):
    a, b = call.attrs, _group(call, "b")[0]
    src = "float32" if a["transpose_a"] else d.of(*_TYPES)
    weights = {"uint8": ("int8",), "bfloat16": ("bfloat16", "float32")}
    dtype = d.of(*weights.get(src, ("bfloat16", "int8")))
    _weights(d, call, dtype, "b", columns=b.shape[0 if a["transpose_b"] else 1])
    a["src_quantization"] = _some_quantization(d, src)
    _become(_group(call, "a"), src, a["src_quantization"])
    if (src, dtype) == ("float32", "int8"):
        a["quantize_rows"] = d.chance(0.3)


def _rnn(d, call):
    call.attrs["training"] = False
    dtype, kernel = d.of("bfloat16", "int8"), _group(call, "kernel")[0]
    if dtype == "bfloat16":
        call.attrs["round_rows"] = d.chance(0.3)
    _become(_group(call, "recurrent_kernel"), dtype)
    _weights(d, call, dtype, "kernel", scales=2, columns=kernel.shape[1])


def _concat(d, call):
    dtype = d.of("bfloat16", "uint8")
    values = _group(call, "values")
    of_values = [_some_quantization(d, dtype) for _ in values]
    for value, quantization in zip(values, of_values, strict=True):
        _become([value], dtype, quantization)
    call.attrs["src_quantizations"] = [number for pair in of_values for number in pair]
    _set_dst(d, call, dtype, d.of(of_values[0], None))


def _shuffle(d, call):
    dtype = d.of("bfloat16", "uint8")
    _set(d, call, "src", dtype, None if call.attrs["layout"] else [])


def _reorder(d, call):
    if _group(call, "src")[0].dtype == "uint8":
        _set(d, call, "src", "uint8")
    if call.attrs["dst_type"] == "uint8":
        quantization = call.attrs["dst_quantization"] = _some_quantization(d, "uint8")
        _become(_group(call, "into"), "uint8", quantization)


_LOW_PRECISION = {
    "BlockdnnConcat": _concat,
    "BlockdnnConv": _conv,
    "BlockdnnEltwise": _eltwise,
    "BlockdnnGlobalPool": _activation,
    "BlockdnnInnerProduct": _inner_product,
    "BlockdnnPackedMatmul": _packed_matmul,
    "BlockdnnPad": _pad,
    "BlockdnnPool": _activation,
    "BlockdnnReorder": _reorder,
    "BlockdnnResize": _activation,
    "BlockdnnRnn": _rnn,
    "BlockdnnShuffle": _shuffle,
}


def in_low_precision(d, call):
    """The call with some tensors of low-precision types; as it is where its op has none."""
    if call.op in _LOW_PRECISION:
        _LOW_PRECISION[call.op](d, call)
    return call


# What they must give.


def stand_for(call, a):
    """The inputs as float32 that they stand for, without scales of weights; None where nothing
    says it, or where they are no numbers of a usual size."""
    if a.get("round_rows"):
        return None  # The CPU and the number of rows say what is rounded.
    scales = [array.draw() for array in _group(call, "weight_scales")]
    found, pairs = [], list(a.get("src_quantizations", ()))
    for argument, group in zip(definitions()[call.op].input_arg, call.inputs, strict=True):
        for i, array in enumerate(group):
            x, name = array.draw(), "src" if argument.name == "a" else argument.name
            if name == "weight_scales":
                continue
            quantization = a.get(f"{name}_quantization", ())
            if name == "values":
                quantization = pairs[2 * i : 2 * i + 2]
            if array.dtype != "uint8":
                quantization = ()
            elif not _usual(quantization or (1.0, 0)):
                return None
            if array.dtype == "int8" and scales:
                x = _scaled(x, a, scales[1 if name == "recurrent_kernel" else 0])
            elif name in ("weights", "b") and call.arrays()[0].dtype == "bfloat16":
                x = x.astype(BF16)  # floats among bfloat16 are rounded
            kept = array.dtype in ("float32", "bool")
            found.append(x if kept else real(x, quantization).astype(np.float32))
    if a.get("quantize_rows"):
        x = found[0].T if a.get("transpose_a") else found[0]
        if a.get("balance_rows"):
            rows, columns = a["weights_shape"]
            first = a.get("scales_offset", 0) + columns
            x = x * np.ravel(scales[0])[first : first + rows]
        x = _quantized_rows(x)
        found[0] = x.T if a.get("transpose_a") else x
    return found


def _usual(quantization):
    return len(quantization) == 2 and 1e-4 < quantization[0] < 1e3


def _scaled(w, a, scales):
    """Weights times the scale of their column, in the place that the attributes name."""
    if "weights_shape" not in a:
        scales = scales[:, None] if a.get("transpose_b") else scales
        return w * scales
    columns, offset = a["weights_shape"][-1], a.get("weights_offset", 0)
    size, first = np.prod(a["weights_shape"]), a.get("scales_offset", 0)
    wide = w.reshape(-1).astype(np.float32)
    own = np.ravel(scales)[first : first + columns]
    part = wide[offset : offset + size].reshape(-1, columns) * own
    wide[offset : offset + size] = part.reshape(-1)
    return wide.reshape(w.shape)


def _quantized_rows(x):
    """As Keras's quantize("int8") rounds them."""
    scale = np.float32(127) / (np.abs(x).max(-1, keepdims=True, initial=0) + np.float32(1e-7))
    return np.clip(np.round(x * scale), -127, 127) / scale


def is_low_precision(call, a):
    """Whether some tensor of the call stands for other numbers than it holds, or is rounded."""
    if call.op not in _LOW_PRECISION:
        return False
    types = {array.dtype for array in call.arrays()} | {_dst_type(call, a)}
    return call.op == "BlockdnnReorder" or bool(types & {"uint8", "bfloat16", "int8"})


def _dst_type(call, a):
    if call.op == "BlockdnnShuffle":
        return call.arrays()[0].dtype
    return tf.as_dtype(a["dst_type"]).name if "dst_type" in a else "float32"


def expected(call, a, define):
    """What the first result stands for, by `define`, the definition of the op in float32."""
    inputs = stand_for(call, a)
    if inputs is None or (result := define(a, *inputs)) is None:
        return None
    dtype, quantization = _dst_type(call, a), a.get("dst_quantization")
    if call.op in ("BlockdnnShuffle", "BlockdnnPad"):
        quantization = a["src_quantization"]
    quantization = tuple(quantization or (1.0, 0))
    if not _usual(quantization):
        return None
    values = result.values
    tolerance = result.tolerance * (5 if _rounds_planes(call, a) else 1) + _steps(a, inputs)
    if "int" in dtype:
        limits = np.iinfo(dtype)
        values = np.clip(values, *real(np.array([limits.min, limits.max]), quantization))
        tolerance = tolerance + 0.5001 * quantization[0]
    elif dtype != "float32":
        tolerance = tolerance + np.abs(values) * {"bfloat16": 2**-8, "float16": 2**-11}[dtype]
    return replace(result, values=values, tolerance=tolerance, quantization=quantization)


def _rounds_planes(call, a):
    """Whether Winograd's tiles may be of bfloat16 (winograd2x2), which is said in
    docs/algorithms.md."""
    is_rounded = call.op == "BlockdnnConv" and call.arrays()[0].dtype == "bfloat16"
    return is_rounded and a["algorithm"] in ("auto", "winograd")


def _steps(a, inputs):
    """What a row may be off where one of its numbers lies between two integers."""
    if not a.get("quantize_rows"):
        return 0
    x, w = inputs[:2]
    x = x.T if a.get("transpose_a") else x
    largest = np.abs(x).max(-1, keepdims=True, initial=0)
    return 2 * largest / 127 * np.abs(w).max(initial=0)


def reordered(a, src, *into):
    """What BlockdnnReorder between whole layouts gives, plain; or None."""
    whole = not (a["src_strides"] or a["dst_strides"] or a["src_offset"] or a["dst_offset"])
    named = {a["src_layout"], a["dst_layout"]} <= {"nhwc", "nChw16c", "nchw"}
    scale = a["scales"][0] if a["scales"] else 1.0
    if not whole or not named or into or len(a["dims"]) != 4 or len(a["scales"]) > 1:
        return None
    if not src.size or not 1e-4 < abs(scale) < 1e3 or a["dst_layout"] == "nchw":
        return None
    x = np.moveaxis(src, 1, 3) if a["src_layout"] == "nchw" else src
    return plain_channels(x, a["src_layout"], a["dims"][1]) * np.float32(scale)
