"""Channel shuffle."""

from dataclasses import dataclass
from typing import ClassVar

from ..primitive import Primitive


@dataclass(frozen=True, kw_only=True)
class Shuffle(Primitive):
    """The channels as a (channels / group) x group matrix, transposed."""

    op: ClassVar[str] = "BlockdnnShuffle"
    group: int

    def _kind(self) -> str:
        return f"{self.channels} channels, group {self.group}"

    def attributes(self) -> dict:
        return {
            "axis": 1,
            "group": self.group,
            "layout": self.dst_layout,
            "channels": self.channels,
            "backward": False,
        }
