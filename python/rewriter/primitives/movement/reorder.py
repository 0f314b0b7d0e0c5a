"""A change of the layout."""

from dataclasses import dataclass
from typing import ClassVar

from ..primitive import Layout, Primitive


@dataclass(frozen=True, kw_only=True)
class Reorder(Primitive):
    op: ClassVar[str] = "BlockdnnReorder"
    reads: Layout
    writes: Layout

    @property
    def dst_layout(self) -> Layout:
        return self.writes

    def layout_of(self, role: str) -> Layout:
        return self.reads

    def shape(self, node, shapes):
        return shapes.shape(node.inputs[0])

    def attributes(self) -> dict:
        return {"src_layout": self.reads, "dst_layout": self.writes, "channels": self.channels}
