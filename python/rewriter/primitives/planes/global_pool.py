"""Maximum or mean of each plane."""

from dataclasses import dataclass
from typing import ClassVar

from ..primitive import Layout, Primitive


@dataclass(frozen=True, kw_only=True)
class GlobalPool(Primitive):
    op: ClassVar[str] = "BlockdnnGlobalPool"
    kind: str
    writes: Layout = "nc"

    @property
    def dst_layout(self) -> Layout:
        return self.writes

    def _kind(self) -> str:
        return f"{self.kind} of {self.channels} channels, writes {self.writes}"

    def attributes(self) -> dict:
        return {"kind": self.kind, "channels": self.channels, "dst_layout": self.writes}
