"""Element-wise work that no other primitive takes in."""

from dataclasses import dataclass
from typing import ClassVar

from ....layout import NCHW16C as BLOCKED
from ..primitive import Layout, Primitive


@dataclass(frozen=True, kw_only=True)
class Eltwise(Primitive):
    """A chain of steps on a tensor that stays in its layout."""

    op: ClassVar[str] = "BlockdnnEltwise"
    takes_steps: ClassVar[bool] = True
    layout: Layout = BLOCKED

    @property
    def dst_layout(self) -> Layout:
        return self.layout

    def layout_of(self, role: str) -> Layout:
        return self.layout

    def attributes(self) -> dict:
        return {"layout": self.layout, "channels": self.channels}
