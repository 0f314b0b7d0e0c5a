"""What an edge carries: the format of a tensor, as the producer writes it and as a reader reads it.

Of our ops it follows from their attributes, of TensorFlow's from the definitions of the ops and the
rules of shapes.
"""

from typing import NamedTuple

from ..layout import NCHW16C as BLOCKED
from ..layout import NHWC
from .body import Body
from .types import dtype_name, input_dtypes, output_dtypes
from .view import Node, Ref


class Format(NamedTuple):
    """None stands for what is not known, and in what a reader reads for what it does not mind.

    Attributes:
        dtype: a data type as NodeDefs have it.
        layout: nChw16c, or nhwc for any plain tensor.
        channels: the size of the last dimension, [N, H, W, C].
        rank: how many dimensions it has, blocked tensors without their blocks.
        quantization: (scale, zero_point) of uint8.
    """

    dtype: int | None = None
    layout: str | None = None
    channels: int | None = None
    rank: int | None = None
    quantization: tuple | None = None

    def conflict(self, wanted: "Format") -> str | None:
        """What of this format is another than what is wanted, in one line."""
        for name, value, other in zip(self._fields, self, wanted, strict=True):
            if value is not None and other is not None and value != other:
                if name == "dtype":
                    value, other = dtype_name(value), dtype_name(other)
                return f"{name} {value}, not {other}"
        return None


def written(body: Body, ref: Ref) -> Format:
    """The format of a tensor of the body."""
    node, shape = body.view.producer(ref), body.shapes.shape(ref)
    rank = None if shape is None else len(shape)
    if (payload := node.payload) is not None:
        layout = BLOCKED if payload.dst_layout == BLOCKED else NHWC
        channels = payload.dst_part[1] if payload.dst_part else payload.channels
        dtype = output_dtypes(node)[ref.port]
        return Format(dtype, layout, channels, rank, payload.dst_quantization or None)
    channels = shape[-1] if shape and isinstance(shape[-1], int) else None
    types = output_dtypes(node)
    return Format(types[ref.port] if types else None, NHWC, channels, rank)


def read(node: Node) -> list[Format]:
    """The format that the node wants of each input, in their order."""
    if (payload := node.payload) is None:
        layout = None if node.op == "Shape" else NHWC  # that of a blocked tensor is one, too
        return [Format(dtype, layout) for dtype in input_dtypes(node)]
    formats = []
    for role in node.roles:
        blocked = payload.layout_of(role) == BLOCKED
        layout, rank = (BLOCKED, 4) if blocked else (NHWC, None)
        dtype, channels = payload.dtype_of(role), payload.channels_of(role)
        quantization = payload.quantization_of(role) or None
        formats.append(Format(dtype, layout, channels, rank, quantization))
    return formats
