"""What the passes share besides the graph: choices, the report, what was decided so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..graph import Body, Node, Sizes
from ..options import Options, reason_to_leave
from .precision.lowering import Lowering
from .report import Report

if TYPE_CHECKING:
    from .followers import Followers

# In `Context.leave`: the reason to make a Dense layer an inner product, not a convolution.
AS_PRODUCT = "as an inner product it needs no reorders"


@dataclass
class Context:
    """One run of the pipeline over one function.

    Attributes:
        options: what the caller chose.
        report: what was done and what was not.
        leave: label of a convolution (`Body.label`) -> the reason to leave it to TensorFlow.
            Where a pass adds to it, the pipeline starts again on a copy of the graph as it was
            captured.
        followers: the element-wise idioms; none before `find_followers` has run.
        parts: of each part of the graph that has reorders at its edges, the labels of its
            convolutions; those that move most come first.
        bfloat16: labels of the convolutions and products that computed in bfloat16.
        lowering: how the precision is lowered; None for float32.
        read: (handle, value) of each variable whose value is part of the function.
        structure: of its graph, all but the weights; for live ones.
        sizes: what sizes of arguments tell of those of results.
        running: the name of the pass that runs, for the account of a failure.
    """

    options: Options = field(default_factory=Options)
    report: Report = field(default_factory=Report)
    leave: dict[str, str] = field(default_factory=dict)
    followers: Followers | None = None
    parts: list[tuple[str, ...]] = field(default_factory=list)
    bfloat16: set[str] = field(default_factory=set)
    lowering: Lowering | None = None
    read: list[tuple] = field(default_factory=list)
    structure: bytes = b""
    sizes: Sizes = Sizes()
    running: str = ""

    def reason_to_leave(self, body: Body, node: Node) -> str | None:
        """Why a node is left alone whatever it is: its device, a loss, the caller's wish."""
        device = node.proto.device if node.proto is not None else ""
        if device and not device.upper().endswith(("CPU:0", "CPU:*")):
            return f"it is placed on {device}"
        label = body.label(node.name)
        return self.leave.get(label) or reason_to_leave(self.options, label)
