"""Another shape for the memory of a tensor."""

from dataclasses import dataclass
from typing import ClassVar

from ....layout import NCHW16C as BLOCKED
from ....layout import NHWC
from ..primitive import Layout, Primitive


@dataclass(frozen=True, kw_only=True)
class Reshape(Primitive):
    """TensorFlow's Reshape between layouts that are one in memory; `shape` is its input."""

    op: ClassVar[str] = "Reshape"
    own: ClassVar[tuple[str, ...]] = ("src", "shape")
    reads: Layout = BLOCKED
    writes: Layout = BLOCKED

    @property
    def dst_layout(self) -> Layout:
        return self.writes

    def layout_of(self, role: str) -> Layout:
        return NHWC if role == "shape" else self.reads
