"""How the wrappers read what users pass."""

from collections.abc import Sequence
from numbers import Integral, Real

import numpy as np
import tensorflow as tf

from ..graph import definition


class InvalidArgument(tf.errors.InvalidArgumentError, ValueError):
    """A request that cannot be met; the message is one line that names it and the remedy.

    It is both what an op raises when it runs and what it raises while a graph is built.
    """


def invalid(message: str) -> InvalidArgument:
    return InvalidArgument(None, None, message)


def pair(name: str, value) -> list[int]:
    """`value` as [height, width]: one integer for both, or two, also of NumPy.

    Raises:
      ValueError: it is neither.
    """
    return integers(name, value, "height", "width")


def integers(name: str, value, *dims: str) -> list[int]:
    """`value` for each of `dims`: one integer for all, or as many; also of NumPy.

    Raises:
      ValueError: it is neither.
    """
    if type(value) is int:  # as nearly always: the other checks take a microsecond
        return [value] * len(dims)
    values = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(values, Integral):
        return [int(values)] * len(dims)
    if isinstance(values, Sequence) and len(values) == len(dims):
        if all(isinstance(v, Integral) for v in values):
            return [int(v) for v in values]
    raise ValueError(f"{name} must be an integer or [{', '.join(dims)}], got {value!r}")


def padding_attrs(padding) -> dict:
    """The op attributes of "SAME", "VALID" or [[top, bottom], [left, right]].

    Raises:
      ValueError: it is none of these.
    """
    if isinstance(padding, str):
        if padding.upper() in ("SAME", "VALID"):
            return {"padding": padding.upper()}
    elif isinstance(padding, (Sequence, np.ndarray)) and len(padding) == 2:
        rows, columns = (pair("padding", axis) for axis in padding)
        return {"padding": "EXPLICIT", "explicit_paddings": rows + columns}
    raise ValueError(
        f'padding must be "SAME", "VALID" or [[top, bottom], [left, right]], got {padding!r}'
    )


def padding_argument(padding: str, explicit):
    """The argument that gave an op these two attributes."""
    if padding != "EXPLICIT":
        return padding
    top, bottom, left, right = explicit
    return [[top, bottom], [left, right]]


def sides(name: str, value) -> list[int]:
    """[[top, bottom], [left, right]] as one list.

    Raises:
      ValueError: it is anything else.
    """
    rows, columns = (pair(name, list(axis)) for axis in value)
    return rows + columns


def quantization(name: str, value) -> list[float]:
    """`value`, (scale, zero_point) of a uint8 tensor, as a list; the op checks the numbers.

    Raises:
      ValueError: it is no pair of numbers.
    """
    values = value.tolist() if isinstance(value, np.ndarray) else value
    if isinstance(values, Sequence) and len(values) == 2:
        if all(isinstance(v, Real) for v in values):
            return [float(v) for v in values]
    raise ValueError(f"{name} must be (scale, zero_point), got {value!r}")


def types_of(src, dtype, src_quantization, dst_quantization) -> dict:
    """The attributes for the types of an op that by default writes what it reads of `src`."""
    dtype = src.dtype if dtype is None else tf.dtypes.as_dtype(dtype)
    if dst_quantization is None and dtype == src.dtype:
        dst_quantization = src_quantization
    quantized = {} if dst_quantization is None else {"dst_quantization": dst_quantization}
    return {"dst_type": dtype} | quantized


# Attributes that say how an op runs, each by words of `how`: those of a choice are the values.
CHOICES = ("algorithm", "scratchpad_mode")
FLAGS = {"constant_weights": "constant", "constant_b": "constant", "round_rows": "rounded"}
# What `how` says of those words, where a docstring does not.
HOW = {
    "direct": "sums exactly the products of the definition, where the default, "
    '"auto", takes what is faster; the other algorithms are those of `conv`',
    "constant": "weights and channel operands never change, so that the op may keep their packed "
    "form from the first call on",
    "rounded": "rows may become bfloat16 where they are multiplied",
    "library": "temporary memory stays with the kernel, instead of coming from TensorFlow's "
    'allocator for each execution ("user", the default). Both are safe on many threads',
}


def how_words(op: str) -> dict[str, tuple[str, object]]:
    """The words of `how` that an op takes: word -> (attribute, value)."""
    words = {}
    for attr in definition(op).attr:
        if attr.name in CHOICES:
            words |= {w.decode(): (attr.name, w.decode()) for w in attr.allowed_values.list.s}
        elif attr.name in FLAGS:
            words[FLAGS[attr.name]] = attr.name, True
    return words


def read_how(words: dict[str, tuple[str, object]], how) -> dict:
    """The attributes that `how` says, words in any order.

    Raises:
      ValueError: an unknown word, or two of one attribute.
    """
    attributes = {}
    for word in how.split() if isinstance(how, str) else [how]:
        if word not in words:
            raise ValueError(f"how: {word!r} is none of the words {', '.join(words)}")
        attribute, value = words[word]
        if attributes.setdefault(attribute, value) != value:
            raise ValueError(f"how: {how!r} says {attribute} twice")
    return attributes


# Argument -> how the attribute of that name comes from (name, what users pass).
READERS = {
    "crops": sides,
    "dilations": pair,
    "dst_part": pair,
    "dst_quantization": quantization,
    "ksize": pair,
    "paddings": sides,
    "pool": pair,
    "src_part": pair,
    "src_quantization": quantization,
    "strides": pair,
    "sum_quantization": quantization,
}

# What docstrings of functions say of arguments that they leave out.
ARGUMENTS = {
    "args": "float32 operands that the chain calls #0, #1, ... A channel operand has an element "
    "for each output channel; a tensor operand and the operand of a sum have the shape and layout "
    "of the result. Operands that `PostOps` holds are not listed here.",
    "channels": "C.",
    "dilations": "pixels between neighbours in the kernel, one integer or [height, width].",
    "dst": "the previous contents of the result, which sums without an operand add: float32, of "
    "the shape of the result, plain or in its layout. The result takes the memory of dst if "
    "nobody else holds it; otherwise dst stays as it is.",
    "dst_layout": '"nhwc" or "nChw16c".',
    "dst_part": "(first channel, C of the whole) if the result is a part of the channels of a "
    "wider tensor. The wider tensor is returned, and the op writes only the part. The rest is what "
    "`into` holds, and undefined without it.",
    "dst_quantization": "(scale, zero_point) of a uint8 result, by default that of src. Results "
    "are rounded to the nearest number, ties to even, and saturated.",
    "dtype": "of the result: float32, bfloat16 or uint8; by default that of src.",
    "into": "a tensor of the shape of the wider one of dst_part. The result takes its memory if "
    "nobody else holds it, and otherwise a copy.",
    "layout": '"nhwc" or "nChw16c".',
    "name": "of the op.",
    "padding": '"SAME", "VALID" (TensorFlow\'s rules) or [[top, bottom], [left, right]] pixels of '
    "zeros.",
    "post_ops": 'a `PostOps`, or its text, which joins entries by ";", for example '
    '"binary(add,channel,#0);sum(#1);eltwise(relu)".',
    "src_blocks": "with src_part = (0, a multiple of 16), which blocks of 16 channels of the wider "
    "tensor are src, ascending, if they do not follow each other.",
    "src_layout": '"nhwc" or "nChw16c".',
    "src_part": "(first channel, C of the whole) if src is a part of the channels of a wider "
    "nChw16c tensor, which is then passed. A part starts at a multiple of 16 channels, and it ends "
    "at one or with the tensor.",
    "src_quantization": "(scale, zero_point) of a uint8 src, which stands for "
    "scale * (src - zero_point).",
    "strides": "pixels, one integer or [height, width].",
    "weights_offset": "elements of weights before those that are read.",
    "weights_shape": "where weights are part of a tensor of any shape: the op reads its elements "
    "[weights_offset, weights_offset + prod(weights_shape)), in memory order. Default: the shape "
    "of weights.",
}
# The errors of functions that name no others.
RAISES = """Raises:
  ValueError: an argument is malformed; or shapes do not fit each other while a graph is built.
  InvalidArgumentError: shapes do not fit each other when it runs."""


def refuse_references(name: str, weights) -> None:
    """Raises InvalidArgument where weights come straight from a reference variable.

    Assigning one writes into the memory that holds its value, which no kernel sees: it would go on
    with weights that it packed before.
    """
    if tf.executing_eagerly():
        return  # there are none
    read = tf.convert_to_tensor(weights).op
    if any(source.dtype._is_ref_dtype for source in read.inputs):
        raise invalid(
            f"{name}: a reference variable cannot be packed; make it with use_resource=True"
        )


def filter_shape(name: str, weights, shape, *dims: str) -> list[int]:
    """`shape`, or that of the weights if it is None; `dims` says what each dimension is.

    Raises:
      ValueError: the weights do not tell, or are a reference variable.
    """
    refuse_references(name, weights)
    if shape is not None:
        return [int(size) for size in shape]
    static = (
        weights.shape if isinstance(weights, tf.Tensor) else tf.convert_to_tensor(weights).shape
    )
    if static.rank == len(dims) and static.is_fully_defined():
        return static.as_list()
    raise ValueError(f"{name} of shape {static} are not [{', '.join(dims)}]; give {name}_shape")


def static_channels(tensor, layout: str, channels: int | None) -> int:
    """`channels`, or the last dimension of a plain tensor when that is None.

    Raises:
      ValueError: the tensor does not say.
    """
    if channels is not None:
        return channels
    if layout == "nhwc" and tensor.shape.rank and tensor.shape[-1] is not None:
        return tensor.shape[-1]
    raise ValueError(
        f"channels must be given: a tensor of layout {layout} and shape {tensor.shape} "
        "does not tell how many of its lanes are channels"
    )


def as_images(x):
    """A plain tensor [N, .., C] of any rank as images [N, H, W, C] of the same memory."""
    sizes = tf.unstack(tf.shape(x))
    first, middle = sizes[0] if len(sizes) > 1 else 1, sizes[1:-1]
    return tf.reshape(x, tf.stack([first, *(middle[:1] or [1]), _product(middle[1:]), sizes[-1]]))


def as_before(y, x):
    """`y`, computed from `as_images(x)`, in the shape of x."""
    y = tf.reshape(y, tf.shape(x))
    y.set_shape(x.shape)
    return y


def _product(sizes: list):
    return tf.reduce_prod(tf.stack(sizes)) if sizes else 1


def pair_text(sizes: tuple[int, int]) -> str:
    """ "2", or "2x1" where the two differ."""
    return str(sizes[0]) if sizes[0] == sizes[1] else f"{sizes[0]}x{sizes[1]}"


def padding_text(window) -> str:
    """Of a convolution or a pooling, for the report."""
    explicit = f"pad {list(window.explicit_paddings)}"
    return explicit if window.padding == "EXPLICIT" else window.padding.lower()
