"""Resizing of planes."""

from dataclasses import dataclass
from typing import ClassVar

from ..primitive import Primitive, pair_text


@dataclass(frozen=True, kw_only=True)
class Resize(Primitive):
    """Attributes: scales or size, [height, width]; the other one is empty."""

    op: ClassVar[str] = "BlockdnnResize"
    kind: str
    coordinates: str = "half_pixel"
    scales: tuple[int, ...] = ()
    size: tuple[int, ...] = ()

    def _kind(self) -> str:
        to = f"by {pair_text(self.scales)}" if self.scales else f"to {list(self.size)}"
        return f"{self.kind} {to} {self.coordinates}"

    def attributes(self) -> dict:
        return {
            "kind": self.kind,
            "coordinates": self.coordinates,
            "channels": self.channels,
            "scales": list(self.scales),
            "size": list(self.size),
        }
