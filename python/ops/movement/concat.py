"""Concatenation along the channels, also of some channels of each tensor."""

from collections.abc import Iterable

import tensorflow as tf

from ...graph import Ref
from ..arguments import quantization
from ..call import OpCall, function_of
from ..record import Quantization, Record


class Concat(Record, title="concatenation"):
    """The values side by side; one value of which some channels are taken is a slice.

    Attributes:
        parts: the channels of each value that are joined.
        src_parts: of each value (first channel, channels of the value); none where all values
            are joined whole.
        src_quantizations: of each value, where they are uint8.
    """

    readers = {
        "src_quantizations": lambda name, values: [x for v in values for x in quantization(name, v)]
    }
    parts: tuple[int, ...]
    src_parts: tuple[tuple[int, int], ...] = ()
    src_quantizations: tuple[Quantization, ...] = ()

    @property
    def is_slice(self) -> bool:
        return len(self.parts) == 1 and bool(self.src_parts)

    def channels_of(self, role: str) -> int | None:
        if role == "into":
            return super().channels_of(role)
        place = int(role.removeprefix("value "))
        return self.src_parts[place][1] if self.src_parts else self.parts[place]

    def dtype_of(self, role: str) -> int:
        return super().dtype_of("into" if role == "into" else "src")

    def quantization_of(self, role: str) -> Quantization:
        if role == "into" or not self.src_quantizations:
            return super().quantization_of(role)
        return self.src_quantizations[int(role.removeprefix("value "))]

    def _src_quantizations(self) -> tuple[Quantization, ...]:
        return self.src_quantizations or ((),)

    def fault(self) -> str | None:
        if sum(self.parts) != self.channels:
            return f"parts {list(self.parts)} of {self.channels} channels"
        if self.src_quantizations and len(self.src_quantizations) != len(self.parts):
            return f"{len(self.src_quantizations)} quantizations of {len(self.parts)} values"
        return super().fault()

    def _kind(self) -> str:
        if not self.src_parts:
            return f"channels {list(self.parts)}"
        parts = zip(self.src_parts, self.parts, strict=True)
        return f"channels {[f'{first}:{first + count}' for (first, _), count in parts]}"

    @staticmethod
    def roles(values: Iterable[Ref]) -> dict[str, Ref]:
        """The inputs of a node: a role for each value, in order."""
        return {f"value {i}": ref for i, ref in enumerate(values)}

    def attributes(self) -> dict:
        numbers = [number for part in self.src_parts for number in part]
        quantizations = [number for pair in self.src_quantizations for number in pair]
        return super().attributes() | {
            "channels": self.parts,
            "src_parts": numbers,
            "src_quantizations": quantizations,
        }

    def write(self, inputs, bundle) -> tuple[dict, list]:
        return self.attributes(), [[inputs[f"value {i}"] for i in range(len(self.parts))]]

    def shape(self, node, shapes):
        first = shapes.shape(node.inputs[0])
        return first and (*first[:-1], self.channels)


class Join(Record, title="join"):
    """Tensors one after the other along an axis of memory: on blocks, of rows or columns."""

    axis: int
    count: int

    roles = staticmethod(Concat.roles)

    def write(self, inputs, bundle) -> tuple[dict, list]:
        return self.attributes(), [[inputs[f"value {i}"] for i in range(self.count)]]


@function_of(Concat, "dst_part into")
def concat(values, *, channels, src_parts=None, src_quantizations=None, dst_quantization=None):
    """Joins blocked activations of any number of channels, or some channels of each.

    With one value and `src_parts` it is a slice of channels.

    Args:
      values: tensors [N, ceil(channels[i] / 16), H, W, 16] of one type: float32, bfloat16 or
        uint8.
      channels: logical channels that are joined, one integer for each value.
      src_parts: (first channel, C of the value) for each value, if not all channels of all
        values are joined. A part may begin and end at any channel.
      src_quantizations: (scale, zero_point) of each of the uint8 values.
      dst_quantization: of a uint8 result; default: that of the first value. Values of another
        one are scaled, rounded to the nearest number, ties to even, and saturated.

    Returns:
      [N, ceil(sum(channels) / 16), H, W, 16]. Channels follow each other without gaps, and
      lanes beyond the last one are zero.

    Source: tf.concat and tf.split along the channels.

    Example:
      >>> a, b = np.zeros((1, 1, 8, 8, 16), np.float32), np.zeros((1, 2, 8, 8, 16), np.float32)
      >>> bd.ops.concat([a, b], channels=[8, 32]).shape  # 40 channels are 3 blocks
      TensorShape([1, 3, 8, 8, 16])
      >>> bd.ops.concat([b], channels=[20], src_parts=[(10, 32)]).shape  # b[.., 10:30]
      TensorShape([1, 2, 8, 8, 16])
    """
    values = [tf.convert_to_tensor(value) for value in values]
    if dst_quantization is None and src_quantizations:
        dst_quantization = src_quantizations[0]
    attributes = {
        "channels": list(channels),
        "src_parts": [number for part in src_parts or () for number in part],
        "dst_type": values[0].dtype if values else tf.float32,
        "src_quantizations": src_quantizations or (),
        "dst_quantization": dst_quantization,
    }
    return OpCall((values,), attributes)


@function_of(Join, "axis")
def join(values):
    """Joins tensors along an axis, as tf.concat does, with the threads of this library.

    Args:
      values: tensors of one type and rank, equal in all sizes but that along the axis; float32,
        float64, bfloat16, float16, int8, uint8, int16, uint16, int32, int64 or bool.
      axis: an integer; a negative one counts from the last.

    Returns:
      A tensor of the values' type and rank.

    Source: tf.concat.

    Example:
      >>> bd.ops.join([[[1, 2]], [[3, 4]]], axis=1).numpy()
      array([[1, 2, 3, 4]], dtype=int32)
    """
    return OpCall(([tf.convert_to_tensor(value) for value in values],))
