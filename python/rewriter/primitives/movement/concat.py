"""Tensors, or some channels of each, side by side along the channels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ....graph import Ref
from ..bundle import Bundle
from ..primitive import Primitive


@dataclass(frozen=True, kw_only=True)
class Concat(Primitive):
    """The values side by side; one value of which some channels are taken is a slice.

    Attributes:
        parts: the channels of each value that are joined.
        src_parts: of each value (first channel, channels of the value); none where all values
            are joined whole.
    """

    op: ClassVar[str] = "BlockdnnConcat"
    parts: tuple[int, ...]
    src_parts: tuple[tuple[int, int], ...] = ()

    @property
    def is_slice(self) -> bool:
        return len(self.parts) == 1 and bool(self.src_parts)

    def _kind(self) -> str:
        if not self.src_parts:
            return f"channels {list(self.parts)}"
        parts = zip(self.src_parts, self.parts, strict=True)
        return f"channels {[f'{first}:{first + count}' for (first, _), count in parts]}"

    def attributes(self) -> dict:
        numbers = [number for part in self.src_parts for number in part]
        return {"channels": list(self.parts), "N": len(self.parts), "src_parts": numbers}

    @staticmethod
    def roles(values: Iterable[Ref]) -> dict[str, Ref]:
        """The inputs of a node: a role for each value, in order."""
        return {f"value {i}": ref for i, ref in enumerate(values)}

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        return self.attributes(), [inputs[f"value {i}"] for i in range(len(self.parts))]

    def shape(self, node, shapes):
        first = shapes.shape(node.inputs[0])
        return first and (*first[:-1], self.channels)
