"""Max and average pooling in windows."""

from dataclasses import dataclass
from typing import ClassVar

from ..primitive import Primitive, padding_attributes, padding_text, pair_text


@dataclass(frozen=True, kw_only=True)
class Pool(Primitive):
    op: ClassVar[str] = "BlockdnnPool"
    kind: str
    ksize: tuple[int, int]
    strides: tuple[int, int]
    padding: str
    explicit_paddings: tuple[int, int, int, int] = (0, 0, 0, 0)

    def _kind(self) -> str:
        size = f"{self.ksize[0]}x{self.ksize[1]}"
        return f"{self.kind} {size} stride {pair_text(self.strides)} {padding_text(self)}"

    def attributes(self) -> dict:
        return {
            "kind": self.kind,
            "channels": self.channels,
            "ksize": list(self.ksize),
            "strides": list(self.strides),
        } | padding_attributes(self)
