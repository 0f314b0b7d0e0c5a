"""What is wrong with a call: mutations of a valid one, and calls that were never valid."""

import copy

from call import Array, Call, blocks
from make_call import attr_value, definitions, plain

_INTS = (0, 1, -1, 2, 3, 15, 16, 17, -(2**31), 2**31 - 1, 2**31, 2**30, 2**32, 2**40, 2**62)
_INTS += (2**63 - 1, -(2**63), 2**63 - 16, 1000, 100000, 3037000500, 7, 2**32 + 1)
_FLOATS = (0.0, -1.0, 1e-45, 1e30, -1e38, float("inf"), float("-inf"), float("nan"))
_STRINGS = ("", "nhwc", "nchw", "nChw16c", "nChw8c", "OIhw16i16o", "SAME", "EXPLICIT", "auto")
_STRINGS += ("winograd", "direct", "max", "\N{SNOWMAN}", "x" * 5000, "a\x00b", "lstm", "bilinear")
_POST_OPS = (
    "eltwise(relu)",
    "sum(#0)",
    "sum()",
    "sum(#9223372036854775807)",
    "binary(add,channel,#0@9223372036854775807)",
    "binary(add,channel,#0@9223372036854775800)",
    "binary(add,channel,#0@1)",
    "binary(mul,tensor,#0@4)",
    "binary(add,scalar,#2147483648)",
    "binary(add,sample_channel,#0)",
    "binary(add,channel,#0)",
    "binary(prelu,tensor,#1)",
    "binary(add,channel,#-1)",
    "eltwise(clip,alpha=nan,beta=1)",
    "eltwise(pow,alpha=1e38,beta=-1e38)",
    "eltwise(linear,alpha=1e39)",
    "eltwise(sine)",
    ";;;",
    "eltwise(relu",
    "eltwise(relu)" + ";eltwise(abs)" * 31,
    "eltwise(relu)" + ";eltwise(abs)" * 5000,
    "(" * 10000,
)
_TYPES = ("float32", "float64", "float16", "bfloat16", "int32", "int64", "int8", "uint8", "bool")


def _value(d, kind, old):
    """A hostile value of an attribute of that kind."""
    if kind.startswith("list("):
        one = kind[len("list(") : -1]
        values = list(old or [])
        how = d.of("change", "change", "change", "empty", "long", "append", "cut", "all")
        if how == "change" and values:
            values[d.to(0, len(values) - 1)] = _value(d, one, None)
        elif how == "all":
            values = [_value(d, one, None)] * d.to(1, 6)
        elif how == "long":
            values = (values or [1]) * 1000
        elif how == "append":
            values.append(_value(d, one, None))
        else:
            values = values[: -1 if how == "cut" else 0]
        return values
    if kind == "int" and isinstance(old, int) and d.chance(0.3):
        return max(-(2**63), min(old + d.of(-1, 1, 16, -16), 2**63 - 1))
    if kind == "bool":
        return not old
    return d.of(*{"int": _INTS, "float": _FLOATS, "string": _STRINGS, "type": _TYPES}[kind])


def _is_free(call, attr):
    """Whether the attribute does not follow from the inputs."""
    arguments = definitions()[call.op].input_arg
    follows = {argument.type_attr for argument in arguments}
    return attr.name not in follows and attr.type not in ("func", "list(shape)")


def hostile_value(d, attr, old):
    """Another value, as an AttrValue, of the attribute `attr`, an AttrDef, which was `old`."""
    if attr.name.endswith("post_ops"):
        value = d.of(*_POST_OPS)
    else:
        old = plain(old)
        value = _value(d, attr.type, old)
    if attr.name.startswith("num_") or attr.name == "N":
        value = max(0, min(value, 1000))  # others TensorFlow itself cannot bear
    return attr_value(attr.type, value)


def _is_of_types(attr):
    """Whether it says what elements are, or what they stand for."""
    return attr.type == "type" or "quantization" in attr.name or "scales" in attr.name


def _spoil_attr(d, call):
    attrs = [attr for attr in definitions()[call.op].attr if _is_free(call, attr)]
    types = [attr for attr in attrs if _is_of_types(attr)]
    if types and d.chance(0.3):
        attrs = types
    if attrs:
        attr = d.of(*attrs)
        old = attr_value(attr.type, call.attrs[attr.name]) if attr.name in call.attrs else None
        call.attrs[attr.name] = plain(hostile_value(d, attr, old or attr.default_value))


def _shape(d, shape):
    """Another shape; one without elements may have sizes that no memory could hold."""
    shape = list(shape)
    how = d.of("size", "size", "size", "drop", "add", "rank", "empty", "flat")
    if how == "size" and shape:
        i = d.to(0, len(shape) - 1)
        shape[i] = max(0, shape[i] + d.of(-1, 1, -16, 16, -shape[i], 1 - shape[i]))
    elif how == "drop" and shape:
        shape.pop(d.to(0, len(shape) - 1))
    elif how == "add":
        shape.insert(d.to(0, len(shape)), d.of(0, 1, 2))
    elif how == "empty" and len(shape) > 1:
        shape[d.to(0, len(shape) - 1)] = d.of(2**20, 2**31 - 1, 2**31, 2**40)
        shape[d.to(0, len(shape) - 1)] = 0
    elif how == "flat":
        size = 1
        for one in shape:
            size *= one
        shape = [size]
    else:
        shape = [d.of(0, 1, 2, 3, 16) for _ in range(d.to(0, 8))]
    size = 1
    for one in shape:
        size *= one
    return tuple(shape) if size < 1 << 20 else ()


def _spoil_input(d, call):
    arrays = call.arrays()
    if not arrays:
        return
    array = d.of(*arrays)
    if d.chance(0.15):
        array.dtype = d.of(*_TYPES)
    else:
        array.shape, array.values = _shape(d, array.shape), None


def _vast(d, call):
    """No images, but of more channels than any memory could hold, consistently."""
    channels = d.of(2**31 - 1, 2**31, 2**40, 2**59, 2**62, 2**63 - 1)
    old = call.attrs.get("channels")
    if not isinstance(old, int):
        return _spoil_attr(d, call)
    call.attrs["channels"] = channels
    for array in call.arrays():
        if array.channels == old:
            array.shape = (0, blocks(channels), *array.shape[2:])


def _spoil_count(d, call):
    """One tensor more or less in an argument, with or without the attribute that counts them."""
    arguments = definitions()[call.op].input_arg
    lists = [i for i, argument in enumerate(arguments) if argument.number_attr]
    if not lists:
        return _spoil_input(d, call)
    i = d.of(*lists)
    if call.inputs[i] and d.chance():
        call.inputs[i].pop()
    else:
        others = call.arrays()
        call.inputs[i].append(copy.deepcopy(d.of(*others)) if others else Array((2, 2)))
    if d.chance(0.8):
        call.attrs[arguments[i].number_attr] = len(call.inputs[i])


def spoiled(d, call):
    """The call with one thing changed, which may leave it valid; now and then more than one."""
    call = copy.deepcopy(call)
    for _ in range(d.of(1, 1, 1, 2, 3)):
        ways = (_spoil_attr, _spoil_input, _spoil_count)
        d.of(*3 * ways, _spoil_attr, _spoil_attr, _vast)(d, call)
    return call


def wild(d, op):
    """A call of which every attribute and every input is drawn without sense."""
    definition = definitions()[op]
    call = Call(op, [])
    for argument in definition.input_arg:
        count = d.to(0, 3) if argument.number_attr or argument.type_list_attr else 1
        shapes = [_shape(d, [d.of(1, 2, 3, 16) for _ in range(d.to(0, 6))]) for _ in range(count)]
        dtype = "float32" if d.chance(0.9) else d.of(*_TYPES)
        call.inputs.append([d.array(*shape, dtype=dtype) for shape in shapes])
        if argument.number_attr:
            call.attrs[argument.number_attr] = count
    for attr in definition.attr:
        if attr.name in call.attrs or not _is_free(call, attr):
            continue
        allowed = [value.decode() for value in attr.allowed_values.list.s]
        if allowed:
            call.attrs[attr.name] = d.of(*allowed)
        elif attr.name.endswith("post_ops"):
            call.attrs[attr.name] = d.of("", *_POST_OPS)
        elif d.chance(0.7):
            call.attrs[attr.name] = _value(d, attr.type, None)
    for attr in definition.attr:  # what has no default must be there
        if not attr.HasField("default_value") and attr.name not in call.attrs and attr.name != "T":
            kind = attr.type
            call.attrs[attr.name] = [] if kind.startswith("list(") else _value(d, kind, False)
    return call
