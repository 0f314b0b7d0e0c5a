"""What the passes share besides the graph: choices, the report, what was decided so far.

Nobody edits a `Context`. A pass returns what it has decided, field -> value, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from ..graph import Body, Node
from ..options import Options, reason_to_leave
from .precision.lowering import Lowering
from .report import Report

if TYPE_CHECKING:
    from .followers import Followers

# In `Context.leave`: the reason to make a Dense layer an inner product, not a convolution.
AS_PRODUCT = "as an inner product it needs no reorders"


@dataclass(frozen=True)
class Context:
    """What is known when a pass begins, in one try at one body.

    Attributes:
        options: what the caller chose.
        leave: label of a convolution (`Body.label`) -> the reason to leave it to TensorFlow. When
            it grows, the passes start again, without these.
        lowering: how the precision is lowered; None for float32.
        bfloat16: labels of the convolutions and products that computed in bfloat16.
        report: what was done and what was not.
        followers: the element-wise idioms; none before `find_followers` has run.
        parts: of each part of the body that has reorders at the edges, the labels of the
            convolutions; those that move most come first.
    """

    options: Options = field(default_factory=Options)
    leave: Mapping[str, str] = field(default_factory=dict)
    lowering: Lowering | None = None
    bfloat16: frozenset[str] = frozenset()
    report: Report = field(default_factory=Report)
    followers: Followers | None = None
    parts: tuple[tuple[str, ...], ...] = ()

    def after(self, run: Callable, body: Body) -> Context:
        """Runs a pass; what is known when it has run."""
        return replace(self, **(run(body, self) or {}))

    def reason_to_leave(self, body: Body, node: Node) -> str | None:
        """Why a node is left alone whatever it is: the device, a loss, the caller's wish."""
        device = node.proto.device if node.proto is not None else ""
        if device and not device.upper().endswith(("CPU:0", "CPU:*")):
            return f"it is placed on {device}"
        label = body.label(node.name)
        return self.leave.get(label) or reason_to_leave(self.options, label, self.report.prefix)
