"""What the passes share besides the graph: choices, the report, what was decided so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..graph import Body, Node
from ..options import Options, reason_to_leave
from .precision.lowering import Lowering
from .report import Report

if TYPE_CHECKING:
    from .followers import Followers

# In `Context.leave`: the reason to make a Dense layer an inner product, not a convolution.
AS_PRODUCT = "as an inner product it needs no reorders"


@dataclass
class Context:
    """One try of the passes at one body; a new try has a new one.

    Attributes:
        options: what the caller chose.
        leave: label of a convolution (`Body.label`) -> the reason to leave it to TensorFlow. A pass
            that returns others has the passes start again, without these.
        lowering: how the precision is lowered; None for float32.
        bfloat16: labels of the convolutions and products that computed in bfloat16, in any body.
        report: what was done and what was not.
        followers: the element-wise idioms; none before `find_followers` has run.
        parts: of each part of the body that has reorders at its edges, the labels of its
            convolutions; those that move most come first.
    """

    options: Options = field(default_factory=Options)
    leave: Mapping[str, str] = field(default_factory=dict)
    lowering: Lowering | None = None
    bfloat16: set[str] = field(default_factory=set)
    report: Report = field(default_factory=Report)
    followers: Followers | None = None
    parts: list[tuple[str, ...]] = field(default_factory=list)

    def reason_to_leave(self, body: Body, node: Node) -> str | None:
        """Why a node is left alone whatever it is: its device, a loss, the caller's wish."""
        device = node.proto.device if node.proto is not None else ""
        if device and not device.upper().endswith(("CPU:0", "CPU:*")):
            return f"it is placed on {device}"
        label = body.label(node.name)
        return self.leave.get(label) or reason_to_leave(self.options, label)
