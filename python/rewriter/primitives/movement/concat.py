"""Tensors side by side along the channels."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ....graph import Ref
from ..bundle import Bundle
from ..primitive import Primitive


@dataclass(frozen=True, kw_only=True)
class Concat(Primitive):
    op: ClassVar[str] = "BlockdnnConcat"
    parts: tuple[int, ...]

    def _kind(self) -> str:
        return f"channels {list(self.parts)}"

    def attributes(self) -> dict:
        return {"channels": list(self.parts), "N": len(self.parts)}

    @staticmethod
    def roles(values: Iterable[Ref]) -> dict[str, Ref]:
        """The inputs of a node: a role for each value, in order."""
        return {f"value {i}": ref for i, ref in enumerate(values)}

    def write(self, inputs: dict[str, Ref], bundle: Bundle) -> tuple[dict, list[Ref]]:
        return self.attributes(), [inputs[f"value {i}"] for i in range(len(self.parts))]

    def shape(self, node, shapes):
        first = shapes.shape(node.inputs[0])
        return first and (*first[:-1], self.channels)
