"""Softmax behind a converted op."""

from dataclasses import dataclass
from typing import ClassVar

from ....layout import NHWC
from ..primitive import Layout, Primitive


@dataclass(frozen=True, kw_only=True)
class Softmax(Primitive):
    """Along the last axis, the channels, of a plain tensor of any rank."""

    op: ClassVar[str] = "BlockdnnSoftmax"

    @property
    def dst_layout(self) -> Layout:
        return NHWC

    def layout_of(self, role: str) -> Layout:
        return NHWC
