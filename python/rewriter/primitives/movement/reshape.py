"""Another shape for the memory of a blocked tensor."""

from dataclasses import dataclass
from typing import ClassVar

from ..primitive import Layout, Primitive


@dataclass(frozen=True, kw_only=True)
class Reshape(Primitive):
    """TensorFlow's Reshape of a blocked tensor to another blocked one; `shape` is its input."""

    op: ClassVar[str] = "Reshape"
    own: ClassVar[tuple[str, ...]] = ("src", "shape")

    def layout_of(self, role: str) -> Layout:
        return "nhwc" if role == "shape" else super().layout_of(role)
