"""Zeros around planes, or rows and columns cut off."""

from dataclasses import dataclass
from typing import ClassVar

from ..primitive import Primitive


@dataclass(frozen=True, kw_only=True)
class Pad(Primitive):
    """
    Attributes:
        paddings: top, bottom, left, right; negative numbers cut off.
    """

    op: ClassVar[str] = "BlockdnnPad"
    paddings: tuple[int, int, int, int]

    def _kind(self) -> str:
        return f"{list(self.paddings)}"

    def attributes(self) -> dict:
        return {"channels": self.channels, "paddings": list(self.paddings)}
